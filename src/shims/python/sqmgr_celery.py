# SPDX-License-Identifier: MIT
"""Reports the jobs of a Celery worker to sqmgr, see sqmgr-heartbeat(7), without a change of the application.

sqmgr starts the worker with this directory in PYTHONPATH. Celery's command line imports the entry points of the group
celery.commands, and so this file. Nothing happens unless SQMGR_STATUS_DIR is set and a worker starts. Works with each
broker and pool of Celery 5. TSTP quiets, TTIN resumes, TERM is Celery's own warm shutdown.
"""
import contextlib
import mmap
import os
import queue
import signal
import struct
import sys
import threading
import time

import click

INTERVAL, QUIET_INTERVAL, POLL = 2, 1, 0.25
POLL_LATE, POLL_DEAD = 5, 15  # a poll of Redis takes a second
RECORD, LINES, ID, CLASS, QUEUE = 20 * 1024, 64, 64, 128, 250  # limits of sqmgr-heartbeat(7)
SLOTS, SLOT = 512, struct.Struct("=iidii%ds%ds" % (ID, CLASS))  # pid, depth, start, done, failed, id, name
HERE = os.path.dirname(os.path.abspath(__file__))


def safe(function):
    """An error of this file must not harm the worker."""
    def call(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except ConnectionError:  # Celery's consumer loop answers with a new connection
            raise
        except Exception as error:  # pylint: disable=broad-except
            if not Shim.reported:
                Shim.reported = True
                print("sqmgr_celery: %s: %r" % (function.__name__, error), file=sys.stderr, flush=True)
    return call


def clean(text, size, mark, allowed=""):
    """No white space but what is allowed, and not cut inside a character."""
    text = "".join(c if c.isprintable() and (c != " " or c in allowed) else mark for c in str(text))
    return text.encode("utf-8", "replace")[:size].decode("utf-8", "ignore")


def nothing(*_, **__):
    pass


class Shim:
    reported = False

    def __init__(self, folder, worker):
        """In the main process, before its pool exists."""
        from celery import bootsteps, signals
        self.folder, self.pid, self.slot, self.next, self.path = folder, os.getpid(), None, None, None
        self.table, self.used = mmap.mmap(-1, SLOTS * SLOT.size), 0  # slots of pool processes, which inherit it by fork
        self.here, self.ended_here = {}, [0, 0]  # tasks of this process (pools threads, solo, gevent): name and start
        self.wish_quiet = self.stopping = self.cancelled = self.linked = self.ended = False
        self.consumer, self.tick, self.waiting = None, time.monotonic(), None
        with open("/proc/self/stat", encoding="utf-8", errors="replace") as file:
            self.start_time = file.read().rpartition(")")[2].split()[19]

        class Step(bootsteps.StartStopStep):  # with each connection, before the consumer begins to fetch
            requires = {"celery.worker.consumer.tasks:Tasks"}
            start = staticmethod(safe(self.connected))
            stop = staticmethod(lambda _: setattr(self, "linked", False))

        worker.app.steps["consumer"].add(Step)
        os.register_at_fork(before=safe(self.before_fork), after_in_child=safe(self.in_child))
        for name in "worker_ready", "worker_shutting_down", "worker_shutdown", "task_prerun", "task_postrun":
            getattr(signals, name).connect(safe(getattr(self, name)), weak=False)
        folders = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        if HERE in folders:  # commands of tasks get the environment without it
            self.path = os.environ.pop("PYTHONPATH")
            folders.remove(HERE)
            if folders:
                os.environ["PYTHONPATH"] = os.pathsep.join(folders)

    def task_prerun(self, task_id=None, task=None, **_):
        name, now = clean(getattr(task, "name", "?"), CLASS, "?", " "), time.time()
        if self.slot is None:
            self.here[clean(task_id, ID, "_")] = (name, now)
            return
        pid, depth, start, done, failed, ident, old = self.read(self.slot)
        if depth == 0:  # a task can call another one
            ident, old, start = clean(task_id, ID, "_").encode(), name.encode(), now
        self.write(self.slot, pid, depth + 1, start, done, failed, ident, old)

    def task_postrun(self, task_id=None, state=None, **_):
        if self.slot is None:
            if self.here.pop(clean(task_id, ID, "_"), None):
                self.ended_here[0] += 1
                self.ended_here[1] += state == "FAILURE"
            return
        pid, depth, start, done, failed, ident, name = self.read(self.slot)
        last = depth == 1
        self.write(self.slot, pid, depth - 1, start, done + last, failed + (last and state == "FAILURE"), ident, name)

    def read(self, index):
        return SLOT.unpack_from(self.table, index * SLOT.size)

    def write(self, index, *fields):
        # Not by pack_into(): that clears the slot first, and another process may read it then.
        self.table[index * SLOT.size:(index + 1) * SLOT.size] = SLOT.pack(*fields)

    def before_fork(self):
        if os.getpid() == self.pid:
            self.next = next((i for i in range(SLOTS) if self.read(i)[0] == 0), None)
            self.used = max(self.used, (self.next or 0) + 1)

    def in_child(self):
        self.slot = self.next if os.getppid() == self.pid and self.slot is None else None
        self.here, self.ended = {}, True
        if self.slot is not None:
            done, failed = self.read(self.slot)[3:5]
            self.write(self.slot, os.getpid(), 0, 0, done, failed, b"", b"")

    def children(self):
        """What pool processes run, when each began its last task, and how many tasks have ended and failed."""
        running, begun, ended = {}, {}, list(self.ended_here)
        for i in range(self.used):
            pid, depth, start, done, failed, ident, name = self.read(i)
            if pid and not os.path.exists("/proc/%d" % pid):  # its slot is free again, and goes on counting
                done, failed, pid, depth = done + (depth > 0), failed + (depth > 0), 0, 0
                self.write(i, pid, depth, start, done, failed, ident, name)
            if pid:
                begun[pid] = start
            if depth > 0:
                ident, name = (field.rstrip(b"\0").decode("utf-8", "ignore") for field in (ident, name))
                running[ident] = (name, start)
            ended = [ended[0] + done, ended[1] + failed]
        return running, begun, ended

    def worker_ready(self, **_):
        for signo, wish in (signal.SIGTSTP, True), (signal.SIGTTIN, False):
            signal.signal(signo, lambda _s, _f, wish=wish: setattr(self, "wish_quiet", wish))
        threading.Thread(target=self.beat, name="sqmgr-heartbeat", daemon=True).start()

    def worker_shutting_down(self, **_):
        self.stopping = True

    def worker_shutdown(self, **_):
        if os.getpid() == self.pid:
            self.ended = True
            if self.path:
                os.environ["PYTHONPATH"] = self.path  # after HUP Celery executes itself again
            with contextlib.suppress(FileNotFoundError):
                os.unlink("%s/%d" % (self.folder, self.pid))

    def connected(self, consumer):
        """In the consumer's own thread, as the functions up to give_back()."""
        self.consumer, self.cancelled, self.waiting = consumer, self.wish_quiet, None
        if self.cancelled:
            consumer.task_consumer.consume = nothing
        self.linked, self.tick = True, time.monotonic()
        consumer.timer.call_repeatedly(POLL, consumer.call_soon, (safe(self.turn), consumer))

    def turn(self, consumer):
        self.tick = time.monotonic()
        if self.wish_quiet and not self.cancelled:
            self.cancel(consumer)
        elif not self.wish_quiet and "consume" in vars(consumer.task_consumer):
            self.cancelled, self.waiting = False, None
            vars(consumer.task_consumer.channel).pop("_brpop_start", None)
            del consumer.task_consumer.consume
            consumer.task_consumer.consume()

    def cancel(self, consumer):
        """Ends the fetching of tasks; called again until it has succeeded.

        kombu over Redis may lose a task that it puts back, for it does so in two steps: if another worker fetches the
        task between them, the second one deletes its entry. So nothing is put back that way: no further poll, then the
        poll in flight ends and its task runs here, only then is the consumer canceled.
        """
        consumer.task_consumer.consume = nothing  # else remote control, which adds a queue, would call it
        channel = consumer.task_consumer.channel
        channel._brpop_start = nothing
        if getattr(channel, "_in_poll", None) and not self.poll_ended(channel):
            return
        consumer.task_consumer.cancel()
        self.give_back(consumer)
        self.waiting, self.cancelled = None, True

    def poll_ended(self, channel):
        self.waiting = self.waiting or time.monotonic()
        if time.monotonic() - self.waiting > POLL_DEAD:
            if not channel._in_poll.can_read(timeout=0):
                channel._in_poll.disconnect()  # is enough without an event loop (gevent, eventlet)
                raise ConnectionResetError("sqmgr: a poll of Redis does not end")
            with contextlib.suppress(queue.Empty):
                channel._brpop_read()  # a reply that the event loop has missed may hold a task
        return not channel._in_poll

    @staticmethod
    def give_back(consumer):
        """Tasks with an ETA and rate-limited ones can run elsewhere."""
        from celery.worker.request import Request
        requests = []
        for waiting in list(consumer.timer.schedule.queue):
            entry = waiting.entry
            if entry.args and isinstance(entry.args[0], Request) and not getattr(entry, "cancelled", False):
                entry.cancel()
                requests.append(entry.args[0])
                consumer.qos.decrement_eventually()
        for bucket in list(consumer.task_buckets.values()):
            while bucket and bucket.contents:
                requests.append(bucket.contents.popleft()[0])
        for request in requests:
            qos = getattr(request.message.channel, "qos", None)
            if hasattr(qos, "restore_by_tag"):  # Redis, see cancel(): this is one transaction
                qos.restore_by_tag(request.message.delivery_tag, leftmost=True)
                qos._quick_ack(request.message.delivery_tag)
            else:
                request.reject(requeue=True)

    def jobs(self):
        """How many tasks the worker holds, which of them run, and how many have ended and failed."""
        from celery.worker import state
        running, begun, ended = self.children()
        running.update(list(self.here.items()))
        # list() of a plain set is one step for other threads. Celery's own `requests` keeps what an outage has dropped.
        requests = [reference() for reference in list(state.reserved_requests.data) + list(state.active_requests.data)]
        names = {clean(request.id, ID, "_") for request in requests if request and not self.forgotten(request, begun)}
        # An outage drops the reserved tasks, but not those that wait for a thread.
        threads = getattr(getattr(self.consumer.pool, "executor", None), "_work_queue", None)
        count = max(len(names | set(running)), len(running) + (threads.qsize() if threads else 0))
        return count + sum(len(b.contents) for b in list(self.consumer.task_buckets.values()) if b), running, ended

    def forgotten(self, request, begun):
        """Celery 5.3 to 5.6 keep tasks as active for ever after an outage: issue 8541 of Celery.

        The process that accepted the task is gone, or has begun this task (the caller knows if it runs) or a later one.
        """
        awaited = getattr(getattr(self.consumer.pool, "_pool", None), "_cache", None)  # only the pool prefork has it
        result = request._apply_result and request._apply_result()
        if awaited is None or not request.time_start or (result and result._job in awaited):
            return False
        return request.worker_pid not in begun or begun[request.worker_pid] >= request.time_start

    def beat(self):
        written, due = None, 0
        while not self.ended:
            written, due = safe(self.record)(written, due) or (None, time.monotonic() + INTERVAL)
            time.sleep(POLL)

    def record(self, written, due):
        quiet = self.wish_quiet or self.stopping
        # Read before the jobs are counted: none begins after `taking` is false. A new connection fetches nothing.
        taking = quiet and not self.cancelled and self.linked
        busy, running, ended = self.jobs()
        fields = {"v": 1, "busy": busy + taking, "quiet": int(quiet), "start": self.start_time, "tag": "celery",
                  "quiet_sig": "TSTP", "resume_sig": "TTIN", "stop_sig": "TERM", "processed": ended[0],
                  "failed": ended[1], "concurrency": self.consumer.controller.concurrency or 1}
        now, waiting = time.monotonic(), self.waiting
        if (fields, set(running)) == written and now < due:
            return written, due
        times = {"beat": "%.6f" % time.time(), "looked": "%.1f" % (now - self.tick)}
        lines = ["%s=%s\n" % field for field in {**fields, **times}.items()]
        if waiting and now - waiting > POLL_LATE:
            lines.append("polling=%.1f\n" % (now - waiting))
        for ident, (name, start) in list(running.items())[:LINES]:
            lines.append("job=%s %.3f %s\n" % (ident or "_", start, name or "?"))
        names = [name for name in sorted(list(self.consumer.app.amqp.queues.consume_from)) if name.isprintable()]
        lines.extend("queue=%s\n" % name for name in names[:LINES] if 0 < len(name.encode()) <= QUEUE)
        while sum(len(line.encode()) for line in lines) > RECORD:
            lines.pop()
        beside = "%s/.%d" % (self.folder, self.pid)
        with open(beside, "w", encoding="utf-8", opener=lambda *path: os.open(*path, 0o600)) as file:
            file.writelines(lines)
        if not self.ended:
            os.rename(beside, "%s/%d" % (self.folder, self.pid))
        return (fields, set(running)), now + (QUIET_INTERVAL if quiet else INTERVAL)


@safe
def install(folder):
    from celery import signals
    if folder:
        with contextlib.suppress(OSError):  # sqmgr sees that this file is loaded, as the worker may boot for long
            os.mknod("%s/.%d" % (folder, os.getpid()))
        signals.worker_init.connect(safe(lambda sender=None, **_: Shim(folder, sender)), weak=False)


install(os.environ.get("SQMGR_STATUS_DIR"))
command = click.Command("sqmgr", hidden=True)
