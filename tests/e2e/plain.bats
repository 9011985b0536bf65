#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Framework plain: any process, of which sqmgr knows only that it runs. Puma, Celery and Delayed::Job are the real
# programs of Debian's packages.
# promises: P1 P2 P4
# seconds: 75
load helpers

# Counts its signals, and exits after a signal once allowed.
signal_keeper() {
        mkdir -p "$folder/told"
        cat >"$folder/steady.rb" <<'END'
%w[TERM INT].each { |name| trap(name) { File.write("told/#{$$}", "#{name}\n", mode: "a") } }
File.write("heeds.#{$$}", "")
sleep 0.05 until File.exist?("finish") && File.exist?("told/#{$$}")
END
        echo "ruby --disable-gems $folder/steady.rb"
}
handle_signals() { # PID...: a running process may not have its handlers yet
        local pid
        for pid; do
                [ -e "$folder/heeds.$pid" ] || return 1
        done
}
signaled_once() { # SIGNAL PID...
        local signal=$1 pid
        shift
        for pid; do
                [ "$(cat "$folder/told/$pid")" = "$signal" ] || return 1
        done
}
shown() { sqmgrctl status --json | jq -r ".fleets[] | select(.name == \"$1\") | .workers[0] | $2"; } # FLEET WHAT
is_shown() { [ "$(shown "$1" "$2")" = "$3" ]; }

# Records any connection to the address of the missing Redis.
watch_redis() {
        launch redis ruby --disable-gems -rsocket -e 'server = UNIXServer.new("redis.sock"); File.write("watched", "")
                loop { server.accept.close; File.write("asked", "") }'
        wait_until 10 [ -e "$folder/watched" ]
}

@test "no Redis: kill -9 and re-exec leave draining workers alone, and none gets a second signal" {
        watch_redis
        configure <<END
framework = plain
command = $(signal_keeper)
directory = $folder
active_process_count = 2
END
        start_ready 2
        fleet_is '[.workers[] | .evidence == "proc" and .busy == null and .concurrency == null] | all'
        [ "$(sqmgrctl status --json | jq -c .redis)" = '[]' ]
        run -0 sqmgrctl status
        [[ $output =~ default/1\ +[0-9]+\ +active\ [0-9]+s\ +1\ +-\  ]]
        old=$(worker_pids)
        # shellcheck disable=SC2086
        wait_until 20 handle_signals $old
        sqmgrctl restart
        wait_until 20 fleet_is '.quiet == 2 and .active == 2 and .rollout.state == "done"'
        record "$(worker_pids)"
        all=$(worker_pids)
        kill_sqmgr
        start_sqmgr
        [ "$(worker_pids)" = "$all" ]
        wait_until 20 sqmgrctl reexec
        wait_until 20 ready 2
        [ "$(worker_pids)" = "$all" ]
        fleet_is '.quiet == 2 and .starting == 0 and .generation == 2'
        touch "$folder/finish"
        wait_until 20 gone "$old"
        # shellcheck disable=SC2086
        signaled_once TERM $old
        wait_until 20 fleet_is '(.workers | length) == 2'
        [ "$(sqmgrctl queues --json | jq -c .redis)" = '[]' ]
        run -0 sqmgrctl jobs
        [ "$output" = 'no running jobs known' ]
        run sqmgrctl doctor
        not grep -qi redis <<<"$output"
        run -0 sqmgrctl metrics
        not grep -E '^sqmgr_(redis|queue|set|worker_busy|worker_beat)' <<<"$output"
        not grep -qE 'crash|Redis|beat|jobs' "$folder/sqmgr.log"
        [ ! -e "$folder/asked" ]
        ruby --disable-gems -rsocket -e 'UNIXSocket.new("redis.sock")'
        wait_until 10 [ -e "$folder/asked" ]
}

# The state file cannot be written from before the signals until sqmgr is killed: only the ledger records them.
@test "kill -9 after stop signals missing from the state: none is sent again, and a later start is known" {
        configure <<END
framework = plain
command = $(signal_keeper)
directory = $folder
active_process_count = 2
before_start = $folder/gate
END
        printf '#!/bin/sh\nuntil [ -e "%s/open" ]; do sleep 0.05; done\n' "$folder" >gate
        chmod +x gate
        touch open
        start_ready 2
        old=$(worker_pids)
        # shellcheck disable=SC2086
        wait_until 20 handle_signals $old
        rm open
        sqmgrctl restart
        wait_until 10 block state.new
        touch open
        # shellcheck disable=SC2086
        wait_until 20 signaled_once TERM $old
        wait_until 20 fleet_is ".active == 2 and .quiet == 2"
        victim=$(fleet '[.workers[] | select(.generation == 2) | .pid] | sort | first')
        kill -KILL "$victim"
        wait_until 20 fleet_is "(.workers | length) == 4 and all(.workers[]; .pid != $victim)"
        all=$(worker_pids)
        record "$all"
        kill_sqmgr
        rmdir state.new
        start_sqmgr
        [ "$(worker_pids)" = "$all" ]
        fleet_is '.quiet == 2'
        wait_ticks 4
        # shellcheck disable=SC2086
        signaled_once TERM $old
        touch finish
        # shellcheck disable=SC2086
        wait_until 20 gone $old
        fleet_is '.crash.count <= 1'
        wait_until 20 ready 2
}

