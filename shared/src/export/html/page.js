// Pointer, zoom and colours of the page. All that is drawn from data is in the page already, in
// inner viewports that are stretched; zooming moves their viewBox and writes the times anew.
// Texts are only ever set as text.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const LEFT = 96, PLOT = 850, FULL = data.span;
  let view = FULL.slice();
  const all = (query, root = document) => Array.from(root.querySelectorAll(query));
  const charts = all(".chart");
  const tip = document.getElementById("tip");
  const root = document.documentElement;

  const dark = matchMedia("(prefers-color-scheme: dark)");
  const paint = (isDark) => { root.dataset.theme = isDark ? "dark" : "light"; };
  paint(dark.matches);
  dark.addEventListener("change", (event) => paint(event.matches));
  const theme = document.getElementById("theme");
  theme.hidden = false;
  theme.addEventListener("click", () => paint(root.dataset.theme !== "dark"));

  const STEPS = [0.01, 0.05, 0.1, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200,
    21600];
  function clock(seconds, step) {
    const decimals = step < 0.1 ? 2 : step < 1 ? 1 : 0, sign = seconds < 0 ? "-" : "";
    const size = Math.abs(seconds), minutes = Math.floor(size / 60), rest = size % 60;
    const two = (value) => String(Math.floor(value)).padStart(2, "0");
    if (minutes >= 60) {
      return sign + Math.floor(minutes / 60) + ":" + two(minutes % 60) + ":" + two(rest);
    }
    return sign + minutes + ":" + rest.toFixed(decimals).padStart(decimals ? 3 + decimals : 2, "0");
  }
  function stepOf([start, end]) {
    const least = (end - start) / 9;
    return STEPS.find((step) => step >= least) || Math.ceil(least / 86400) * 86400;
  }
  function make(name, attributes, text) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const key of Object.keys(attributes)) element.setAttribute(key, attributes[key]);
    if (text !== undefined) element.textContent = text;
    return element;
  }
  const placeOf = (time) => LEFT + (time - view[0]) / (view[1] - view[0]) * PLOT;

  function show() {
    const unit = PLOT / (FULL[1] - FULL[0] || 1), step = stepOf(view);
    const from = (view[0] - FULL[0]) * unit, width = (view[1] - view[0]) * unit;
    for (const plot of all("svg.plot")) {
      const height = plot.getAttribute("height");
      plot.setAttribute("viewBox", `${from} 0 ${width} ${height}`);
    }
    for (const axis of all("g.x")) {
      const old = axis.querySelector("path"), line = old && /[\d.]+ ([\d.]+)V([\d.]+)/.exec(
        old.getAttribute("d"));
      const text = axis.querySelector("text");
      if (line) axis.dataset.line = line[1] + "," + line[2];
      if (text) axis.dataset.text = text.getAttribute("y");
      const [top, bottom] = (axis.dataset.line || "0,0").split(",");
      axis.replaceChildren();
      for (let number = Math.ceil(view[0] / step); number * step <= view[1]; number += 1) {
        const x = placeOf(number * step).toFixed(1);
        axis.append(make("path", { d: `M${x} ${top}V${bottom}` }),
          make("text", { x, y: axis.dataset.text || 0 }, clock(number * step, step)));
      }
    }
    for (const letter of all(".events text")) {
      const time = Number(letter.dataset.t), inside = time >= view[0] && time <= view[1];
      letter.style.visibility = inside ? "" : "hidden";
      letter.setAttribute("x", placeOf(time).toFixed(1));
    }
    const zoomed = view[0] !== FULL[0] || view[1] !== FULL[1];
    document.getElementById("whole").hidden = !zoomed;
    const range = clock(view[0], step) + " – " + clock(view[1], step);
    document.getElementById("range").textContent = zoomed ? range : "drag over a chart to zoom";
  }

  const round = (value) => {
    if (value === null || value === undefined) return "no data";
    const size = Math.abs(value);
    const digits = size >= 100 || size === 0 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3;
    return value.toLocaleString("en", { maximumFractionDigits: Number.isInteger(value) ? 0 : digits,
      minimumFractionDigits: 0 });
  };
  function say(event, head, lines) {
    const line = (words) => {
      const row = document.createElement("div");
      for (const word of words) {
        const cell = document.createElement("span");
        cell.textContent = word;
        row.append(cell);
      }
      return row;
    };
    const title = line([head]);
    title.className = "head";
    tip.replaceChildren(title, ...lines.map(line));
    tip.hidden = false;
    const box = tip.getBoundingClientRect(), gap = 16;
    const left = event.clientX + gap + box.width > innerWidth ? event.clientX - gap - box.width
      : event.clientX + gap;
    const top = Math.min(event.clientY + gap, innerHeight - box.height - 6);
    tip.style.left = Math.max(4, left) + "px";
    tip.style.top = Math.max(4, top) + "px";
  }
  function cursor(time) {
    for (const line of all(".cursor")) {
      const inside = time !== null && time >= view[0] && time <= view[1];
      line.style.visibility = inside ? "visible" : "hidden";
      if (inside) line.setAttribute("transform", `translate(${placeOf(time).toFixed(1)} 0)`);
    }
  }
  function timeAt(event, frame) {
    const box = frame.getBoundingClientRect();
    const x = (event.clientX - box.left) / box.width * 1000;
    const share = Math.min(1, Math.max(0, (x - LEFT) / PLOT));
    return view[0] + share * (view[1] - view[0]);
  }
  function slotAt(time) {
    const slots = data.slots;
    let low = 0, high = slots.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (slots[middle][1] <= time) low = middle + 1; else high = middle;
    }
    return low < slots.length && slots[low][0] <= time ? low : -1;
  }

  function overChart(event, chart, time) {
    const slot = slotAt(time);
    if (slot < 0) { tip.hidden = true; cursor(time); return; }
    const [start, end] = data.slots[slot], step = end - start < 2 ? 0.1 : 1;
    cursor((start + end) / 2);
    const own = data.charts[Number(chart.dataset.chart)];
    const lines = own.series.map((series) => {
      const value = series.values[slot];
      return [series.name, round(value) + (value === null ? "" : series.unit)];
    });
    const head = `${data.slot} ${slot + 1} · ${clock(start, step)} – ${clock(end, step)}`;
    say(event, head, lines);
  }
  const rowsOf = [];
  function overUsers(event, frame, time) {
    const users = data.timeline, box = frame.getBoundingClientRect();
    const y = (event.clientY - box.top) / box.width * 1000;
    const row = Math.floor(y / users.row_height);
    cursor(time);
    if (!users.names[row]) { tip.hidden = true; return; }
    const reach = (view[1] - view[0]) / PLOT * 6;
    let best = -1, nearest = reach;
    for (const mark of rowsOf[row] || []) {
      const away = Math.max(users.due[mark] - time, time - users.end[mark], 0);
      const near = away === 0 ? -1 / (1 + Math.abs(users.sent[mark] - time)) : away;
      if (near < nearest) { nearest = near; best = mark; }
    }
    if (best < 0) { say(event, users.names[row], []); return; }
    const times = (from, to) => round(to - from) + " s";
    const lines = [["sent", clock(users.sent[best], 0.01)]];
    if (users.sent[best] - users.due[best] > 0.0005) {
      lines.push(["waited for admission", times(users.due[best], users.sent[best])]);
    }
    const ttft = users.ttft[best];
    lines.push(["TTFT", ttft === null ? "no data" : round(ttft) + " s"],
      ["end to end", times(users.sent[best], users.end[best])],
      ["in / out", `${round(users.input[best])} / ${round(users.output[best])} tokens`]);
    const end = { ok: "ok", bad: "failed", cut: "cut off" }[users.kind[best]];
    const words = users.said[best];
    lines.push(["end", words === null ? end : `${end}: ${users.words[words]}`]);
    say(event, users.names[row], lines);
  }

  function watch(chart) {
    const area = chart.querySelector(".catch"), frame = area.ownerSVGElement;
    const chosen = chart.querySelector(".chosen");
    let from = null;
    const leave = () => { tip.hidden = true; cursor(null); };
    area.addEventListener("pointermove", (event) => {
      const time = timeAt(event, frame);
      if (from !== null) {
        const [a, b] = [placeOf(from), placeOf(time)].sort((one, two) => one - two);
        chosen.setAttribute("x", a);
        chosen.setAttribute("width", b - a);
        chosen.style.visibility = "visible";
      }
      if (chart.dataset.chart !== undefined) overChart(event, chart, time);
      else overUsers(event, frame, time);
    });
    area.addEventListener("pointerleave", leave);
    area.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || event.pointerType === "touch") return;
      from = timeAt(event, frame);
      area.setPointerCapture(event.pointerId);
      event.preventDefault();
    });
    const finish = (event) => {
      if (from === null) return;
      const [a, b] = [from, timeAt(event, frame)].sort((one, two) => one - two);
      from = null;
      chosen.style.visibility = "hidden";
      if (event.type === "pointerup" && b - a > (view[1] - view[0]) * 0.01) view = [a, b];
      show();
    };
    area.addEventListener("pointerup", finish);
    area.addEventListener("pointercancel", finish);
    area.addEventListener("dblclick", whole);
    for (const key of all("button.key", chart)) {
      key.addEventListener("click", () => {
        const off = key.classList.toggle("off");
        const group = chart.querySelector(`g[data-series="${key.dataset.series}"]`);
        group.style.visibility = off ? "hidden" : "";
      });
    }
  }
  function whole() { view = FULL.slice(); show(); }

  if (data.timeline) {
    data.timeline.row.forEach((row, mark) => (rowsOf[row] = rowsOf[row] || []).push(mark));
  }
  charts.forEach(watch);
  document.getElementById("whole").addEventListener("click", whole);
  addEventListener("keydown", (event) => { if (event.key === "Escape") whole(); });
  show();
})();
