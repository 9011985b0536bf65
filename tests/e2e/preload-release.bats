#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# New code and new settings with `preload = yes`: when another template is loaded, and when the old template is still
# used.
# seconds: 60
# promises: P1 P2 P6 P7
load preload

@test "preload: a restart signals no old worker before the new template is ready, and cuts off no job" {
        start_fleet 3
        old=$(worker_pids) old_template=$(template)
        enqueue 2 Tell "$folder/release"
        wait_until 20 reply_count_is 2
        busy=$(redis lrange told 0 -1 | cut -d' ' -f2 | xargs)
        make_release 2 "sleep 0.05 until File.exist?('$folder/load')"
        sqmgrctl restart
        wait_until 30 template_is '.state == "loading" and .generation == 2 and .kept_generation == 1'
        [ "$(worker_pids)" = "$old" ]
        # Workers that crash meanwhile are replaced from the current template.
        # shellcheck disable=SC2086
        kill_worker "$(without "$old" $busy)" 3
        fleet_is 'all(.workers[]; .generation == 1 and .state == "active")'
        template_is '.state == "loading"'
        [ "$(ask_releases 1 | cut -d' ' -f1)" = 1 ]
        old=$(worker_pids)
        sqmgrctl status | grep -q 'template: loading, generation 2.*; template of generation 1 kept'
        fleet_is 'all(.workers[]; .state == "active" and .waits_for_code == "template")'

        touch load
        wait_until 60 fleet_is '.active == 3 and .rollout.state == "done" and all(.workers[] | select(.state == "active"); .generation == 2)'
        alive "$old_template"
        template_is '.state == "ready" and .generation == 2 and .kept_generation == 1'
        # Workers with a job keep running without their template.
        [ "$(releases 3)" = 2:3 ]
        alive "$busy"
        touch release
        wait_until 30 gone "$old"
        [ "$(jobs_done)" = "$(jobs_started)" ]
        [ "$(jobs_started)" = 6 ]
        [ "$(jobs_run_twice)" = 0 ]
        wait_until 10 all_are_known
}

@test "preload: a bad release halts, a killed worker restarts with the old code, and a good release rolls out" {
        start_fleet 3
        old=$(worker_pids) template=$(template)
        make_release 2 'Sidekiq.logger.fatal("no database.yml") && exit(1)'
        run -1 sqmgrctl restart --wait --timeout 300s
        [[ $output == *'no database.yml'* ]]
        fleet_is '.rollout.state == "halted"'
        [[ $(fleet .rollout.quoted) == *'no database.yml'* ]]
        event_count_is template-failed 3
        [ "$(worker_pids)" = "$old" ]
        fleet_is 'all(.workers[]; .state == "active" and .outdated)'
        alive "$template"
        fleet_is '.template.kept_generation == 1'

        kill_worker "${old%% *}" 3
        [ "$(releases 3)" = 1:3 ]
        alive "${old#* }"

        make_release 3
        run -0 sqmgrctl restart --wait=drained --timeout 300s
        gone "$old"
        alive "$template"
        [ "$(releases 3)" = 3:3 ]
        fleet_is '.rollout.state == "done" and .template.generation == .generation and .template.kept_generation == 1'

        make_release 4
        run -0 sqmgrctl restart --wait=drained --timeout 300s
        wait_until 10 gone "$template"
        [ "$(releases 3)" = 4:3 ]
        wait_until 10 all_are_known
}

@test "preload: a changed environment loads another template, from which the next worker is forked" {
        flavour=sweet start_fleet 2
        old=$(worker_pids) template=$(template)
        [ "$(ask_releases 2 | cut -d' ' -f3 | xargs)" = 'sweet sweet' ]
        sed -i 's/FLAVOUR=sweet/FLAVOUR=sour/' sqmgr.ini
        sqmgrctl reload
        wait_until 60 other_template_than "$template"
        [ "$(worker_pids)" = "$old" ]
        kill_worker "${old%% *}" 2
        fleet_is "any(.workers[]; .pid == ${old##* } and .outdated)"
        [ "$(ask_releases 2 | sort -k3 | cut -d' ' -f3 | xargs)" = 'sour sweet' ]

        # preload = no: no worker is ended, and the next ones boot separately.
        current=$(template) old=$(worker_pids)
        set_line preload no
        sqmgrctl reload
        wait_until 20 gone "$current" "$template"
        [ "$(worker_pids)" = "$old" ]
        fleet_is '.template == null and all(.workers[]; .outdated)'
        run -0 sqmgrctl restart --wait=drained --timeout 300s
        fleet_is 'all(.workers[]; .forked | not)'
        [ "$(forks)" = "" ]
        [ "$(ask_releases 2 | cut -d' ' -f3 | xargs)" = 'sour sour' ]
        # Back to preload = yes.
        set_line preload yes
        sqmgrctl reload
        wait_until 60 template_ready
        run -0 sqmgrctl restart --wait=drained --timeout 300s
        fleet_is 'all(.workers[]; .forked)'
        all_are_known
}
