  const data = JSON.parse(document.getElementById("data").textContent);
  const { runs, columns, images } = data;
  const $ = (id) => document.getElementById(id);

  // Text goes in as text; nothing here ever parses HTML.
  function fill(node, attributes, children) {
    for (const [key, value] of Object.entries(attributes)) {
      if (value === null || value === undefined) continue;
      if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
      else node.setAttribute(key, value);
    }
    node.append(...children);
    return node;
  }
  const make = (tag, attributes = {}, ...children) =>
    fill(document.createElement(tag), attributes, children);
  const svg = (tag, attributes = {}, ...children) =>
    fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
  const digits = (value, n = 3) => (value === null || value === undefined ? "–" : value.toFixed(n));
  const label = (column) =>
    runs.length > 1 && column.run >= 0 ? `${runs[column.run].name}: ${column.label}` : column.label;
  const mains = columns.map((column, k) => ({ ...column, k })).filter((column) => column.main);

  // Each image's pictures lie in a block of their own, read when they are first looked at.
  const seen = new Map();
  function pictures(i) {
    if (!seen.has(i)) {
      const block = $(`pictures-${i}`);
      seen.set(i, block ? JSON.parse(block.textContent) : {});
    }
    return seen.get(i);
  }

  // ---- axes shared by the plots -----------------------------------------------------------------
  const LEFT = 44, TOP = 12, SIZE = 400, FRAME = { width: 490, height: 458 };
  const x = (v) => LEFT + SIZE * v;
  const y = (v) => TOP + SIZE * (1 - v);

  function axes(into, name, xlabel, ylabel, top = 1) {
    const root = svg("svg", {
      viewBox: `0 0 ${FRAME.width} ${FRAME.height}`, role: "application", tabindex: "0", "aria-label": name,
    });
    for (let k = 0; k <= 10; k++) {
      const v = k / 10;
      root.append(svg("line", { class: "grid", x1: x(v), x2: x(v), y1: y(0), y2: y(1) }));
      root.append(svg("line", { class: "grid", x1: x(0), x2: x(1), y1: y(v), y2: y(v) }));
      if (k % 2) continue;
      root.append(svg("text", { x: x(v), y: y(0) + 15, "text-anchor": "middle" }, (v * top).toFixed(1)));
      root.append(svg("text", { x: x(0) - 6, y: y(v) + 4, "text-anchor": "end" }, (v * top).toFixed(1)));
    }
    root.append(svg("path", { class: "axis", d: `M${x(0)},${y(1)}V${y(0)}H${x(1)}` }));
    root.append(svg("text", { x: x(0.5), y: FRAME.height - 6, "text-anchor": "middle" }, xlabel));
    root.append(svg("text", {
      transform: `translate(12 ${y(0.5)}) rotate(-90)`, "text-anchor": "middle",
    }, ylabel));
    into.replaceChildren(root);
    return root;
  }
  // Where the pointer is, in the units of the frame.
  function pointer(root, event) {
    const box = root.getBoundingClientRect();
    return [
      ((event.clientX - box.left) / box.width) * FRAME.width,
      ((event.clientY - box.top) / box.height) * FRAME.height,
    ];
  }
