#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Several instances on one machine: which one sqmgrctl connects to, and which ones sqmgrctl and sqmgr-web refuse.
# seconds: 35
# promises: P8
# bats file_tags=root
# shellcheck disable=SC2030,SC2031
load helpers

serve() { # NAME USER [LINE]: starts the instance NAME as USER
        mkdir -p "$folder/run/$1"
        printf '%s\n' '[sqmgr]' "socket = $folder/run/$1/control.sock" "${3-}" '[fleet:default]' 'framework = plain' \
                'command = sleep 1000' "log = /dev/null" 'ready_after = 100ms' >"$folder/run/$1/sqmgr.ini"
        chown -R "$2" "$folder/run/$1"
        # 4242 is sqmgr-read.
        { grep -v '^sqmgr-read:' /etc/group && echo 'sqmgr-read:x:4242:'; } >groups
        # shellcheck disable=SC2016
        launch "$1" unshare --mount sh -c 'mount --bind "$0" /etc/group && exec "$@"' "$folder/groups" \
                setpriv --reuid "$2" --regid nogroup --clear-groups sqmgr -c "$folder/run/$1/sqmgr.ini"
        wait_until 20 test -S "$folder/run/$1/control.sock"
        wait_until 20 env SQMGR_SOCKET="$folder/run/$1/control.sock" sqmgrctl ping
}

