
  // ---- two methods image by image ---------------------------------------------------------------
  const known = (k) => images.map((image) => image.values[k]).filter((v) => v !== null);
  // The end of an axis: 1, or where values are larger (VOI) a round number above them.
  const ceiling = (ks) => Math.max(1, Math.ceil(Math.max(0, ...ks.flatMap(known)) * 2) / 2);

  function pairs() {
    const usable = mains.filter((column) => column.run >= 0 && known(column.k).length);
    if (!usable.length) return;
    $("pairs").hidden = false;
    const choices = () => usable.map((column) => make("option", { value: column.k }, label(column)));
    $("bars-of").append(...choices());
    $("bars-of").addEventListener("change", bars);
    bars();
    if (usable.length < 2) return;
    $("scatter-part").hidden = false;
    $("scatter-x").append(...choices());
    $("scatter-y").append(...choices());
    $("scatter-y").value = usable[1].k;
    for (const id of ["scatter-x", "scatter-y"]) $(id).addEventListener("change", scatter);
    scatter();
  }

  function scatter() {
    const [a, b] = ["scatter-x", "scatter-y"].map((id) => Number($(id).value));
    const top = ceiling([a, b]);
    const root = axes(
      $("scatter"), "Two methods image by image; arrow keys go from the largest difference on, Enter opens",
      label(columns[a]), label(columns[b]), top,
    );
    root.append(svg("line", { class: "axis", x1: x(0), y1: y(0), x2: x(1), y2: y(1) }));
    const shown = [];
    images.forEach((image, i) => {
      const u = image.values[a], v = image.values[b];
      if (u !== null && v !== null) shown.push({ i, u, v });
    });
    shown.sort((p, q) => Math.abs(q.v - q.u) - Math.abs(p.v - p.u) || p.i - q.i);
    let at = -1;
    function say(point) {
      if (at >= 0) shown[at].dot.classList.remove("here");
      at = shown.indexOf(point);
      point.dot.classList.add("here");
      const { id } = images[point.i];
      $("scatter-readout").textContent =
        `${id}: ${digits(point.u)} and ${digits(point.v)}, difference ${digits(point.v - point.u)}`;
    }
    for (const point of [...shown].reverse()) {
      point.dot = svg("circle", {
        class: "dot", cx: x(point.u / top), cy: y(point.v / top), r: 4.5, fill: runs[columns[b].run].color,
        onclick: () => open(point.i), onpointerenter: () => say(point),
      }, svg("title", {}, images[point.i].id));
      root.append(point.dot);
    }
    root.addEventListener("keydown", (event) => {
      const move = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (move && shown.length) {
        event.preventDefault();
        say(shown[(at + move + shown.length) % shown.length]);
      } else if (event.key === "Enter" && at >= 0) open(shown[at].i);
    });
    const better = shown.filter((p) => p.v > p.u).length, worse = shown.filter((p) => p.v < p.u).length;
    $("scatter-readout").textContent =
      `${label(columns[b])} is higher on ${better} images, lower on ${worse}, equal on ${shown.length - better - worse}.`;
  }

  // ---- how the values are spread ----------------------------------------------------------------
  const BINS = 20;
  function bars() {
    const k = Number($("bars-of").value), top = ceiling([k]);
    const of = (v) => Math.min(BINS - 1, Math.floor((v / top) * BINS));
    const counts = Array(BINS).fill(0);
    for (const v of known(k)) counts[of(v)]++;
    const most = Math.max(...counts);
    const root = svg("svg", {
      viewBox: `0 0 ${FRAME.width} 300`, role: "group", "aria-label": "Images by value; a bar shows its images in the table",
    });
    counts.forEach((count, b) => {
      const height = (230 * count) / most, left = LEFT + (SIZE * b) / BINS;
      const low = (b * top) / BINS, high = ((b + 1) * top) / BINS;
      const text = `${low.toFixed(2)} to ${high.toFixed(2)}: ${count} images`;
      if (!count) return;
      const pick = () => limitTo({ k, low, high, of: (v) => of(v) === b });
      root.append(svg("rect", {
        class: "bar", x: left + 1, y: 250 - height, width: SIZE / BINS - 2, height, rx: 1.5,
        fill: runs[columns[k].run].color, tabindex: "0", role: "button", "aria-label": text, onclick: pick,
        onkeydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); pick(); } },
      }, svg("title", {}, text)));
      root.append(svg("text", { x: left + SIZE / BINS / 2, y: 246 - height, "text-anchor": "middle" }, count));
    });
    root.append(svg("path", { class: "axis", d: `M${LEFT},250H${LEFT + SIZE}` }));
    for (let t = 0; t <= 10; t += 2) {
      root.append(svg("text", { x: LEFT + SIZE * (t / 10), y: 266, "text-anchor": "middle" }, ((t / 10) * top).toFixed(1)));
    }
    root.append(svg("text", { x: LEFT + SIZE / 2, y: 290, "text-anchor": "middle" }, label(columns[k])));
    $("bars").replaceChildren(root);
  }
