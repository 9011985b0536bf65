# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# Reports the jobs of a worker that is a script to sqmgr, in a status file: see sqmgr-heartbeat(7). Works in any POSIX
# shell. The fleet needs `framework = native`, `heartbeat = file`.
#
#       . ./heartbeat.sh
#       heartbeat_start mailer
#       while heartbeat_take; do # fails once the worker is quieted
#               heartbeat_run ./fetch-and-run-one-job || heartbeat_run sleep 1
#               heartbeat_done
#       done
#       heartbeat_finish # waits for TERM; then exit with 0
#
# A shell handles signals only between its commands. Run long commands by heartbeat_run, with nothing on their standard
# input, or no record is written meanwhile. The variables and functions heartbeat_* and the traps of ALRM, TSTP and TERM
# are reserved. A TERM trap of your own may set heartbeat_quiet=1 heartbeat_stop=1 heartbeat_told=1.

heartbeat_start() { # [TAG]
        heartbeat_busy=0 heartbeat_quiet=0 heartbeat_stop=0 heartbeat_told=0 heartbeat_beats=0
        heartbeat_tag=$(printf %s "${1-}" | tr -d '[:cntrl:]' | cut -c 1-64)
        heartbeat_started=$(heartbeat_start_of "$$")
        trap 'heartbeat_told=1' ALRM
        trap 'heartbeat_quiet=1 heartbeat_told=1' TSTP
        trap 'heartbeat_quiet=1 heartbeat_stop=1 heartbeat_told=1' TERM
        heartbeat_write
        heartbeat_tick </dev/null >/dev/null 2>&1 &
        heartbeat_ticker=$!
}

# Counts first and checks last, so that a signal in between is not missed.
heartbeat_take() {
        heartbeat_busy=1
        if [ "$heartbeat_quiet" = 0 ]; then
                heartbeat_write
                return 0
        fi
        heartbeat_done
        return 1
}

heartbeat_done() {
        heartbeat_busy=0
        heartbeat_write
}

# Returns the exit status of the command.
heartbeat_run() { # COMMAND...
        "$@" &
        heartbeat_child=$!
        while :; do
                heartbeat_told=0 heartbeat_status=0
                wait "$heartbeat_child" || heartbeat_status=$?
                [ "$heartbeat_status" -gt 128 ] && [ "$heartbeat_told" = 1 ] || return "$heartbeat_status"
                heartbeat_write
        done
}

heartbeat_finish() {
        while [ "$heartbeat_stop" = 0 ]; do
                heartbeat_run sleep 1
                heartbeat_write
        done
        kill "$heartbeat_ticker" 2>/dev/null || :
        wait "$heartbeat_ticker" 2>/dev/null || :
        [ -z "${SQMGR_STATUS_DIR-}" ] || rm -f "$SQMGR_STATUS_DIR/$$"
}

# Reads field 22 of /proc/PID/stat. The second field is a name in parentheses, which may contain any characters.
heartbeat_start_of() { # PID
        heartbeat_stat=$(cat "/proc/$1/stat" 2>/dev/null) || :
        # shellcheck disable=SC2086
        set -- ${heartbeat_stat##*)}
        echo "${20-}"
}

# Makes the time of each record unique: not every date(1) prints fractions of a second.
heartbeat_write() {
        [ -n "${SQMGR_STATUS_DIR-}" ] || return 0
        heartbeat_beats=$(((heartbeat_beats + 1) % 1000000))
        { printf 'v=1\nbeat=%s.%06d\nbusy=%s\nquiet=%s\nstart=%s\nquiet_sig=TSTP\nresume_sig=\nstop_sig=TERM\nconcurrency=1\ntag=%s\n' \
                "$(date +%s)" "$heartbeat_beats" "$heartbeat_busy" "$heartbeat_quiet" "$heartbeat_started" "$heartbeat_tag" \
                >"$SQMGR_STATUS_DIR/.$$" && mv -f "$SQMGR_STATUS_DIR/.$$" "$SQMGR_STATUS_DIR/$$"; } 2>/dev/null || :
}

# Ends when the worker ends for any reason, and ends its sleep.
heartbeat_tick() {
        trap 'kill "$!"; exit 0' TERM
        trap '' ALRM TSTP
        while sleep 5 & wait "$!"; do
                [ "$(heartbeat_start_of "$$")" = "$heartbeat_started" ] && kill -ALRM "$$" || exit 0
        done
}
