#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The Ruby side of `preload = yes`, with real Sidekiq: one process loads the application, and its forks are ordinary
# workers. preload_stand.py takes the place of sqmgr.
# seconds: 45
# promises: P1 P4
# shellcheck disable=SC2030,SC2031
load helpers
# shellcheck disable=SC1091
. "$top/contrib/examples/shared.bash"

app=$e2e/preload_app.rb
export PRELOAD=$top/src/preload/sqmgr-preload.rb

preload_stand() { python3 "$e2e/preload_stand.py" "$@"; }

# Sets $template, and writes the rest of its message to the file `ready`.
start_template() { # [--user UID] COMMAND...
        rm -f stand
        launch stand python3 "$e2e/preload_stand.py" serve "$@"
        stand_pid=$!
        wait_until 10 test -S stand
        preload_stand ready >said
        { read -r template && cat >ready; } <said
        [ "$(head -n 2 ready)" = $'ready\nversion=1' ]
}

env_markers() { printf '%s\n' "SQMGR_WORKER=default/$1" "SQMGR_INDEX=$1" SQMGR_GENERATION=7 "SQMGR_START=1234567$1"; } # INDEX

# Sets $worker.
start_worker() { # INDEX [WORD...]
        local words
        mapfile -t words < <(env_markers "$1")
        worker=$(preload_stand fork "${words[@]}" "${@:2}")
        preload_stand go "$worker"
}

have_heartbeats() { # PID...: all of them
        local pid beaten
        beaten=$(redis smembers processes)
        for pid; do
                grep -q ":$pid:" <<<"$beaten" || return 1
        done
}
have_facts() { # PID...: all of them
        local pid
        for pid; do
                [ -e "facts.$pid" ] || return 1
        done
}
is_sqmgrs() { [ "$(ps -o ppid= -o sid= "$1" | xargs)" = "$stand_pid $1" ]; } # PID
has_env_markers() { # PID INDEX
        tr '\0' '\n' <"/proc/$1/environ" | grep -E '^SQMGR_(WORKER|INDEX|GENERATION|START)=' | sort | cmp - <(env_markers "$2" | sort)
}
# Pushes without a start of Ruby, which would take longer.
push() { # JID CLASS [PATH]
        redis lpush queue:default "{\"class\":\"$2\",\"args\":[${3:+\"$3\"}],\"jid\":\"$1\",\"queue\":\"default\",\"retry\":false}"
}
fact() { jq -r "$2" "facts.$1"; } # PID FILTER
has_lines() { [ "$(wc -l <"$1")" = "$2" ]; } # FILE COUNT
lines() { [ "$(sort "$1" 2>/dev/null)" = "$(printf '%s\n' "${@:2}" | sort)" ]; } # FILE LINE...

