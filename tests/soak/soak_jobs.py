# SPDX-License-Identifier: MIT
"""The jobs of the soak for Celery and RQ. They write the same ledger as those of tests/chaos/app.rb. A run has the name of
the worker's main process: that is what the test kills, and what sqmgr knows."""
import os
import time
import uuid

LEDGER = os.path.join(os.environ["CHAOS"], "ledger")
leaked = []


def write(word, job, token):
    descriptor = os.open(LEDGER, os.O_WRONLY | os.O_APPEND)
    os.write(descriptor, ("%s %s %s\n" % (word, job, token)).encode())
    os.close(descriptor)


def start_time(pid):
    with open("/proc/%d/stat" % pid, encoding="utf-8", errors="replace") as stat:
        return stat.read().rpartition(")")[2].split()[19]


def run(job, seconds, kilobytes=0):
    worker = os.getppid()
    token = "%d.%s.%s" % (worker, start_time(worker), uuid.uuid4().hex[:12])
    write("started", job, token)
    leaked.append(b"x" * (kilobytes * 1024))
    time.sleep(seconds)
    write("done", job, token)


if "BROKER_URL" in os.environ:
    from celery import Celery

    app = Celery("soak_jobs", broker=os.environ["BROKER_URL"])
    app.conf.update(task_ignore_result=True, broker_connection_max_retries=None, worker_hijack_root_logger=False,
                    broker_transport_options={"visibility_timeout": 120})

    @app.task(name="early")
    def early(job, seconds, kilobytes):
        run(job, seconds, kilobytes)

    @app.task(name="late", acks_late=True)
    def late(job, seconds, kilobytes):
        run(job, seconds, kilobytes)
