/* Charts of what the page says in words or in a table as well. */
(() => {
  "use strict";
  const made = [];
  const paint = (name) => {
    const probe = document.createElement("span");
    probe.className = `ink-${name}`;
    document.body.append(probe);
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  };
  const axis = (more) => ({ stroke: paint("quiet"), grid: { stroke: paint("line"), width: 1 }, ticks: { stroke: paint("line"), width: 1 }, font: "12px system-ui, sans-serif", ...more });
  const days = (_, splits) => splits.map((at, number) => {
    const text = new Date(at * 1e3).toISOString();
    const before = number ? new Date(splits[number - 1] * 1e3).toISOString() : "";
    const name = text.slice(0, 4) === before.slice(0, 4) ? text.slice(5, 10) : text.slice(0, 10);
    return text.slice(11, 16) === "00:00" ? name : text.slice(11, 16);
  });
  const base = (element, height, more) => ({ width: Math.max(240, element.clientWidth), height, legend: { show: false }, cursor: { show: false }, tzDate: (ts) => uPlot.tzDate(new Date(ts * 1e3), "Etc/UTC"), ...more });

  const marks = (times, ink) => ({ hooks: { draw: [(plot) => {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.strokeStyle = ink;
    ctx.setLineDash([3, 3]);
    for (const at of times) {
      const x = Math.round(plot.valToPos(at, "x", true));
      if (x < bbox.left || x > bbox.left + bbox.width) continue;
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
    }
    ctx.restore();
  }] } });

  const rate = (element) => {
    const log = JSON.parse(element.dataset.days);
    const releases = JSON.parse(element.dataset.releases);
    const share = (part) => log.map((day) => (day.traces ? (100 * day[part]) / day.traces : null));
    const points = { show: log.length < 40 };
    return new uPlot(base(element, 240, {
      scales: { y: { range: (_, low, high) => [0, Math.max(1, high * 1.1)] } },
      axes: [axis({ values: days, space: 80 }), axis({ values: (_, values) => values.map((value) => `${value} %`), size: 56 })],
      series: [{}, { stroke: paint("one"), width: 2, points }, { stroke: paint("two"), width: 2, dash: [6, 4], points }],
      plugins: [marks(releases.map((each) => each.created_us / 1e6), paint("three"))],
    }), [log.map((day) => day.day_us / 1e6), share("failures"), share("recurrences")], element);
  };

  const strip = (element, groups, lines, height) => {
    const all = groups.flatMap((group) => group.at.map((at) => [at, group]));
    all.sort((a, b) => a[0] - b[0]);
    const xs = all.map((each) => each[0]);
    const low = Math.min(...xs, ...lines), high = Math.max(...xs, ...lines);
    const pad = Math.max(3600, (high - low) * 0.03);
    return new uPlot(base(element, height, {
      scales: { x: { range: [low - pad, high + pad] }, y: { range: [0, groups.length] } },
      axes: [axis({ values: days, space: 80 }), { show: false }],
      series: [{}, ...groups.map((group) => ({ stroke: group.ink, paths: () => null, points: { show: true, size: group.size || 8, fill: group.ink, stroke: group.ink } }))],
      plugins: [marks(lines, paint("three"))],
    }), [xs, ...groups.map((group, number) => all.map((each) => (each[1] === group ? number + 0.5 : null)))], element);
  };

  const ticks = (element) => strip(element, [{ at: JSON.parse(element.dataset.at).map((at) => at / 1e6), ink: paint("one"), size: 7 }], element.dataset.mark ? [Number(element.dataset.mark) / 1e6] : [], 90);

  const decisions = (element) => {
    const found = JSON.parse(element.dataset.marks);
    const of = (name, ink, size) => ({ at: found.filter((each) => each.decision === name).map((each) => each.at_us / 1e6), ink: paint(ink), size });
    return strip(element, [of("skipped", "quiet", 7), of("refused", "no", 10), of("rolled_back", "three", 10), of("promoted", "yes", 12)], [], 130);
  };

  const curves = (element) => {
    const found = JSON.parse(element.dataset.curves);
    const folds = Math.max(...found.map((each) => each.curve.length));
    const share = (each) => Array.from({ length: folds }, (_, at) => (each.curve[at] ? (100 * each.curve[at].right) / each.curve[at].rows : null));
    return new uPlot(base(element, 240, {
      scales: { x: { time: false, range: [0.8, folds + 0.2] }, y: { range: (_, low, high) => [Math.max(0, low - 5), Math.min(100, high + 5)] } },
      axes: [axis({ splits: () => Array.from({ length: folds }, (_, at) => at + 1), values: (_, all) => all.map((fold) => `fold ${fold}`) }), axis({ values: (_, values) => values.map((value) => `${value} %`), size: 56 })],
      series: [{}, ...found.map((_, at) => ({ stroke: paint(`k${at + 1}`), width: 2, dash: at % 2 ? [6, 4] : undefined, points: { show: true, size: 7, fill: paint(`k${at + 1}`) } }))],
    }), [Array.from({ length: folds }, (_, at) => at + 1), ...found.map(share)], element);
  };

  const KINDS = { rate, ticks, decisions, curves };
  const draw = () => {
    for (const plot of made.splice(0)) plot.destroy();
    for (const element of document.querySelectorAll("[data-chart]")) made.push(KINDS[element.dataset.chart](element));
  };
  let waits = 0;
  const later = () => { clearTimeout(waits); waits = setTimeout(draw, 120); };
  document.addEventListener("DOMContentLoaded", draw);
  document.addEventListener("htmx:afterSettle", draw);
  document.addEventListener("filmroom:theme", later);
  window.addEventListener("resize", later);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", later);
})();
