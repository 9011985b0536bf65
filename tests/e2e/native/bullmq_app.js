// SPDX-License-Identifier: MIT
// A process with workers of BullMQ for two queues, as docs/bullmq.md describes it, or its jobs. Counts each started and
// each done job in `ledger:started` and `ledger:done`, as bullmq.bats reads them.
//
// Usage: bullmq_app.js work [without-name] [without-quiet]
//        bullmq_app.js add QUEUE COUNT DATA [OPTIONS]
//
// DATA and OPTIONS are JSON: `ms` is how long a job takes, from `ms` to `most` if that is set; `hold` a file that it waits
// for; `leak` how many megabytes it takes. Variables: DRAIN_DELAY in seconds, LOCK_DURATION in milliseconds. SENTINELS, as
// HOST:PORT,..., of the master `mymaster`: for the jobs, while LEDGER is the socket of the Redis that has the ledger.
"use strict";
const { existsSync } = require("fs");
const os = require("os");
const { Queue, Worker } = require("bullmq");
const Redis = require("ioredis");

const sentinels = process.env.SENTINELS?.split(",").map((address) => address.split(":")).map(([host, port]) => ({ host, port }));
const server = sentinels ? { sentinels, name: "mymaster" } : { path: process.env.REDIS_URL.replace("unix://", "") };
const connection = { ...server, maxRetriesPerRequest: null };
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

function work(options) {
  const redis = new Redis(process.env.LEDGER ? { path: process.env.LEDGER } : connection);
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
  const settings = { connection, concurrency: 2, drainDelay: Number(process.env.DRAIN_DELAY || 5), lockDuration,
    stalledInterval: lockDuration };
  if (!options.includes("without-name")) settings.name = `${os.hostname()}:${process.pid}`;
  const workers = ["mails", "reports"].map((name) => new Worker(name, run, settings));
  for (const worker of workers) worker.on("error", () => {});
  if (!options.includes("without-quiet"))
    process.on("SIGTSTP", () => Promise.all(workers.map((worker) => worker.pause(true))));
  process.on("SIGTERM", async () => {
    await Promise.all(workers.map((worker) => worker.close()));
    process.exit(0);
  });
}

async function add([name, count, data, options = "{}"]) {
  const queue = new Queue(name, { connection });
  for (let i = 0; i < Number(count); i++) await queue.add("deliver", JSON.parse(data), JSON.parse(options));
  process.exit(0);
}

if (process.argv[2] === "work") work(process.argv.slice(3));
else add(process.argv.slice(3));
