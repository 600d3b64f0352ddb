
  // ---- viewer ---------------------------------------------------------------------------------
  let current = 0;
  function stack(found, layers, sized = true) {
    const box = make("div", { class: "stack" });
    if (found.void) for (const key of document.querySelectorAll(".void")) key.hidden = false;
    if (sized && found.size) Object.assign(box.style, {
      aspectRatio: `${found.size[0]} / ${found.size[1]}`, maxWidth: `calc(75vh * ${found.size[0] / found.size[1]})`,
    });
    for (const [source, css] of layers) {
      if (source) box.append(make("img", { class: css, alt: "", draggable: "false", src: source }));
    }
    return box;
  }
  function figure(found, text, ...layers) {
    const made = stack(found, layers);
    made.classList.add("paper");
    return make("figure", { role: "img", "aria-label": text }, made, make("figcaption", {}, text));
  }
  // The canvases of the image that is shown, and all thresholds of its runs under one slider
  let panes = [], levels = [], chosen = null;
  async function open(i) {
    current = i;
    $("viewer-title").textContent = images[i].id;
    if (!$("viewer").open) $("viewer").showModal();
    history.replaceState(null, "", address(i));
    const found = await pictures(i);
    const shown = runs.map((run, k) => [run, k]).filter(([, k]) => found.runs && found.runs[k]);
    for (const [, k] of shown) await unpacked(found.runs[k]);
    if (current !== i) return;  // another one was asked for meanwhile
    const figures = [], overlays = make("div", { class: "row side" }), below = make("div", { class: "row" });
    panes = shown.map(([run, k]) => {
      const pane = { run, drawn: found.runs[k], canvas: make("canvas"), text: make("figcaption") };
      const box = stack(found, [[found.photo, "pale"], [found.void, ""]]);
      box.classList.add("paper");
      box.append(pane.canvas);
      if (pane.drawn.areas && found.photo) pane.canvas.classList.add("areas");
      pane.figure = make("figure", { role: "img" }, box, pane.text);
      overlays.append(pane.figure);
      return pane;
    });
    levels = [...new Set(panes.flatMap((pane) => pane.drawn.thresholds))].sort((a, b) => a - b);
    const parts = panes.length && panes[0].drawn.parts;
    $("thresholds").hidden = !levels.length;
    $("level").closest("label").hidden = $("level-value").hidden = Boolean(parts) && levels.length < 2;
    $("level-name").textContent = parts ? "class" : "threshold";
    $("level-best").hidden = Boolean(parts);
    $("level-ods").hidden = !panes.length || panes[0].run.level === undefined;
    $("level").max = Math.max(0, levels.length - 1);
    $("classes").closest("label").hidden = !panes.some((pane) => pane.drawn.classes);
    if (found.fault) below.append(make("p", { class: "quiet" }, found.fault));
    else if (hasPictures && !found.runs) below.append(make("p", { class: "quiet" }, "The page has no pictures of this image; --full-pictures shows every image."));
    if (found.photo) below.append(figure(found, "picture", [found.photo, ""]));
    if (found.gt) below.append(figure(found, found.truth, [found.void, ""], [found.gt, ""]));
    for (const [run, k] of shown) {
      below.append(figure(found, shown.length > 1 ? `${run.name}: prediction` : "prediction", [found.runs[k].pred, ""]));
    }
    figures.push(overlays, below);
    runs.forEach((run, k) => {
      const numbers = columns.map((c, n) => (c.run === k ? `${c.label} ${number(images[i].values[n], c)}` : "")).filter(Boolean);
      if (numbers.length) figures.push(make("p", { class: "quiet" }, `${run.name}: ${numbers.join(", ")}`));
    });
    $("figures").replaceChildren(...figures);
    zoomTo(1);
    $("viewer").scrollTop = 0;
    if (panes.length) moveTo(chosen === null ? bestOf(panes[0]) : chosen);
  }
  const nearest = (list, value) =>
    list.reduce((best, v, k) => (Math.abs(v - value) < Math.abs(list[best] - value) ? k : best), 0);
  const bestOf = (pane) => pane.drawn.thresholds[pane.drawn.best];
  // Shows every run at its threshold that is nearest to `value`.
  function moveTo(value) {
    const k = nearest(levels, value);
    $("level").value = k;
    const part = panes[0].drawn.parts && panes[0].drawn.parts[k];
    $("level").setAttribute("aria-valuetext", part || `threshold ${digits(levels[k])}`);
    $("level-value").textContent = part || digits(levels[k]);
    for (const { run, drawn, canvas, text, figure: around } of panes) {
      const own = nearest(drawn.thresholds, levels[k]);
      const counts = paint(canvas, drawn, own, drawn.classes && $("classes").checked);
      const { p, r, f, matched, wrong, missed, other } = scoresAt(drawn, own, counts);
      const who = panes.length > 1 ? `${run.name}: ` : "";
      const mark = drawn.marks && drawn.marks[own];
      const scores = drawn.parts
        ? `${who}${drawn.measure} ${digits(f)}, P ${digits(p)}, R ${digits(r)}${mark ? `, largest distance ${digits(mark[4], 1)}` : ""}`
        : `${who}${drawn.measure} ${digits(f)}, P ${digits(p)}, R ${digits(r)}, threshold ${digits(drawn.thresholds[own])}`;
      text.replaceChildren(scores, make("br"), `${matched} true, ${wrong} false, ${missed} missed${other ? `, of these ${other} of another class or object` : ""}${drawn.sums ? `, summed over ${drawn.annotators} annotators` : ""}`);
      around.setAttribute("aria-label", scores);
    }
  }
  function moveBy(by) {
    const k = Math.min(levels.length - 1, Math.max(0, Number($("level").value) + by));
    if (panes.length) moveTo((chosen = levels[k]));
  }
  function choose(value) {
    if (panes.length) moveTo((chosen = value));
  }
  const chooseBest = () => { if (panes.length) moveTo(bestOf(panes[0])); chosen = null; };
  const chooseOds = () => { if (panes.length && panes[0].run.level !== undefined) choose(panes[0].run.level); };
  function step(by) {
    const list = visible.includes(current) ? visible : images.map((_, i) => i);
    open(list[(list.indexOf(current) + by + list.length) % list.length]);
  }
  // The address of an image opens it.
  function fromAddress() {
    const i = images.findIndex((_, k) => address(k) === location.hash);
    if (i >= 0) open(i);
  }

  // ---- zoom: all pictures of the viewer show the same part ----------------------------------------
  const MOST = 8;
  let view = { z: 1, x: 0, y: 0 }; // scale; offset in widths and heights of a picture
  function zoomTo(z, at = [0.5, 0.5], from = view) {
    z = Math.min(MOST, Math.max(1, z));
    const offset = (o, a) => Math.min(0, Math.max(1 - z, a - ((a - o) * z) / from.z));
    view = { z, x: offset(from.x, at[0]), y: offset(from.y, at[1]) };
    const style = $("figures").style;
    style.setProperty("--view", `translate(${100 * view.x}%, ${100 * view.y}%) scale(${z})`);
    $("figures").classList.toggle("zoomed", z > 1);
    $("zoom-level").textContent = `${z.toFixed(z < 3 && z % 1 ? 1 : 0)}×`;
  }
  function spot(event) {
    const box = event.target.closest(".stack");
    if (!box) return null;
    const { left, top, width, height } = box.getBoundingClientRect();
    return { box: { width, height }, at: [(event.clientX - left) / width, (event.clientY - top) / height] };
  }
  function zooming() {
    $("zoom-in").addEventListener("click", () => zoomTo(view.z * 1.5));
    $("zoom-out").addEventListener("click", () => zoomTo(view.z / 1.5));
    $("figures").addEventListener("dblclick", (event) => {
      const found = spot(event);
      if (found) zoomTo(view.z > 1 ? 1 : 3, found.at);
    });
    $("figures").addEventListener("wheel", (event) => {
      const found = event.ctrlKey && spot(event);
      if (!found) return;
      event.preventDefault();
      zoomTo(view.z * Math.exp(-event.deltaY / 200), found.at);
    }, { passive: false });
    let held = null;
    $("figures").addEventListener("pointerdown", (event) => {
      const found = view.z > 1 && spot(event);
      if (found) held = { ...found, view, start: [event.clientX, event.clientY] };
    });
    window.addEventListener("pointermove", (event) => {
      if (!held) return;
      const moved = {
        ...held.view,
        x: held.view.x + (event.clientX - held.start[0]) / held.box.width,
        y: held.view.y + (event.clientY - held.start[1]) / held.box.height,
      };
      zoomTo(moved.z, [0, 0], moved);
    });
    window.addEventListener("pointerup", () => { held = null; });
  }

  function viewer() {
    $("previous").addEventListener("click", () => step(-1));
    $("next").addEventListener("click", () => step(1));
    $("close").addEventListener("click", () => $("viewer").close());
    $("under").addEventListener("change", () => $("figures").classList.toggle("off", !$("under").checked));
    $("viewer").addEventListener("keydown", (event) => {
      const does = {
        ArrowLeft: () => step(-1), ArrowRight: () => step(1), "[": () => moveBy(-1), "]": () => moveBy(1),
        b: chooseBest, o: chooseOds, c: () => { if (!$("classes").closest("label").hidden) $("classes").click(); },
        "+": () => zoomTo(view.z * 1.5), "-": () => zoomTo(view.z / 1.5), 0: () => zoomTo(1),
      }[event.key];
      const moves = event.target === $("level") && event.key.startsWith("Arrow");  // the slider
      if (does && !moves && !event.ctrlKey && !event.metaKey) does();
    });
    $("viewer").addEventListener("click", (event) => {
      if (event.target === $("viewer")) $("viewer").close();
    });
    $("level").addEventListener("input", () => choose(levels[Number($("level").value)]));
    $("classes").addEventListener("change", () => moveTo(levels[Number($("level").value)]));
    $("level-best").addEventListener("click", chooseBest);
    $("level-ods").addEventListener("click", chooseOds);
    $("viewer").addEventListener("close", () => history.replaceState(null, "", "#images"));
    window.addEventListener("hashchange", fromAddress);
    zooming();
  }