@test "stop_signal is sent once; only stop_timeout in the fleet's own section kills a worker that stays" {
        redis_url=unix://$folder/nowhere
        configure <<END
framework = plain
command = $(signal_keeper)
directory = $folder
stop_signal = INT
[fleet:deaf]
framework = plain
command = ruby --disable-gems -e 'trap("TERM", "IGNORE"); File.write("deaf.#{\$\$}", ""); sleep'
directory = $folder
stop_timeout = 10s
[fleet:patient]
framework = plain
command = ruby --disable-gems -e 'trap("TERM", "IGNORE"); File.write("deaf.#{\$\$}", ""); sleep'
directory = $folder
END
        start_sqmgr
        for fleet in default deaf patient; do
                wait_until 20 is_shown $fleet .ready true
        done
        told=$(shown default .pid) deaf=$(shown deaf .pid) patient=$(shown patient .pid)
        wait_until 20 handle_signals "$told"
        wait_until 20 [ -e "$folder/deaf.$deaf" ]
        wait_until 20 [ -e "$folder/deaf.$patient" ]
        sqmgrctl quiet patient
        run -0 sqmgrctl quiet deaf
        [[ $output = *'workers asked to exit'* ]]
        [[ $(shown deaf .waits_for) =~ ^'is exiting; killed in '[0-9]+'s (stop_timeout)'$ ]]
        sqmgrctl quiet default
        wait_until 20 gone "$deaf"
        sqmgrctl events | grep -qE "deaf/1 \(pid $deaf\) did not exit within [1-9][0-9][.0-9]*s \(stop_timeout\); killed"
        alive "$patient"
        is_shown patient .state quiet
        is_shown patient .waits_for 'is exiting'
        touch "$folder/finish"
        wait_until 20 gone "$told"
        signaled_once INT "$told"
        sqmgrctl stop patient --force
        is_shown patient .pid "$patient"
}

@test "memory counts the whole process tree: the replacement starts first" {
        redis_url=unix://$folder/nowhere
        cat >"$folder/grow.rb" <<'END'
first = File.open("first", File::CREAT | File::EXCL | File::WRONLY) rescue nil
child = fork { held = first && "x" * (96 << 20); sleep }
trap("TERM") { Process.kill("TERM", child); exit }
sleep
END
        configure <<END
framework = plain
command = ruby --disable-gems $folder/grow.rb
directory = $folder
memory_threshold = 80M
END
        start_sqmgr
        wait_until 20 fleet_is '.active == 1'
        pid=$(fleet '.workers[0].pid')
        wait_until 30 gone "$pid"
        events=$(sqmgrctl events)
        grep -q "default/2 .* started to replace a retiring worker (reason: memory)" <<<"$events"
        order=$(grep -oE 'default/2 .* running|default/1 .* asked to exit \(reason: memory\)' <<<"$events" | grep -oE 'default/.')
        [ "$order" = $'default/2\ndefault/1' ]
        wait_until 20 fleet_is '.active == 1 and (.workers | length) == 1'
}

# A listening socket shared by all generations, as with systemd socket activation.
puma_fleet() {
        cat >"$folder/hold.rb" <<'END'
require "socket"
listener = TCPServer.new("127.0.0.1", 0)
# Connections are accepted only once their request has arrived: a server that exits closes none without a request.
listener.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_DEFER_ACCEPT, 60)
door = UNIXServer.new("door")
File.write("port.new", listener.addr[1])
File.rename("port.new", "port")
loop { door.accept.tap { |peer| peer.send_io(listener) }.close }
END
        cat >"$folder/launch.rb" <<'END'
require "socket"
listener = UNIXSocket.open("door") { |door| door.recv_io }
exec({"LISTEN_FDS" => "1", "LISTEN_PID" => $$.to_s}, "puma", "-q", "-t", "2:4", "-b",
     "tcp://127.0.0.1:#{File.read("port")}", "config.ru", 3 => listener)
END
        cat >"$folder/config.ru" <<'END'
run ->(_env) { sleep 0.02; [200, {"content-type" => "text/plain"}, ["#{$$}"]] }
END
        cat >"$folder/ask.rb" <<'END'
require "socket"
served = Hash.new(0)
failed = []
4.times.map do
  Thread.new do
    until File.exist?("enough")
      begin
        TCPSocket.open("127.0.0.1", Integer(File.read("port"))) do |server|
          server.write("GET / HTTP/1.0\r\n\r\n")
          reply = server.read
          reply.start_with?("HTTP/1.0 200") ? served[reply[/\d+\z/]] += 1 : failed << reply
        end
      rescue SystemCallError => error
        failed << error.message
      end
      File.write("served", served.size.to_s)
    end
  end
