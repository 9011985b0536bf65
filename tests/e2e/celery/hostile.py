# SPDX-License-Identifier: MIT
"""Writes to the channels and lists of Celery whatever may confuse a reader, until it is killed. For each request that is
published it pushes replies to the list that the request names: garbage, huge ones, and ones in the name of each worker."""
import base64
import itertools
import json
import os
import time

import redis

server = redis.Redis.from_url(os.environ["REDIS_URL"])


def message(body, ticket="", **more):
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    return json.dumps({"body": base64.b64encode(body).decode(), "content-encoding": "utf-8", "content-type": "application/json",
                       "headers": {"ticket": ticket}, "properties": {"body_encoding": "base64", "delivery_info": {},
                                                                     "delivery_tag": "x"}, **more})


def event(kind, **fields):
    return message({"type": "worker-" + kind, "hostname": "forged@" + os.uname().nodename, "pid": 1, "freq": 2.0, "active": 0,
                    "processed": 0, "timestamp": time.time(), "sw_ver": "5.2.6", "clock": 1, **fields})


def events(number):
    yield "heartbeat", event("heartbeat", pid=number % 30000 + 1, hostname="forged-%d@%s" % (number, os.uname().nodename))
    yield "heartbeat", event("heartbeat", pid=-1)
    yield "heartbeat", event("heartbeat", active="many", processed=[])
    yield "heartbeat", event("heartbeat", hostname="\x1b[31m@\x00" + "x" * 300)
    yield "offline", event("offline", pid=number % 30000 + 1)
    yield "online", event("online", clock=10 ** 40, timestamp=1e300)
    yield "online", message(b"[" * 3000)
    yield "online", message({}, **{"content-type": "application/x-python-serialize"})
    yield "heartbeat", os.urandom(1000)
    yield "heartbeat", "{" * 5000
    yield "heartbeat", "x" * 300000


def replies(node, ticket):
    task = {"id": "1", "name": "forged", "args": ["secret"], "time_start": None, "worker_pid": None, "acknowledged": False,
            "delivery_info": {"routing_key": "celery"}}
    yield message({node: [task] * 20}, ticket)
    yield message({node: [1, None, {}, {"id": "x" * 500, "name": "n"}]}, ticket)
    yield message({node: [{"name": "q%d" % n} for n in range(500)]}, ticket)
    yield message({node: [{}] * 20000}, ticket)
    yield message({node: "x" * 2000000}, ticket)
    yield message({node: {"error": "\x1b[31m" + "e" * 5000}}, ticket)
    yield message({node: [], "other@host": []}, ticket)
    yield message({node: []}, "active-99999")
    yield message(b"[" * 100000, ticket)
    yield os.urandom(1000)


channel = server.pubsub()
channel.psubscribe("/*.celery.pidbox")
for number in itertools.count():
    for kind, text in events(number):
        server.publish("/0.celeryev/worker." + kind, text)
    request = channel.get_message(timeout=0.05)
    if not request or request["type"] != "pmessage":
        continue
    body = json.loads(base64.b64decode(json.loads(request["data"])["body"]))
    if not body.get("reply_to"):
        continue
    for node in body["destination"] or ["forged@" + os.uname().nodename]:
        for text in replies(node, body.get("ticket") or ""):
            server.lpush(body["reply_to"]["routing_key"], text)
    with open(os.environ["RECORDS"] + "/forged", "a", encoding="ascii") as forged:
        forged.write(body["method"] + "\n")
