#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A restart of all hosts of a group, each an sqmgr with a host name of its own.
# seconds: 100
# promises: P2 P4 P8
load helpers

setup_file() { unshare --uts true 2>/dev/null || skip 'this machine lets nobody have a host name of its own'; }

# FLEET-LINES come on standard input.
configure_host() { # NAME
        mkdir -p "$folder/$1.steer"
        cat >"$folder/$1.ini" <<END
[sqmgr]
socket = $folder/$1.sock
state_file = $folder/$1.state
check_interval = 500ms

[redis]
url = unix://$folder/redis.sock

[fleet:default]
command = $stub -u $folder/redis.sock -b 200 -d $folder/$1.steer
log = $folder/workers.log
ready_after = 500ms
backoff_min = 100ms
$(cat)
END
}

# As that host; its pid is in $folder/NAME.pid.
start_host() { # NAME
        launch "sqmgr-$1" unshare --uts sh -c 'hostname "$0"; exec sqmgr -c "$1"' "$1" "$folder/$1.ini"
        echo $! >"$folder/$1.pid"
        wait_until 20 on "$1" sqmgrctl ping
}

on() { # NAME COMMAND...
        local name=$1
        shift
        SQMGR_SOCKET=$folder/$name.sock "$@"
}

# Of a reply the parameters, of an error its name and parameters.
ask() { # NAME METHOD PARAMETERS
        ruby -rjson -rsocket -e 'socket = UNIXSocket.new(ARGV[0])
                socket.write(JSON.generate(method: "org.sqmgr.Control.#{ARGV[1]}", parameters: JSON.parse(ARGV[2])) + "\0")
                reply = JSON.parse(socket.gets("\0").chomp("\0"))
                puts JSON.generate(reply["error"] ? reply : reply["parameters"])' "$folder/$1.sock" "$2" "$3"
}
begin() { ask "$1" RestartEverywhere '{"fleet":"default"}'; }
rollout() { ask "$1" GetRollouts '{}' | jq ".rollouts[0]"; }
rollout_is() { rollout "$1" | jq -e "$2" >/dev/null; }
