#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The read socket for viewers: what they see and do not see, who is admitted, and what a reload, a re-exec and the exit
# of sqmgr do to it.
# seconds: 30
# promises: P8
load helpers

view() { sqmgrctl -s "$folder/sqmgr.read.sock" "$@"; }
state_is() { [ "$(sqmgrctl status --json | jq -r --arg name "$1" '.fleets[] | select(.name == $name) | .rollout.state')" = "$2" ]; } # FLEET STATE

# Prints each method and its reply, one a line.
read_all() { # SOCKET
        ruby -W0 -rsocket -rjson -e '
                socket = UNIXSocket.new(ARGV.fetch(0))
                call = lambda do |method, parameters = {}|
                        socket.write(JSON.generate({method: method, parameters: parameters}) + "\0")
                        socket.gets("\0").chomp("\0")
                end
                about = call.("org.varlink.service.GetInterfaceDescription", {interface: "org.sqmgr.Control"})
                methods = JSON.parse(about)["parameters"]["description"].scan(/^method (\w+)/).flatten - ARGV.drop(1)
                methods.each { |method| puts "#{method} #{call.("org.sqmgr.Control.#{method}")}" }' "$@"
}

# Checks that the control socket shows all of it.
shows_all() { # WORD...
        local word
        read_all "$folder/sqmgr.sock" Restart Abort Reexec Reload >all.log
        for word; do
                grep -qF -e "$word" all.log || return 1
        done
}

start_fleet() {
        start_workers 1 <<<"command = $(stub_command)"
}

@test "viewers are sent no output of a dying worker, no command, no environment and no user of Redis" {
        secret=tell-nobody-$RANDOM$RANDOM
        start_redis
        redis acl setuser "user-$secret" on '>x' '~*' '+@all' -smembers
        configure <<END
command = $(stub_command)
[fleet:dies]
command = /bin/sh -c 'echo lines-$secret; exit 1' argument-$secret
log = $folder/dies.log
[fleet:missing]
command = command-$secret
environment = PATH=/path-$secret
[fleet:before]
command = sleep 1000
before_start = /nonexistent/before-$secret
[fleet:forbidden]
command = $(stub_command)
redis_url = unix://user-$secret:x@$folder/redis.sock
END
        start_sqmgr
        wait_until 20 ready 1
        sqmgrctl restart dies
        wait_until 20 state_is dies halted
        wait_until 20 shows_all "lines-$secret" "'command-$secret'" "/path-$secret" "/before-$secret" "NOPERM"

        read_all "$folder/sqmgr.read.sock" >viewed.log
        for method in GetStatus GetEvents GetQueues GetMetrics GetJobs Follow Ping GetVersion; do
                grep -q "^$method {\"parameters\":{" viewed.log || { cat viewed.log && return 1; }
        done
        for method in GetDiagnosis Restart Abort Quiet Stop Start Scale Reload Reexec; do
                grep -q "^$method .*PermissionDenied" viewed.log || { cat viewed.log && return 1; }
        done
        run ! grep -oE ".{0,80}$secret.{0,20}" viewed.log
        # The sentences stay.
        grep -q 'exited with status 1' viewed.log
        grep -q 'could not be started"' viewed.log
        grep -q 'restart halted; no old workers are left (reason: 3 new workers failed in a row; last failure: dies/1 (pid [0-9]*) exited with status 1 after [0-9]*ms, before its first heartbeat)\. Fix the release, then run .sqmgrctl restart dies."' viewed.log
        grep -q '"error":"command refused"' viewed.log
        run ! grep -q '"quoted"' viewed.log
        # Nor by sqmgrctl, for any user; and a viewer gives no orders.
        for command in status 'status --json' events metrics queues jobs; do
                # shellcheck disable=SC2086
                run view $command
                [[ $output != *"$secret"* ]] || { echo "$command: $output" && return 1; }
        done
        run -4 view restart
        [ "$output" = 'sqmgrctl: not permitted: this socket is read-only. Give the control socket by -s or SQMGR_SOCKET' ]
        run -4 view doctor
        state_is default none
}

@test "members of the group sqmgr-read are admitted; without the group, only root and sqmgr's own user" {
        [ "$(id -u)" = 0 ] || skip 'not root'
        unshare -m true 2>/dev/null || skip 'this machine lets nobody have a mount namespace'
        cp "$(command -v sqmgrctl)" "$folder/"
        as_nobody() { setpriv --reuid nobody --regid nogroup "$1" "$folder/sqmgrctl" -s "$folder/sqmgr.read.sock" "${@:2}"; }
        start_redis
        echo "command = $(stub_command)" | configure
        # It has its own file of groups.
        grep -v '^sqmgr-read:' /etc/group >groups
        for line in '' sqmgr-read:x:4242:; do
                echo "$line" >>groups
                launch sqmgr unshare -m sh -c "mount --bind $folder/groups /etc/group && exec sqmgr -c $folder/sqmgr.ini"
                sqmgr_pid=$!
                wait_until 10 sqmgrctl ping
                run -4 as_nobody --clear-groups ping
                if [ -z "$line" ]; then
                        [ "$(stat -c '%a %u' sqmgr.read.sock)" = '600 0' ]
                        run -4 as_nobody --groups=4242 ping
                        [[ $(sqmgrctl doctor) == *"only root and sqmgr's own user have read-only access through '$folder/sqmgr.read.sock'"* ]]
                else
                        [ "$(stat -c '%a %g' sqmgr.read.sock)" = '660 4242' ]
                        run -0 as_nobody --groups=4242 ping
                        run -0 as_nobody --groups=4242 status
                        run -4 as_nobody --groups=4242 restart
                        [[ $(sqmgrctl doctor) == *"members of group 'sqmgr-read' have read-only access through '$folder/sqmgr.read.sock'"* ]]
                fi
                kill "$sqmgr_pid"
                wait "$sqmgr_pid" || true
                [ ! -e sqmgr.read.sock ]
        done
}

@test "a re-exec keeps the read socket; a changed path or none removes it; a reload reports that a restart is needed" {
        start_fleet
        launch follower sqmgrctl -s "$folder/sqmgr.read.sock" events -f
        wait_until 10 grep -q ' active' follower.log
        # No connection meanwhile is refused. A re-exec closes a viewer's connection whose request has not arrived yet: the
        # viewer asks again.
        ask="sqmgrctl -s $folder/sqmgr.read.sock --timeout 60s ping"
        launch asker bash -c "while $ask >/dev/null 2>&1 || $ask >/dev/null; do :; done; echo turned away"
        sqmgrctl reexec
        sqmgrctl reexec
        view status >/dev/null
        # A follower continues with the next image.
        sqmgrctl scale default 2
        wait_until 20 grep -q 'scaled to 2' follower.log
        [ ! -s asker.log ]

        sed -i "s,^check_interval,read_socket = $folder/other.sock\n&," sqmgr.ini
        run -0 sqmgrctl reload
        [[ $output == *"[sqmgr] read_socket: $folder/sqmgr.read.sock -> $folder/other.sock (not applied; restart sqmgr"* ]]
        view ping
        sqmgrctl reexec
        sqmgrctl -s "$folder/other.sock" ping
        [ ! -e sqmgr.read.sock ]
        sed -i 's,^read_socket.*,read_socket = none,' sqmgr.ini
        sqmgrctl reexec
        [ ! -e other.sock ]
        run -0 sqmgrctl doctor
        [[ $output == *'read socket'*'not configured'* ]]
}

@test "if the read socket cannot be opened, workers are still supervised, and the failure is reported" {
        touch taken
        sqmgr_lines="read_socket = $folder/taken" start_fleet
        grep -F "read_socket: '$folder/taken' exists and is not a socket" sqmgr.log
        run -1 sqmgrctl doctor
        [[ $output == *"'$folder/taken' could not be opened; viewers cannot connect"* ]]
        # A re-exec is refused while this lasts.
        run -1 sqmgrctl reexec
        [[ $output == *"read_socket: cannot listen on '$folder/taken'"* ]]
        rm taken
        sqmgrctl reexec
        run -0 sqmgrctl -s "$folder/taken" ping
}

@test "Redis is queried no more often, however often viewers ask" {
        start_fleet
        # Prints the number of queue readings and the seconds they took.
        ask_often() { # SOCKET
                ruby -W0 -rsocket -e '
                        socket = UNIXSocket.new(ARGV.fetch(0))
                        begun = Process.clock_gettime(Process::CLOCK_MONOTONIC)
                        100.times do |i|
                                socket.write(%({"method":"org.sqmgr.Control.#{i.even? ? "GetQueues" : "GetMetrics"}"}\0))
                                raise "no answer" unless socket.gets("\0").start_with?("{\"parameters\":{")
                        end
                        puts (Process.clock_gettime(Process::CLOCK_MONOTONIC) - begun).ceil' "$1"
        }
        readings() { redis info commandstats | tr -d '\r' | sed -n 's/^cmdstat_smembers:calls=\([0-9]*\),.*/\1/p'; }
        sqmgrctl queues
        before=$(readings)
        ask_often "$folder/sqmgr.sock"
        after=$(readings)
        each=$(((after - before) / 100))
        [ "$each" -ge 1 ]
        seconds=$(ask_often "$folder/sqmgr.read.sock")
        echo "$each for one reading, $(($(readings) - after)) for those of $seconds s"
        # At most one query of each kind in a second.
        [ $(($(readings) - after)) -le $((2 * each * (seconds + 1))) ]
}
