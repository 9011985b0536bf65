#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Workers in PID and UTS namespaces of their own: each is matched with its heartbeats, whatever its host name and pid there.
# seconds: 60
# promises: P1
load helpers

@test "unshare: workers of one host name in PID and UTS namespaces are matched, restarted, killed and adopted" {
        [ "$(id -u)" = 0 ] || skip "only root enters namespaces"
        start_redis
        cat >"$folder/inside.sh" <<END
#!/bin/sh
hostname same
exec $(sidekiq_command 1)
END
        chmod +x "$folder/inside.sh"
        configure <<END
command = unshare --fork --pid --uts --mount-proc --kill-child $folder/inside.sh
directory = $folder
namespaced = yes
active_process_count = 3
ready_after = 1s
END
        start_sqmgr
        wait_until 60 ready 3
        sqmgrctl status >&3
        redis-cli -s "$folder/redis.sock" smembers processes >&3
        sqmgrctl status --json >&3
}
