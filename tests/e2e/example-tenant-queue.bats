#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# contrib/examples/tenant-queue: slots of tenants, order and attempts hold while workers are killed, stopped and
# replaced, according to the database and to the jobs themselves, over all runs.
# long: it plays an example; other files test what the example uses
# seconds: 65
# promises: none
# shellcheck disable=SC1091
load helpers
. "$BATS_TEST_DIRNAME/../../contrib/examples/shared.bash"

begun() { is_true "count(*) = 1 from runs where job = $1 and attempt = $2 and started is not null and ended is null"; } # JOB ATTEMPT
pid_of() { sql "select pid from runs where job = $1 and ended is null"; } # JOB
runs_of() { sql "select string_agg(coalesce(outcome, 'open'), ' ' order by attempt) from runs where job = $1"; } # JOB

# Simulates a requeue by sqmgr or a push-back by Sidekiq, which may happen at any time: the message again, and a sweep.
run_again() { # JOB ATTEMPT NAME
        in_app "Sidekiq::Client.push('class' => RunJob, 'args' => [$1, $2], 'jid' => '$3')
                TenantQueue.open(&:sweep)"
        wait_until 30 grep -q "jid=$3 .*: done" workers.log
}

@test "tenant-queue: slots, order, single runs, attempts and an end of every job hold under load, kill -9 and restarts" {
        jobs=250 kills=3 restarts=1
        [ -z "${SQMGR_LONG-}" ] || jobs=2000 kills=20 restarts=6
        take_example tenant-queue
        start_redis
        prepare
        # Once workers are active, all slots are taken, and jobs wait for slots.
        start_load $jobs
        wait_until 60 is_true 'count(*) >= 60 from jobs'
        is_true 'count(*) = 5 from waits where taken = slots and for_slot > 0'
        start_sqmgr
        poison=$(in_app 'puts Report.new(3).async.exhaust("too much")')
        wait_until 120 is_error "$poison"
        [ "$(runs_of "$poison")" = 'died died died' ]
        wait_until 60 kill_the_sweep
        trouble $kills $restarts
        wait_until 60 fleet_is ".generation == $((restarts + 1)) and all(.workers[]; .outdated | not)"
        end_load
        psql -Xq -f "$example/ledger.sql" >&3
        judge
        is_true "count(*) >= $jobs from jobs"
}

@test "tenant-queue: requeue, push-back and sweep run a job once at a time, and three times in all, also with a slow worker" {
        take_example tenant-queue
        cat >>app/report.rb <<'END'
class Report
  def hold(name) = noted(name) { sleep 0.05 until File.exist?("release") }
end
END
        sed -i 's/ -t 10$/ -t 1/' sqmgr.ini
        start_redis
        prepare
        start_ready 2
        in_app 'Report.new(1).async.hold("held") && Report.new(1).async.execute("good", 0)'
        wait_until 30 begun 1 1
        run_again 1 1 again-1
        [ "$(runs_of 1)" = open ]

        # Stops its process, as if the machine gave it no CPU time.
        pid=$(pid_of 1)
        kill -STOP "$pid"
        in_app '3.times { TenantQueue.open(&:sweep) }'
        [ "$(runs_of 1)" = open ]
        kill -CONT "$pid"

        # Sidekiq pushes it back, and then interrupts it.
        kill -TERM "$pid"
        wait_until 60 begun 1 2
        gone "$pid" || [ "$(grep -c $'\tend\t' app/work)" = 1 ]
        wait_until 60 gone "$pid"
        run_again 1 1 again-2
        run_again 1 2 again-3
        [ "$(runs_of 1)" = 'died open' ]

        pid=$(pid_of 1)
        kill -KILL "$pid"
        wait_until 60 begun 1 3
        wait_until 60 gone "$pid"
        run_again 1 2 again-4
        [ "$(runs_of 1)" = 'died died open' ]
        # The next job of the tenant has waited all the time.
        [ "$(sql 'select state from jobs where id = 2')" = queued ]

        # The lock of the third is lost with its connection, and the job is interrupted.
        ends=$(grep -c $'\tend\t' app/work)
        is_true "pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and (classid, objid) = (1, 3)"
        interrupted() { [ "$(grep -c $'^held\t.*\tend\t' app/work)" = $((ends + 1)) ]; }
        wait_until 30 interrupted
        wait_until 30 all_done
        run_again 1 3 again-5
        [ "$(runs_of 1)" = 'died died died' ]
        [ "$(sql 'select state, error from jobs where id = 1')" = 'error|its worker died in each of 3 attempts' ]
        [ "$(runs_of 2)" = success ]
        judge
}

