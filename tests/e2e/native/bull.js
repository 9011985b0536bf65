// SPDX-License-Identifier: MIT
// A Bull worker that implements sqmgr-heartbeat(7), or its load. Locks last longer than the test, so that no repair
// hides a job that was cut off. Usage: bull.js work|load
"use strict";
const Queue = require("bull");
const { Heartbeat, drainBull } = require("../../../contrib/heartbeat/sqmgr-heartbeat.js");
const { ledger, connection } = require("./ledger.js");

const { redis, run, load } = ledger("bull");
const queue = new Queue("work", {
  redis: connection,
  settings: { lockDuration: 3600000, stalledInterval: 3600000 },
  defaultJobOptions: { removeOnComplete: true },
});

if (process.argv[2] === "load") {
  load(() => queue.add({}), () => queue.getWaitingCount());
} else {
  const beat = new Heartbeat({ redis, tag: "bull", concurrency: 5, onQuiet: () => drainBull(queue), onStop: () => queue.close(true) });
  queue.process(5, beat.job(run));
  beat.start().then(() => process.exit(0));
}
