# SPDX-License-Identifier: MIT
"""A Celery application whose worker implements sqmgr-heartbeat(7); its jobs keep the same ledger as those of bull.js.
Usage: celery_app.py COUNT SECONDS [COUNTDOWN]: enqueues COUNT jobs"""
import os
import sys
import time

import redis
from celery import Celery

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../../../contrib/heartbeat")
import sqmgr_celery  # noqa: E402

server = redis.Redis.from_url(os.environ["REDIS_URL"])
app = Celery("celery_app", broker=os.environ["REDIS_URL"].replace("unix:", "redis+socket:"))
app.conf.update(task_ignore_result=True, broker_connection_retry_on_startup=True)
sqmgr_celery.install(app, redis=server)


@app.task(name="nap")
def nap(job, seconds):
    server.hincrby("ledger:celery:started", job)
    time.sleep(seconds)
    server.hincrby("ledger:celery:done", job)


if __name__ == "__main__":
    count = int(sys.argv[1])
    first = server.incrby("ledger:celery:jobs", count) - count
    for job in range(count):
        nap.apply_async((first + job, float(sys.argv[2])), countdown=float(sys.argv[3]) if len(sys.argv) > 3 else None)
