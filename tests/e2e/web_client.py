# SPDX-License-Identifier: MIT
"""Sends requests that curl cannot, counts the calls of a relay, and imitates an sqmgr.

web_client.py raw PORT           sends malformed requests; prints each wrong answer
web_client.py hold PORT N KIND   keeps N connections until standard input ends: idle, half, slow or stream
web_client.py relay HERE THERE COUNTS   relays the socket HERE to THERE, and counts the methods called
web_client.py false HERE         answers at the socket HERE with a status of hundreds of megabytes
"""
import collections
import os
import re
import select
import socket
import sys

HOST = b"Host: localhost\r\n"
OK, REFUSED = {200}, {400, 405, 413, 414, 421, 431, 505, 0}


def request(line, *headers, end=b"\r\n"):
    return line + b"\r\n" + b"".join(header + b"\r\n" for header in headers) + end


CASES = [
    (request(b"GET /healthz HTTP/1.1", b"Host: localhost"), OK),
    (request(b"GET /healthz HTTP/1.1", b"host: LOCALHOST:1"), OK),
    (request(b"GET /healthz HTTP/1.1", b"Host: 127.0.0.1:80"), OK),
    (request(b"GET /healthz HTTP/1.1", b"Host: other.example"), OK),
    (request(b"GET /healthz HTTP/1.0"), OK),
    (request(b"GET /healthz?a=%00&b=../ HTTP/1.1", b"Host: localhost"), OK),
    (request(b"HEAD / HTTP/1.1", b"Host: localhost"), OK),
    (request(b"HEAD /live HTTP/1.1", b"Host: localhost"), OK),
    (request(b"GET /healthz HTTP/1.1", b"Host: localhost", b"Content-Length: 0"), OK),
    (request(b"GET /healthz HTTP/1.1"), {400}),
    (request(b"GET /healthz HTTP/1.1", b"Host: localhost", b"Host: localhost"), {400}),
    (request(b"GET /healthz HTTP/1.1", b"Host: evil.example"), {421}),
    (request(b"GET /healthz HTTP/1.0", b"Host: evil.example"), {421}),
    (request(b"GET /healthz HTTP/1.1", b"Host: localhost.evil.example"), {421}),
    (request(b"GET /healthz HTTP/1.1", b"Host: localhost:"), {421}),
    (request(b"GET /healthz HTTP/1.1", b"Host: [::1"), {421}),
    (request(b"GET /healthz HTTP/1.1", b"Host: 127.0.0.2"), {421}),
    (request(b"GET /healthz HTTP/1.1", b"Host: "), {400, 421}),
    (request(b"POST / HTTP/1.1", b"Host: evil.example"), {421}),
] + [
    (request(b"GET " + path + b" HTTP/1.1", b"Host: localhost"), {404})
    for path in [b"/%00", b"/healthz%00", b"/healthz%00.css", b"//", b"//healthz", b"/./healthz", b"/../healthz",
                 b"/%2e%2e/etc/passwd", b"/../../etc/passwd", b"/healthz/", b"/Healthz", b"/%68ealthz", b"/api/",
                 b"/api/status/..", b"/\xff\xfe", b"/page.js", b"http://localhost/healthz", b"http://evil.example/"]
] + [
    (request(method + b" / HTTP/1.1", b"Host: localhost"), {405})
    for method in [b"POST", b"PUT", b"DELETE", b"PATCH", b"OPTIONS", b"TRACE", b"CONNECT", b"get", b"FOO", b"G"]
] + [
    (request(b"POST / HTTP/1.1", b"Host: localhost", b"Content-Length: 3") + b"a=b", {405}),
    (request(b"POST / HTTP/1.1", b"Host: localhost", b"Transfer-Encoding: chunked") + b"3\r\na=b\r\n0\r\n\r\n", {405}),
    (request(b"POST / HTTP/1.1", b"Host: localhost", b"Content-Length: 9999999999") + b"a" * 100000, {405, 0}),
    (request(b"GET / HTTP/1.1", b"Host: localhost", b"Content-Length: 3") + b"a=b", {413}),
    (request(b"GET /metrics HTTP/1.1", b"Host: localhost", b"Transfer-Encoding: chunked") + b"1\r\na\r\n0\r\n\r\n",
     {413, 400}),
    (request(b"GET / HTTP/1.1", b"Host: localhost", b"Content-Length: -1"), REFUSED),
    (request(b"GET / HTTP/1.1", b"Host: localhost", b"Content-Length: 99999999999999999999999"), REFUSED),
    (request(b"GET / HTTP/1.1", b"Host: localhost", b"X: " + b"a" * 100000), REFUSED),
    (request(b"GET / HTTP/1.1", b"Host: localhost", *[b"X%d: a" % i for i in range(5000)]), REFUSED),
    (request(b"GET /" + b"a" * 100000 + b" HTTP/1.1", b"Host: localhost"), REFUSED),
    (request(b"GET / HTTP/1.1", b"Host: " + b"a" * 10000), {421} | REFUSED),
    (request(b"GET / HTTP/9.9", b"Host: localhost"), REFUSED),
    (b"GET\r\n\r\n", REFUSED),
    (b"GET /healthz\r\n\r\n", OK | REFUSED),
    (b" \r\n\r\n\r\n", REFUSED),
    (b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03" + b"\0" * 200 + b"\r\n\r\n", REFUSED),
    (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", REFUSED),
    (request(b"GET / HTTP/1.1", b"Host: localhost", b"no colon"), OK | REFUSED),
    (request(b"GET / HTTP/1.1", b"Host: localhost", b"X: \0"), OK | REFUSED),
]

# libmicrohttpd may leave these unanswered until their timeout.
UNANSWERED = [
    b"\0\xff\xfe\r\n\r\n",
    b"\r\n" * 1000,
    b"GET / HTTP/1.1\r\nHost: loc",
    request(b"GET /?" + b"a&" * 6000 + b" HTTP/1.1", b"Host: localhost"),
    request(b"GET /healthz HTTP/1.1", b"Host: localhost", end=b""),
]


def connect(port):
    if port.startswith("/"):
        client = socket.socket(socket.AF_UNIX)
        client.connect(port)
    else:
        client = socket.create_connection(("127.0.0.1", int(port)))
    client.settimeout(60)
    return client


def hear_status(client):
    """Returns the status of the first answer; 0 if the connection ends before."""
    heard = b""
    try:
        while b"\r\n" not in heard and (part := client.recv(65536)):
            heard += part
    except ConnectionError:
        pass
    status = re.match(rb"HTTP/1\.[01] (\d\d\d) ", heard)
    return int(status[1]) if status else 0


def ask(port, data):
    with connect(port) as client:
        try:
            client.sendall(data)
        except ConnectionError:
            pass  # After an early answer the server may close before all is sent.
        return hear_status(client)


def raw(port):
    bad = 0
    unanswered = []
    for data, expected in CASES:
        status = ask(port, data)
        if status not in expected:
            bad += 1
            print(f"{data[:80]!r}: {status} instead of {sorted(expected)}")
        if ask(port, CASES[0][0]) != 200:
            bad += 1
            print(f"{data[:80]!r}: nobody is served after it")
    for data in UNANSWERED:
        client = connect(port)
        unanswered.append(client)
        client.sendall(data)
        if ask(port, CASES[0][0]) != 200:
            bad += 1
            print(f"{data[:80]!r}: nobody is served beside it")
    with connect(port) as client:
        client.sendall(CASES[0][0] * 200)
        heard = b""
        while heard.count(b"\r\n\r\nok\n") < 200 and (part := client.recv(65536)):
            heard += part
    if heard.count(b"HTTP/1.1 200 OK") != 200:
        bad += 1
        print("of 200 requests in one go not all were answered")
    return 1 if bad else 0


def hold(port, count, kind):
    said = {
        "idle": b"",
        "half": b"GET / HTTP/1.1\r\nHost: local",
        "slow": b"GET /api/status HTTP/1.1\r\nHost: localhost\r\n\r\n" * 50,
        "stream": b"GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n",
    }[kind]
    clients = []
    for _ in range(count):
        client = connect(port)
        if kind in ("slow", "stream"):
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.sendall(said)
        clients.append(client)
    if kind == "stream":
        served = sum(client.recv(12) == b"HTTP/1.1 200" for client in clients)
        print(served, flush=True)
    else:
        print(count, flush=True)
    sys.stdin.read()
    return 0


def relay(here, there, counts_path):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(here)
    listener.listen()
    counts = collections.Counter()
    while True:
        client, _ = listener.accept()
        server = socket.socket(socket.AF_UNIX)
        server.connect(there)
        ends = {client: server, server: client}
        while ends:
            for end in select.select(list(ends), [], [])[0]:
                data = end.recv(1 << 20)
                if not data:
                    ends.clear()
                    break
                ends[end].sendall(data)
                if end is client:
                    counts.update(name.decode() for name in re.findall(rb'"org\.sqmgr\.Control\.(\w+)"', data))
                    with open(counts_path + ".new", "w") as out:
                        out.writelines(f"{name} {n}\n" for name, n in sorted(counts.items()))
                    os.rename(counts_path + ".new", counts_path)
        client.close()
        server.close()


def false(here):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(here)
    listener.listen()
    status = b'{"parameters":{"fleets":[' + b",".join([b"{}"] * 500000) + b"]}}\0"
    while True:
        client, _ = listener.accept()
        with client:
            try:
                while client.recv(65536):
                    client.sendall(status)
            except ConnectionError:
                pass


def main():
    command, *arguments = sys.argv[1:]
    if command == "raw":
        return raw(*arguments)
    if command == "hold":
        return hold(arguments[0], int(arguments[1]), arguments[2])
    if command == "false":
        return false(*arguments)
    return relay(*arguments)


sys.exit(main())
