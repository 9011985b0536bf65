// SPDX-License-Identifier: MIT
// Checks the whole ledger; the exit status is 0 if each promise was kept. The order of its rows is the order of
// execution in Redis. Items have their number within their key as `n`.
"use strict";
const Redis = require("ioredis");

const keys = new Map();
const runs = new Map();
const wrong = [];
let [revived, unwanted, most] = [0, 0, 0];

// A run that was cut off has no end of its own: it ended when its key was revived, because later writes do not count.
function judge({ event, at, key: name, token, item, ends }) {
  const bad = (text) => wrong.push(`${name}, token ${token}: ${text}`);
  if (!keys.has(name)) keys.set(name, { enqueued: 0, done: 0, running: null, ends: 0, newest: 0 });
  const key = keys.get(name);
  const run = runs.get(token);
  const n = item && JSON.parse(item).n;

  if (event === "enqueue") {
    if (n !== key.enqueued++) bad(`item ${n} was enqueued out of order`);
  } else if (event === "start") {
    if (key.running) bad(`item ${n} was started while the run with token ${key.running.token} had the key`);
    if (token <= key.newest) bad("a token that is not newer than the one before");
    if (n !== key.done) bad(`item ${n} was started where it is the turn of item ${key.done}`);
    key.running = { token, state: "running" };
    runs.set(token, key.running);
    most = Math.max(most, [...keys.values()].filter(({ running }) => running).length);
  } else if (event === "renew") {
    if (key.running !== run) bad("renewed the lock of a key that it had not");
  } else if (event === "done") {
    if (!run || key.running !== run) bad(`item ${n} was done by a run that had not the key`);
    if (n !== key.done) bad(`item ${n} was done where it is the turn of item ${key.done}`);
    if (run) run.state = "done";
    key.done++;
    key.running = null;
  } else if (event === "revive") {
    if (at < key.ends) bad(`revived ${key.ends - at} ms before the lock expired`);
    if (key.running) key.running.state = "cut-off";
    key.running = null;
    revived++;
  } else if (event === "refused") {
    if (key.running === run) bad("was refused though it had the key");
    if (run.state === "cut-off") run.state = "refused";
  } else if (event === "unwanted") {
    unwanted++;
  } else {
    bad(`what is ${event}?`);
  }
  if (token) key.newest = Math.max(key.newest, token);
  if (ends) key.ends = ends;
}

function report() {
  for (const [name, { enqueued, done, running }] of keys) {
    if (done !== enqueued) wrong.push(`${name}: ${enqueued} items were enqueued, ${done} are done`);
    if (running) wrong.push(`${name}: the run with token ${running.token} has not ended`);
  }
  const items = [...keys.values()].reduce((sum, { done }) => sum + done, 0);
  const cutOff = [...runs.values()].filter(({ state }) => state !== "done");
  console.log(`${items} items of ${keys.size} keys are done, up to ${most} keys at once.`);
  const back = cutOff.filter(({ state }) => state === "refused").length;
  console.log(`${runs.size} runs: ${cutOff.length} were cut off, ${back} of which came back and were refused.`);
  console.log(`${revived} times a key was revived; ${unwanted} Bull jobs came again and found nothing to do.`);
  for (const text of wrong.slice(0, 20)) console.log(`WRONG: ${text}`);
  if (wrong.length) console.log(`${wrong.length} faults.`);
  else console.log("Each key in its order, each item done once, no two runs of a key at once.");
  process.exit(wrong.length ? 1 : 0);
}

async function main() {
  const redis = new Redis(process.env.REDIS_URL || "redis://127.0.0.1:6379");
  const rows = (await redis.lrange("bookings:ledger", 0, -1)).map((row) => JSON.parse(row));
  rows.forEach(judge);
  report();
}

main();
