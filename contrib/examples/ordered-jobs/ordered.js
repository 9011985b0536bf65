// SPDX-License-Identifier: MIT
// Items of one key are processed one after the other, in their order; those of different keys concurrently. Each key
// with items has one Bull job, or one run, which has the key's token; see ordered.lua.
"use strict";
const fs = require("fs");
const path = require("path");
const { setTimeout: sleep } = require("timers/promises");
const Queue = require("bull");
const Redis = require("ioredis");

const lua = fs.readFileSync(path.join(__dirname, "ordered.lua"), "utf8");

const url = process.env.REDIS_URL || "redis://127.0.0.1:6379";
const connect = () => new Redis(url, { maxRetriesPerRequest: null, enableReadyCheck: false });

class Ordered {
  // lockTime, in ms: how long a worker may be silent before its keys are revived.
  constructor(name, lockTime) {
    Object.assign(this, { name, lockTime, redis: connect() });
    this.redis.defineCommand("ordered", { numberOfKeys: 0, lua });
    this.queue = new Queue(name, {
      createClient: (type) => (type === "client" ? this.redis : connect()),
      settings: { lockDuration: lockTime, stalledInterval: lockTime },
      // A key is not revived while Bull has its job.
      defaultJobOptions: { removeOnComplete: true, removeOnFail: true },
    });
  }

  act(...words) {
    return this.redis.ordered(this.name, this.queue.toKey(""), this.lockTime, ...words);
  }

  async enqueue(key, item) {
    await this.schedule(key, await this.act("enqueue", key, JSON.stringify(item)));
  }

  // A process that dies before this, with the token, leaves a key without a job: the key is revived.
  async schedule(key, token) {
    if (token) await this.queue.add({ key, token }, { jobId: `${key}#${token}` });
  }

  // An exception of work() ends the run silently, as a death does: the item runs again once the lock has expired.
  async run(job, work) {
    const { key, token } = job.data;
    // A Bull job that was given to a worker as it froze, done by another and removed since, returns without data.
    if (!key) return job.releaseLock().catch(() => {}).then(() => job.remove());
    const started = await this.act("start", key, token, process.pid);
    if (!started) return undefined;
    const [mine, item] = started;
    const lost = new AbortController();
    let working = true;
    const renew = async () => {
      const kept = await this.act("renew", key, mine).catch(() => true);
      if (!kept) lost.abort();
      else if (working) timer = setTimeout(renew, this.lockTime / 3);
    };
    let timer = setTimeout(renew, this.lockTime / 3);
    try {
      await work(JSON.parse(item), { key, token: mine, signal: lost.signal });
    } catch (error) {
      if (!lost.signal.aborted) throw error;
    } finally {
      working = false;
      clearTimeout(timer);
    }
    return lost.signal.aborted ? undefined : this.schedule(key, await this.act("done", key, mine));
  }

  // Runs in each worker, so that the death of any one does not matter.
  async keepReviving() {
    for (;;) {
      await sleep(this.lockTime / 2);
      try {
        for (const [key, token] of await this.act("revive")) await this.schedule(key, token);
      } catch (error) {
        console.error("revive:", error.message);
      }
    }
  }
}

module.exports = { Ordered };
