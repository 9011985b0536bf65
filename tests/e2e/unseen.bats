#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Workers whose boot no title and no thread shows: a heartbeat that changes proves it, and without one a worker is kept
# as long as it may run jobs.
# seconds: 90
# promises: P1 P5 P6 P7
# shellcheck disable=SC2030,SC2031
load helpers

# As Sidekiq on JRuby: its heartbeats are right, and neither title nor threads are those of Sidekiq.
untitled_worker() { # SOCKET
        cat >"$folder/worker.py" <<END
import json, os, signal, socket, threading, time
import redis
server = redis.Redis(unix_socket_path="$1")
identity = "%s:%d:%012x" % (socket.gethostname(), os.getpid(), os.getpid())
born, state = time.time(), {"quiet": False, "stop": False}
signal.signal(signal.SIGTERM, lambda *_: state.update(stop=True))
signal.signal(signal.SIGTSTP, lambda *_: state.update(quiet=True))
while not state["stop"]:
    info = dict(hostname=socket.gethostname(), pid=os.getpid(), concurrency=1, queues=["default"], started_at=born)
    server.sadd("processes", identity)
    server.hset(identity, mapping=dict(info=json.dumps(info), busy=int(os.path.exists("$folder/busy")), beat=repr(time.time()),
                                       quiet=str(state["quiet"]).lower(), rss=1))
    time.sleep(0.3)
server.srem("processes", identity)
server.delete(identity)
END
}

start_untitled() { # BOOT-TIMEOUT
        untitled_worker "$folder/redis.sock"
        start_workers 0 < <(printf '%s\n' 'framework = sidekiq' "command = /usr/bin/python3 $folder/worker.py" \
                'active_process_count = 1' "boot_timeout = $1" 'ready_after = 1s')
        wait_until 60 ready 1
        old=$(worker_pids)
}

@test "a worker without a title is active by its heartbeats, and a restart replaces it" {
        start_untitled 60s
        touch "$folder/busy"
        wait_until 10 fleet_is '.workers[0].busy == 1'
        run -0 sqmgrctl restart --wait --timeout 60s
        alive "$old"
        wait_until 10 fleet_is ".workers[] | select(.pid == $old) | .state == \"quiet\""
        rm "$folder/busy"
        wait_until 30 gone "$old"
        run -0 sqmgrctl doctor
}

has_problem() { sqmgrctl status --json | jq -e 'any(.problems[]; .code == "worker-unseen")'; }
unseen() { fleet_is "[.workers[] | select(.waits_for_code == \"unseen\")] | length == $1"; } # COUNT

@test "a worker that may run jobs and shows no heartbeat is kept, halts a restart, and is named with its remedy" {
        # The heartbeats are in another Redis.
        launch elsewhere redis-server --port 0 --unixsocket "$folder/elsewhere.sock" --save '' --dir "$folder"
        untitled_worker "$folder/elsewhere.sock"
        # A connection shows that it may run jobs: here of a child, as in a pool.
        sed -i '1a import subprocess; subprocess.Popen(["sleep", "1000"])' "$folder/worker.py"
        start_workers 0 < <(printf '%s\n' 'framework = sidekiq' "command = /usr/bin/python3 $folder/worker.py" \
                'active_process_count = 1' 'boot_timeout = 2s')
        wait_until 30 unseen 1
        old=$(worker_pids)
        wait_until 10 has_problem
        [[ $(sqmgrctl why default/1) == *"sqmgrctl stop default/1 --force"* ]]
        run -1 sqmgrctl restart --wait --timeout 60s
        [[ $output == *"no heartbeat was found within boot_timeout"* ]]
        alive "$old"
        run ! any_event '.event == "stopping" or .event == "killed"'
        run -0 sqmgrctl stop default/1 --force
        wait_until 20 gone "$old"
}

@test "a worker that hangs while it boots, and does nothing, is ended" {
        port=$(unused_port 127.0.0.1)
        launch server redis-server --bind 127.0.0.1 --port "$port" --save '' --dir "$folder"
        redis_url=redis://127.0.0.1:$port/0 configure < <(printf '%s\n' 'framework = sidekiq' "command = /bin/sleep 1000" \
                'active_process_count = 1' 'boot_timeout = 1s')
        start_sqmgr
        first=$(worker_pids)
        wait_until 60 gone "$first"
        any_event '.event == "boot-timeout" and (.text | contains("no heartbeat was found"))'
}

is_kept() { fleet_is "any(.workers[]; .pid == $1 and .waits_for_code == \"unseen\")"; } # PID

@test "what a worker leaves that showed no boot is kept, although others have shown theirs" {
        start_untitled 15s
        # It works, and registers nowhere.
        cat >"$folder/worker.py" <<END
import subprocess, time
left = subprocess.Popen(["/bin/bash", "-c", "while :; do sleep 1; done"])
open("$folder/left", "w").write(str(left.pid))
time.sleep(1000)
END
        run -1 sqmgrctl restart --wait --timeout 120s
        left=$(cat left)
        wait_until 60 is_kept "$left"
        alive "$left $old"
        sqmgrctl events | grep -q "has left process $left, which may run jobs, and is kept"
        run -0 sqmgrctl stop default --force
        wait_until 30 gone "$left"
}
