# SPDX-License-Identifier: MIT
"""A template that violates the protocol.

Usage: preload_hostile.py HOW, as in preload-refused.bats
"""
import array
import os
import socket
import sys
import time

how = sys.argv[1]
READY = b"ready\0version=1"


def send(channel, message, fds=()):
    controls = []
    if fds:
        controls.append((socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds)))
    channel.sendmsg([message], controls)


def the_end():
    while True:
        time.sleep(1000)


# It is not a worker either, once refused as a template.
control = socket.socket(fileno=int(os.environ.get("SQMGR_TEMPLATE") or sys.exit(1)))
if how == "older":
    to_older, from_parent = socket.socketpair()
    if os.fork() == 0:
        message, fds, _, _ = socket.recv_fds(from_parent, 4096, 1)
        send(socket.socket(fileno=fds[0]), message)
        the_end()
time.sleep(0.1)  # so that processes requested from now on are measurably younger
send(control, READY)

if how == "twice":
    send(control, READY)
elif how == "garbage":
    send(control, b"\xff\xfe\0\0\0fork me")
elif how == "oversized":
    send(control, b"x" * 4097)
elif how == "fds":
    send(control, READY, [0, 1, 2])
elif how == "many-fds":
    send(control, READY, [0] * 200)
elif how == "flood":
    while True:
        control.send(READY)
elif how == "closes":
    control.close()
    the_end()
else:
    message, fds, _, _ = socket.recv_fds(control, 4096, 4)
    worker = socket.socket(fileno=fds[0])
    if how == "hello-itself":
        send(worker, b"hello")
    elif how == "older":
        socket.send_fds(to_older, [b"hello"], [worker.fileno()])
    elif how == "worker-garbage":
        send(worker, b"go")
    elif how == "worker-fds":
        send(worker, b"hello", [0, 1, 2])
    elif how == "worker-oversized":
        send(worker, b"error\0" + b"x" * 5000)
    elif how == "worker-stays":
        # A child that stays a child of the template.
        if os.fork() == 0:
            send(worker, b"hello")
            the_end()
    elif how == "worker-error":
        send(worker, b"error\0errno=0\0" + b"\x1b[31m\n" * 100)
the_end()
