// SPDX-License-Identifier: MIT
// Workers of BullMQ that know nothing of sqmgr: no names, no handlers of signals. Counts each started and each done job
// in `ledger:started` and `ledger:done`, as bullmq.bats reads them. Also run bundled: bundle_app in modules.bash.
//
// Usage: bullmq_plain.js work
//        bullmq_plain.js add QUEUE COUNT DATA
//
// DATA is JSON: `ms` is how long a job takes, from `ms` to `most` if that is set; `hold` a file that it waits for;
// `leak` how many megabytes it takes. LOCK_DURATION is in milliseconds.
"use strict";
const { existsSync } = require("fs");
const { Queue, Worker } = require("bullmq");
const Redis = require("ioredis");

const connection = { path: process.env.REDIS_URL.replace("unix://", ""), maxRetriesPerRequest: null };
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

function work() {
  const redis = new Redis(connection);
  const kept = [];

  async function run(job) {
    const { ms = 0, most = ms, hold, leak = 0 } = job.data;
    const id = `${job.queueName}:${job.id}`;
    await redis.hincrby("ledger:started", id, 1);
    if (leak) kept.push(Buffer.alloc(leak * 1024 * 1024, 1));
    await sleep(ms + Math.random() * (most - ms));
    while (hold && !existsSync(hold)) await sleep(50);
    await redis.hincrby("ledger:done", id, 1);
  }

  const lockDuration = Number(process.env.LOCK_DURATION || 30000);
  const settings = { connection, concurrency: 2, drainDelay: 1, lockDuration, stalledInterval: lockDuration / 2 };
  for (const name of ["mails", "reports"]) new Worker(name, run, settings).on("error", () => {});
}

async function add([name, count, data]) {
  const queue = new Queue(name, { connection });
  for (let i = 0; i < Number(count); i++) await queue.add("deliver", JSON.parse(data));
  process.exit(0);
}

if (process.argv[2] === "work") work();
else add(process.argv.slice(3));
