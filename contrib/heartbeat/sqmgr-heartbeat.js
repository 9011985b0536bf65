// SPDX-License-Identifier: MIT
// Reports the jobs of this worker to sqmgr: see sqmgr-heartbeat(7). The fleet needs `framework = native`. With BullMQ:
//
//   const beat = new Heartbeat({ redis: new Redis(), // ioredis or node-redis; default: a file in SQMGR_STATUS_DIR, if set
//     onQuiet: () => worker.pause(),   // resolves when no job runs and none can begin
//     onStop: () => worker.close() });
//   const worker = new Worker("mails", beat.job(async (job) => { ... }), { connection });
//   beat.start().then(() => process.exit(0)); // after TERM, with the record deleted
//
// With Bull: queue.process(5, beat.job(...)), onQuiet: () => drainBull(queue), onStop: () => queue.close(true). A loop
// of your own: `while (beat.take()) try { fetch and run a job } finally { beat.done(); }`, and onStop waits for its
// end. TSTP quiets the worker, TERM asks it to exit. Code that computes for more than half a minute without yielding
// also blocks heartbeats: run it in a worker thread.
"use strict";
const fs = require("fs");
const os = require("os");

const INTERVAL = 5000;
const QUIET_INTERVAL = 1000; // further heartbeats prove a quiet worker idle
const SHORTEST = 100; // changes within this time share one record
const LONGEST_DELETE = 2000;

class Heartbeat {
  constructor({ redis, namespace, tag, concurrency, onQuiet, onStop } = {}) {
    Object.assign(this, { redis, onQuiet, onStop, busy: 0, quiet: false, stopping: false, ended: false });
    this.prefix = namespace ? `${namespace}:` : "";
    this.people = {};
    if (tag) this.people.tag = String(tag).replace(/[\0-\x1f\x7f]/g, " ").slice(0, 64);
    if (concurrency) this.people.concurrency = concurrency;
  }

  // Call this in the main thread. Resolves after TERM, once onStop is done and the record is deleted, or its deletion
  // has failed for two seconds.
  start() {
    this.folder = process.env.SQMGR_STATUS_DIR;
    this.startTime = fs.readFileSync("/proc/self/stat", "latin1").split(")").pop().trim().split(" ")[19];
    this.name = `${os.hostname()}:${process.pid}`;
    this.key = `${this.prefix}sqmgr:worker:${this.name}`;
    if (this.redis) this.redis.on("error", () => {}); // an 'error' event without a listener ends the process
    const stopped = new Promise((resolve, reject) => {
      process.on("SIGTERM", () => this.stop().then(resolve, reject));
    });
    process.on("SIGTSTP", () => this.ask());
    clearTimeout(this.timer);
    this.write();
    return stopped;
  }

  // Adds one job to the count, unless the worker is quieted: after false, nothing may be fetched.
  take() {
    if (!this.quiet) this.begin();
    return !this.quiet;
  }

  // Counts a job that has been fetched already.
  begin() {
    this.busy++;
    this.changed();
  }

  done() {
    this.busy--;
    this.changed();
  }

  // Returns the same function, with its calls counted as jobs.
  job(run) {
    return async (...words) => {
      this.begin();
      try {
        return await run(...words);
      } finally {
        this.done();
      }
    };
  }

  // The count is one more than the jobs until no job can begin: forever, if that fails.
  ask() {
    if (this.quiet) return;
    this.quiet = true;
    this.begin();
    this.asked = Promise.resolve()
      .then(() => this.onQuiet && this.onQuiet())
      .then(() => this.done())
      .catch((error) => console.error("sqmgr-heartbeat: onQuiet:", error));
  }

  async stop() {
    if (this.stopping) return new Promise(() => {});
    this.stopping = true;
    this.ask();
    await this.asked;
    await (this.onStop && this.onStop());
    this.ended = true;
    clearTimeout(this.timer);
    const late = new Promise((resolve) => {
      setTimeout(resolve, LONGEST_DELETE).unref();
    });
    await Promise.race([this.attempt(() => this.remove()), late]);
  }

  changed() {
    if (this.waits) return;
    this.waits = true;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.write(), SHORTEST);
  }

  // Only one write runs at a time: otherwise calls would accumulate in a client that waits for Redis.
  async write() {
    if (this.ended || !this.startTime) return;
    this.waits = true;
    const { busy, quiet } = this;
    this.writing = this.attempt(() => this.store({ v: 1, beat: (Date.now() / 1000).toFixed(3), busy, quiet: quiet ? 1 : 0,
      start: this.startTime, quiet_sig: "TSTP", resume_sig: "", stop_sig: "TERM", ...this.people }));
    await this.writing;
    this.waits = false;
    if (this.ended) return;
    this.timer = setTimeout(() => this.write(), this.quiet ? QUIET_INTERVAL : INTERVAL);
    if (busy !== this.busy || quiet !== this.quiet) this.changed();
  }

  // A failed write fails no job: the next heartbeat has the data.
  async attempt(act) {
    try {
      await act();
    } catch (error) {
      this.error = error;
    }
  }

  store(fields) {
    if (this.redis)
      return this.transact([["HSET", this.key, ...Object.entries(fields).flat().map(String)],
        ["EXPIRE", this.key, "60"], ["SADD", `${this.prefix}sqmgr:workers`, this.name]]);
    if (!this.folder) return undefined;
    const beside = `${this.folder}/.${process.pid}`;
    const { O_WRONLY, O_CREAT, O_TRUNC, O_NOFOLLOW } = fs.constants;
    const fd = fs.openSync(beside, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0o600);
    try {
      fs.writeSync(fd, Object.entries(fields).map(([name, value]) => `${name}=${value}\n`).join(""));
    } finally {
      fs.closeSync(fd);
    }
    return fs.renameSync(beside, `${this.folder}/${process.pid}`);
  }

  // Runs after a write that is still in progress.
  async remove() {
    await this.writing;
    if (this.redis) return this.transact([["DEL", this.key], ["SREM", `${this.prefix}sqmgr:workers`, this.name]]);
    return this.folder && fs.unlinkSync(`${this.folder}/${process.pid}`);
  }

  transact(commands) {
    const multi = this.redis.multi();
    for (const command of commands) multi.addCommand ? multi.addCommand(command) : multi.call(...command);
    return multi.exec();
  }
}

// Stops a Bull 4 queue from taking jobs, and resolves when none runs: up to five seconds later if it waits for jobs.
// Bull's own queue.pause(true) leaves jobs that are being fetched at that moment in the active list, until they count
// as stalled.
function drainBull(queue) {
  let idle = 0;
  queue.paused = Promise.resolve(); // completing a job fetches no other
  return new Promise((resolve) => {
    queue.getNextJob = () => {
      if (++idle >= Object.keys(queue.processing).length) resolve();
      return new Promise(() => {});
    };
    if (Object.keys(queue.processing).length === 0) resolve();
  });
}

module.exports = { Heartbeat, drainBull };
