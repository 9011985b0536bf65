// SPDX-License-Identifier: MIT
// Drives a Chromium that shows a page of sqmgr-web. Usage: node page.js COMMAND URL [ARGUMENT...]
//   values [no-script]      prints the values that the page shows, as JSON, once they are loaded
//   judge                   fails on a violation found by axe-core, of the policy, the origin, the layout or the keyboard
//   watch FOLDER WHAT...    waits for each WHAT to appear, in that order; FOLDER/seen has a line for each
//   picture FILE WIDTH SCHEME [HEIGHT]
"use strict";
const fs = require("fs");
const assert = require("assert");
const { chromium } = require("playwright-core");

const PATIENCE_MS = 120000; // a busy machine is slow
const [command, url, ...rest] = process.argv.slice(2);
// High enough for the whole page: shifts outside of the viewport are not reported.
const sizes = { 1440: { width: 1440, height: 2600 }, 390: { width: 390, height: 4200 } };

// Collects errors on the page: violations of the policy, and elements that shifted by themselves.
function keep() {
  window.violations = [];
  window.shifts = [];
  document.addEventListener("securitypolicyviolation", (event) => window.violations.push(event.violatedDirective));
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries())
      window.shifts.push([entry.value, ...entry.sources.map((source) => source.node && source.node.nodeName)]);
  }).observe({ type: "layout-shift", buffered: true });
}

async function open(browser, options) {
  const context = await browser.newContext(options);
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  page.asked = [];
  page.errors = [];
  page.on("request", (request) => page.asked.push([request.resourceType(), request.url()]));
  page.on("pageerror", (error) => page.errors.push(error.message));
  if (options.javaScriptEnabled !== false) await page.addInitScript(keep);
  await page.goto(url, { waitUntil: "load" });
  return page;
}

// Returns the visible values, identified as a reader would.
function read() {
  const text = (root, selector) => root.querySelector(selector)?.textContent.trim() ?? null;
  const cells = (row) => [...row.children].map((cell) => cell.textContent.trim());
  return {
    title: document.title,
    headline: text(document, "h1"),
    sum: text(document, ".sum"),
    findings: [...document.querySelectorAll(".findings li")].map((item) => item.textContent),
    fleets: [...document.querySelectorAll(".fleet")].map((fleet) => ({
      name: text(fleet, "h3"),
      facts: [...fleet.querySelectorAll(".facts li")].map((item) => item.textContent),
      memory_bytes: Number(fleet.querySelector(".facts data").value),
      workers: [...fleet.querySelectorAll(".workers tbody tr:not(.why)")].map((row) => {
        const [id, state, busy, , , generation, pid] = cells(row);
        return {
          id,
          state: state.split(" ")[0],
          busy,
          memory_bytes: Number(row.querySelector("data").value),
          generation: Number(generation),
          pid: Number(pid),
        };
      }),
    })),
    halted: [...document.querySelectorAll(".restart")].map((restart) => restart.textContent).find((it) => it.includes("halted")),
    queues: [...document.querySelectorAll(".queues tbody tr")].map((row) => cells(row).slice(0, 2)),
    events: [...document.querySelectorAll(".events tbody tr")].map((row) => cells(row)[1]),
    images: document.querySelectorAll("img, iframe, object, script:not([src]), [onerror], [onclick]").length,
  };
}

async function values(browser) {
  const page = await open(browser, { javaScriptEnabled: rest[0] !== "no-script" });
  console.log(JSON.stringify(await page.evaluate(read)));
}

// Presses Tab until an element of that kind has the focus.
async function tabTo(page, selector) {
  for (let i = 0; i < 60; i++) {
    await page.keyboard.press("Tab");
    if (await page.evaluate((what) => document.activeElement.matches(what), selector)) return;
  }
  assert.fail(`${selector} is not reached by the keyboard`);
}

async function tryKeyboard(page) {
  await page.evaluate(() => document.activeElement.blur());
  await tabTo(page, ".skip");
  await tabTo(page, ".fleet summary");
  const before = await page.evaluate(() => document.activeElement.parentElement.open);
  await page.keyboard.press("Enter");
  assert.strictEqual(await page.evaluate(() => document.activeElement.parentElement.open), !before);
  const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
  assert.notStrictEqual(outline, "none", "what has the focus is to be seen");
  await tabTo(page, '[data-range="day"]');
  await page.keyboard.press("Space");
  await page.waitForSelector('[data-range="day"][aria-pressed="true"]');
  await page.waitForSelector('[data-range="hour"][aria-pressed="false"]');
  await tabTo(page, "#plots-of");
  await page.keyboard.press("Shift+Tab");
}

