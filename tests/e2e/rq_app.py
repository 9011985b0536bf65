# SPDX-License-Identifier: MIT
"""Jobs for RQ, which keep the same ledger as those of app.rb. Usage: rq_app.py COUNT JOB ARGUMENT..."""
import os
import sys
import time

import redis

server = redis.Redis.from_url(os.environ["REDIS_URL"])


def number(text):
    return float(text) if text.replace(".", "", 1).isdigit() else text


def nap(job, seconds):
    server.hincrby("ledger:started", job)
    time.sleep(seconds)
    server.hincrby("ledger:done", job)


def hold(job, path):
    server.mset({"hold:child": os.getpid(), "hold:worker": os.getppid()})
    server.hincrby("ledger:started", job)
    while not os.path.exists(path):
        time.sleep(0.05)
    server.hincrby("ledger:done", job)


def leak(job, megabytes, path):
    kept = bytearray(int(megabytes) << 20)
    kept[::4096] = b"x" * len(kept[::4096])
    hold(job, path)


def fail(job):
    server.hincrby("ledger:started", job)
    raise RuntimeError("failed")


if __name__ == "__main__":
    from rq import Queue

    queue = Queue("work", connection=server)
    first = server.incrby("ledger:jobs", int(sys.argv[1])) - int(sys.argv[1])
    for job in range(int(sys.argv[1])):
        queue.enqueue("rq_app." + sys.argv[2], first + job, *map(number, sys.argv[3:]), result_ttl=0)