@test "tenant-queue: a call is made now or by a worker, the same call is queued once, and no job is forgotten" {
        take_example tenant-queue
        start_redis
        prepare
        queued() { redis llen queue:tenants; }
        state() { sql "select string_agg(id || ' ' || state, ', ' order by id) from jobs"; }
        run -0 in_app 'report = Report.new(1)
                puts report.execute("now", 0)[:pages], report.async.execute("a", 0), report.async.execute("b", 0),
                  report.async.execute("a", 0), Report.new(2).async.execute("a", 0)
                begin report.async.delete
                rescue NameError => e then puts e.class
                end
                begin Report.new(9).async.execute("a", 0)
                rescue ArgumentError => e then puts e.message
                end'
        [ "${lines[*]}" = '0 1 2 1 3 NameError there is no tenant 9' ]
        [ "$(state)" = '1 running, 2 queued, 3 running' ]
        [ "$(queued)" = 2 ]
        [ "$(sql "select tenant, taken, for_slot, slot_wait > '0', for_worker, worker_wait > '0' from waits where taken > 0")" = \
                $'1|1|1|t|1|t\n2|1|0||1|t' ]

        # After 10 minutes it is another job; the waiting one counts as new.
        sql "update jobs set queued_at = queued_at - interval '10 min' where id = 1"
        sql "update jobs set queued_at = queued_at - interval '1 year' where id = 2"
        [ "$(in_app 'puts Report.new(1).async.execute("a", 0)')" = 4 ]
        in_app 'RunJob.new.perform(1, 1)'
        [ "$(state)" = '1 success, 2 running, 3 running, 4 queued' ]
        in_app '[2, 3].each { |job| RunJob.new.perform(job, 1) }'
        [ "$(in_app 'puts Report.new(2).async.execute("a", 0)')" = 5 ]
        [ "$(state)" = '1 success, 2 success, 3 success, 4 running, 5 running' ]

        # A lost message is pushed again, once.
        redis del queue:tenants
        in_app '2.times { TenantQueue.open(&:sweep) }'
        [ "$(queued)" = 2 ]
        # The same for a message that was never pushed, because Redis was down.
        kill -KILL "$redis_pid"
        wait_until 10 not redis_answers
        [ "$(in_app 'puts Report.new(3).async.execute("a", 0)')" = 6 ]
        start_redis
        in_app '2.times { TenantQueue.open(&:sweep) }'
        [ "$(queued)" = 3 ]
        # The sweep completes the claim of a process that died at once.
        sql "insert into jobs (tenant, receiver, method, arguments, request) values (4, 'Report', 'execute', '[\"bad\", 0]', 'x')"
        in_app '2.times { TenantQueue.open(&:sweep) }
                [4, 5, 6, 7].each { |job| RunJob.new.perform(job, 1) }'
        [ "$(state)" = '1 success, 2 success, 3 success, 4 success, 5 success, 6 success, 7 error' ]
        [ "$(sql 'select error from jobs where id = 7')" = 'ArgumentError: there are no figures for bad' ]
        judge
}

@test "tenant-queue: judge.sql reports each violation, and the database refuses those that it can" {
        take_example tenant-queue
        prepare
        job() { sql "insert into jobs (tenant, receiver, method, arguments, request, state, attempt)
                values ($1, 'Report', 'execute', '[\"$2\"]', '$2', '$3', $4)"; }
        : >app/work
        judge
        job 1 a running 1
        job 1 b queued 0
        sql 'insert into runs (job, attempt, tenant, slot) values (1, 1, 1, 1)'
        run ! sql 'insert into runs (job, attempt, tenant, slot) values (2, 1, 1, 1)'
        [[ $output == *one_run_in_a_slot* ]]
        run ! sql 'insert into runs (job, attempt, tenant, slot) values (1, 2, 1, 2)'
        [[ $output == *one_run_of_a_job* ]]
        run ! sql 'update jobs set attempt = 4 where id = 1'

        sql 'drop index one_run_in_a_slot; drop index one_run_of_a_job'
        job 1 c success 1
        # The third is claimed before the second, and at the same time as the first.
        sql 'insert into runs (job, attempt, tenant, slot) values (3, 1, 1, 1), (1, 2, 1, 1)'
        printf '%s\t1\t%s\t%s\t%s\n' a x begin 1 a y begin 2 a x end 3 a y end 4 >app/work
        run ! judge
        for breach in 'lost: job 1 is running' 'lost: job 2 is queued' 'slots: tenant 1 held 2 as job 3 was claimed' \
                'slots: tenant 1 had 2 at work as a began' 'order: job 3 was claimed while job 2 waited' \
                'once: runs 1 and 2 of job 1 overlap' 'once: a began again at 2, and ended at 3' 'once: a began 2 times, in 0 runs' \
                'attempts: job 1 has 1, and 2 runs, at most 3' 'audit: job 3 is success, and its last run has no end' \
                'audit: job 3 lacks a time, its statistics or its error'; do
                [[ $output == *"$breach"* ]] || { echo "not told: $breach" && false; }
        done
}
