// The page with sliders: draws what docs/making/sliders.py has computed; nothing is matched here.
document.addEventListener("DOMContentLoaded", () => {
  for (const box of document.querySelectorAll(".sliders")) sliders(box);
});

function sliders(box) {
  const data = JSON.parse(box.querySelector("script").textContent);
  const { threshold, tolerance, behind, shown_threshold, shown_tolerance } = box.querySelector("form").elements;
  const canvas = box.querySelector("canvas"), svg = box.querySelector("svg"), size = 3;
  canvas.width = size * data.cols;
  canvas.height = size * data.rows;
  const pen = canvas.getContext("2d");
  const pictures = {};
  for (const [name, source] of Object.entries(data.pictures)) {
    pictures[name] = new Image();
    pictures[name].onload = () => draw();
    pictures[name].src = source;
  }
  const ones = (flags) => flags.split("1").length - 1;
  // Counts of one threshold and tolerance, and the three ratios.
  const scored = (step, k) => {
    const tp = ones(step.p[k]), found = ones(step.g[k]);
    const precision = tp / step.pred.length, recall = found / data.gt.length;
    const f = precision + recall ? (2 * precision * recall) / (precision + recall) : 0;
    return { tp, fp: step.pred.length - tp, fn: data.gt.length - found, precision, recall, f };
  };
  const dot = (k, color) => {
    pen.fillStyle = color;
    pen.fillRect(size * (k % data.cols), size * Math.floor(k / data.cols), size, size);
  };
  const x = (recall) => 20 + 190 * recall, y = (precision) => 200 - 190 * precision;

  function draw() {
    const step = data.steps[threshold.value], k = Number(tolerance.value);
    shown_threshold.textContent = step.threshold.toFixed(2);
    shown_tolerance.textContent = data.tolerances[k];
    pen.imageSmoothingEnabled = false;
    pen.fillStyle = "#fff";
    pen.fillRect(0, 0, canvas.width, canvas.height);
    const back = pictures[behind.value];
    if (back && back.complete) pen.drawImage(back, 0, 0, canvas.width, canvas.height);
    data.gt.forEach((pixel, n) => step.g[k][n] === "0" && dot(pixel, data.colors.missed));
    step.pred.forEach((pixel, n) => dot(pixel, data.colors[step.p[k][n] === "1" ? "matched" : "false"]));
    const now = scored(step, k), all = data.steps.filter((each) => each.pred.length).map((each) => scored(each, k));
    const best = all.reduce((a, b) => (b.f > a.f ? b : a));
    svg.innerHTML = `<rect x="20" y="10" width="190" height="190" fill="none" stroke="#888"/>
      <polyline fill="none" stroke="#0072B2" stroke-width="2" points="${all.map((s) => `${x(s.recall)},${y(s.precision)}`).join(" ")}"/>
      <circle cx="${x(best.recall)}" cy="${y(best.precision)}" r="4" fill="none" stroke="currentColor"/>
      <circle cx="${x(now.recall)}" cy="${y(now.precision)}" r="5" fill="#D55E00"/>
      <text x="115" y="216" text-anchor="middle" font-size="11" fill="currentColor">recall</text>
      <text x="12" y="105" text-anchor="middle" font-size="11" fill="currentColor" transform="rotate(-90 12 105)">precision</text>`;
    box.querySelector(".counts").textContent =
      `TP ${now.tp}, FP ${now.fp}, FN ${now.fn}: precision ${now.precision.toFixed(3)}, recall ${now.recall.toFixed(3)}, ` +
      `F ${now.f.toFixed(3)}. Best F at this tolerance: ${best.f.toFixed(3)}.`;
  }

  box.querySelector(".legend").innerHTML = ["matched", "false", "missed"]
    .map((name) => `<span><i style="background:${data.colors[name]}"></i> ${name}</span>`)
    .join(" ");
  threshold.value = data.start.threshold;
  tolerance.value = data.start.tolerance;
  box.querySelector("form").addEventListener("input", draw);
  draw();
}
