// SPDX-License-Identifier: MIT
// One worker: five keys at a time. An item asks it to wait `ms` milliseconds, or to fail with `error`.
"use strict";
const { setTimeout: sleep } = require("timers/promises");
const { Heartbeat, drainBull } = require("./sqmgr-heartbeat.js");
const { Ordered } = require("./ordered.js");

// `signal` reports that the key was lost: stop, another worker has this item. Include `token` in external writes, so
// that the receiver can refuse a token lower than the highest it has seen of `key`.
async function work(item, { key, token, signal }) {
  if (item.error) throw new Error(item.error);
  await sleep(item.ms, undefined, { signal });
}

const bookings = new Ordered("bookings", Number(process.env.LOCK_TIME || 30000));
const { queue, redis } = bookings;
const beat = new Heartbeat({
  redis,
  tag: "bookings",
  concurrency: 5,
  onQuiet: () => drainBull(queue),
  onStop: () => queue.close(true),
});

queue.on("error", (error) => console.error("bull:", error.message));
queue.on("failed", (job, error) => console.error(`${job.data.key}: ${error.stack}`));
queue.process(5, beat.job((job) => bookings.run(job, work)));
bookings.keepReviving();
beat.start().then(() => process.exit(0));
