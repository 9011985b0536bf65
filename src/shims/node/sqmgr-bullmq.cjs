// SPDX-License-Identifier: MIT
// Reports the jobs of BullMQ's Workers to sqmgr, see sqmgr-heartbeat(7), without a change of the application. sqmgr
// starts the process with NODE_OPTIONS=--require=THIS FILE. Nothing happens unless SQMGR_STATUS_DIR is set and a Worker
// runs. TSTP pauses all Workers of the process, TTIN resumes them, TERM closes them.
//
// Not seen: Workers in worker_threads, and queues of Bull. In a process with a Worker beside them their jobs do not
// count, and TERM cuts them off unless the application waits for them.
"use strict";
const EventEmitter = require("events");
const fs = require("fs");

const folder = process.env.SQMGR_STATUS_DIR;
const SHORTEST = 150; // changes within this time are written as one
const GRACE = 30000; // for the application's own handlers of TERM, once the Workers are closed
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]/gu;
const METHODS = ["run", "pause", "resume", "close", "getNextJob", "isPaused", "isRunning"];

const workers = new Map(); // Worker: null, or of the last quiet {held: pause() has ended, ours: paused by this file}
const jobs = new Map(); // running job: its start
const counts = { completed: 0, failed: 0 };
const patched = new WeakSet();
let [quiet, stopping, started, waiting, complained, startTime, timer] = [false, false, false, false, false, "", null];

function complain(error) {
  if (!complained) console.error("sqmgr-bullmq:", error);
  complained = true;
}
// No error of this file reaches the application. The function is carried out at once, up to its first `await`.
const safe = (act) => (...words) => {
  (async () => act(...words))().catch(complain);
};

// A Worker is recognized by its methods as it is constructed, so required, imported and bundled ones are alike. Bull's
// Queue has most of these methods, and add(); its pause() would stop the queue for all processes.
const recognize = safe((emitter) => {
  let type = Object.getPrototypeOf(emitter);
  while (type && !Object.hasOwn(type, "processJob")) type = Object.getPrototypeOf(type);
  if (!type || patched.has(type) || type.add || !METHODS.every((name) => typeof type[name] === "function")) return;
  patched.add(type);
  const { run, processJob, emit } = type;
  type.run = function (...words) {
    add(this);
    return run.apply(this, words);
  };
  type.processJob = function (job, ...words) {
    // Until 5.4x `paused` is a promise, and processJob() begins by dropping a job that was fetched during pause().
    const { paused } = this;
    if (paused?.then) this.paused = null;
    if (job && !jobs.has(job)) jobs.set(job, (Date.now() / 1000).toFixed(3));
    changed();
    const result = processJob.call(this, job, ...words);
    if (paused?.then) this.paused = paused;
    const end = () => jobs.delete(job) && changed();
    Promise.resolve(result).then(end, end);
    return result;
  };
  // A job that is given back, or has lost its lock, ends without either event, and is not counted.
  type.emit = function (event, ...words) {
    if (event === "closed" && workers.delete(this)) changed();
    if (event in counts && jobs.has(words[0])) counts[event]++;
    return emit.call(this, event, ...words);
  };
});

const add = safe((worker) => {
  if (!workers.has(worker)) workers.set(worker, null);
  if (!started) start();
  if (quiet) hold(worker);
  changed();
});

function start() {
  started = true;
  startTime = fs.readFileSync("/proc/self/stat", "latin1").split(")").pop().trim().split(" ")[19];
  // Not for children of the worker. Not removed before, as npm and tsx start the worker as their child.
  const options = (process.env.NODE_OPTIONS || "").split(" ");
  process.env.NODE_OPTIONS = options.filter((option) => !/^--require=.*\/sqmgr-bullmq\.cjs$/.test(option)).join(" ");
  process.on("SIGTSTP", safe(() => turn(true, hold)));
  process.on("SIGTTIN", safe(() => turn(false, release)));
  // First, to count the handlers of the application before `once` removes them.
  process.prependListener("SIGTERM", safe(stop));
  process.once("exit", safe(() => fs.rmSync(`${folder}/${process.pid}`, { force: true })));
  write();
}

