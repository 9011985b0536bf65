#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A stand-in for a container daemon and its client, such as dockerd and `docker run`: the client hands a command and
its environment to the daemon, which starts the command as a process of its own, passes TERM on, and returns its exit
status. No containers: the processes are in no namespace, and are no descendants of the client.

Usage: container_daemon.py daemon SOCKET | container_daemon.py run SOCKET COMMAND..."""
import json, os, signal, socket, subprocess, sys, threading


def serve(connection):
    stream = connection.makefile("rw")
    request = json.loads(stream.readline())
    child = subprocess.Popen(request["argv"], env=request["environment"], cwd=request["directory"],
                             stdin=subprocess.DEVNULL)

    def signals():
        for line in stream:
            if child.poll() is None:
                child.send_signal(int(line))

    threading.Thread(target=signals, daemon=True).start()
    status = child.wait()
    try:
        connection.sendall(b"%d\n" % (status if status >= 0 else 128 - status))
    except OSError:
        pass  # the client has been killed


def daemon(path):
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen(64)
    while True:
        threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()


def run(path, argv):
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    signal.signal(signal.SIGTERM, lambda signo, _: connection.sendall(b"%d\n" % signo))
    request = {"argv": argv, "environment": dict(os.environ), "directory": os.getcwd()}
    connection.sendall(json.dumps(request).encode() + b"\n")
    sys.exit(int(connection.makefile().readline() or 125))


if sys.argv[1] == "daemon":
    daemon(sys.argv[2])
else:
    run(sys.argv[2], sys.argv[3:])
