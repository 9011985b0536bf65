# SPDX-License-Identifier: MIT
# Shared by contrib/demo/run and contrib/examples/run: a private folder, processes started in it, and the end of all of
# them when the script ends for any reason.
# shellcheck shell=bash

stage=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
top=$(cd "$stage/../.." && pwd -P)

# shellcheck source=contrib/demo/parts.bash
. "$stage/parts.bash"

# Bash cannot trap a signal that was ignored at its start, as SIGINT is in background commands of a script.
with_signals() { # ARGUMENT...: the script's own
        [ -n "${SQMGR_DEMO_SIGNALS-}" ] || SQMGR_DEMO_SIGNALS=default exec env --default-signal=HUP,INT,TERM "$0" "$@"
}

bold='' plain=''
if [ -t 1 ] && [ "${TERM:-dumb}" != dumb ] && [ -z "${NO_COLOR-}" ]; then
        bold=$'\033[1m' plain=$'\033[0m'
fi

say() { printf '%s\n' "$*"; }

title() { # LINE...: each below 60 columns
        say
        printf "$bold%s$plain\n" "$@"
}

fail() {
        printf '%s: %s\n' "${0##*/contrib/}" "$*" >&2
        tail -n 15 "$folder/sqmgr.log" "$folder/workers.log" >&2 2>/dev/null
        exit 1
}

# SQMGR_BUILD names a build to use; without it, sqmgr is built.
build() { # SET...: the sets of contrib/setup that are needed
        if [ -n "${SQMGR_BUILD-}" ]; then
                PATH=$SQMGR_BUILD:$PATH
                return
        fi
        "$top/contrib/setup" build "$@" || exit 1
        local cache=$top/build
        if ! mkdir -p "$cache" 2>/dev/null || [ ! -w "$cache" ]; then
                cache=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/sqmgr/$(cksum <<<"$top" | cut -d' ' -f1)
        fi
        say "Building sqmgr in $cache/demo"
        local output
        if ! output=$("$top/contrib/build" "$cache/demo" bin 2>&1); then
                printf '%s\n' "$output" >&2
                exit 1
        fi
        PATH=$cache/demo/bin:$PATH
}

# The command on display may have hidden the cursor.
leave() {
        if [ -n "${shown-}" ] && kill -KILL "$shown" 2>/dev/null && [ -n "$bold" ]; then
                printf '\033[?7h\033[?25h'
        fi
        cd / && exec 9>&- && wait "$guard"
}

# Started by root, the script starts again as nobody, from its folder, with copies of what it needs: nobody may be unable to
# read the checkout.
drop_root() { # ARGUMENT...: the script's own
        [ "$EUID" = 0 ] || return 0
        local script
        script=$(realpath "$0")
        folder=$(mktemp -d /tmp/sqmgr-demo.XXXXXX) || exit 1
        trap 'rm -rf "$folder"' EXIT
        mkdir "$folder/copy" "$folder/copy/build" || exit 1
        (cd "$top" && cp -r contrib "$folder/copy") || exit 1
        (cd "$(dirname "$(command -v sqmgr)")" && cp -r --parents sqmgr sqmgrctl sqmgr-* src/preload src/shims "$folder/copy/build") || exit 1
        if [ -n "${modules-}" ]; then
                (cd "$top" && cp -r --parents tests/e2e/native "$folder/copy") || exit 1
                mkdir -p "$folder/copy/cache/sqmgr" && cp -r "$modules" "$folder/copy/cache/sqmgr" || exit 1
        fi
        chown -R nobody:nogroup "$folder"
        exec setpriv --reuid nobody --regid nogroup --clear-groups env HOME="$folder" XDG_CACHE_HOME="$folder/copy/cache" \
                SQMGR_BUILD="$folder/copy/build" SQMGR_DEMO_FOLDER="$folder" "$folder/copy/${script#"$top"/}" "$@"
}

# Keeps the path of the folder short: the path of a socket has at most 107 bytes.
make_folder() {
        local base=${TMPDIR:-/tmp}
        [ ${#base} -le 70 ] || base=/tmp
        folder=${SQMGR_DEMO_FOLDER:-$(mktemp -d "$base/sqmgr-demo.XXXXXX")} || exit 1
        mkdir "$folder/pids"
        exec 9> >(exec setsid "$stage/guard" "$folder" >/dev/null 2>&1)
        guard=$!
        trap leave EXIT
        trap 'exit 129' HUP
        trap 'exit 130' INT
        trap 'exit 143' TERM
        cd "$folder" || exit 1
        export SQMGR_SOCKET=$folder/sqmgr.sock REDIS_URL=unix://$folder/redis.sock
}

launch() { # NAME COMMAND...: in its own session, so that signals of the terminal do not reach it; sets $!
        local name=$1
        shift
        setsid "$stage/launch" "$folder" "$@" </dev/null >>"$folder/$name.log" 2>&1 9>&- &
}

wait_until() { # SECONDS CONDITION...
        local deadline=$((SECONDS + $1))
        shift
        until "$@" >/dev/null 2>&1; do
                [ -z "${sqmgr_pid-}" ] || kill -0 "$sqmgr_pid" 2>/dev/null || fail 'sqmgr has ended'
                [ $SECONDS -lt $deadline ] || return 1
                sleep 0.2 9>&-
        done
}

# Runs in the background, so that a signal to the script takes effect at once; recorded for `guard`.
begin() { # ARGUMENT...: the command line of sqmgrctl
        say
        say "$bold\$ sqmgrctl $*$plain"
        "$stage/launch" "$folder" sqmgrctl "$@" </dev/null 9>&- &
        shown=$!
}
show() { begin "$@" && wait "$shown"; }
finish() { kill "$shown" 2>/dev/null && wait "$shown" 2>/dev/null; }

# Returns only after Ctrl-C.
stay() {
        say 'The fleet keeps running until Ctrl-C. Another terminal:'
        say "  PATH=$(dirname "$(command -v sqmgrctl)"):\$PATH"
        say "  export SQMGR_SOCKET=$SQMGR_SOCKET"
        say '  sqmgrctl status --watch'
        say '  sqmgrctl restart --wait'
        while sleep 1 9>&-; do
                kill -0 "$sqmgr_pid" 2>/dev/null || fail 'sqmgr has ended'
        done
}
