// SPDX-License-Identifier: MIT
// A BullMQ worker that implements sqmgr-heartbeat(7), or its load. Locks last longer than the test, so that no repair
// hides a job that was cut off. Usage: bullmq.js work|load
"use strict";
const { Queue, Worker } = require("bullmq");
const { Heartbeat } = require("../../../contrib/heartbeat/sqmgr-heartbeat.js");
const { ledger, connection } = require("./ledger.js");

const { redis, run, load } = ledger("bullmq");

if (process.argv[2] === "load") {
  const queue = new Queue("work", { connection, prefix: "bullmq", defaultJobOptions: { removeOnComplete: true } });
  load(() => queue.add("job", {}), () => queue.getWaitingCount());
} else {
  const beat = new Heartbeat({ redis, tag: "bullmq", concurrency: 5, onQuiet: () => worker.pause(), onStop: () => worker.close() });
  const worker = new Worker("work", beat.job(run), {
    connection,
    prefix: "bullmq",
    concurrency: 5,
    lockDuration: 3600000,
    skipStalledCheck: true,
  });
  beat.start().then(() => process.exit(0));
}
