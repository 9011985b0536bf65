# SPDX-License-Identifier: MIT
"""A worker of the Python library; jobs.bash describes what it does.
Usage: worker.py FOLDER THREADS redis|file [fork]"""
import os
import sys
import threading
import time

import redis

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../../../contrib/heartbeat")
import sqmgr_heartbeat  # noqa: E402

folder, threads, where = sys.argv[1:4]
os.chdir(folder)
beat = sqmgr_heartbeat.Heartbeat(redis=redis.Redis.from_url(os.environ["REDIS_URL"]) if where == "redis" else None,
                                 namespace=os.environ.get("NAMESPACE"), tag="python\n", concurrency=int(threads))


def fetch():
    for name in os.listdir("queue"):
        try:
            os.rename("queue/" + name, "running/" + name)
            return name
        except FileNotFoundError:
            pass
    return None


def run(name):
    with open("ran/" + name, "a", encoding="utf-8") as file:
        file.write("x\n")
    time.sleep(0.02)
    while os.path.exists("hold"):
        time.sleep(0.02)
    os.rename("running/" + name, "done/" + name)


def work():
    while beat.take():
        try:
            name = fetch()
            if name:
                run(name)
            else:
                time.sleep(0.02)
        finally:
            beat.done()


beat.start()
crew = [threading.Thread(target=work) for _ in range(int(threads))]
for thread in crew:
    thread.start()
if len(sys.argv) > 4:
    if os.fork() == 0:
        with open("child", "w", encoding="utf-8") as file:
            file.write(str(os.getpid()))
        while True:
            time.sleep(1000)
for thread in crew:
    thread.join()
beat.finish()