@test "forks are workers: each is distinct, a child of sqmgr, with its environment markers" {
        local index child workers=()
        start_redis
        export RUBYOPT='-W:no-deprecated  -rset'
        child="[\"$RUBYOPT\", nil, [], []]"
        start_template sidekiq -r "$app" -c 1
        lines loaded "$template"
        lines boot "$child" "$child"
        [ "$(wc -l <ready)" = 2 ]

        for index in 1 2 3; do
                start_worker $index
                is_sqmgrs "$worker"
                has_env_markers "$worker" $index
                workers+=("$worker")
        done
        wait_until 20 have_heartbeats "${workers[@]}"
        [ "$(redis scard processes)" = 3 ]
        [ "$(redis smembers processes | cut -d: -f3 | sort -u | wc -l)" = 3 ]

        for index in 1 2 3; do
                push $index Tell "$folder/go"
        done
        wait_until 20 have_facts "${workers[@]}"
        for index in 1 2 3; do
                worker=${workers[index - 1]}
                fact "$worker" '.env | to_entries[] | "\(.key)=\(.value)" | select(test("^SQMGR_(WORKER|INDEX|GENERATION|START|TEMPLATE)="))' |
                        sort | cmp - <(env_markers $index | sort)
                [ "$(fact "$worker" .env.RUBYOPT)" = "$RUBYOPT" ]
                [ "$(fact "$worker" .child)" = "$child" ]
                [ "$(fact "$worker" .original)" = "$child" ]
        done
        # Random values of four kinds.
        [ "$(for worker in "${workers[@]}"; do fact "$worker" '.random[]'; done | sort -u | wc -l)" = 12 ]
        lines forks "${workers[@]}"
        lines startups "${workers[@]}"
        # In the template alone, if Ruby has it.
        ! ruby -e 'exit Process.respond_to?(:warmup)' || lines called.warmup "$template"

        touch go
        wait_until 20 has_done 3
        [ "$(jobs_run_twice)" = 0 ]
        kill -TSTP "$worker"
        wait_until 10 grep -q "pid=$worker .*Received TSTP" stand.log
        kill -TERM "${workers[@]}"
        for worker in "${workers[@]}"; do
                [ "$(preload_stand wait "$worker")" = 'exit 0' ]
        done
        lines exits "${workers[@]}"
        lines terms "${workers[@]}"
        lines buffered once
        # The log also distinguishes their main threads.
        [ "$(grep 'Running in ruby' stand.log | grep -o 'tid=[^ :]*' | sort -u | wc -l)" = 3 ]

        preload_stand close
        [ "$(preload_stand wait "$template")" = 'exit 0' ]
        lines exits "${workers[@]}"
}

@test "a worker without sqmgr's 'go' does nothing, and a template that gets TERM ends" {
        local pid
        start_redis
        start_template sidekiq -r "$app" -c 1
        pid=$(preload_stand fork SQMGR_WORKER=default/1 "log=$folder/other.log")
        preload_stand drop "$pid"
        [ "$(preload_stand wait "$pid")" = 'exit 0' ]

        # A fork hook of the application may fail.
        touch refuse
        [ "$(preload_stand fork SQMGR_WORKER=default/1)" = $'error\nerrno=125\nnot now' ]
        rm refuse

        # Other messages are ignored, and none of their descriptors is kept.
        preload_stand send 2 wink fork
        preload_stand send 0 fork SQMGR_WORKER=default/1
        # The process in between may exit slowly: until then the fork is not a child of sqmgr.
        touch dawdle
        pid=$(preload_stand surplus SQMGR_WORKER=default/1)
        preload_stand go "$pid"
        wait_until 20 have_heartbeats "$pid"
        lines forks "$pid"
        lines startups "$pid"
        [ "$(redis scard processes)" = 1 ]
        [ ! -e exits ]
        [ ! -s other.log ]

        # Its workers keep running.
        kill -TERM "$template"
        [ "$(preload_stand wait "$template")" = 'signal 15' ]
        preload_stand over
        [ ! -e exits ]
        [ ! -e terms ]
        alive "$pid"
}

@test "state that forks would share is reported" {
        start_redis
        cat >app.rb <<END
require "$e2e/preload_app"
require "socket"
Sidekiq.configure_server do
  THREADS = [Thread.new { sleep }.tap { |thread| thread.name = "poller" }, Thread.new { sleep }]
  HARMLESS = [IO.pipe, File.open(__FILE__), ConnectionPool.new { UNIXSocket.new("$folder/redis.sock") }]
  HARMLESS.last.with(&:itself)
  SOCKETS = [UNIXSocket.new("$folder/redis.sock"), TCPServer.new("127.0.0.1", 0)]
  if ENV["MANY"]
    SOCKETS.push(*Array.new(40) { UNIXSocket.new("$folder/redis.sock") })
    THREADS.push(*Array.new(40) { |i| Thread.new { sleep }.tap { |thread| thread.name = "poller of no end " * 20 } })
  end
  File.write("port", SOCKETS[1].local_address.ip_port)
end
END
        start_template sidekiq -r ./app.rb
        [ "$(grep -c ^unsafe= ready)" = 2 ]
        grep -qx "unsafe=socket [0-9]* to $folder/redis.sock" ready
        grep -qx "unsafe=socket [0-9]* at 127.0.0.1:$(cat port)" ready
        grep -qx 'thread=poller' ready
        grep -q '^thread=#<Thread:.*app.rb:4' ready

        preload_stand close
        MANY=1 start_template sidekiq -r ./app.rb
        grep -qx 'unsafe=26 more' ready
        grep -q '^thread=[0-9]* more' ready
}

