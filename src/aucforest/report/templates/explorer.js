
"use strict";
(() => {
  const markWideTables = () => {
    for (const box of document.querySelectorAll(".scroll")) {
      box.classList.toggle("wide", box.scrollWidth > box.clientWidth);
    }
  };
  window.addEventListener("resize", markWideTables);
  markWideTables();

  const source = document.getElementById("explorer-data");
  if (source === null) return;
  const data = JSON.parse(source.textContent);
  const positives = data.tp[0], negatives = data.fp[0];
  const slider = document.getElementById("cut"), shown = document.getElementById("threshold");
  const costs = ["cost-fp", "cost-fn"].map((id) => document.getElementById(id));
  const [day, ...aims] = ["per-day", "aim-alerts", "aim-precision", "aim-recall"].map((id) => document.getElementById(id));
  const cells = (name) => Array.from(document.querySelectorAll(`[data-${name}]`));
  const [cellsHere, cellsOfModel] = [cells("metric"), cells("own")];

  const ratio = (part, whole) => (whole > 0 ? part / whole : NaN);
  const metricsAt = (index) => {
    const tp = data.tp[index], fp = data.fp[index];
    const fn = positives - tp, tn = negatives - fp;
    const recall = ratio(tp, positives), specificity = ratio(tn, negatives);
    const [costFp, costFn] = costs.map((input) => Math.max(0, input.valueAsNumber));
    const cost = costFp * fp + costFn * fn;
    return {
      tp, fp, fn, tn, recall, specificity, cost,
      precision: ratio(tp, tp + fp),
      gmean: Math.sqrt(recall * specificity),
      f1: ratio(2 * tp, 2 * tp + fp + fn),
      alerts: tp + fp,
      "per-1000": 1000 * ratio(tp + fp, positives + negatives),
      "per-day": day.valueAsNumber * ratio(tp + fp, positives + negatives),
      "cost-row": ratio(cost, positives + negatives),
    };
  };

  const mostDecimals = { tp: 2, fp: 2, fn: 2, tn: 2, cost: 2, alerts: 2, "per-1000": 1, "per-day": 1 };
  const text = (name, value) => {
    if (Number.isNaN(value)) return "–";
    const most = mostDecimals[name];
    const digits = most ? { maximumFractionDigits: most } : { minimumFractionDigits: 3, maximumFractionDigits: 3 };
    return value.toLocaleString("en", digits);
  };
  const fill = (targets, key, metrics) => {
    for (const cell of targets) {
      cell.textContent = text(cell.dataset[key], metrics[cell.dataset[key]]);
      cell.dataset.value = metrics[cell.dataset[key]];
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
  const cursorPositions = {
    gains: (metrics) => [metrics["per-1000"] / 1000, metrics.recall],
    roc: (metrics) => [1 - metrics.specificity, metrics.recall],
    pr: (metrics) => [metrics.recall, metrics.precision],
    cuts: (_, index) => [index, 0],
  };
  const moveMarker = (svg, marker, index, metrics) => {
    const [left, right, bottom, top, xLow, xHigh, yLow, yHigh] = svg.dataset.axes.split(" ").map(Number);
    const [x, y] = cursorPositions[svg.dataset.name](metrics, index);
    const px = left + ((x - xLow) / (xHigh - xLow)) * (right - left);
    const py = bottom + ((y - yLow) / (yHigh - yLow)) * (top - bottom);
    marker.style.display = Number.isNaN(px + py) ? "none" : "";
    if (Number.isNaN(px + py)) return;
    const ends = svg.dataset.cursor === "line" ? { x1: px, x2: px, y1: bottom, y2: top } : { cx: px, cy: py };
    for (const [key, value] of Object.entries(ends)) marker.setAttribute(key, value.toFixed(2));
  };

  // the slider is below the axis, and longer by half of the thumb at each end
  const alignSlider = (svg) => {
    const [left, right] = svg.dataset.axes.split(" ").map(Number), width = svg.viewBox.baseVal.width;
    slider.style.marginLeft = `calc(${(100 * left) / width}% - .5rem)`;
    slider.style.width = `calc(${(100 * (right - left)) / width}% + 1rem)`;
  };

  const show = () => {
    const index = slider.valueAsNumber, metrics = metricsAt(index), threshold = data.thresholds[index];
    shown.textContent = threshold === null ? "none is predicted" : threshold.toLocaleString("en", { minimumSignificantDigits: 4, maximumSignificantDigits: 4 }).replace("-", "−");
    shown.dataset.value = threshold === null ? "Infinity" : threshold;
    slider.setAttribute("aria-valuetext",
      `${shown.textContent}: recall ${text("", metrics.recall)}, precision ${text("", metrics.precision)}`);
    const hasNoCost = Number.isNaN(metrics.cost);
    for (const row of document.querySelectorAll("tr.cost")) row.hidden = hasNoCost;
    const hasDay = !Number.isNaN(day.valueAsNumber), isEmpty = aims.map((input) => Number.isNaN(input.valueAsNumber));
    document.querySelector("tr.day").hidden = !hasDay;
    document.getElementById("alerts-unit").textContent = hasDay ? "per day" : "per 1,000 rows";
    const isDisabled = { alerts: isEmpty[0], precision: isEmpty[1], recall: isEmpty[2], cost: hasNoCost, budget: hasNoCost || isEmpty[0] };
    for (const [name, disabled] of Object.entries(isDisabled)) document.querySelector(`[data-best=${name}]`).disabled = disabled;
    fill(cellsHere, "metric", metrics);
    if (data.own !== null) fill(cellsOfModel, "own", metricsAt(data.own));
    svgs.forEach((svg, i) => moveMarker(svg, markers[i], index, metrics));
  };

  // the highest threshold of equally good ones, whose scores may differ by rounding errors
  const best = (score) => {
    const scores = data.tp.map((_, index) => score(metricsAt(index))), greatest = Math.max(...scores);
    const least = greatest - 1e-12 * Math.abs(greatest);
    return scores.length - 1 - scores.reverse().findIndex((value) => value >= least);
  };
  const atMost = (value, limit) => value <= limit * (1 + 1e-12), atLeast = (value, limit) => value >= limit * (1 - 1e-12);
  const isInBudget = (metrics) =>
    atMost(metrics[Number.isNaN(day.valueAsNumber) ? "per-1000" : "per-day"], aims[0].valueAsNumber);
  const greatestPrecision = () => Math.max(...data.tp.map((_, index) => metricsAt(index).precision || 0));
  // the highest recall with at least this precision
  const ofPrecision = (least) => best((metrics) => (atLeast(metrics.precision, least) ? metrics.recall : -1));
  const choices = {
    alerts: () => best((metrics) => (isInBudget(metrics) ? metrics.alerts : -1)),
    precision: () => ofPrecision(Math.min(aims[1].valueAsNumber, greatestPrecision())),
    recall: () => best((metrics) => (atLeast(metrics.recall, aims[2].valueAsNumber) ? -metrics.alerts : -Infinity)),
    budget: () => best((metrics) => (isInBudget(metrics) ? -metrics.cost : -Infinity)),
    own: () => data.own,
    gmean: () => best((metrics) => metrics.gmean),
    f1: () => best((metrics) => metrics.f1),
    cost: () => best((metrics) => -metrics.cost),
  };
  const unreached = document.getElementById("unreached");
  for (const button of document.querySelectorAll("[data-best]")) {
    button.addEventListener("click", () => {
      slider.value = choices[button.dataset.best]();
      show();
      const isReached = button.dataset.best !== "precision" || atLeast(greatestPrecision(), aims[1].valueAsNumber);
      unreached.textContent = isReached ? "" :
        `No threshold reaches a precision of ${aims[1].value}. This one has the highest, ${text("", greatestPrecision())}.`;
    });
  }
  for (const input of [slider, day, ...aims, ...costs]) {
    input.addEventListener("input", () => {
      unreached.textContent = "";
      show();
    });
  }
  alignSlider(svgs.find((svg) => svg.dataset.name === "cuts"));
  show();
})();
