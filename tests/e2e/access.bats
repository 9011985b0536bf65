#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Who may do what on the socket: root, the user of sqmgr, operators, viewers and strangers; what viewers do not see; and
# that nobody delays an order of the owner.
# seconds: 35
# promises: P8
# bats file_tags=root
load helpers
load terminal

# Each caller's user, group and further groups. 4242 is sqmgr-read in the file of groups that sqmgr has, once it is there.
declare -gA users=([owner]=nobody [operator]=4001 [viewer]=4002 [stranger]=4003)
declare -gA further=([operator]=--groups=1 [viewer]=--groups=4242 [stranger]=--clear-groups [owner]=--clear-groups)

as() { # CALLER COMMAND...
        if [ "$1" = root ]; then "${@:2}"; else setpriv --reuid "${users[$1]}" --regid nogroup "${further[$1]}" "${@:2}"; fi
}
call() { as "$1" "$folder/bin/sqmgrctl" "${@:2}"; } # CALLER ARGUMENT...

# Starts sqmgr as nobody, with a file of groups of its own; standard input is as for configure.
start_owned() {
        [ "$(id -u)" = 0 ] || skip 'not root'
        unshare -m true 2>/dev/null || skip 'this machine lets nobody have a mount namespace'
        mkdir bin
        cp "$(command -v sqmgrctl)" bin/
        sqmgr_lines=$'socket_group = daemon\n'${sqmgr_lines-} configure
        { grep -v '^sqmgr-read:' /etc/group && echo "${viewers-sqmgr-read:x:4242:}"; } >groups
        chown nobody . steer
        start_redis
        chmod 666 redis.sock
        launch sqmgr unshare -m sh -c "mount --bind $folder/groups /etc/group &&
                exec setpriv --reuid nobody --regid nogroup --clear-groups sqmgr -c $folder/sqmgr.ini"
        wait_until 20 sqmgrctl ping
}

sleepers() { echo $'framework = plain\ncommand = /bin/sleep 1000'; }

