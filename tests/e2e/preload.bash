# SPDX-License-Identifier: MIT
# Shared by the tests of preload: an application in releases, and queries of templates and forks.
# shellcheck shell=bash disable=SC2034,SC2154
load helpers

# Prints further classes of jobs: for tests to define.
more_jobs() { :; }
# A release is a file that names itself and loads these files; clients that enqueue jobs load only these.
make_jobs() {
        { cat "$e2e/app.rb" - && more_jobs; } >"$folder/jobs.rb" <<'END'

class Tell
  include Counted

  def perform(path)
    counted do
      Sidekiq.redis { |redis| redis.rpush("told", "#{RELEASE} #{Process.pid} #{ENV["FLAVOUR"]}".strip) }
      wait_for(path)
    end
  end
end
END
        app=$folder/jobs.rb
}
make_release() { # NAME [LINE]
        mkdir "$folder/$1"
        printf '%s\n' "RELEASE = \"$1\"" "${2-}" 'require_relative "../jobs"' >"$folder/$1/app.rb"
        ln -sfn "$1" "$folder/current"
}

# One thread each: with as many jobs at a time as workers, each worker runs one.
configure_preload() { # LINE...
        configure <<END
command = sidekiq -r ./app.rb -c 1
directory = $folder/current
preload = yes
ready_after = 300ms
max_processes = 9
environment = SQMGR_MARK=$folder ${flavour:+FLAVOUR=$flavour}
$(printf '%s\n' "$@")
END
}

start_fleet() { # COUNT [LINE...]
        start_redis
        make_jobs
        [ -e "$folder/current" ] || make_release 1
        configure_preload "active_process_count = $1" "${@:2}"
        start_ready "$1"
}

# Changes a line of the fleet.
set_line() { # KEY VALUE
        sed -i "/^$1 = /d" "$folder/sqmgr.ini"
        echo "$1 = $2" >>"$folder/sqmgr.ini"
}

# Prints the release and pid of each of COUNT workers, sorted.
ask_releases() { # COUNT
        local go
        go=$(mktemp -u "$folder/go.XXXXXX")
        redis del told >/dev/null
        # Sidekiq 7 logs its connection.
        enqueue "$1" Tell "$go" >/dev/null
        wait_until 30 reply_count_is "$1"
        redis lrange told 0 -1 | sort -k2,2n
        touch "$go"
}
reply_count_is() { [ "$(redis llen told)" = "$1" ]; }
all_done() { [ "$(jobs_done)" = "$(jobs_started)" ]; }
releases() { ask_releases "$1" | cut -d' ' -f1 | sort | uniq -c | awk '{ print $2 ":" $1 }' | xargs; } # COUNT

template() { fleet .template.pid; }
template_is() { fleet_is ".template | $1"; }
template_ready() { template_is '.state == "ready"'; }
other_template_than() { template_is ".state == \"ready\" and .pid != $1"; }
forks() { sqmgrctl metrics | awk '$1 ~ /^sqmgr_template_forks_total/ { print $2 }'; }

parent_of() { awk '/^PPid:/ { print $2 }' "/proc/$1/status"; }
session_of() { ps -o sid= "$1" | xargs; }
env_of() { tr '\0' '\n' <"/proc/$1/environ" | sed -n "s/^$2=//p"; } # PID NAME

# Prints all living processes of the fleet, wrappers, templates and workers, by their environment marker.
marked_pids() {
        local environ
        while read -r environ; do
                environ=${environ#/proc/}
                ! alive "${environ%/environ}" || echo "${environ%/environ}"
        done < <(grep -slzFx "SQMGR_MARK=$folder" /proc/[0-9]*/environ) | sort -n | xargs
}
# True if sqmgr knows each of these: as a worker, as the template, or as the template of the previous release, which it
# keeps.
all_are_known() {
        local pids kept
        pids=$(fleet '[.workers[].pid, .template.pid // empty] | join(" ")') || return
        kept=$(fleet '[.template.kept_generation // empty] | length')
        # shellcheck disable=SC2046,SC2086
        [ -z "$(without "$pids" $(marked_pids))" ] && [ "$(without "$(marked_pids)" $pids | wc -w)" = "$kept" ]
}

record_and_kill() {
        record "$(marked_pids)"
        kill_sqmgr
}

# Kills a worker, and waits until it is replaced and the count is reached.
kill_worker() { # PID COUNT
        kill -KILL "$1"
        wait_until 30 fleet_is "all(.workers[]; .pid != $1)"
        wait_until 30 ready "$2"
}

# Prints the words of the first argument that are not among the others.
without() { # WORDS WORD...
        local word
        for word in $1; do
                [[ " ${*:2} " == *" $word "* ]] || echo "$word"
        done | xargs
}
