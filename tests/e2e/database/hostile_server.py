# SPDX-License-Identifier: MIT
"""Speaks as much of the protocol of PostgreSQL as a client needs to believe it, and answers each batch with a gigabyte, or
in another hostile manner. Usage: hostile_server.py ADDRESS PORT MANNER, of which MANNER is `value` (one value of 1 GB), `rows`
(rows without end), `garbage`, `length` (a message longer than the protocol knows), `silent` (no answer), or `notices`. Each
connection that asked for something adds a line to the file `asked`."""
import os
import socket
import struct
import sys
import threading

BLOCK = b"x" * 65536


def message(kind, body=b""):
    return kind + struct.pack("!I", len(body) + 4) + body


def texts(*words):
    return b"".join(word.encode() + b"\0" for word in words)


def greeting():
    parameters = {"server_version": "15.18", "server_encoding": "UTF8", "client_encoding": "UTF8", "DateStyle": "ISO, MDY",
                  "integer_datetimes": "on", "standard_conforming_strings": "on", "TimeZone": "UTC"}
    return (message(b"R", struct.pack("!I", 0)) + b"".join(message(b"S", texts(*item)) for item in parameters.items()) +
            message(b"K", struct.pack("!II", 1, 1)) + message(b"Z", b"I"))


def answers(manner):
    columns = message(b"T", struct.pack("!H", 1) + texts("a") + struct.pack("!IHIHIH", 0, 0, 25, 0xffff, 0xffffffff, 0))
    yield message(b"1") + message(b"2") + columns
    if manner == "value":
        size = 1 << 30
        yield b"D" + struct.pack("!IHI", size + 10, 1, size)
        for _ in range(size // len(BLOCK)):
            yield BLOCK
    elif manner == "rows":
        row = message(b"D", struct.pack("!HI", 1, 1000) + b"y" * 1000) * 64
        while True:
            yield row
    elif manner == "notices":
        notice = message(b"N", b"S" + texts("WARNING") + b"M" + texts("z" * 10000) + b"\0")
        while True:
            yield notice
    elif manner == "length":
        yield b"D" + struct.pack("!I", 0xfffffff0)
        while True:
            yield BLOCK
    elif manner == "garbage":
        while True:
            yield os.urandom(4096)


def receive(client, size):
    data = b""
    while len(data) < size:
        more = client.recv(size - len(data))
        if not more:
            raise ConnectionError
        data += more
    return data


def serve(client, manner):
    try:
        while True:
            size, code = struct.unpack("!II", receive(client, 8))
            receive(client, size - 8)
            if code >> 16 == 3:
                break
            client.sendall(b"N")  # neither TLS nor GSSAPI
        client.sendall(greeting())
        receive(client, 5)
        with open("asked", "a", encoding="ascii") as asked:
            asked.write(manner + "\n")
        for answer in answers(manner):
            client.sendall(answer)
        while client.recv(65536):
            pass
    except OSError:
        pass
    client.close()


listener = socket.create_server((sys.argv[1], int(sys.argv[2])))
while True:
    threading.Thread(target=serve, args=(listener.accept()[0], sys.argv[3]), daemon=True).start()