// Hides the page for a while.
async function tryHiding(page) {
  const streams = () => page.asked.filter(([kind]) => kind === "eventsource").length;
  const before = streams();
  const hide = (hidden) =>
    page.evaluate((is) => {
      Object.defineProperty(document, "hidden", { value: is, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    }, hidden);
  await hide(true);
  const asof = await page.textContent("#asof time");
  // Meanwhile another page, which is visible, receives two updates.
  const other = await open(page.context().browser(), {});
  for (let i = 0; i < 2; i++) await nextPage(other);
  await other.context().close();
  assert.strictEqual(await page.textContent("#asof time"), asof, "it is sent pages though nobody looks");
  await hide(false);
  await page.waitForFunction((old) => document.querySelector("#asof time").textContent !== old, asof);
  assert.strictEqual(streams(), before + 1);
}

async function nextPage(page) {
  const asof = await page.textContent("#asof time");
  await page.waitForFunction((old) => document.querySelector("#asof time").textContent !== old, asof);
}

async function judgeOne(browser, width, colorScheme) {
  const page = await open(browser, { viewport: sizes[width], colorScheme, reducedMotion: "reduce" });
  const what = `${width} ${colorScheme}`;
  await page.waitForSelector("#plot-latency canvas");
  // The history is shorter than an hour: the graphs begin with it.
  for (const caption of await page.locator(".grid figcaption span").allTextContents())
    assert.match(caption, / since \d\d:\d\d UTC|no data for this time/, what);
  // The stream has sent two pages since.
  for (let i = 0; i < 2; i++) await nextPage(page);
  const shifts = await page.evaluate(() => window.shifts);
  // A right-aligned number that gains a digit counts as a shift of less than 0.0001.
  const moved = shifts.reduce((sum, [value]) => sum + value, 0);
  assert.ok(moved < 0.001, `${what}: elements moved by themselves: ${JSON.stringify(shifts)}`);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${what}: it is too wide`);
  for (const details of await page.$$("details:not([open]) > summary")) await details.click();
  await page.evaluate(fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8"));
  const found = await page.evaluate(() =>
    axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }),
  );
  assert.deepStrictEqual(
    found.violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.target).join(" ")}`),
    [],
    `${what}: axe-core`,
  );
  assert.ok(found.passes.some(({ id }) => id === "color-contrast"), `${what}: no contrast was measured`);
  await tryKeyboard(page);
  if (width === "390" && colorScheme === "dark") await tryHiding(page);
  assert.deepStrictEqual(await page.evaluate(() => window.violations), [], `${what}: the policy was violated`);
  assert.deepStrictEqual(page.errors, [], what);
  for (const [kind, address] of page.asked) {
    assert.strictEqual(new URL(address).origin, new URL(url).origin, `${what}: it asked ${address}`);
    assert.ok(["document", "script", "fetch", "eventsource"].includes(kind), `${what}: it asked for a ${kind}, ${address}`);
  }
  await page.context().close();
}

// Proves that the checks work: that the policy blocks inline scripts, and that axe-core finds errors.
async function judgeTheJudges(browser) {
  const page = await open(browser, { viewport: sizes[1440] });
  await page.evaluate(() => {
    document.body.append(Object.assign(document.createElement("script"), { textContent: "window.ran = true" }));
    document.querySelector("h1").setAttribute("style", "color: #888");
    document.querySelector(".fleet").prepend(Object.assign(document.createElement("div"), { textContent: "x" }));
  });
  await page.waitForFunction(() => window.violations.length >= 2);
  assert.strictEqual(await page.evaluate(() => window.ran), undefined);
  await page.evaluate(() => document.querySelector("html").removeAttribute("lang"));
  await page.evaluate(fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8"));
  const { violations } = await page.evaluate(() => axe.run(document));
  assert.ok(violations.some(({ id }) => id === "html-has-lang"));
  await page.context().close();
}

async function judge(browser) {
  for (const width of Object.keys(sizes))
    for (const scheme of ["light", "dark"]) await judgeOne(browser, width, scheme);
  await judgeTheJudges(browser);
}

// State of a reader that an update must keep: a selection, the focus, and parts unfolded or folded.
async function takeHold(page) {
  await page.click(".fleet:last-of-type details summary");
  await page.focus('[data-range="hour"]');
  await page.evaluate(() => {
    const range = document.createRange();
    range.selectNodeContents(document.querySelector("#fleets h3"));
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    window.held = document.querySelector(".fleet:last-of-type details");
  });
  return page.evaluate(held);
}

function held() {
  return {
    selected: String(getSelection()),
    focus: document.activeElement.dataset.range ?? document.activeElement.nodeName,
    same: window.held.isConnected,
    open: window.held.open,
  };
}

async function watch(browser) {
  const [folder, ...awaited] = rest;
  const seen = (line) => fs.appendFileSync(`${folder}/seen`, `${line}\n`);
  const page = await open(browser, { viewport: sizes[1440] });
  await page.waitForSelector("#plot-latency canvas");
  const before = await takeHold(page);
  assert.deepStrictEqual({ ...before, open: null }, { selected: before.selected, focus: "hour", same: true, open: null });
  assert.ok(before.selected.length > 0);
  seen("ready");
  for (const what of awaited) {
    await page.waitForFunction((text) => document.body.innerText.includes(text), what, { polling: 50 });
    assert.deepStrictEqual(await page.evaluate(held), before, `as '${what}' was said`);
    seen(what);
  }
  assert.deepStrictEqual(page.errors, []);
  assert.deepStrictEqual(await page.evaluate(() => window.violations), []);
}

async function picture(browser) {
  const [file, width, colorScheme, height] = rest;
  const page = await open(browser, { viewport: { width: Number(width), height: Number(height) }, colorScheme });
  await page.waitForSelector("#plot-latency canvas");
  await page.waitForTimeout(1000);
  // The first sqmgr of a machine needs no -s, that of a test does.
  await page.evaluate(() => {
    const shorten = () => {
      for (const code of document.querySelectorAll("code"))
        if (/ -s /.test(code.textContent)) code.textContent = code.textContent.replace(/ -s \/tmp\/\S+/, "");
    };
    new MutationObserver(shorten).observe(document.body, { subtree: true, childList: true, characterData: true });
    shorten();
  });
  await page.screenshot({ path: file });
}

async function main() {
  const args = process.getuid() === 0 ? ["--no-sandbox"] : [];
  const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args, timeout: PATIENCE_MS });
  try {
    await { values, judge, watch, picture }[command](browser);
  } finally {
    await browser.close();
  }
}

main().catch((error) => {
  console.error(error.stack);
  process.exit(1);
});