# Runs a command of USER where $folder/run is /run/sqmgr.
as() { # USER[+GROUP] COMMAND...
        local groups=--clear-groups
        [[ $1 != *+* ]] || groups=--groups=${1#*+}
        # shellcheck disable=SC2016
        unshare --mount bash -c 'mount -t tmpfs none /run && mkdir /run/sqmgr && mount --rbind "$0" /run/sqmgr &&
                exec setpriv --reuid "$1" --regid nogroup "$2" env -u SQMGR_SOCKET PATH="$3" "${@:4}"' \
                "$folder/run" "${1%+*}" "$groups" "$folder/bin:$PATH" "${@:2}"
}

begin() {
        [ "$(id -u)" = 0 ] || skip 'not root'
        unshare --mount true 2>/dev/null || skip 'this machine lets nobody have a mount namespace'
        mkdir -p run bin
        # The folder of the build may be closed to other users.
        cp "$(command -v sqmgrctl)" "$(command -v sqmgr-web || command -v true)" bin/
}

@test "a caller's own instance, the only one, all of them under their names, or a list and exit code 2" {
        begin
        run -3 as nobody sqmgrctl status
        [ "$output" = 'sqmgrctl: no instance of sqmgr found. Start one, or give its socket by -s or SQMGR_SOCKET' ]
        serve app nobody
        run -0 as nobody sqmgrctl status
        [[ $output == 'sqmgr '*', instance app, pid '* ]]
        # The only one.
        run -0 as root sqmgrctl status
        [[ $output == *', instance app, '* ]]
        serve shop daemon
        run -0 as nobody sqmgrctl scale default 1
        run -0 as daemon sqmgrctl version --json
        [ "$(jq -r .instance <<<"$output")" = shop ]
        # Root has none of its own.
        run -2 as root sqmgrctl restart
        [ "$output" = "sqmgrctl: there are several instances: 'app', 'shop'. Give one by -i NAME" ]
        run -2 as root sqmgrctl events --follow
        run -0 as root sqmgrctl -i shop restart
        run -0 as root sqmgrctl ping
        [ "$output" = $'instance app\nsqmgr answers\n\ninstance shop\nsqmgr answers' ]
        run -0 as root sqmgrctl status --json
        [ "$(jq -r .instance <<<"$output" | paste -sd ' ')" = 'app shop' ]
        [ "$(as root sqmgrctl --complete -i '' | paste -sd ' ')" = 'app shop' ]
        # Two of one user.
        serve third nobody
        run -2 as nobody sqmgrctl stop default
        [[ $output == *"'app', 'shop', 'third'"* ]]
        run -0 as nobody sqmgrctl -i third stop default --force
        # A command in a remedy names the instance.
        remedies() { as root sqmgrctl -i "$1" status --json | jq -r '.problems[].command'; }
        wait_until 20 sh -c "env -u SQMGR_SOCKET sqmgrctl -s '$folder/run/third/control.sock' status --json | jq -e '.problems | length > 0'"
        [[ $(remedies third) == "sqmgrctl -s $folder/run/third/control.sock start default"* ]]
        # One that has crashed leaves its socket: its orders go to no other instance.
        for name in app third; do
                pid=$(as root sqmgrctl -i $name status --json | jq .pid)
                kill -KILL "$pid"
                wait_until 20 gone "$pid"
        done
        run -2 as root sqmgrctl scale default 1
        run -3 as root sqmgrctl ping
        [[ $output == *$'instance shop\nsqmgr answers'* ]]
}

@test "two users with three instances: what each user, an operator, a viewer, a stranger and root get; sqmgr-web shows all" {
        begin
        serve app nobody 'socket_group = daemon'
        serve third nobody
        serve shop daemon
        # The exit codes of `status`, without -i, of app and of shop, then those of `scale default 1`. 0 done, 2 the
        # instances are listed, 4 not permitted. Without -i, a user of one instance gets that one, the others all.
        while read -r caller codes; do
                found=
                for command in status 'scale default 1'; do
                        for instance in '' '-i app' '-i shop'; do
                                # shellcheck disable=SC2086 # words of a command
                                run as "$caller" sqmgrctl $instance $command
                                echo "$caller: $instance $command: exit code $status: $output"
                                found+=" $status"
                        done
                done
                [ "$found" = " $codes" ]
        done <<'END'
nobody 4 0 4 2 0 4
daemon 0 4 0 0 4 0
4001+1 4 0 4 2 0 4
4002+4242 0 0 0 2 4 4
4003 4 4 4 2 4 4
root 0 0 0 2 0 0
END
        run as 4002+4242 sqmgrctl status
        [[ $output == *'instance app'*'instance shop'*'instance third'* ]]
        run as nobody sqmgrctl status
        [[ $output == *'instance app'*'instance third'* ]]
        command -v sqmgr-web >/dev/null || skip 'sqmgr-web was not built: libmicrohttpd is missing'
        mkdir web && chown 4002 web
        # shellcheck disable=SC2016
        launch web unshare --mount bash -c 'mount -t tmpfs none /run && mkdir /run/sqmgr && mount --bind "$0/run" /run/sqmgr &&
                exec setpriv --reuid 4002 --regid nogroup --groups=4242 "$0/bin/sqmgr-web" -l "unix:$0/web/sock"' "$folder"
        shown() { [ "$(curl -sf --unix-socket web/sock http://localhost/api/status | jq -r '.instances[] | select(.error == null).name' | sort | paste -sd ' ')" = 'app shop third' ]; }
        wait_until 20 shown
}

@test "a link to another instance, a server of another user and another name are refused; nothing is sent" {
        begin
        serve app nobody
        mkdir run/linked run/bound
        chown daemon run/linked run/bound
        ln -s ../app/control.sock run/linked/control.sock
        ln -s app run/alias
        touch run/bound/control.sock
        mount --bind run/app/control.sock run/bound/control.sock 2>/dev/null || rm run/bound/control.sock
        run -3 as root sqmgrctl -i linked stop default --force
        [ "$output" = "sqmgrctl: '/run/sqmgr/linked/control.sock' is not trusted: its socket is a link. Nothing was sent" ]
        run -3 as root sqmgrctl -i alias stop default --force
        [[ $output == *'its directory is a link'* ]]
        # By its path, a link leads to the server of another user than the directory's.
        run -3 as root sqmgrctl -s /run/sqmgr/linked/control.sock stop default --force
        [[ $output == *'its server runs as another user than the owner of its directory'* ]]
        ln -s app run/foreign && chown -h daemon run/foreign
        run -3 as root sqmgrctl -s /run/sqmgr/foreign/control.sock stop default --force
        [[ $output == *'its directory is a link of another user'* ]]
        if [ -e run/bound/control.sock ]; then
                run -3 as root sqmgrctl -i bound stop default --force
                [[ $output == *'its server runs as another user than the owner of its directory'* ]]
                chown nobody run/bound
                run -3 as root sqmgrctl -i bound stop default --force
                [[ $output == *"the instance that answers calls itself 'app'" ]]
                umount run/bound/control.sock
        fi
        run -0 sqmgrctl -s "$folder/run/app/control.sock" events
        [[ $output != *stop* ]]
}

@test "a hostile instance costs no memory, writes nothing to the terminal, and no file that it names is opened" {
        begin
        mkdir -p run/evil
        echo 'of root' >secret && chmod 600 secret
        cat >evil.py <<'END'
import json, os, socket, sys
os.setuid(int(sys.argv[2]))
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen(8)
evil = "e\x1b]0;x\x07\u009b1m\n"
fleet = {"name": "default", "max_processes": 2**62, "state_text": evil, "workers": []}
while True:
    connection = listener.accept()[0]
    data = b""
    while chunk := connection.recv(4096):
        data += chunk
        if data.endswith(b"\0"):
            fleet["log"] = open("log").read().strip()
            reply = {"version": evil, "instance": "evil", "pid": 1, "fleets": [fleet], "events": []}
            connection.sendall(json.dumps({"parameters": reply}).encode() + b"\0")
            data = b""
END
        echo "$folder/secret" >log
        chown nobody run/evil
        launch evil python3 -B evil.py "$folder/run/evil/control.sock" "$(id -u nobody)"
        wait_until 20 test -S run/evil/control.sock
        for command in status 'status --json' version events 'why default'; do
                # shellcheck disable=SC2086
                as root sqmgrctl $command >shown 2>&1 || true
                not grep -qP '[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]' shown
        done
        run -1 as root sqmgrctl logs default
        [[ $output == *"opens no file that another user's sqmgr names"*"runuser -u nobody -- tail -n 50 -- $folder/secret'" ]]
        [[ $output != *'of root'* ]]
        echo journal >log
        printf '#!/bin/sh\necho "$#"\n' >bin/journalctl && chmod 755 bin/journalctl
        run -0 as root bash -c 'ulimit -v 200000; sqmgrctl logs default'
        [ "${lines[-1]}" -le 10010 ]
        command -v sqmgr-web >/dev/null || skip 'sqmgr-web was not built: libmicrohttpd is missing'
        rm -r run/evil/control.sock && mkdir -p run/fake && chown daemon run/fake
        ln -s ../evil/control.sock run/fake/control.sock
        launch web unshare --mount bash -c "mount -t tmpfs none /run && mkdir /run/sqmgr && mount --bind $folder/run /run/sqmgr && exec sqmgr-web -l unix:$folder/web.sock"
        refused() { curl -sf --unix-socket web.sock http://localhost/api/status | jq -e '.instances | any(.name == "fake" and .error == "not trusted: its socket is a link")'; }
        wait_until 20 refused
}