@test "ActiveRecord connections are closed in time, a connection of the application's own is reported" {
        local workers=()
        start_redis
        start_postgres
        cat >app.rb <<END
require "$e2e/preload_app"
require "active_record"
Sidekiq.configure_server do
  ActiveRecord::Base.establish_connection(adapter: "postgresql")
  Told.line("backends", ActiveRecord::Base.connection.select_value("select pg_backend_pid()"))
  OWN = PG.connect if ENV["OWN"]
end

class Ask
  include Counted

  def perform(path)
    counted do
      Told.line("backends", ActiveRecord::Base.connection.select_value("select pg_backend_pid()"))
      wait_for(path)
    end
  end
end
END
        start_template sidekiq -r ./app.rb -c 1
        run ! grep unsafe ready
        for worker in 1 2; do
                start_worker $worker
                workers+=("$worker")
        done
        wait_until 20 have_heartbeats "${workers[@]}"
        push 1 Ask "$folder/go"
        push 2 Ask "$folder/go"
        wait_until 20 has_lines backends 3
        [ "$(sort -u backends | wc -l)" = 3 ]
        touch go
        wait_until 20 has_done 2

        preload_stand close
        OWN=1 start_template sidekiq -r ./app.rb
        [ "$(grep -c ^unsafe ready)" = 1 ]
        grep -qx "unsafe=socket [0-9]* to $PGHOST/.s.PGSQL.5432" ready
}

works_through() { # COMMAND...
        local child original
        rm -rf boot facts.* go
        start_template "$@"
        [ "$(wc -l <ready)" = 2 ]
        start_worker 1
        is_sqmgrs "$worker"
        has_env_markers "$worker" 1
        wait_until 20 have_heartbeats "$worker"

        push "$worker" Tell "$folder/go"
        wait_until 20 have_facts "$worker"
        { read -r child && read -r original; } <boot
        # Bundler's own option comes before it.
        [[ $child == '["'*"$RUBYOPT\", nil, [], []]" ]]
        [ "$original" = "[\"$RUBYOPT\", nil, [], []]" ]
        [ "$(fact "$worker" .child)" = "$child" ]
        [ "$(fact "$worker" .original)" = "$original" ]
        [ "$(fact "$worker" '.env | del(.PRELOAD) | map(select(contains("sqmgr-preload"))) | length')" = 0 ]
        touch go
        kill -TERM "$worker"
        [ "$(preload_stand wait "$worker")" = 'exit 0' ]
        preload_stand close
        [ "$(preload_stand wait "$(preload_stand pid)")" = 'exit 0' ]
}

@test "between sqmgr and Sidekiq: bundle exec, a binstub, a shell or a Ruby that stays" {
        start_redis
        export RUBYOPT=-W:no-deprecated
        echo 'gem "sidekiq"' >Gemfile
        printf '%s\n' '#!/usr/bin/env ruby' 'load Gem.bin_path("sidekiq", "sidekiq")' >binstub
        # A process that loads the same file and does not run Sidekiq is not the template.
        printf '%s\n' '#!/usr/bin/env ruby' 'require "sidekiq/cli"' 'exit system("sidekiq", *ARGV)' >stays
        chmod 755 binstub stays

        works_through bundle exec sidekiq -r "$app" -c 1
        [ "$(bundle exec ruby -e 'print ENV["RUBYOPT"]')" != "$RUBYOPT" ]
        works_through ./binstub -r "$app" -c 1
        # shellcheck disable=SC2016
        works_through sh -c 'ruby -rsidekiq/cli -e 1; sidekiq -r "$0" -c 1; exit' "$app"
        works_through ./stays -r "$app" -c 1
}

