// SPDX-License-Identifier: MIT
// A worker of the Node.js library; jobs.bash describes what it does.
// Usage: worker.js FOLDER THREADS ioredis|node-redis|file
"use strict";
const fs = require("fs");
const { Heartbeat } = require("../../../contrib/heartbeat/sqmgr-heartbeat.js");

const [folder, threads, where] = process.argv.slice(2);
const pause = () => new Promise((resolve) => setTimeout(resolve, 20));

function client() {
  const path = (process.env.REDIS_URL || "").replace("unix://", "");
  if (where === "ioredis") return new (require("ioredis"))(path);
  if (where === "file") return undefined;
  const redis = require("@redis/client").createClient({ socket: { path } });
  setImmediate(() => redis.connect()); // once errors have a listener
  return redis;
}

function fetch() {
  for (const name of fs.readdirSync("queue")) {
    try {
      fs.renameSync(`queue/${name}`, `running/${name}`);
      return name;
    } catch (error) {
      if (error.code !== "ENOENT") throw error;
    }
  }
  return null;
}

async function run(name) {
  fs.appendFileSync(`ran/${name}`, "x\n");
  await pause();
  while (fs.existsSync("hold")) await pause();
  fs.renameSync(`running/${name}`, `done/${name}`);
}

process.chdir(folder);
const beat = new Heartbeat({ redis: client(), namespace: process.env.NAMESPACE, tag: "node\n", concurrency: Number(threads),
  onStop: () => crew });

async function work() {
  while (beat.take()) {
    try {
      const name = fetch();
      await (name ? run(name) : pause());
    } finally {
      beat.done();
    }
  }
}

const stopped = beat.start();
const crew = Promise.all(Array.from({ length: Number(threads) }, work));
stopped.then(() => process.exit(0));