end.each(&:join)
puts "#{served.values.sum} served by #{served.size}, #{failed.size} failed #{failed.first(3)}"
END
        launch hold ruby --disable-gems "$folder/hold.rb"
        wait_until 20 [ -e "$folder/port" ]
        redis_url=unix://$folder/nowhere
        configure <<END
framework = plain
preset = puma
command = ruby --disable-gems $folder/launch.rb
directory = $folder
active_process_count = 2
END
        start_sqmgr
}
served_by() { [ "$(cat "$folder/served")" -ge "$1" ]; }

@test "Puma under load: two rolling restarts refuse no connection and lose no request" {
        puma_fleet
        launch asked ruby --disable-gems "$folder/ask.rb"
        asked=$!
        wait_until 20 served_by 2
        run -0 sqmgrctl restart --wait=drained --timeout 100s
        wait_until 20 served_by 4
        run -0 sqmgrctl restart --wait=drained --timeout 100s
        wait_until 20 served_by 6
        touch "$folder/enough"
        wait "$asked"
        cat "$folder/asked.log"
        grep -qE '^[0-9]+ served by 6, 0 failed ' "$folder/asked.log"
        not grep -qE 'crash|kill -9|SIGKILL' "$folder/sqmgr.log"
}

# Celery occasionally loses a task that has not begun as it exits, and rarely a worker does not exit. Rarely it returns
# a task that has just begun and is not acknowledged: that task is done twice.
@test "Celery under load: two restarts cut off no task" {
        start_redis
        cat >"$folder/tasks.py" <<END
import time, celery, redis
ledger = redis.Redis(unix_socket_path="$folder/redis.sock")
app = celery.Celery("tasks", broker="redis+socket://$folder/redis.sock")

@app.task
def work(number):
    ledger.hincrby("ledger:started", number, 1)
    time.sleep(0.3)
    ledger.hincrby("ledger:done", number, 1)
END
        configure <<END
framework = plain
preset = celery
command = /usr/bin/python3 -m celery -A tasks worker -c 2 -l info --without-gossip --without-mingle
directory = $folder
active_process_count = 2
stop_timeout = 60s
END
        start_ready 2
        cd "$folder"
        # Tasks fetched and not begun are in neither list, and one of them may begin between the two readings.
        settled() {
                [ "$(redis llen celery)" = 0 ] && has_done 80 || return 1
                begun=$(redis hgetall ledger:started | paste - - | sort)
                [ "$begun" = "$(redis hgetall ledger:done | paste - - | sort)" ]
        }
        enqueue_tasks() { /usr/bin/python3 -c "import tasks; [tasks.work.delay(number) for number in range($1, $2)]"; }
        enqueue_tasks 0 60
        wait_until 30 has_started 4
        run -0 sqmgrctl restart --wait=drained --timeout 100s
        enqueue_tasks 60 90
        wait_until 30 has_started 50
        run -0 sqmgrctl restart --wait=drained --timeout 100s
        wait_until 60 settled
        [ "$(awk '$2 > 1' <<<"$begun" | wc -l)" -le 2 ]
        fleet_is '.generation == 3 and (.workers | length) == 2'
        not grep -q crash "$folder/sqmgr.log"
}

@test "Delayed::Job under load: a restart lets the running job finish" {
        cat >"$folder/jobs.rb" <<'END'
require "active_record"
require "delayed_job_active_record"
ActiveRecord::Base.establish_connection(adapter: "sqlite3", database: "jobs.db", timeout: 60000)
Delayed::Worker.sleep_delay = 0.1
Delayed::Worker.logger = Logger.new($stdout)
Work = Struct.new(:number) do
  def perform
    File.write("done/#{number}", "began\n", mode: "a")
    sleep 0.2
    File.write("done/#{number}", "ended\n", mode: "a")
  end
end
END
        mkdir "$folder/done"
        cd "$folder"
        ruby -r ./jobs.rb -e 'ActiveRecord::Schema.verbose = false
                ActiveRecord::Schema.define do
                        create_table(:delayed_jobs) do |table|
                                table.integer :priority, default: 0
                                table.integer :attempts, default: 0
                                table.text :handler, :last_error
                                table.datetime :run_at, :locked_at, :failed_at
                                table.string :locked_by, :queue
                                table.timestamps
                        end
                end
                20.times { |number| Delayed::Job.enqueue(Work.new(number)) }'
        # shellcheck disable=SC2034
        redis_url=unix://$folder/nowhere
        configure <<END
framework = plain
preset = delayed_job
command = ruby -r $folder/jobs.rb -e 'Delayed::Worker.new.start'
directory = $folder
END
        start_sqmgr
        began() { [ "$(find "$folder/done" -type f | wc -l)" -ge "$1" ]; }
        ended() { [ "$(cat "$folder"/done/* | grep -c ended)" -ge "$1" ]; }
        wait_until 20 began 3
        run -0 sqmgrctl restart --wait=drained --timeout 100s
        wait_until 30 ended 20
        [ "$(cat "$folder"/done/*)" = "$(for ((i = 0; i < 20; i++)); do printf 'began\nended\n'; done)" ]
        not grep -qE 'crash|SIGKILL' "$folder/sqmgr.log"
}
