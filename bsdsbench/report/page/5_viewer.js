
  // ---- viewer ---------------------------------------------------------------------------------
  let current = 0;
  function stack(found, layers, sized = true) {
    const box = make("div", { class: "stack" });
    if (sized && found.size) box.style.aspectRatio = `${found.size[0]} / ${found.size[1]}`;
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
  function open(i) {
    current = i;
    const found = pictures(i), parts = [];
    const row = () => parts[parts.push(make("div", { class: "row" })) - 1];
    $("viewer-title").textContent = images[i].id;
    const top = row();
    if (hasPictures && !found.runs) top.append(make("p", { class: "quiet" }, "The page has no pictures of this image; --full-pictures shows every image."));
    if (found.photo) top.append(figure(found, "picture", [found.photo, ""]));
    if (found.gt) top.append(figure(found, `ground truth, ${found.annotators} annotators`, [found.gt, ""]));
    const shown = runs.map((run, k) => [run, k]).filter(([, k]) => found.runs && found.runs[k]);
    // One run: a row of three. Several: a row for each kind, the runs side by side.
    const kinds = [["pred", "prediction"], ["best", "at its best threshold"], ["ods", "at the ODS threshold"]];
    const several = shown.length > 1, one = several ? null : row();
    for (const [key, name] of kinds) {
      const into = one || row();
      if (several) into.append(make("h3", {}, name));
      for (const [run, k] of shown) {
        const mine = found.runs[k], who = several ? run.name : name;
        if (key === "pred") {
          into.append(figure(found, who, [mine.pred, ""]));
        } else {
          const [t, r, p, f] = mine[key].at;
          const text = `${who}: F ${digits(f)}, P ${digits(p)}, R ${digits(r)} at ${digits(t)}`;
          into.append(figure(found, text, [found.photo, "pale"], [mine[key].png, ""]));
        }
      }
    }
    runs.forEach((run, k) => {
      const numbers = columns.map((c, n) => (c.run === k ? `${c.label} ${digits(images[i].values[n])}` : "")).filter(Boolean);
      if (numbers.length) parts.push(make("p", { class: "quiet" }, `${run.name}: ${numbers.join(", ")}`));
    });
    $("figures").replaceChildren(...parts);
    zoomTo(1);
    if (!$("viewer").open) $("viewer").showModal();
    $("viewer").scrollTop = 0;
    history.replaceState(null, "", address(i));
  }
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
        ArrowLeft: () => step(-1), ArrowRight: () => step(1),
        "+": () => zoomTo(view.z * 1.5), "-": () => zoomTo(view.z / 1.5), 0: () => zoomTo(1),
      }[event.key];
      if (does && !event.ctrlKey && !event.metaKey) does();
    });
    $("viewer").addEventListener("click", (event) => {
      if (event.target === $("viewer")) $("viewer").close();
    });
    $("viewer").addEventListener("close", () => history.replaceState(null, "", "#images"));
    window.addEventListener("hashchange", fromAddress);
    zooming();
  }
