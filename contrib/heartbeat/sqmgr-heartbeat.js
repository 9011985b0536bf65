// SPDX-License-Identifier: MIT
// Tells sqmgr what this worker is doing, by sqmgr-heartbeat(7). The fleet has `framework = native`. With BullMQ:
//
//   const beat = new Heartbeat({ redis: new Redis(), // ioredis or node-redis; without: a file in SQMGR_STATUS_DIR
//     onQuiet: () => worker.pause(),   // is done when no job runs any more, and none can begin
//     onStop: () => worker.close() });
//   const worker = new Worker("mails", beat.job(async (job) => { ... }), { connection });
//   beat.start().then(() => process.exit(0)); // told to stop, and the record is deleted
//
// With Bull it is queue.process(5, beat.job(...)), onQuiet: () => drainBull(queue), onStop: () => queue.close(true).
// A loop of one's own has `while (beat.take()) try { fetch and run a job } finally { beat.done(); }`, and onStop waits
// for its end. TSTP asks it to take no more jobs, TERM to exit. What computes for longer than half a minute without
// letting other code run lets no beat through, either: such work belongs into a worker thread.
"use strict";
const fs = require("fs");
const os = require("os");

const INTERVAL = 5000;
const QUIET_INTERVAL = 1000; // what proves a quiet worker idle are further beats
const SHORTEST = 100; // changes within this time are one record
const LONGEST_DELETE = 2000;

class Heartbeat {
  constructor({ redis, namespace, tag, concurrency, onQuiet, onStop } = {}) {
    Object.assign(this, { redis, onQuiet, onStop, busy: 0, quiet: false, stopping: false, ended: false });
    this.prefix = namespace ? `${namespace}:` : "";
    this.people = {};
    if (tag) this.people.tag = String(tag).replace(/[\0-\x1f\x7f]/g, " ").slice(0, 64);
    if (concurrency) this.people.concurrency = concurrency;
  }

  // In the main thread. Resolves once the worker was told to stop, onStop is done, and the record was deleted, should
  // that have been possible within two seconds.
  start() {
    this.folder = process.env.SQMGR_STATUS_DIR;
    this.startTime = fs.readFileSync("/proc/self/stat", "latin1").split(")").pop().trim().split(" ")[19];
    this.name = `${os.hostname()}:${process.pid}`;
    this.key = `${this.prefix}sqmgr:worker:${this.name}`;
    if (this.redis) this.redis.on("error", () => {}); // without anybody who hears it, it ends the process
    const stopped = new Promise((resolve, reject) => {
      process.on("SIGTERM", () => this.stop().then(resolve, reject));
    });
    process.on("SIGTSTP", () => this.ask());
    clearTimeout(this.timer);
    this.write();
    return stopped;
  }

  // Counts one job more, unless no more are to be taken: false says that nothing may be fetched.
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

  // The same function, whose calls are counted as jobs.
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

  // One more than the jobs is counted until none can begin: for good, where that fails.
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

  // There is one write at a time: a client that waits for its Redis must not be given more and more of them.
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

  // No job fails for it: what was not written now is with the next beat.
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

  // After a write that is still under way.
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

// Takes no more jobs from a queue of Bull's 4, and is done when none runs any more: after up to five seconds where
// it waits for jobs. Bull's own queue.pause(true) leaves jobs that are being fetched at that moment among the active
// ones, where they lie until they count as stalled.
function drainBull(queue) {
  let idle = 0;
  queue.paused = Promise.resolve(); // who completes a job fetches no other
  return new Promise((resolve) => {
    queue.getNextJob = () => {
      if (++idle >= Object.keys(queue.processing).length) resolve();
      return new Promise(() => {});
    };
    if (Object.keys(queue.processing).length === 0) resolve();
  });
}

module.exports = { Heartbeat, drainBull };