function turn(wanted, act) {
  if (quiet === wanted || stopping) return;
  quiet = wanted;
  for (const worker of workers.keys()) act(worker);
  changed();
}

// pause() resolves once no job runs and none can begin. If it fails, the Worker never counts as idle.
const hold = safe(async (worker) => {
  const state = { held: false, ours: !worker.isPaused() };
  workers.set(worker, state);
  await worker.pause();
  state.held = true;
  changed();
});
const release = safe((worker) => workers.get(worker)?.ours && worker.resume());
// After a pause(true) of the application the main loop still runs, and may have a fetch in flight.
const may_fetch = ([worker, state]) => !state?.held || worker.waiting || (worker.mainLoop && worker.isRunning());

// The application's own handlers come before close(), which does nothing a second time, and end the process.
async function stop() {
  if (stopping) return;
  const alone = process.listenerCount("SIGTERM") === 1;
  quiet = stopping = true;
  changed();
  await new Promise(setImmediate);
  await Promise.allSettled([...workers.keys()].map(async (worker) => worker.close()));
  while (jobs.size) await new Promise((resolve) => setTimeout(resolve, SHORTEST));
  if (alone) process.exit();
  setTimeout(() => process.exit(), GRACE).unref();
}

function changed() {
  if (waiting || !started) return;
  waiting = true;
  clearTimeout(timer);
  timer = setTimeout(write, SHORTEST).unref();
}

function text(value, unprintable, other, most) {
  const bytes = Buffer.from(String(value).slice(0, most).replace(unprintable, other) || other);
  return new TextDecoder().decode(bytes.subarray(0, most), { stream: true }); // without a last part of a character
}

function record() {
  let concurrency = 0;
  for (const worker of workers.keys()) concurrency += worker.concurrency || worker.opts.concurrency || 1;
  const fetching = stopping ? 1 : quiet ? [...workers].filter(may_fetch).length : 0;
  const fields = { v: 1, beat: (Date.now() / 1000).toFixed(3), busy: jobs.size + fetching, quiet: Number(quiet),
    start: startTime, quiet_sig: "TSTP", resume_sig: "TTIN", stop_sig: "TERM", concurrency,
    processed: counts.completed + counts.failed, failed: counts.failed, tag: "bullmq" };
  const lines = Object.entries(fields).map(([name, value]) => `${name}=${value}\n`);
  for (const [job, since] of [...jobs].slice(0, 64)) {
    const id = text(job.id, /[\s\p{C}]/gu, "_", 64);
    lines.push(`job=${id} ${since} ${text(job.name, UNPRINTABLE, "?", 128)}\n`);
  }
  const queues = new Set([...workers.keys()].map((worker) => worker.name));
  const shown = [...queues].filter((name) => name === text(name, UNPRINTABLE, "?", 250));
  for (const name of shown.slice(0, 64)) lines.push(`queue=${name}\n`);
  let room = 20 * 1024;
  return lines.filter((line) => (room -= Buffer.byteLength(line)) >= 0).join("");
}

const write = safe(() => {
  waiting = false;
  timer = setTimeout(write, quiet ? 1000 : 2000).unref();
  fs.writeFileSync(`${folder}/.${process.pid}`, record(), { mode: 0o600 });
  fs.renameSync(`${folder}/.${process.pid}`, `${folder}/${process.pid}`);
});

if (folder && require("worker_threads").isMainThread) {
  try { fs.writeFileSync(`${folder}/.${process.pid}`, "", { mode: 0o600 }); } catch {} // sqmgr sees that this is loaded
  const { init } = EventEmitter;
  EventEmitter.init = function (...words) {
    init.apply(this, words);
    if (typeof this.processJob === "function") recognize(this);
  };
}
