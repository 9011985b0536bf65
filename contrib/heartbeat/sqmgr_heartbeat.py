# SPDX-License-Identifier: MIT
"""Reports the jobs of this worker to sqmgr: see sqmgr-heartbeat(7). The fleet needs `framework = native`.

    beat = sqmgr_heartbeat.Heartbeat(redis=redis.Redis())  # default: a file in SQMGR_STATUS_DIR, if set
    beat.start()                        # in the main thread
    while beat.take():                  # in each thread; False once the worker is quieted
        try: ...                        # fetch a job, if there is one, and run it
        finally: beat.done()
    beat.finish()                       # after all threads have ended: waits for TERM; then exit with 0

TSTP quiets the worker, TERM asks it to exit. A fetch may last some seconds at most, because it delays both. If another
library fetches, pass `on_quiet`, a function that returns once fetching has certainly stopped; count jobs by begin() and
done(), or pass `busy`, a function that returns their number. If another library handles TERM, pass
`catch_stop=False`, and call close() at its end. `outcomes` is a function that returns how many jobs the process has
done, and how many of these failed: releases can be judged by them.
"""
import os
import queue
import signal
import socket
import threading
import time

INTERVAL = 5
QUIET_INTERVAL = 1  # further heartbeats prove a quiet worker idle
SHORTEST = 0.1  # changes within this time share one record


class Heartbeat:
    def __init__(self, redis=None, namespace=None, tag=None, concurrency=None, on_quiet=None, busy=None,
                 catch_stop=True, outcomes=None):
        self._redis, self._on_quiet, self._count, self._catch_stop = redis, on_quiet, busy, catch_stop
        self._outcomes = outcomes
        self._prefix = namespace + ":" if namespace else ""
        self._people = {"tag": tag and "".join(c if c.isprintable() else " " for c in tag)[:64],
                        "concurrency": concurrency}
        self._lock = threading.Condition()
        self._words = queue.SimpleQueue()  # unlike a lock, safe in a signal handler that interrupts its user
        self._busy = 0
        self._thread, self._before = None, {}
        self.quiet = self.stopping = False

    def start(self):
        self._pid, self._folder = os.getpid(), os.environ.get("SQMGR_STATUS_DIR")
        with open("/proc/self/stat", encoding="utf-8", errors="replace") as file:
            self._start = file.read().rpartition(")")[2].split()[19]
        words = {signal.SIGTSTP: "quiet", signal.SIGTERM: "stop"}
        if not self._catch_stop:
            del words[signal.SIGTERM]
        self._before = {signo: signal.signal(signo, lambda signo, _: self._words.put(words[signo])) for signo in words}
        os.register_at_fork(after_in_child=self._leave_to_parent)
        self._thread = threading.Thread(target=self._beat, name="sqmgr-heartbeat", daemon=True)
        self._thread.start()

    def take(self):
        """Adds one job to the count, unless the worker is quieted: after False, nothing may be fetched."""
        with self._lock:
            if self.quiet:
                return False
            self._busy += 1
        self._words.put("changed")
        return True

    def begin(self):
        """Counts a job that has been fetched already."""
        with self._lock:
            self._busy += 1
        self._words.put("changed")

    def done(self):
        with self._lock:
            self._busy -= 1
            self._lock.notify_all()
        self._words.put("changed")

    def finish(self):
        with self._lock:
            self._lock.wait_for(lambda: self.stopping and self._busy == 0)
        self.close()

    def close(self):
        """Deletes the record, if possible within two seconds."""
        if self._thread:
            self._words.put("end")
            self._thread.join(2)

    # In a child process the lock may stay held by a thread that does not exist there. Record and signals belong to the
    # parent.
    def _leave_to_parent(self):
        self._lock, self._words, self._thread = threading.Condition(), queue.SimpleQueue(), None
        for signo, handler in self._before.items():
            signal.signal(signo, handler or signal.SIG_DFL)
        self._before = {}

    def _beat(self):
        written, due, beats = None, 0, True
        while beats:
            state = self._state()
            if state != written or time.monotonic() >= due:
                written = state
                self._attempt(self._write, *state)
                due = time.monotonic() + (QUIET_INTERVAL if self.quiet else INTERVAL)
            time.sleep(SHORTEST)
            beats = self._heed(due - time.monotonic())
        self._attempt(self._delete)

    # The function `busy` returns a count and reports no changes, so it is polled.
    def _heed(self, seconds):
        try:
            word = self._words.get(timeout=max(0, min(seconds, 0.2) if self._count else seconds))
            while word != "end":
                if word != "changed":
                    self._ask(word == "stop")
                word = self._words.get_nowait()
            return False
        except queue.Empty:
            return True

    def _ask(self, stop):
        with self._lock:
            holds = bool(self._on_quiet) and not self.quiet
            self._busy += holds
            self.quiet, self.stopping = True, self.stopping or stop
            self._lock.notify_all()
        if holds:
            threading.Thread(target=self._hold, name="sqmgr-quiet", daemon=True).start()

    # If this fails, fetching may continue: then the worker never counts as idle.
    def _hold(self):
        self._on_quiet()
        self.done()

    def _state(self):
        with self._lock:
            busy, quiet = self._busy, self.quiet
        return busy + (self._count() if self._count else 0), quiet

    # A failed write fails no job: the next heartbeat has the data.
    def _attempt(self, function, *arguments):
        try:
            function(*arguments)
        except Exception:  # pylint: disable=broad-except
            pass

    def _write(self, busy, quiet):
        fields = {"v": 1, "beat": "%.6f" % time.time(), "busy": busy, "quiet": int(quiet), "start": self._start,
                  "quiet_sig": "TSTP", "resume_sig": "", "stop_sig": "TERM"}
        fields.update((name, value) for name, value in self._people.items() if value)
        if self._outcomes:
            fields["processed"], fields["failed"] = self._outcomes()
        if self._redis:
            name, key = self._keys()
            with self._redis.pipeline(transaction=True) as pipe:
                pipe.hset(key, mapping=fields).expire(key, 60).sadd(self._prefix + "sqmgr:workers", name).execute()
        elif self._folder:
            beside = "%s/.%d" % (self._folder, self._pid)
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
            with os.fdopen(os.open(beside, flags, 0o600), "w", encoding="utf-8") as file:
                file.writelines("%s=%s\n" % field for field in fields.items())
            os.rename(beside, "%s/%d" % (self._folder, self._pid))

    def _delete(self):
        if self._redis:
            name, key = self._keys()
            with self._redis.pipeline(transaction=True) as pipe:
                pipe.delete(key).srem(self._prefix + "sqmgr:workers", name).execute()
        elif self._folder:
            os.unlink("%s/%d" % (self._folder, self._pid))

    def _keys(self):
        name = "%s:%d" % (socket.gethostname(), self._pid)
        return name, "%ssqmgr:worker:%s" % (self._prefix, name)
