#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Takes the place of sqmgr for a template: a subreaper that starts the command with a channel, and executes orders.

Usage: preload_stand.py serve [--user UID] COMMAND...    starts the command, and listens in the folder
       preload_stand.py ORDER [WORD...]                  sends an order to the serving process, and prints its answer
Orders: ready                waits for that message; prints the template's pid on a line, then the message
        fork [WORD...]       sends it with a worker's socket; prints the pid of the `hello`, or the error
        go PID, drop PID     sends `go`; closes the socket of that worker
        surplus [WORD...]    like fork with two more descriptors, which the template must close
        send COUNT [WORD...] sends any message with COUNT descriptors, which the template must close
        over                 waits until the other end of the channel is closed
        close                closes the channel
        wait PID             waits for the exit of that child, and prints it
        pid                  prints the pid of the command, which may be a shell
"""
import array
import ctypes
import os
import socket
import struct
import subprocess
import sys

PR_SET_CHILD_SUBREAPER = 36
TEMPLATE_FD = 3
PRELOAD = os.environ["PRELOAD"]
# Reserves space for the values of each worker.
MARKS = {"SQMGR_WORKER": " " * 64, "SQMGR_INDEX": " " * 10, "SQMGR_GENERATION": " " * 20, "SQMGR_START": " " * 20}


class Stand:
    def __init__(self, user, command):
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self.control, theirs = self.pair()
        environment = {**MARKS, **os.environ, "SQMGR_TEMPLATE": str(TEMPLATE_FD)}
        environment["RUBYOPT"] = f"-r{PRELOAD} {os.environ.get('RUBYOPT', '')}".strip()
        fd = theirs.fileno()

        def begin():
            os.setsid()
            os.dup2(fd, TEMPLATE_FD, inheritable=True)

        self.command = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, preexec_fn=begin,
                                        close_fds=True, pass_fds=(TEMPLATE_FD,), user=user)
        theirs.close()
        self.workers = {}

    def pid(self):
        return str(self.command.pid)

    def ready(self):
        self.control.settimeout(120)
        message, pid = self.receive(self.control)
        return f"{pid}\n{message}"

    def fork(self, *words):
        (mine,) = self.send_with(1, "fork", *words)
        return self.greet(mine)

    def surplus(self, *words):
        mine, *others = self.send_with(3, "fork", *words)
        self.are_closed(others)
        return self.greet(mine)

    def greet(self, worker):
        worker.settimeout(60)
        message, pid = self.receive(worker)
        if message != "hello":
            return message
        with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
            if int(stat.read().rpartition(")")[2].split()[1]) != os.getpid():
                raise OSError("hello of one that is no child of ours yet")
        self.workers[pid] = worker
        return str(pid)

    @staticmethod
    def receive(channel):
        message, controls, flags, _ = channel.recvmsg(4096, socket.CMSG_SPACE(12))
        if flags & socket.MSG_TRUNC:
            raise OSError("a message longer than 4096 bytes")
        pid, _, _ = struct.unpack("iii", controls[0][2])
        return message.replace(b"\0", b"\n").decode(errors="replace"), pid

    @staticmethod
    def pair():
        mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        mine.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        return mine, theirs

    def send_with(self, count, *words):
        pairs = [self.pair() for _ in range(count)]
        rights = array.array("i", [theirs.fileno() for _, theirs in pairs])
        controls = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)] if pairs else []
        self.control.sendmsg(["\0".join(words).encode()], controls)
        for _, theirs in pairs:
            theirs.close()
        return [mine for mine, _ in pairs]

    def send(self, count, *words):
        self.are_closed(self.send_with(int(count), *words))

    @staticmethod
    def are_closed(channels):
        for channel in channels:
            channel.settimeout(60)
            if channel.recv(4096) != b"":
                raise OSError("something came where nothing is to come")

    def go(self, pid):
        self.workers[int(pid)].send(b"go")
        self.drop(pid)

    def drop(self, pid):
        self.workers.pop(int(pid)).close()

    def over(self):
        self.are_closed([self.control])

    def close(self):
        self.control.close()

    def wait(self, pid):
        end = os.waitid(os.P_PID, int(pid), os.WEXITED)
        return f"{'exit' if end.si_code == os.CLD_EXITED else 'signal'} {end.si_status}"


def serve(words):
    user = None
    if words[0] == "--user":
        user = int(words[1])
        words = words[2:]
    listener = socket.socket(socket.AF_UNIX)
    listener.bind("stand.new")
    listener.listen()
    stand = Stand(user, words)
    os.rename("stand.new", "stand")
    while True:
        client, _ = listener.accept()
        order, *rest = client.recv(65536).decode().split("\0")
        try:
            answer = "+" + (getattr(stand, order)(*rest) or "")
        except Exception as error:  # every error is reported
            answer = f"-{error!r}"
        client.sendall(answer.encode())
        client.close()


def ask(words):
    client = socket.socket(socket.AF_UNIX)
    client.connect("stand")
    client.sendall("\0".join(words).encode())
    answer = b""
    while piece := client.recv(65536):
        answer += piece
    print(answer[1:].decode().rstrip("\n"))
    sys.exit(answer[:1] != b"+")


if __name__ == "__main__":
    serve(sys.argv[2:]) if sys.argv[1] == "serve" else ask(sys.argv[1:])
