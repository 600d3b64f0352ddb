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
  const number = (value, column) => (column.whole ? digits(value, 0) : digits(value));
  const digits = (value, n = 3) => (value === null || value === undefined ? "–" : value.toFixed(n));
  const label = (column) =>
    runs.length > 1 && column.run >= 0 ? `${runs[column.run].name}: ${column.label}` : column.label;
  const mains = columns.map((column, k) => ({ ...column, k })).filter((column) => column.main);

  // Each image's pictures lie in a block of their own, read when they are first looked at; a served
  // page asks for them. The last ones are kept.
  const KEPT = 24, seen = new Map();
  function pictures(i) {
    if (!seen.has(i)) {
      const block = $(`pictures-${i}`);
      seen.set(i, data.served ? fetched(i) : Promise.resolve(block ? JSON.parse(block.textContent) : {}));
      if (seen.size > KEPT) seen.delete(seen.keys().next().value);
    }
    return seen.get(i);
  }
  async function fetched(i) {
    try {
      const answer = await fetch(`pictures/${i}`);
      return answer.ok ? await answer.json() : { fault: `the server answers ${answer.status}` };
    } catch {
      seen.delete(i);
      return { fault: "the server does not answer: is bsdsbench view still running?" };
    }
  }

  // ---- what a pixel is at every threshold -------------------------------------------------------
  const MATCHED = 1, FALSE = 2, MISSED = 3, FIRST_CLASS = 4, FIRST_FALSE = 7, OTHER = 10;
  // Red in the lowest byte, as canvases have it
  const ink = data.colors.map((color) => {
    if (!color) return 0;
    const [red, green, blue] = [1, 3, 5].map((k) => parseInt(color.slice(k, k + 2), 16));
    return (255 << 24 | blue << 16 | green << 8 | red) >>> 0;
  });
  async function unpacked(drawn) {
    if (!drawn.plain) {
      const packed = Uint8Array.from(atob(drawn.planes), (c) => c.charCodeAt(0));
      const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
      drawn.plain = new Uint8Array(await new Response(stream).arrayBuffer());
    }
    return drawn;
  }
  // Draws the k-th threshold; returns how many pixels are of each class.
  function paint(canvas, drawn, k, withClasses) {
    const { plain, n, size: [width, height] } = drawn, pixels = width * height, first = 2 * pixels;
    canvas.width = width;
    canvas.height = height;
    const context = canvas.getContext("2d", { willReadFrequently: true }), image = context.createImageData(width, height);
    const out = new Uint32Array(image.data.buffer), counts = Array(ink.length).fill(0);
    let change = 0;
    for (let p = 0; p < pixels; p++) {
      const end = change + (plain[p] | plain[pixels + p] << 8);
      let state = 0;
      for (; change < end; change++) {
        if ((plain[first + change] | plain[first + n + change] << 8) <= k) state = plain[first + 2 * n + change];
      }
      if (!state) continue;
      counts[state]++;
      const plainly = state < FIRST_CLASS ? state : state < FIRST_FALSE ? MISSED : FALSE;
      out[p] = ink[withClasses || drawn.parts ? state : plainly];
    }
    context.putImageData(image, 0, 0);
    for (const key of document.querySelectorAll("[data-state]")) if (counts[key.dataset.state]) key.hidden = false;
    const mark = drawn.marks && drawn.marks[k];
    if (mark && mark[4] > 0) ring(context, mark, Math.max(3, Math.hypot(width, height) / 50));
    return counts;
  }
  // Where the outlines are farthest apart, and a line to the nearest pixel of the other outline
  function ring(context, [row, col, toRow, toCol], radius) {
    for (const [color, wide] of [["#fff", 3], ["#000", 1]]) {
      context.strokeStyle = color;
      context.lineWidth = wide;
      context.beginPath();
      context.moveTo(col + 0.5, row + 0.5);
      context.lineTo(toCol + 0.5, toRow + 0.5);
      context.moveTo(col + 0.5 + radius, row + 0.5);
      context.arc(col + 0.5, row + 0.5, radius, 0, 2 * Math.PI);
      context.stroke();
    }
  }
  const sum = (list) => list.reduce((a, b) => a + b, 0);
  // Of the image at the k-th threshold: its scores, and pixels by class
  function scoresAt(drawn, k, counts) {
    const total = drawn.parts ? drawn.totalGt[k] : drawn.totalGt;
    // Of several annotators the sums over them, otherwise what is drawn
    const [matched, on] = drawn.sums ? drawn.sums.map((list) => list[k])
      : [counts[MATCHED], counts[MATCHED] + counts[FALSE] + sum(counts.slice(FIRST_FALSE, OTHER + 1))];
    const wrong = on - matched, { beta2 } = drawn;
    const missed = total - drawn.matchedGt[k];
    const p = on ? matched / on : 0;
    const r = total ? drawn.matchedGt[k] / total : 0;
    return { p, r, f: p + r ? ((1 + beta2) * p * r) / (beta2 * p + r) : 0, matched, wrong, missed, other: counts[OTHER] };
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
