# SPDX-License-Identifier: MIT
"""Reports the jobs of a Celery worker to sqmgr: see sqmgr-heartbeat(7). The fleet needs `framework = native`.

    app = Celery("app", broker="redis://localhost")
    sqmgr_celery.install(app, redis=redis.Redis())  # default: a file in SQMGR_STATUS_DIR, if set

Needs sqmgr_heartbeat.py in the same directory. After TSTP the worker consumes from no queue, hands back tasks that are
due later (countdown, eta), and finishes the tasks that it has fetched. TERM is Celery's own warm shutdown. Tested with
Celery 5.2, its pools prefork, threads and solo, over Redis, where Celery itself may lose a task on its way to a worker
that exits.
"""
import threading

from celery import bootsteps, signals
from celery.worker import state
from celery.worker.request import Request
from sqmgr_heartbeat import Heartbeat


def install(app, redis=None, namespace=None, tag="celery"):
    speaker = _Speaker(redis, namespace, tag)
    app.steps["consumer"].add(speaker.step())
    signals.worker_ready.connect(speaker.start, weak=False)
    signals.worker_shutdown.connect(speaker.close, weak=False)


class _Speaker:
    def __init__(self, redis, namespace, tag):
        self._arguments = {"redis": redis, "namespace": namespace, "tag": tag}
        self._beat = self._consumer = None
        self._cancelled = threading.Event()

    # The pool exists, and so does the handler of TERM.
    def start(self, sender, **_):
        if not self._beat:
            self._consumer = sender
            self._beat = Heartbeat(concurrency=sender.pool.num_processes, on_quiet=self._cancelled.wait,
                                   busy=self._count, catch_stop=False, **self._arguments)
            self._beat.start()

    def close(self, **_):
        if self._beat:
            self._beat.close()

    # Other threads change these sets, so they must not be iterated here. After a lost connection running jobs are only
    # in the second set; jobs that wait for their rate limit are in neither.
    def _count(self):
        limited = sum(len(bucket.contents) for bucket in list(self._consumer.task_buckets.values()) if bucket)
        return max(len(state.reserved_requests), len(state.active_requests)) + limited

    # Restarted with each connection. Only its own thread changes a consumer.
    def step(self):
        class Step(bootsteps.StartStopStep):
            requires = {"celery.worker.consumer.tasks:Tasks"}

            def start(_, parent):  # pylint: disable=no-self-argument
                parent.timer.call_repeatedly(0.2, self._look, (parent,))

        return Step

    def _look(self, consumer):
        if self._beat and self._beat.quiet:
            consumer.call_soon(self._cancel, consumer)

    def _cancel(self, consumer):
        for name in list(consumer.app.amqp.queues.consume_from):
            consumer.cancel_task_queue(name)
        for waiting in list(consumer.timer.schedule.queue):
            if waiting.entry.args and isinstance(waiting.entry.args[0], Request):
                waiting.entry.cancel()
                waiting.entry.args[0].reject(requeue=True)
        self._cancelled.set()
