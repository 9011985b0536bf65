// SPDX-License-Identifier: MIT
// Enqueues lines of standard input: KEY ITEM, where an item is JSON, for example: account-7 {"n":0,"ms":100}
"use strict";
const { createInterface } = require("readline");
const { Ordered } = require("./ordered.js");

async function main() {
  const bookings = new Ordered("bookings", Number(process.env.LOCK_TIME || 30000));
  for await (const line of createInterface({ input: process.stdin })) {
    const [, key, item] = line.match(/^(\S+) (.*)$/);
    await bookings.enqueue(key, JSON.parse(item));
  }
  process.exit(0);
}

main();
