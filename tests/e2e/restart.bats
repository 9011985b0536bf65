#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A rolling restart cuts off no job, with real Sidekiq workers.
# seconds: 110
# promises: P1 P2 P3
load helpers

# Polls the fleet while $folder/sampling exists, until $folder/sampled exists: the fewest active workers, the most
# processes, and the number of polls. One process does all polls, so that a busy machine has time for many.
sample() {
        ruby -rjson -rsocket -e 'socket = UNIXSocket.new(ENV.fetch("SQMGR_SOCKET"))
                fewest, most, samples = 999, 0, 0
                until File.exist?("sampled")
                        socket.write("{\"method\":\"org.sqmgr.Control.GetStatus\"}\0")
                        fleet = JSON.parse(socket.gets("\0").chomp("\0"))["parameters"]["fleets"][0]
                        fewest = [fewest, fleet["active"]].min
                        most = [most, fleet["workers"].length].max
                        samples += 1
                        File.write("sampling", "") if samples == 1
                        sleep 0.1
                end
                puts "#{fewest} #{most} #{samples}"' >samples
}

@test "restart under load: 60 jobs of 20 s, none lost, none run twice, never fewer than 4 active" {
        start_workers 4 <<END
command = $(sidekiq_command 5)
active_process_count = 4
ready_after = 2s
END
        old=$(worker_pids)

        enqueue 60 Sleep 20
        wait_until 30 has_started 20
        sample 3>&- 9>&- &
        sampler=$!
        wait_until 10 test -e sampling
        begun=$SECONDS
        run -0 sqmgrctl restart --wait=drained --timeout 300s
        took=$((SECONDS - begun))
        wait_until 120 has_done 60
        touch "$folder/sampled"
        wait "$sampler"
        read -r fewest most samples <"$folder/samples"

        echo "# 60 enqueued, $(jobs_done) done, $(jobs_run_twice) run twice, fewest active $fewest, most processes $most," \
                "$samples samples, rollout and drain $took s" >&3
        [ "$(jobs_done)" = 60 ]
        [ "$(jobs_started)" = 60 ]
        [ "$(jobs_run_twice)" = 0 ]
        [ "$fewest" -ge 4 ]
        [ "$most" -le 12 ]
        [ "$samples" -gt 50 ]
        gone "$old"
        fleet_is '.generation == 2 and .rollout.state == "done" and .rollout.outdated == 0'
}
