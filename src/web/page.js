/* SPDX-License-Identifier: MIT */
/* Updates the open page from sqmgr-web and draws the graphs. The server renders all text and all tables. The script
 * changes only the nodes that differ: the selection, the focus and unfolded parts stay. */
"use strict";
{
  const REGIONS = ["verdict", "now", "past", "instances"];
  const SILENCE_MS = 15000; // sqmgr-web sends a page each second, and each 5 s at the least
  const RETRY_MS = 3000;
  const HIDDEN_MS = 30000; // a hidden page shows only its title
  const byId = (id) => document.getElementById(id);

  /* What differs */

  const keyOf = (node) => (node.nodeType === Node.ELEMENT_NODE && (node.dataset.key || node.id)) || null;

  function morphAttributes(old, fresh) {
    for (const { name } of [...old.attributes])
      if (!fresh.hasAttribute(name) && !(name === "open" && old.nodeName === "DETAILS")) old.removeAttribute(name);
    for (const { name, value } of fresh.attributes)
      if (old.getAttribute(name) !== value && !(name === "open" && old.nodeName === "DETAILS"))
        old.setAttribute(name, value);
  }

  function morphChildren(old, fresh) {
    const wanted = new Set([...fresh.childNodes].map(keyOf));
    const known = new Map();
    for (const node of [...old.childNodes]) {
      const key = keyOf(node);
      if (!key) continue;
      if (wanted.has(key) && !known.has(key)) known.set(key, node);
      else node.remove(); // first, so that those behind it need not be moved
    }
    let at = old.firstChild;
    for (const node of [...fresh.childNodes]) {
      const key = keyOf(node);
      let match = key ? known.get(key) : at && !keyOf(at) && at.nodeName === node.nodeName ? at : null;
      known.delete(key);
      if (match && match.nodeName !== node.nodeName) match = null;
      if (!match) {
        old.insertBefore(document.importNode(node, true), at);
        continue;
      }
      if (match === at) at = at.nextSibling;
      else old.insertBefore(match, at);
      morph(match, node);
    }
    while (at) {
      const next = at.nextSibling;
      at.remove();
      at = next;
    }
  }

  function morph(old, fresh) {
    if (old.nodeType !== Node.ELEMENT_NODE) {
      if (old.nodeValue !== fresh.nodeValue) old.nodeValue = fresh.nodeValue;
      return;
    }
    if (old.id === "lost") return;
    morphAttributes(old, fresh);
    morphChildren(old, fresh);
  }

  function show(text) {
    const fresh = new DOMParser().parseFromString(text, "text/html");
    for (const id of REGIONS) {
      const part = fresh.getElementById(id);
      if (part) morph(byId(id), part);
    }
    const { title, icon } = byId("verdict").dataset;
    if (document.title !== title) document.title = title;
    if (byId("icon").getAttribute("href") !== icon) byId("icon").setAttribute("href", icon);
    listFleets();
  }

  /* The stream */

  let stream = null;
  let receivedAt = Date.now();

  function setText(element, text) {
    if (element.textContent !== text) element.textContent = text;
  }

  function span(ms) {
    const s = Math.floor(ms / 1000);
    return s < 60 ? `${s}s` : s < 3600 ? `${Math.floor(s / 60)}min` : `${Math.floor(s / 3600)}h`;
  }

  function showConnection() {
    const silent = Date.now() - receivedAt;
    const open = stream && stream.readyState === EventSource.OPEN;
    const lost = open ? silent > SILENCE_MS : silent > RETRY_MS;
    document.body.classList.toggle("lost", lost);
    setText(byId("lost"), lost ? `No data from sqmgr-web for ${span(silent)}; retrying.` : "");
  }

  function connect() {
    if (stream) stream.close();
    stream = new EventSource("/live");
    stream.addEventListener("page", (event) => {
      receivedAt = Date.now();
      show(event.data);
      showConnection();
    });
    stream.addEventListener("error", () => {
      // The browser tries again by itself unless it was refused.
      if (stream.readyState === EventSource.CLOSED) setTimeout(() => document.hidden || connect(), RETRY_MS);
      showConnection();
    });
  }

  // A hidden page, as on a locked phone, is not sent each second.
  async function renewHidden() {
    receivedAt = Date.now();
    try {
      const answer = await fetch("/");
      if (answer.ok && document.hidden) show(await answer.text());
    } catch {
      // showConnection() reports it when the page is visible again.
    }
  }

  function followVisibility() {
    document.addEventListener("visibilitychange", () => {
      receivedAt = Date.now();
      if (document.hidden) stream.close();
      else connect();
    });
  }

  /* The graphs */

  const RANGES = {
    hour: { label: "the last hour", every: 10000 },
    day: { label: "the last day", every: 60000 },
    month: { label: "the last 30 days", every: 600000 },
  };
  const SLOTS = { hour: 720, day: 1440, month: 4320 }; // where no fleet is known
  const UNITS = ["", "K", "M", "G", "T"];
  const LETTERS = { restart: "R", crash: "C", kill: "K", halt: "H" }; // others are listed alone
  const PLOTS = {
    memory: { key: "memory_bytes", title: "Memory", show: showSize, join: "sum", steps: binarySteps },
    active: { key: "active", title: "Active workers", show: showNumber, join: "sum", steps: null },
    busy: { key: "busy", title: "Busy threads", show: showNumber, join: "sum", steps: null },
    latency: { key: "latency_seconds", title: "Queue latency", show: showSeconds, join: "max", steps: null },
  };
  const PLOT_HEIGHT = 180;
  const POINTS_MIN = 12; // on the time axis of a short history

  let range = "hour";
  let past = null;
  let drawn = {};
  let askedAt = 0;

  function showSize(bytes) {
    let n = bytes;
    let i = 0;
    for (; n >= 1024 && i < UNITS.length - 1; i++) n /= 1024;
    return (n < 10 && i > 0 ? Math.floor(n * 10) / 10 : Math.floor(n)) + UNITS[i];
  }

  function showNumber(n) {
    return String(Math.round(n * 10) / 10);
  }

  function showSeconds(s) {
    if (s < 10) return `${Math.round(s * 10) / 10}s`;
    if (s < 120) return `${Math.round(s)}s`;
    return s < 7200 ? `${Math.round(s / 60)}min` : `${Math.round(s / 3600)}h`;
  }

  // Steps that are round in powers of 1024.
  function binarySteps(u, axis, min, max, space) {
    const least = (max - min) / Math.max(1, u.bbox.height / devicePixelRatio / 32);
    let step = 1;
    while (step < least) step *= 2;
    const splits = [];
    for (let at = 0; at <= max; at += step) splits.push(at);
    return splits;
  }

  function two(n) {
    return String(n).padStart(2, "0");
  }

  const showDay = (at) => `${two(at.getUTCMonth() + 1)}-${two(at.getUTCDate())}`;
  const showClock = (at) => `${two(at.getUTCHours())}:${two(at.getUTCMinutes())}`;

  function showTime(seconds) {
    const at = new Date(seconds * 1000);
    return range === "month" ? `${showDay(at)} ${showClock(at)}` : showClock(at);
  }

  // A label of the time axis, by the distance of two labels in seconds.
  function showTick(seconds, distance) {
    const at = new Date(seconds * 1000);
    if (distance >= 86400) return showDay(at);
    return distance < 60 ? `${showClock(at)}:${two(at.getUTCSeconds())}` : showClock(at);
  }

  const nameOf = (fleet) => `${fleet.socket} ${fleet.name}`;

  function chosen() {
    const of = byId("plots-of").value;
    return past.fleets.filter((fleet) => of === "" || nameOf(fleet) === of);
  }

  function joined(fleets, plot, n) {
    const values = new Array(n).fill(null);
    for (const fleet of fleets)
      fleet[plot.key].forEach((value, i) => {
        if (value === null) return;
        if (values[i] === null) values[i] = value;
        else values[i] = plot.join === "sum" ? values[i] + value : Math.max(values[i], value);
      });
    return values;
  }

  // The time axis begins with the oldest value of any graph.
  function firstKnown(fleets, n) {
    const isKnown = (i) => fleets.some((fleet) => Object.values(PLOTS).some((plot) => fleet[plot.key][i] !== null));
    for (let i = 0; i < n - POINTS_MIN; i++) if (isKnown(i)) return i;
    return Math.max(0, n - POINTS_MIN);
  }

  // The memory of all workers together before one is replaced; null if a fleet has no threshold.
  function memoryLimit() {
    const of = byId("plots-of").value;
    let limit = 0;
    for (const fleet of document.querySelectorAll(".fleet")) {
      if (of !== "" && fleet.dataset.key !== of) continue;
      if (Number(fleet.dataset.threshold) <= 0) return null;
      limit += Number(fleet.dataset.threshold) * Number(fleet.dataset.target);
    }
    return limit > 0 ? limit : null;
  }

  function marksShown() {
    const names = new Set(chosen().map(nameOf));
    const all = byId("plots-of").value === "";
    return past.marks.filter((mark) => all || names.has(`${mark.socket} ${mark.fleet}`));
  }

  function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  }

  function drawMarks(u) {
    const { ctx, bbox } = u;
    const scale = devicePixelRatio;
    let last = -Infinity;
    ctx.save();
    ctx.font = `600 ${11 * scale}px system-ui, sans-serif`;
    ctx.textAlign = "center";
    ctx.lineWidth = scale;
    for (const mark of past ? marksShown() : []) {
      const x = Math.round(u.valToPos(mark.at, "x", true));
      if (!LETTERS[mark.event] || x < bbox.left || x > bbox.left + bbox.width) continue;
      ctx.strokeStyle = ctx.fillStyle = colour(mark.event === "restart" ? "soft" : "act");
      ctx.setLineDash(mark.event === "restart" ? [2 * scale, 3 * scale] : []);
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      if (x - last < 12 * scale) continue;
      ctx.fillText(LETTERS[mark.event], x, bbox.top - 3 * scale);
      last = x;
    }
    ctx.restore();
  }

  // A sample that comes a little late leaves one slot empty: that is no gap.
  function realGaps(u, series, first, last, gaps) {
    const seconds = ([from, to]) => u.posToVal(to, "x", true) - u.posToVal(from, "x", true);
    return gaps.filter((gap) => seconds(gap) > 2.5 * past.step_seconds);
  }

  function optionsOf(id, figure, limit) {
    const plot = PLOTS[id];
    const font = "12px system-ui, sans-serif";
    const axis = { stroke: colour("soft"), font, grid: { stroke: colour("rail"), width: 1 }, ticks: { show: false } };
    const line = { stroke: colour("bar"), width: 1.5, fill: `${colour("bar")}22`, points: { show: false }, gaps: realGaps };
    return {
      width: figure.clientWidth,
      height: PLOT_HEIGHT,
      padding: [16, 28, 0, 0],
      legend: { show: false },
      cursor: { drag: { x: false, y: false }, points: { size: 6 }, y: false },
      scales: { x: { time: true }, y: { range: (u, min, max) => [0, max > 0 ? max * 1.08 : 1] } },
      series: [{}, line, ...(limit ? [{ stroke: colour("act"), width: 1, dash: [6, 4], points: { show: false } }] : [])],
      axes: [
        { ...axis, size: 28, space: 72, values: (u, splits, i, space, distance) => splits.map((at) => showTick(at, distance)) },
        {
          ...axis,
          size: 56,
          splits: plot.steps || undefined,
          incrs: plot.show === showNumber ? [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000] : undefined,
          values: (u, splits) => splits.map(plot.show),
        },
      ],
      hooks: { draw: [drawMarks], setCursor: [(u) => caption(id, u.cursor.idx)] },
      tzDate: (at) => uPlot.tzDate(new Date(at * 1000), "Etc/UTC"),
    };
  }

  // Describes the plot, or one moment of it, as text.
  function caption(id, index) {
    const plot = PLOTS[id];
    const { data } = drawn[id];
    const values = data[1].filter((value) => value !== null);
    let text = "no data for this time";
    if (index !== null && index !== undefined)
      text = `${data[1][index] === null ? "not known" : plot.show(data[1][index])} at ${showTime(data[0][index])} UTC`;
    else if (values.length > 0) {
      const now = data[1].findLast((value) => value !== null);
      const least = values.reduce((a, b) => Math.min(a, b));
      const most = values.reduce((a, b) => Math.max(a, b));
      const time = data[0].length < drawn[id].n ? `since ${showTime(data[0][0])} UTC` : `in ${RANGES[range].label}`;
      text = `${plot.show(now)} now, ${plot.show(least)} to ${plot.show(most)} ${time}`;
      if (data[2]) text += `; dashed: memory_threshold of all workers, ${plot.show(data[2][0])}`;
    }
    setText(byId(`plot-${id}`).querySelector("figcaption span"), text);
  }

  function draw(id) {
    const figure = byId(`plot-${id}`);
    const n = past.fleets.length > 0 ? past.fleets[0].active.length : SLOTS[range];
    const first = firstKnown(chosen(), n);
    const times = Array.from({ length: n - first }, (_, i) => past.end - (n - 1 - first - i) * past.step_seconds);
    const limit = id === "memory" ? memoryLimit() : null;
    const data = [times, joined(chosen(), PLOTS[id], n).slice(first)];
    if (limit) data.push(times.map(() => limit));
    if (drawn[id] && drawn[id].data.length === data.length) {
      Object.assign(drawn[id], { data, n });
      drawn[id].chart.setData(data);
    } else {
      if (drawn[id]) drawn[id].chart.destroy();
      drawn[id] = { data, n };
      drawn[id].chart = new uPlot(optionsOf(id, figure, limit), data, figure.querySelector(".canvas"));
    }
    if (drawn[id].chart.cursor.idx === null || drawn[id].chart.cursor.left < 0) caption(id, null);
  }

  function element(name, text) {
    const node = document.createElement(name);
    node.textContent = text;
    return node;
  }

  function listMarks() {
    const marks = marksShown().slice(-100).reverse();
    const list = document.createElement("ul");
    for (const mark of marks) {
      const row = document.createElement("li");
      const at = new Date(mark.at * 1000).toISOString();
      const time = element("time", `${at.slice(0, 10)} ${at.slice(11, 19)} UTC`);
      time.dateTime = at;
      row.append(time, element("b", mark.event), ` ${mark.text}`);
      list.append(row);
    }
    const summary = `Markers: R restart, C crash, K kill, H halt; ${marks.length === 0 ? "none" : marks.length} in ${RANGES[range].label}`;
    setText(byId("marks").querySelector("summary"), summary);
    morphChildren(byId("marks-list"), wrap(list));
  }

  function wrap(node) {
    const box = document.createElement("div");
    box.append(node);
    return box;
  }

  function drawAll() {
    if (!past) return;
    for (const id of Object.keys(PLOTS)) draw(id);
    listMarks();
    const left = past.left_out || 0;
    setText(byId("plots-note"), left > 0 ? `${left} fleets are not shown: the history is full.` : "");
  }

  function redraw() {
    for (const id of Object.keys(drawn)) drawn[id].chart.destroy();
    drawn = {};
    drawAll();
  }

  // The choice follows the fleets that are there.
  function listFleets() {
    const select = byId("plots-of");
    const fleets = [...document.querySelectorAll(".fleet")];
    const keys = ["", ...fleets.map((fleet) => fleet.dataset.key)];
    if (keys.join("\n") === [...select.options].map((option) => option.value).join("\n")) return;
    const kept = select.value;
    const several = new Set(fleets.map((fleet) => fleet.dataset.instance)).size > 1;
    select.replaceChildren(element("option", "all fleets"));
    select.options[0].value = "";
    for (const { dataset } of fleets) {
      const option = element("option", several ? `${dataset.fleet} (${dataset.instance})` : dataset.fleet);
      option.value = dataset.key;
      select.append(option);
    }
    select.value = keys.includes(kept) ? kept : "";
  }

  async function ask() {
    const asked = range;
    askedAt = Date.now();
    try {
      const answer = await fetch(`/api/history?range=${asked}`);
      if (!answer.ok) throw new Error(`sqmgr-web answered ${answer.status}`);
      const history = await answer.json();
      if (asked !== range) return;
      past = history;
      drawAll();
    } catch (error) {
      setText(byId("plots-note"), `Cannot update the graphs: ${error.message}.`);
    }
  }

  function choose(button) {
    for (const other of document.querySelectorAll("[data-range]"))
      other.setAttribute("aria-pressed", String(other === button));
    range = button.dataset.range;
    ask();
  }

  function startPlots() {
    for (const button of document.querySelectorAll("[data-range]"))
      button.addEventListener("click", () => choose(button));
    byId("plots-of").addEventListener("change", drawAll);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
    addEventListener("resize", () => {
      for (const id of Object.keys(drawn))
        drawn[id].chart.setSize({ width: byId(`plot-${id}`).clientWidth, height: PLOT_HEIGHT });
    });
    listFleets();
    ask();
  }

  startPlots();
  connect();
  followVisibility();
  setInterval(() => {
    if (document.hidden) {
      if (Date.now() - receivedAt > HIDDEN_MS) renewHidden();
      return;
    }
    showConnection();
    // A stream that is open and silent may be one whose other end is gone.
    if (stream.readyState === EventSource.OPEN && Date.now() - receivedAt > 3 * SILENCE_MS) {
      receivedAt = Date.now() - SILENCE_MS;
      connect();
    }
    if (Date.now() - askedAt > RANGES[range].every) ask();
  }, 1000);
}
