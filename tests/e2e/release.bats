#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A release that cannot boot, or is not there: old workers keep running, and the next release works.
# seconds: 60
# promises: P7 P8
load helpers

make_release() { # NAME LINE
        mkdir "$folder/$1"
        { echo "$2" && cat "$e2e/app.rb"; } >"$folder/$1/app.rb"
        ln -sfn "$1" "$folder/current"
}

@test "a release that cannot boot: the rollout halts, the old workers keep running, the next release works" {
        start_redis
        make_release 1 ''
        configure <<END
command = sidekiq -r ./app.rb -c 2
directory = $folder/current
active_process_count = 2
ready_after = 1s
END
        start_ready 2
        old=$(worker_pids)
        enqueue 1 Hold "$folder/release"
        wait_until 20 has_started 1

        make_release 2 'Sidekiq.logger.fatal("no database.yml") && exit(1)'
        run -1 sqmgrctl restart --wait --timeout 300s
        [[ $output == *'no database.yml'* ]]
        fleet_is '.rollout.state == "halted"'
        [[ $(fleet .rollout.quoted) == *'no database.yml'* ]]
        alive "$old"
        for pid in $old; do
                fleet_is ".workers[] | select(.pid == $pid) | .state == \"active\" and .outdated"
        done

        make_release 3 ''
        touch "$folder/release"
        run -0 sqmgrctl restart --wait=drained --timeout 300s
        gone "$old"
        fleet_is '.active == 2 and .rollout.state == "done"'
        [ "$(jobs_done)" = 1 ]
        [ "$(jobs_run_twice)" = 0 ]
}

worker_pids_are() { [ "$(worker_pids)" = "$1" ]; }

# Each start waits while `hold` exists.
configure_before() {
        cat >before <<'END'
#!/bin/sh
sed "s/^/pid=$PPID tid=1 /" broken && exit 3
while [ -e hold ]; do sleep 0.1; done
echo "$SQMGR_WORKER" >>began
END
        chmod +x before
        configure <<END
command = $(stub_command)
before_start = $folder/before
directory = $folder
active_process_count = 2
END
}

@test "before_start: its failure fails the release, with the reason and the log tail" {
        start_redis
        configure_before
        start_ready 2
        [ "$(sort began)" = $'default/1\ndefault/2' ]
        old=$(worker_pids)
        echo 'the schema is not migrated' >broken
        run -1 sqmgrctl restart --wait --timeout 300s
        [[ $output == *"could not be started:"*"before_start: '$folder/before' exited with status 3"*'the schema is not migrated'* ]]
        # Two starts at a time: the third halted the restart, and the fourth may still be
        # running.
        wait_until 20 worker_pids_are "$old"
        rm broken
        run -0 sqmgrctl restart --wait --timeout 300s
}

@test "before_start blocks nothing, and a start continues if sqmgr dies meanwhile" {
        start_redis
        configure_before
        touch hold
        start_sqmgr
        wait_until 20 fleet_is '.starting == 2'
        run -0 sqmgrctl ping
        starting=$(worker_pids)
        kill -KILL "$sqmgr_pid"
        wait_until 10 gone "$sqmgr_pid"
        start_sqmgr
        rm hold
        wait_until 30 ready 2
        [ "$(worker_pids)" = "$starting" ]
        [ "$(wc -l <began)" = 2 ]
}

@test "restart --release restarts only if the directory of each fleet leads to that release" {
        mkdir -p releases/1 releases/2
        ln -s releases/1 current
        start_workers 1 <<END
command = $(stub_command)
directory = $folder/current

[fleet:other]
framework = plain
command = sleep 1000
END
        generations_are() { sqmgrctl status --json | jq -e "[.fleets[].generation] == [$1, $2]" >/dev/null; }
        old=$(worker_pids)
        run -1 --separate-stderr sqmgrctl restart default --release releases/2 --wait
        [ -z "$output" ]
        [ "$stderr" = "sqmgrctl: order refused, nothing has changed: fleet 'default': release 'releases/2' was not found:
  directory '$folder/current' resolves to '$folder/releases/1', which does not end in 'releases/2'" ]
        run -1 --separate-stderr sqmgrctl restart --release 2 --json default
        jq -e '.error.code == "refused" and (.error.message | contains("was not found"))' <<<"$output"

        ln -sfn releases/2 current
        run -0 sqmgrctl restart default --release releases/2 --wait=drained --timeout 60s
        generations_are 2 1
        gone "$old"

        run -2 sqmgrctl restart default --release $'releases/\xff'
        [[ $output == *'not valid UTF-8'* ]]
        generations_are 2 1

        # The other fleet has no directory, so that none is restarted.
        run -1 sqmgrctl restart --release releases/2
        [[ $output == *"fleet 'other': release 'releases/2' was not found:"*"the fleet has no 'directory'"* ]]
        generations_are 2 1
        run -0 sqmgrctl restart default --release 2
        [[ $output == 'default: restart to generation 3'* ]]
}