@test "what root, the user of sqmgr, operators, viewers and strangers may do" {
        sleepers | start_owned
        wait_until 20 ready 1
        [ "$(stat -c '%a %U' sqmgr.sock)" = '666 nobody' ]
        while read -r caller ping shown doctor scale reload reexec; do
                for command in "$ping:ping" "$shown:status" "$doctor:doctor" "$scale:scale default 1" "$reload:reload" \
                        "$reexec:reexec"; do
                        # shellcheck disable=SC2086 # words of a command
                        run call "$caller" ${command#*:}
                        echo "$caller: ${command#*:}: exit code $status: $output"
                        [ "${command%%:*}" = "$status" ]
                done
        done <<'END'
root     0 0 0 0 0 0
owner    0 0 0 0 0 0
operator 0 0 0 0 0 4
viewer   0 0 4 4 4 4
END
        for command in ping status doctor 'scale default 1' reload reexec; do
                # shellcheck disable=SC2086 # words of a command
                run call stranger $command
                echo "$command: $status: $output"
                [[ $status = 4 && $output == *"not permitted: members of group 'sqmgr-read' may read, and members of group 'daemon' may give orders"* ]]
        done
        # The log names who gave an order.
        [[ $(sqmgrctl events) == *'by uid 4001'* ]]
}

@test "viewers are sent no output of a dying worker, no command, no environment and no user of Redis" {
        secret=tell-nobody-$RANDOM$RANDOM
        start_owned <<END
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
        redis acl setuser "user-$secret" on '>x' '~*' '+@all' -smembers
        # Prints each method and its reply, one a line.
        read_all() { # CALLER METHOD...: but these
                as "$1" ruby -W0 -rsocket -rjson -e '
                        socket = UNIXSocket.new(ARGV.fetch(0))
                        call = lambda do |method, parameters = {}|
                                socket.write(JSON.generate({method: method, parameters: parameters}) + "\0")
                                socket.gets("\0").chomp("\0")
                        end
                        about = call.("org.varlink.service.GetInterfaceDescription", {interface: "org.sqmgr.Control"})
                        methods = JSON.parse(about)["parameters"]["description"].scan(/^method (\w+)/).flatten - ARGV.drop(1)
                        methods.each { |method| puts "#{method} #{call.("org.sqmgr.Control.#{method}")}" }' "$SQMGR_SOCKET" "${@:2}"
        }
        shows_all() { # WORD...: to the owner
                local word
                read_all owner Restart Abort Reexec Reload >all.log
                for word; do
                        grep -qF -e "$word" all.log || return 1
                done
        }
        state_is() { [ "$(sqmgrctl status --json | jq -r --arg name "$1" '.fleets[] | select(.name == $name) | .rollout.state')" = "$2" ]; } # FLEET STATE
        wait_until 20 ready 1
        sqmgrctl restart dies
        wait_until 20 state_is dies halted
        wait_until 20 shows_all "lines-$secret" "'command-$secret'" "/path-$secret" "/before-$secret" "NOPERM"

        read_all viewer >viewed.log
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
        for command in status 'status --json' events metrics queues jobs; do
                # shellcheck disable=SC2086
                run call viewer $command
                [[ $output != *"$secret"* ]] || { echo "$command: $output" && return 1; }
        done
        run -4 call viewer restart
        [[ $output == *"not permitted: only root, the user of sqmgr and members of group 'daemon' can do this" ]]
        state_is default none

        # Redis is queried no more often, however often viewers ask. Prints the seconds that they took.
        ask_often() { # CALLER
                as "$1" ruby -W0 -rsocket -e '
                        socket = UNIXSocket.new(ARGV.fetch(0))
                        begun = Process.clock_gettime(Process::CLOCK_MONOTONIC)
                        100.times do |i|
                                socket.write(%({"method":"org.sqmgr.Control.#{i.even? ? "GetQueues" : "GetMetrics"}"}\0))
                                raise "no answer" unless socket.gets("\0").start_with?("{\"parameters\":{")
                        end
                        puts (Process.clock_gettime(Process::CLOCK_MONOTONIC) - begun).ceil' "$SQMGR_SOCKET"
        }
        readings() { redis info commandstats | tr -d '\r' | sed -n 's/^cmdstat_smembers:calls=\([0-9]*\),.*/\1/p'; }
        before=$(readings)
        ask_often owner
        after=$(readings)
        each=$(((after - before) / 100))
        [ "$each" -ge 1 ]
        seconds=$(ask_often viewer)
        echo "$each for one reading, $(($(readings) - after)) for those of $seconds s"
        # At most one query of each kind in a second.
        [ $(($(readings) - after)) -le $((2 * each * (seconds + 1))) ]
}

@test "a viewer stays connected through a re-exec; a reload looks up the group again" {
        sleepers >lines
        viewers='' start_owned <lines
        wait_until 20 ready 1
        run ! call viewer ping
        # Written in place: the namespace of sqmgr has this file.
        echo sqmgr-read:x:4242: >>groups
        sqmgrctl reload
        call viewer ping
        launch follower setpriv --reuid 4002 --regid nogroup --groups=4242 "$folder/bin/sqmgrctl" events -f
        wait_until 10 grep -q ' running' follower.log
        # No connection is refused meanwhile. A request that arrives during the re-exec is sent again.
        ask="setpriv --reuid 4002 --regid nogroup --groups=4242 $folder/bin/sqmgrctl --timeout 60s ping"
        launch asker bash -c "while $ask >/dev/null 2>&1 || $ask >/dev/null; do :; done; echo turned away"
        sqmgrctl reexec
        sqmgrctl reexec
        call viewer status >/dev/null
        sqmgrctl scale default 2
        wait_until 20 grep -q 'scaled to 2' follower.log
        [ ! -s asker.log ]
}

@test "top shows a viewer all, and gives no orders" {
        sleepers | start_owned
        wait_until 20 ready 1
        pid=$(fleet '.workers[0].pid')
        mkdir viewing
        printf '#!/bin/sh\nexec setpriv --reuid 4002 --regid nogroup --groups=4242 %s/bin/sqmgrctl "$@"\n' "$folder" >viewing/sqmgrctl
        chmod +x viewing/sqmgrctl
        PATH=$folder/viewing:$PATH open_terminal 120 24
        type_line 'sqmgrctl top; echo code $?'
        wait_until 10 shows 'default (plain): '
        press Q
        wait_until 10 shows 'Quiet default/1?'
        press y
        wait_until 10 shows 'not permitted'
        press R
        wait_until 10 shows 'Restart default?'
        press y
        wait_until 10 shows 'not permitted'
        press q
        wait_until 10 shows '^code 0'
        fleet_is '.generation == 1 and .workers[0].state == "active" and .workers[0].pid == '"$pid"
}

@test "strangers in a loop, 300 silent connections and a viewer's flood: an order of the owner is answered" {
        sleepers | start_owned
        wait_until 20 ready 1
        # Blocking sockets: connect() waits while the queue is full.
        begin=$(cat <<'END'
$address = Socket.pack_sockaddr_un(ARGV.fetch(0))
def connected = Socket.new(:UNIX, :STREAM).tap { |socket| socket.nonblock = false }.tap { |socket| socket.connect($address) }
END
        )
        # Runs lines of Ruby as that user.
        each() { launch "$1" setpriv --reuid "$2" --regid nogroup "$3" ruby -W0 -rsocket -rio/nonblock -e "$begin" -e "$4" "$SQMGR_SOCKET"; } # NAME USER GROUPS LINES
        # Two read the refusal before they connect again, and two do not wait for anything.
        for i in 1 2; do
                each "patient$i" 4003 --clear-groups 'loop { connected.then { |socket| socket.readpartial(1000) && socket.close } }'
                # shellcheck disable=SC2016 # of Ruby
                each "hasty$i" 4003 --clear-groups '
                        loop { Socket.new(:UNIX, :STREAM).then { |socket| (socket.connect_nonblock($address) rescue 0) && socket.close } }'
        done
        for caller in operator viewer; do
                # shellcheck disable=SC2016 # of Ruby
                each "silent-$caller" "${users[$caller]}" "${further[$caller]}" '
                        kept = Array.new(300) { connected }
                        $stdout.puts kept.size
                        $stdout.flush
                        sleep'
        done
        each flood 4004 --groups=4242 '
                kept = Array.new(16) { connected }
                big = %({"method":"org.sqmgr.Control.GetStatus","parameters":{"fleets":["default"]#{" " * 60_000}}}\0)
                left = {}
                loop do
                        kept.each do |socket|
                                rest = left[socket] || big
                                sent = socket.write_nonblock(rest, exception: false)
                                left[socket] = sent == rest.size ? nil : rest[sent..] if sent.is_a? Integer
                                socket.read_nonblock(1 << 20, exception: false)
                        end
                end'
        wait_until 20 grep -q 300 silent-operator.log
        wait_until 20 grep -q 300 silent-viewer.log
        # Each order on a connection of its own. The bound is for a busy machine: on an idle one it is 100 ms.
        run as owner ruby -W0 -rsocket -rio/nonblock -e "$begin" -e '
                longest = Array.new(50) do
                        begun = Process.clock_gettime(Process::CLOCK_MONOTONIC)
                        socket = connected
                        socket.write(%({"method":"org.sqmgr.Control.Scale","parameters":{"fleet":"default","count":1}}\0))
                        raise "no order" unless socket.gets("\0").start_with?("{\"parameters\":")
                        socket.close
                        Process.clock_gettime(Process::CLOCK_MONOTONIC) - begun
                end.max
                printf("the slowest of 50 orders took %.1f ms\n", longest * 1000)
                exit longest < 5' "$SQMGR_SOCKET"
        echo "# $output" >&3
        [ "$status" = 0 ]
        for log in patient1 hasty1 patient2 hasty2 flood; do [ ! -s "$log.log" ] || { cat "$log.log" && return 1; }; done
}
