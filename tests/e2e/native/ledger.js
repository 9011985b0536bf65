// SPDX-License-Identifier: MIT
// Shared by bull.js and bullmq.js: their Redis, their job, and the load. Counts each started and each done job in
// `ledger:KIND:started` and `ledger:KIND:done`; `ledger:KIND:holders` has the running jobs with their pids.
"use strict";
const Redis = require("ioredis");

const path = process.env.REDIS_URL.replace("unix://", "");
const connection = { path, maxRetriesPerRequest: null, enableReadyCheck: false };

function ledger(kind) {
  const redis = new Redis({ ...connection });
  const key = (name) => `ledger:${kind}:${name}`;
  return {
    redis,
    async run(job) {
      const id = String(job.id);
      await redis.multi().hincrby(key("started"), id, 1).hset(key("holders"), id, process.pid).exec();
      await new Promise((resolve) => setTimeout(resolve, 50 + Math.random() * 350));
      await redis.multi().hincrby(key("done"), id, 1).hdel(key("holders"), id).exec();
    },
    // Keeps more jobs waiting than the workers run at once, until the key `ledger:KIND:stop` exists.
    async load(add, waiting) {
      while (!(await redis.exists(key("stop")))) {
        if ((await waiting()) < 40) {
          await Promise.all(Array.from({ length: 40 }, add));
          await redis.incrby(key("jobs"), 40);
        } else {
          await new Promise((resolve) => setTimeout(resolve, 20));
        }
      }
      process.exit(0);
    },
  };
}

module.exports = { ledger, connection };
