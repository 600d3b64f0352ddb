"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const { runs, columns, images } = data;
  const $ = (id) => document.getElementById(id);

  // Text goes in as text; nothing here ever parses HTML.
  function make(tag, attributes = {}, ...children) {
    const node = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes)) {
      if (value === null || value === undefined) continue;
      if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
      else node.setAttribute(key, value);
    }
    node.append(...children);
    return node;
  }
  function svg(tag, attributes = {}, text = null) {
    const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== null) node.textContent = text;
    return node;
  }
  const digits = (value, n = 3) => (value === null || value === undefined ? "–" : value.toFixed(n));

  // ---- precision and recall -------------------------------------------------------------------
  const LEFT = 44, TOP = 12, SIZE = 400, FRAME = { width: 490, height: 458 };
  const x = (recall) => LEFT + SIZE * recall;
  const y = (precision) => TOP + SIZE * (1 - precision);
  const curves = runs.map((run, i) => ({ ...run, i, shown: true })).filter((run) => run.curve);

  function drawPlot() {
    if (!curves.length) return;
    $("plot-section").hidden = false;
    const root = svg("svg", {
      viewBox: `0 0 ${FRAME.width} ${FRAME.height}`, role: "application", tabindex: "0",
      "aria-label": "Precision over recall; arrow keys move along and between the curves",
    });
    for (let k = 0; k <= 10; k++) {
      const v = k / 10;
      root.append(svg("line", { class: "grid", x1: x(v), x2: x(v), y1: y(0), y2: y(1) }));
      root.append(svg("line", { class: "grid", x1: x(0), x2: x(1), y1: y(v), y2: y(v) }));
      if (k % 2 === 0) {
        root.append(svg("text", { x: x(v), y: y(0) + 15, "text-anchor": "middle" }, v.toFixed(1)));
        root.append(svg("text", { x: x(0) - 6, y: y(v) + 4, "text-anchor": "end" }, v.toFixed(1)));
      }
    }
    for (let k = 1; k <= 9; k++) {
      const f = k / 10, points = [];
      for (let s = 0; s <= 60; s++) {
        const r = f / (2 - f) + (1 - f / (2 - f)) * (s / 60);
        points.push(`${x(r).toFixed(1)},${y((f * r) / (2 * r - f)).toFixed(1)}`);
      }
      root.append(svg("polyline", { class: "iso", points: points.join(" ") }));
      root.append(svg("text", { class: "isotext", x: x(1) + 4, y: y(f / (2 - f)) + 3 }, `F=${f.toFixed(1)}`));
    }
    root.append(svg("path", { class: "axis", d: `M${x(0)},${y(1)}V${y(0)}H${x(1)}` }));
    root.append(svg("text", { x: x(0.5), y: FRAME.height - 6, "text-anchor": "middle" }, "Recall"));
    const side = svg("text", { transform: `translate(12 ${y(0.5)}) rotate(-90)`, "text-anchor": "middle" }, "Precision");
    root.append(side);
    for (const run of curves) {
      run.line = svg("polyline", {
        fill: "none", stroke: run.color, "stroke-width": 2, "stroke-dasharray": run.dash,
        points: run.curve.map(([, r, p]) => `${x(r).toFixed(2)},${y(p).toFixed(2)}`).join(" "),
      });
      run.mark = svg("circle", { cx: x(run.ods[1]), cy: y(run.ods[2]), r: 4.5, fill: run.color, stroke: "#fff" });
      root.append(run.line, run.mark);
    }
    if (data.human) {
      const [r, p] = data.human;
      const human = svg("rect", { x: x(r) - 4, y: y(p) - 4, width: 8, height: 8, fill: "#2E7D32", transform: `rotate(45 ${x(r)} ${y(p)})` });
      human.append(svg("title", {}, "Human agreement on BSDS500"));
      root.append(human);
    }
    const cursor = svg("circle", { r: 6, fill: "none", stroke: "currentColor", "stroke-width": 2, visibility: "hidden" });
    root.append(cursor);
    $("plot").append(root);

    let at = { run: curves[0], k: nearestOds(curves[0]) };
    function show() {
      const [t, r, p, f] = at.run.curve[at.k];
      cursor.setAttribute("cx", x(r));
      cursor.setAttribute("cy", y(p));
      cursor.setAttribute("visibility", "visible");
      $("readout").textContent = `${at.run.name}: threshold ${digits(t)}, P ${digits(p)}, R ${digits(r)}, F ${digits(f)}`;
    }
    root.addEventListener("pointermove", (event) => {
      const box = root.getBoundingClientRect();
      const px = ((event.clientX - box.left) / box.width) * FRAME.width;
      const py = ((event.clientY - box.top) / box.height) * FRAME.height;
      let best = Infinity;
      for (const run of curves.filter((c) => c.shown)) {
        run.curve.forEach(([, r, p], k) => {
          const d = (x(r) - px) ** 2 + (y(p) - py) ** 2;
          if (d < best) { best = d; at = { run, k }; }
        });
      }
      if (best < Infinity) show();
    });
    root.addEventListener("keydown", (event) => {
      const seen = curves.filter((c) => c.shown);
      if (!seen.length) return;
      const move = { ArrowLeft: 1, ArrowRight: -1 }[event.key];
      const turn = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (move === undefined && turn === undefined) return;
      event.preventDefault();
      if (turn !== undefined) {
        const next = seen[(seen.indexOf(at.run) + turn + seen.length) % seen.length];
        at = { run: next, k: nearestOds(next) };
      } else {
        at.k = Math.min(at.run.curve.length - 1, Math.max(0, at.k + move));
      }
      show();
    });
    for (const run of curves) {
      const sample = svg("svg", { width: 26, height: 10, "aria-hidden": "true" });
      sample.append(svg("line", { x1: 1, x2: 25, y1: 5, y2: 5, stroke: run.color, "stroke-width": 3, "stroke-dasharray": run.dash }));
      const button = make("button", {
        type: "button", "aria-pressed": "true",
        onclick: () => {
          run.shown = !run.shown;
          button.setAttribute("aria-pressed", String(run.shown));
          for (const node of [run.line, run.mark]) node.style.display = run.shown ? "" : "none";
        },
      });
      button.append(sample, `[F=${digits(run.ods[3])}] ${run.name}`);
      $("legend").append(button);
    }
  }
  function nearestOds(run) {
    let best = 0;
    run.curve.forEach(([t], k) => {
      if (Math.abs(t - run.ods[0]) < Math.abs(run.curve[best][0] - run.ods[0])) best = k;
    });
    return best;
  }

  // ---- table ----------------------------------------------------------------------------------
  const label = (column) =>
    runs.length > 1 && column.run >= 0 ? `${runs[column.run].name}: ${column.label}` : column.label;
  const hasPictures = images.some((image) => image.photo || image.gt);
  let order = { key: null, down: false };
  let visible = images.map((_, i) => i);

  function header() {
    const row = make("tr");
    if (hasPictures) row.append(make("th", { scope: "col" }, "Picture"));
    const cell = (text, key, css, above = "") => {
      const button = make("button", { type: "button", onclick: () => sortBy(key) });
      if (above) button.append(make("small", { title: above }, above));
      button.append(text);
      row.append(make("th", { scope: "col", class: css, "aria-sort": "none", "data-key": key }, button));
    };
    cell("Image", -1, "");
    columns.forEach((column, k) => {
      const above = runs.length > 1 && column.run >= 0 ? runs[column.run].name : "";
      cell(column.label, k, `number${column.main ? "" : " more"}`, above);
    });
    $("table").tHead.append(row);
  }
  function sortBy(key) {
    order = { key, down: order.key === key ? !order.down : false };
    for (const th of $("table").tHead.querySelectorAll("th[aria-sort]")) {
      const mine = Number(th.dataset.key) === key;
      th.setAttribute("aria-sort", mine ? (order.down ? "descending" : "ascending") : "none");
    }
    body();
  }
  const names = new Intl.Collator("en", { numeric: true });
  function compare(a, b) {
    let d;
    if (order.key < 0) d = names.compare(images[a].id, images[b].id);
    else {
      const u = images[a].values[order.key], v = images[b].values[order.key];
      if (u === null || v === null) return (u === null) - (v === null);
      d = u - v;
    }
    return (order.down ? -d : d) || a - b;
  }
  function body() {
    const word = $("filter").value.trim().toLowerCase();
    const limit = $("limit").value === "" ? null : Number($("limit").value);
    const column = Number($("limit-column").value);
    visible = images.map((_, i) => i).filter((i) => {
      if (word && !images[i].id.toLowerCase().includes(word)) return false;
      const value = columns.length ? images[i].values[column] : null;
      return limit === null || (value !== null && value <= limit);
    });
    visible.sort(compare);
    const rows = visible.map((i) => {
      const image = images[i], row = make("tr");
      if (hasPictures) {
        const cell = make("td");
        const source = image.photo || image.gt;
        if (source) cell.append(make("img", { class: "thumb", alt: "", loading: "lazy", src: source }));
        row.append(cell);
      }
      row.append(make("td", {}, make("button", { type: "button", class: "name", onclick: () => open(i) }, image.id)));
      columns.forEach((c, k) => {
        row.append(make("td", { class: `number${c.main ? "" : " more"}` }, digits(image.values[k])));
      });
      return row;
    });
    $("table").tBodies[0].replaceChildren(...rows);
    $("count").textContent = `${visible.length} of ${images.length} images`;
  }

  // ---- worst and best -------------------------------------------------------------------------
  function extremes() {
    const mains = columns.map((c, k) => [c, k]).filter(([c]) => c.main);
    if (!mains.length || images.length < 2) return;
    $("extremes").hidden = false;
    for (const [column, k] of mains) $("by").append(make("option", { value: k }, label(column)));
    $("by").addEventListener("change", strips);
    strips();
  }
  function strips() {
    const key = Number($("by").value);
    const ranked = images.map((image, i) => [image.values[key], i]).filter(([v]) => v !== null);
    ranked.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    const count = Math.min(6, Math.floor(ranked.length / 2));
    const fill = (id, part) => $(id).replaceChildren(...part.map(([v, i]) => card(v, i, columns[key].run)));
    fill("worst", ranked.slice(0, count));
    fill("best", ranked.slice(-count).reverse());
  }
  function card(value, i, run) {
    const image = images[i], seen = image.runs && image.runs[Math.max(run, 0)];
    const button = make("button", { type: "button", class: "card", onclick: () => open(i) });
    if (image.photo || seen) {
      const layers = [[image.photo, "pale"], [seen && seen.best.png, ""]];
      button.append(stack(image, layers, false));
    }
    button.append(make("b", { title: image.id }, image.id), digits(value));
    return button;
  }

  // ---- viewer ---------------------------------------------------------------------------------
  let current = 0;
  function stack(image, layers, sized = true) {
    const box = make("div", { class: "stack" });
    if (sized && image.size) box.style.aspectRatio = `${image.size[0]} / ${image.size[1]}`;
    for (const [source, css] of layers) {
      if (source) box.append(make("img", { class: css, alt: "", src: source }));
    }
    return box;
  }
  function figure(image, text, ...layers) {
    return make("figure", { role: "img", "aria-label": text }, stack(image, layers), make("figcaption", {}, text));
  }
  function open(i) {
    current = i;
    const image = images[i];
    $("viewer-title").textContent = image.id;
    const top = make("div", { class: "row" });
    if (image.photo) top.append(figure(image, "picture", [image.photo, ""]));
    if (image.gt) top.append(figure(image, `ground truth, ${image.annotators} annotators`, [image.gt, ""]));
    const parts = [top];
    const shown = runs.map((run, k) => [run, k]).filter(([, k]) => image.runs && image.runs[k]);
    // One run: a row of three. Several: a row for each kind, the runs side by side.
    const kinds = [["pred", "prediction"], ["best", "at its best threshold"], ["ods", "at the ODS threshold"]];
    const several = shown.length > 1;
    const row = () => parts[parts.push(make("div", { class: "row" })) - 1];
    const one = several ? null : row();
    for (const [key, name] of kinds) {
      const into = one || row();
      if (several) into.append(make("h3", {}, name));
      for (const [run, k] of shown) {
        const mine = image.runs[k], who = several ? run.name : name;
        if (key === "pred") {
          into.append(figure(image, who, [mine.pred, ""]));
        } else {
          const [t, r, p, f] = mine[key].at;
          const text = `${who}: F ${digits(f)}, P ${digits(p)}, R ${digits(r)} at ${digits(t)}`;
          into.append(figure(image, text, [image.photo, "pale"], [mine[key].png, ""]));
        }
      }
    }
    runs.forEach((run, k) => {
      const numbers = columns.map((c, n) => (c.run === k ? `${c.label} ${digits(image.values[n])}` : "")).filter(Boolean);
      if (numbers.length) parts.push(make("p", { class: "quiet" }, `${run.name}: ${numbers.join(", ")}`));
    });
    $("figures").replaceChildren(...parts);
    if (!$("viewer").open) $("viewer").showModal();
    $("viewer").scrollTop = 0;
  }
  function step(by) {
    const where = visible.indexOf(current);
    const list = where < 0 ? images.map((_, i) => i) : visible;
    const here = list.indexOf(current);
    open(list[(here + by + list.length) % list.length]);
  }
  $("previous").addEventListener("click", () => step(-1));
  $("next").addEventListener("click", () => step(1));
  $("close").addEventListener("click", () => $("viewer").close());
  $("under").addEventListener("change", () => $("figures").classList.toggle("off", !$("under").checked));
  $("viewer").addEventListener("keydown", (event) => {
    if (event.key === "ArrowLeft") step(-1);
    else if (event.key === "ArrowRight") step(1);
  });
  $("viewer").addEventListener("click", (event) => {
    if (event.target === $("viewer")) $("viewer").close();
  });

  columns.forEach((column, k) => $("limit-column").append(make("option", { value: k }, label(column))));
  $("filter").addEventListener("input", body);
  $("limit").addEventListener("input", body);
  $("limit-column").addEventListener("change", body);
  drawPlot();
  header();
  sortBy(-1);
  extremes();
})();
