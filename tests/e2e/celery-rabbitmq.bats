#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Framework celery with real Celery workers over RabbitMQ. With SQMGR_LONG=1, 140 tasks of up to 20 s besides.
# seconds: 50
# promises: P1 P2 P4 P5
# shellcheck disable=SC1091,SC2030,SC2031,SC2034
load helpers
. "$BATS_TEST_DIRNAME/celery.bash"
. "$BATS_TEST_DIRNAME/rabbitmq.bash"

# One node for all: its start takes more time than that of the workers.
# After an outage, Celery 5.3 to 5.6.2 does not end by TERM (its issue 8541): stop_timeout is short.
# RabbitMQ gives back what an ended connection had not acknowledged: the tasks that run then acknowledge before they begin.
@test "celery: RabbitMQ: a restart of the fleet, and of the broker while workers are quieted, lose nothing" {
        start_rabbitmq
        start_redis
        broker=$rabbitmq_url
        concurrency=4 celery_configure 1 'stop_timeout = 10s'
        start_ready 1
        old=$(worker_pids)
        celery_send 4 hold "$folder/release"
        wait_until 20 fleet_is '.workers[0].busy == 4'
        sqmgrctl restart
        wait_until 60 fleet_is '.quiet == 1 and .active == 1'
        celery_send 4 nap 0.1
        wait_until 30 recorded "done" 4
        stop_rabbitmq
        start_rabbitmq
        celery_send 4 nap 0.1
        wait_until 60 recorded "done" 8
        alive "$old"
        touch "$folder/release"
        wait_until 60 gone "$old"
        nothing_lost 12
        fleet_is '.active == 1 and .crash.count == 0'

        # RabbitMQ delivers the task of a killed worker again at once.
        worker=$(worker_pids)
        celery_send 1 hold_late "$folder/late"
        wait_until 20 recorded started 13
        kill -KILL "$worker"
        wait_until 60 recorded started 14
        touch "$folder/late"
        wait_until 20 recorded "done" 13
        event_count_is crashed 1
        [ -z "${SQMGR_LONG-}" ] || {
                kill "$sqmgr_pid"
                wait_until 60 gone "$sqmgr_pid"
                rm -r "$folder"/{records,late,release,state*,sqmgr.log}
                celery_hundred
        }
        stop_rabbitmq
}
