
"use strict";
(() => {
  const source = document.getElementById("explorer-data");
  if (source === null) return;
  const data = JSON.parse(source.textContent);
  const positives = data.tp[0], negatives = data.fp[0];
  const slider = document.getElementById("cut"), shown = document.getElementById("threshold");
  const costs = ["cost-fp", "cost-fn"].map((id) => document.getElementById(id));
  const cells = (name) => Array.from(document.querySelectorAll(`[data-${name}]`));
  const [now, own] = [cells("figure"), cells("own")];

  const ratio = (part, whole) => (whole > 0 ? part / whole : NaN);
  const figuresAt = (place) => {
    const tp = data.tp[place], fp = data.fp[place];
    const fn = positives - tp, tn = negatives - fp;
    const recall = ratio(tp, positives), specificity = ratio(tn, negatives);
    const [costFp, costFn] = costs.map((input) => Math.max(0, input.valueAsNumber || 0));
    const cost = costFp * fp + costFn * fn;
    return {
      tp, fp, fn, tn, recall, specificity, cost,
      precision: ratio(tp, tp + fp),
      gmean: Math.sqrt(recall * specificity),
      f1: ratio(2 * tp, 2 * tp + fp + fn),
      called: ratio(tp + fp, positives + negatives),
      "cost-row": ratio(cost, positives + negatives),
    };
  };

  const whole = new Set(["tp", "fp", "fn", "tn", "cost"]);
  const text = (name, value) => {
    if (Number.isNaN(value)) return "–";
    const digits = whole.has(name) ? { maximumFractionDigits: 2 } : { minimumFractionDigits: 3, maximumFractionDigits: 3 };
    return value.toLocaleString("en", digits);
  };
  const fill = (targets, key, figures) => {
    for (const cell of targets) {
      cell.textContent = text(cell.dataset[key], figures[cell.dataset[key]]);
      cell.dataset.value = figures[cell.dataset[key]];
    }
  };

  const svgs = Array.from(document.querySelectorAll("svg[data-cursor]"));
  const markers = svgs.map((svg) => {
    const name = svg.dataset.cursor === "line" ? "line" : "circle";
    const marker = svg.appendChild(document.createElementNS("http://www.w3.org/2000/svg", name));
    marker.setAttribute("class", "cursor");
    if (name === "circle") marker.setAttribute("r", "4.5");
    return marker;
  });
  const where = {
    roc: (figures) => [1 - figures.specificity, figures.recall],
    pr: (figures) => [figures.recall, figures.precision],
    cuts: (_, place) => [place, 0],
  };
  const mark = (svg, marker, place, figures) => {
    const [left, right, bottom, top, xLow, xHigh, yLow, yHigh] = svg.dataset.axes.split(" ").map(Number);
    const [x, y] = where[svg.dataset.name](figures, place);
    const px = left + ((x - xLow) / (xHigh - xLow)) * (right - left);
    const py = bottom + ((y - yLow) / (yHigh - yLow)) * (top - bottom);
    marker.style.display = Number.isNaN(px + py) ? "none" : "";
    if (Number.isNaN(px + py)) return;
    const ends = svg.dataset.cursor === "line" ? { x1: px, x2: px, y1: bottom, y2: top } : { cx: px, cy: py };
    for (const [key, value] of Object.entries(ends)) marker.setAttribute(key, value.toFixed(2));
  };

  // the slider's ends stand below those of the axis; its thumb does not reach over its ends
  const alignSlider = (svg) => {
    const [left, right] = svg.dataset.axes.split(" ").map(Number), width = svg.viewBox.baseVal.width;
    slider.style.marginLeft = `calc(${(100 * left) / width}% - .5rem)`;
    slider.style.width = `calc(${(100 * (right - left)) / width}% + 1rem)`;
  };

  const show = () => {
    const place = slider.valueAsNumber, figures = figuresAt(place), threshold = data.thresholds[place];
    shown.textContent = threshold === null ? "none is called" : threshold.toPrecision(4).replace("-", "−");
    shown.dataset.value = threshold === null ? "Infinity" : threshold;
    slider.setAttribute("aria-valuetext",
      `${shown.textContent}: recall ${text("", figures.recall)}, precision ${text("", figures.precision)}`);
    fill(now, "figure", figures);
    if (data.own !== null) fill(own, "own", figuresAt(data.own));
    svgs.forEach((svg, i) => mark(svg, markers[i], place, figures));
  };

  const best = (score) => {
    const scores = data.tp.map((_, place) => score(figuresAt(place)));
    return scores.lastIndexOf(Math.max(...scores));
  };
  const choices = {
    own: () => data.own,
    gmean: () => best((figures) => figures.gmean),
    f1: () => best((figures) => figures.f1),
    cost: () => best((figures) => -figures.cost),
  };
  for (const button of document.querySelectorAll("[data-best]")) {
    button.addEventListener("click", () => {
      slider.value = choices[button.dataset.best]();
      show();
    });
  }
  for (const input of [slider, ...costs]) input.addEventListener("input", show);
  alignSlider(svgs.find((svg) => svg.dataset.name === "cuts"));
  show();
})();
