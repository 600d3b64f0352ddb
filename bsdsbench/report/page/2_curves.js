
  // ---- precision and recall -------------------------------------------------------------------
  const curves = [...runs, ...data.published].filter((run) => run.curve).map((run) => ({ ...run, shown: true }));

  // Even steps of the logarithm of recall over precision are even where the line bends.
  function isoLine(f) {
    const end = Math.log(2 / f - 1), points = [];
    for (let s = -100; s <= 100; s++) {
      const e = Math.exp((end * s) / 100);
      points.push(`${x((f / 2) * (1 + e)).toFixed(2)},${y((f / 2) * (1 + 1 / e)).toFixed(2)}`);
    }
    return svg("polyline", { class: "iso", points: points.join(" ") });
  }

  function drawPlot() {
    if (!curves.length) return;
    $("plot-section").hidden = false;
    const root = axes(
      $("plot"), "Precision over recall; arrow keys move along and between the curves", "Recall", "Precision",
    );
    for (let k = 1; k <= 9; k++) {
      const f = k / 10;
      root.append(isoLine(f));
      root.append(svg("text", { class: "isotext", x: x(1) + 4, y: y(f / (2 - f)) + 3 }, `F=${f.toFixed(1)}`));
    }
    for (const run of curves) {
      run.line = svg("polyline", {
        class: "curve", fill: "none", stroke: run.color, "stroke-width": 2, "stroke-dasharray": run.dash,
        points: run.curve.map(([, r, p]) => `${x(r).toFixed(2)},${y(p).toFixed(2)}`).join(" "),
      });
      run.mark = svg("circle", { cx: x(run.ods[1]), cy: y(run.ods[2]), r: 4.5, fill: run.color, stroke: "#fff" });
      root.append(run.line, run.mark);
    }
    if (data.human) {
      const [r, p] = data.human;
      const title = svg("title", {}, "Human agreement on BSDS500");
      root.append(svg("rect", {
        x: x(r) - 4, y: y(p) - 4, width: 8, height: 8, fill: "#2E7D32", transform: `rotate(45 ${x(r)} ${y(p)})`,
      }, title));
    }
    follow(root);
    for (const run of curves) $("legend").append(legendButton(run));
  }

  function follow(root) {
    const cursor = svg("circle", { r: 6, fill: "none", stroke: "currentColor", "stroke-width": 2, visibility: "hidden" });
    root.append(cursor);
    let at = { run: curves[0], k: nearestOds(curves[0]) };
    function show() {
      const [t, r, p, f] = at.run.curve[at.k];
      fill(cursor, { cx: x(r), cy: y(p), visibility: "visible" }, []);
      $("readout").textContent = `${at.run.name}: threshold ${digits(t)}, P ${digits(p)}, R ${digits(r)}, F ${digits(f)}`;
    }
    root.addEventListener("pointermove", (event) => {
      const [px, py] = pointer(root, event);
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
      const shown = curves.filter((c) => c.shown);
      const move = { ArrowLeft: 1, ArrowRight: -1 }[event.key];
      const turn = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (!shown.length || (move === undefined && turn === undefined)) return;
      event.preventDefault();
      if (turn !== undefined) {
        const next = shown[(shown.indexOf(at.run) + turn + shown.length) % shown.length];
        at = { run: next, k: nearestOds(next) };
      } else {
        at.k = Math.min(at.run.curve.length - 1, Math.max(0, at.k + move));
      }
      show();
    });
  }

  function legendButton(run) {
    const sample = svg("svg", { width: 26, height: 10, "aria-hidden": "true" }, svg("line", {
      x1: 1, x2: 25, y1: 5, y2: 5, stroke: run.color, "stroke-width": 3, "stroke-dasharray": run.dash,
    }));
    const button = make("button", {
      type: "button", "aria-pressed": "true",
      onclick: () => {
        run.shown = !run.shown;
        button.setAttribute("aria-pressed", String(run.shown));
        for (const node of [run.line, run.mark]) node.style.display = run.shown ? "" : "none";
      },
    }, sample, `[F=${digits(run.ods[3])}] ${run.name}`);
    return button;
  }

  function nearestOds(run) {
    let best = 0;
    const far = ([, r, p]) => Math.hypot(r - run.ods[1], p - run.ods[2]);
    run.curve.forEach((point, k) => { if (far(point) < far(run.curve[best])) best = k; });
    return best;
  }