@test "a rotated log: a new worker writes to the new file" {
        start_redis
        # Output that the application has redirected by itself stays redirected.
        cat >app.rb <<END
require "$e2e/preload_app"
Sidekiq.configure_server { \$stderr.reopen("own.log", "a") }
class Write
  include Counted

  def perform
    counted do
      puts "to stdout of #{Process.pid}"
      system("echo child of #{Process.pid}; echo child to stderr >&2")
    end
  end
end
END
        start_template sidekiq -r ./app.rb -c 1
        mv stand.log stand.log.1
        start_worker 1 "log=$folder/stand.log"
        wait_until 20 have_heartbeats "$worker"
        push 1 Write
        wait_until 20 has_done 1
        [ "$(stat -c %a stand.log)" = 640 ]
        grep -qx "to stdout of $worker" stand.log
        grep -qx "child of $worker" stand.log
        grep -qx 'child to stderr' own.log
        run ! grep "$worker" stand.log.1

        # If the log cannot be opened, output stays as inherited.
        kill -TERM "$worker"
        [ "$(preload_stand wait "$worker")" = 'exit 0' ]
        start_worker 2 log=/proc/nowhere/worker.log
        wait_until 20 have_heartbeats "$worker"
        grep -q "pid=$worker " stand.log.1
}

others_run() { [ "$(pgrep -c -u "$user" -x sleep)" = ${#others[@]} ]; }
# Since 3.3 Ruby ends its timer thread before each fork. With glibc 2.42 it waits forever for a timer thread that it
# could not recreate: sqmgr ends such a template when it does not answer.
outlives_a_failure() {
        ruby -e 'exit RUBY_VERSION < "3.3"' ||
                [ "$(printf '%s\n' 'glibc 2.42' "$(getconf GNU_LIBC_VERSION)" | sort -V | head -n 1)" != 'glibc 2.42' ]
}

# bats test_tags=root
@test "process limit reached: an error with its number, and the template keeps running" {
        local room said limit=12 user=$((2000000 + $$)) others=()
        [ "$(id -u)" = 0 ] || skip 'not root'
        start_redis
        # The other user may not have access to the checkout.
        cp "$PRELOAD" "$e2e"/{app,preload_app}.rb .
        chmod 777 . redis.sock
        ulimit -S -u $limit
        PRELOAD=$folder/sqmgr-preload.rb start_template --user $user sidekiq -r ./preload_app.rb -c 1
        # Other processes of its user leave no place, then more and more: first the first fork fails, then the second.
        for ((room = limit - $(find "/proc/$template/task" -mindepth 1 -maxdepth 1 | wc -l); room > 0; room--)); do
                launch other setpriv --reuid "$user" --clear-groups sleep 1000
                others+=($!)
        done
        wait_until 10 others_run
        said=$(preload_stand fork SQMGR_WORKER=default/1)
        [[ $said == $'error\nerrno=11\n'* ]]
        outlives_a_failure || return 0
        while [[ $said == error* ]]; do
                [[ $said == $'error\nerrno=11\n'* ]]
                kill "${others[-1]}"
                wait "${others[-1]}" || true
                unset 'others[-1]'
                said=$(preload_stand fork SQMGR_WORKER=default/1)
        done

        # The worker then needs more than one process.
        [ ${#others[@]} = 0 ] || kill "${others[@]}"
        worker=$said
        preload_stand go "$worker"
        wait_until 20 have_heartbeats "$worker"
        [ "$(redis scard processes)" = 1 ]
        lines forks "$worker"
}

@test "without its channel the process is an ordinary worker, and without the variable the script does nothing" {
        start_redis
        [ "$(ruby -r"$PRELOAD" -e 'p defined?(SqmgrPreload)')" = nil ]
        launch worker env SQMGR_TEMPLATE=3 RUBYOPT=-r"$PRELOAD" sidekiq -r "$app" -c 1
        worker=$!
        wait_until 20 have_heartbeats "$worker"
        push "$worker" Tell "$folder/go"
        wait_until 20 have_facts "$worker"
        [ "$(fact "$worker" .child)" = '[nil, nil, [], []]' ]
}
