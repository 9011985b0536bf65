# SPDX-License-Identifier: MIT
"""A Celery application that knows nothing of sqmgr. Its tasks record in files that they begin and end: the records do not
depend on the broker. Usage: celery_tasks.py COUNT TASK ARGUMENT..., of which ARGUMENT may be FROM-TO: evenly spread. With
DIRECT, each worker has a queue of its own besides, and tasks go to that of NODE"""
import os
import sys
import time

from celery import Celery
from celery.utils.nodenames import worker_direct

records = os.environ["RECORDS"]
app = Celery("celery_tasks", broker=os.environ["BROKER_URL"])
options = {"visibility_timeout": int(os.environ.get("VISIBILITY", "3600"))}
if "MASTER" in os.environ:
    options["master_name"] = os.environ["MASTER"]
if "KEY_PREFIX" in os.environ:
    options["global_keyprefix"] = os.environ["KEY_PREFIX"]
app.conf.update(task_ignore_result=True, broker_transport_options=options, broker_connection_max_retries=None,
                worker_hijack_root_logger=False, worker_direct="DIRECT" in os.environ)


# A line of this length is appended as a whole.
def record(name, text):
    descriptor = os.open(os.path.join(records, name), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(descriptor, (text + "\n").encode())
    os.close(descriptor)


def run(task, work):
    record("started", task.request.id)
    record("processes", "%s %d %d" % (task.request.id, os.getpid(), os.getppid()))
    work()
    record("done", task.request.id)


def wait_for(path):
    while not os.path.exists(path):
        time.sleep(0.05)


@app.task(bind=True)
def nap(self, seconds):
    run(self, lambda: time.sleep(seconds))


@app.task(bind=True, rate_limit="1/h")
def rare(self):
    run(self, lambda: None)


@app.task(bind=True)
def hold(self, path):
    run(self, lambda: wait_for(path))


@app.task(bind=True, acks_late=True)
def hold_late(self, path):
    run(self, lambda: wait_for(path))


@app.task(bind=True)
def leak(self, megabytes, path):
    kept = bytearray(int(megabytes) << 20)
    kept[::4096] = b"x" * len(kept[::4096])
    run(self, lambda: wait_for(path))


def argument(text, job, count):
    first, dash, last = text.partition("-")
    if dash and first.isdigit() and last.isdigit():
        return float(first) + (float(last) - float(first)) * job / count
    return float(text) if text.replace(".", "", 1).isdigit() else text


if __name__ == "__main__":
    n = int(sys.argv[1])
    queue = worker_direct(os.environ["NODE"]) if "NODE" in os.environ else os.environ.get("QUEUE", "celery")
    for number in range(n):
        arguments = [argument(text, number, n) for text in sys.argv[3:]]
        countdown = float(os.environ["COUNTDOWN"]) if "COUNTDOWN" in os.environ else None
        sent = app.tasks["celery_tasks." + sys.argv[2]].apply_async(arguments, queue=queue, countdown=countdown)
        record("sent" if countdown is None else "scheduled", sent.id)
