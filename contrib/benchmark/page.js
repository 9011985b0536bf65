// SPDX-License-Identifier: MIT
// Draws a plot for each table of the page: horizontal bars of the medians, with a line from the least to the greatest.
(() => {
  "use strict";
  const groups = JSON.parse(document.getElementById("groups").textContent);
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const ROW = 26;

  // Draws the line from the least to the greatest value, and the figure at its end.
  function drawSpread(u, group) {
    const { ctx } = u;
    const ratio = uPlot.pxRatio;
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = color("--ink");
    ctx.lineWidth = ratio;
    ctx.font = `${12 * ratio}px sans-serif`;
    ctx.textBaseline = "middle";
    ctx.textAlign = "left";
    group.lines.forEach((line, i) => {
      const y = u.valToPos(i, "x", true);
      const at = (value) => u.valToPos(group.log ? Math.max(value, group.least) : value, "y", true);
      if (line.count > 1) {
        ctx.beginPath();
        ctx.moveTo(at(line.min), y);
        ctx.lineTo(at(line.max), y);
        for (const end of [line.min, line.max]) {
          ctx.moveTo(at(end), y - 4 * ratio);
          ctx.lineTo(at(end), y + 4 * ratio);
        }
        ctx.stroke();
      }
      ctx.fillText(line.short, at(Math.max(line.max, line.median)) + 6 * ratio, y);
    });
    ctx.restore();
  }

  function draw(group, index) {
    const box = document.getElementById(`plot-${index}`);
    const ink = () => color("--ink");
    const places = group.lines.map((_, i) => i);
    const axis = { stroke: ink, grid: { stroke: () => color("--line"), width: 1 }, ticks: { show: false } };
    const labels = Math.min(270, 20 + 7 * Math.max(...group.lines.map((line) => line.who.length)));
    const bars = (own) => ({
      stroke: () => color(own ? "--own" : "--bar"),
      fill: () => color(own ? "--own" : "--bar"),
      paths: uPlot.paths.bars({ size: [0.7, 18] }),
      points: { show: false },
    });
    const values = (own) => group.lines.map((line) => (line.own === own ? Math.max(line.median, group.log ? group.least : 0) : null));
    new uPlot(
      {
        width: Math.min(box.clientWidth || 900, 950),
        height: ROW * group.lines.length + 40,
        padding: [4, 90, 0, 0],
        legend: { show: false },
        cursor: { show: false },
        scales: {
          x: { time: false, ori: 1, dir: -1, range: [-0.6, group.lines.length - 0.4] },
          y: group.log
            ? { ori: 0, dir: 1, distr: 3, range: [group.least, group.most] }
            : { ori: 0, dir: 1, range: [0, group.most] },
        },
        axes: [
          { ...axis, side: 3, size: labels, grid: { show: false }, splits: () => places, values: () => group.lines.map((line) => line.who) },
          { ...axis, side: 2, size: 30, space: 75, incrs: group.whole ? [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10000] : undefined },
        ],
        series: [{}, bars(true), bars(false)],
        hooks: { draw: [(u) => drawSpread(u, group)] },
      },
      [places, values(true), values(false)],
      box,
    );
  }

  groups.forEach(draw);
})();
