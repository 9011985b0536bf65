/* SPDX-License-Identifier: MIT */
/* The fields of the model that the record keeps; see the header. */
#include "record/model_field_rules.h"
#include "model/fleet.h"
#include "model/world.h"

#define SIZE_OF(type, member) sizeof(((type *)NULL)->member)
#define FIELD_UP_TO(type, member, most)                                                                      \
        {                                                                                                    \
                .name = #member, .offset = offsetof(type, member), .size = SIZE_OF(type, member),            \
                .max = (most)                                                                                \
        }
/* Any number that fits. A field of one byte is a bool. */
#define FIELD(type, member)                                                                                  \
        FIELD_UP_TO(type, member,                                                                            \
                    SIZE_OF(type, member) == 8   ? UINT64_MAX                                                \
                    : SIZE_OF(type, member) == 4 ? UINT32_MAX                                                \
                                                 : 1)

#define WORLD(member)              FIELD(struct world, member)
#define FLEET(member)              FIELD(struct fleet, member)
#define FLEET_ENUM(member, max)    FIELD_UP_TO(struct fleet, member, (max)-1)
#define TEMPLATE(member)           FIELD(struct template, member)
#define TEMPLATE_ENUM(member, max) FIELD_UP_TO(struct template, member, (max)-1)
#define WORKER(member)             FIELD(struct worker, member)
#define WORKER_ENUM(member, max)   FIELD_UP_TO(struct worker, member, (max)-1)
#define BACKOFF(member)                                                                                      \
        FLEET(member.count), FLEET(member.failed_at), FLEET(member.next_at), FLEET(member.since),            \
                FLEET(member.freed), FLEET(member.loop_reported)
/* No plan depends on the hash of the start settings: it would confirm a guessed secret among them. */
#define LAUNCH(i) FLEET(launches[i].generation)
static_assert(LAUNCHES_KEPT == 4, "a row for each");

static const struct model_field world_fields[] = {
        WORLD(doubt.since),
        WORLD(doubt.due),
        WORLD(doubt.boot_lag),
        WORLD(doubt.real_lag),
        WORLD(doubt.stepped_back_at),
        WORLD(doubt.steady_since),
        WORLD(doubt.steady_lag),
        WORLD(unsaved_since),
        WORLD(available_bytes),
        WORLD(oom_known),
        WORLD(oom_kills),
        WORLD(oom_at),
        WORLD(pressure.turned_at),
        WORLD(pressure.acted_at),
        WORLD(pressure.high),
        WORLD(pressure_reading.avg10),
        WORLD(pressure_reading.avg60),
        WORLD(pressure_reading.available_bytes),
        WORLD(pressure_reading.total_bytes),
        WORLD(ledger_volatile),
        WORLD(shutting_down),
        WORLD(shutdown_now),
        WORLD(shutdown_at),
};

static const struct model_field fleet_fields[] = {
        FLEET(preload.refused_generation),
        FLEET(preload.unrecorded),
        FLEET(preload.failures),
        FLEET(preload.template_bytes),
        FLEET(preload.slowest_fork),
        FLEET(preload.retry_at),
        /* The first byte says whether there is a reason. */
        FIELD_UP_TO(struct fleet, preload.refused[0], UINT8_MAX),
        FLEET(generation),
        FLEET(newest_generation),
        LAUNCH(0),
        LAUNCH(1),
        LAUNCH(2),
        LAUNCH(3),
        FLEET_ENUM(order, _FLEET_ORDER_MAX),
        FLEET(order_at),
        FLEET(force),
        FLEET(scale),
        FLEET(scale_at),
        FLEET(automatic_count),
        FLEET_ENUM(rollout.state, _ROLLOUT_STATE_MAX),
        FLEET(rollout.total),
        FLEET(rollout.elsewhere),
        FLEET(rollout.before),
        FLEET(rollout.returned),
        FLEET(rollout.limit),
        FLEET(rollout.kept_since),
        FLEET(rollout.started_at),
        FLEET(rollout.progress_at),
        FLEET(rollout.failures),
        FLEET(rollout.failed_at),
        BACKOFF(crash),
        BACKOFF(churn),
        BACKOFF(shortage),
        FLEET(shortage_error),
        FLEET(random),
        FLEET(held),
        FLEET(unknown),
        FLEET(boot_heard),
        FLEET(boot_in_proc),
        FLEET(redis_up),
        FLEET(redis_at),
        FLEET(fresh_since),
        FLEET(places_left),
        FLEET(continued),
        FLEET_ENUM(waits_for, _WAIT_MAX),
        FLEET_ENUM(wait_reported, _WAIT_MAX),
        FLEET(wait_at),
        FLEET(short_since),
        FLEET(name_taken),
};

static const struct model_field template_fields[] = {
        TEMPLATE_ENUM(state, _TEMPLATE_STATE_MAX),
        TEMPLATE(generation),
        TEMPLATE(pid),
        TEMPLATE(pid_start),
        TEMPLATE(serving_pid),
        TEMPLATE(serving_start),
        TEMPLATE(started_at),
        TEMPLATE(state_at),
        TEMPLATE(lost),
        TEMPLATE(boot_polled_at),
        TEMPLATE(killed_at),
        TEMPLATE(memory_bytes),
        TEMPLATE(fork.index),
        TEMPLATE_ENUM(fork.reason, _REASON_MAX),
        TEMPLATE(fork.asked_at),
        TEMPLATE(fork.waited),
        TEMPLATE(fork.seen_at),
};

static const struct model_field worker_fields[] = {
        WORKER(generation),
        WORKER_ENUM(state, _WORKER_STATE_MAX),
        WORKER_ENUM(reason, _REASON_MAX),
        WORKER_ENUM(started_for, _REASON_MAX),
        WORKER(spawned_at),
        WORKER(state_at),
        WORKER(active_at),
        WORKER(last_uptime),
        WORKER(process.pid),
        WORKER(process.start),
        WORKER(process.heartbeat_pid),
        WORKER(process.heartbeat_start),
        WORKER(process.forked),
        WORKER(process.awaits_go),
        WORKER(process.unproven),
        WORKER(process.booted),
        WORKER(process.boot_polled_at),
        WORKER(process.boot_seen_at),
        WORKER(process.unseen),
        WORKER(process.remote),
        WORKER(process.elsewhere),
        WORKER(process.shutdown_usec),
        WORKER(heartbeat.seen),
        WORKER(heartbeat.written_usec),
        WORKER(heartbeat.before_usec),
        WORKER(heartbeat.newest_at),
        WORKER(heartbeat.changed_at),
        WORKER(heartbeat.after),
        WORKER(heartbeat.read_at),
        WORKER_ENUM(heartbeat.fault, _HEARTBEAT_FAULT_MAX),
        WORKER(heartbeat.stale_reported),
        WORKER(heartbeat.hung),
        WORKER(heartbeat.stopping),
        WORKER(heartbeat.busy),
        WORKER(heartbeat.concurrency),
        WORKER(heartbeat.idle_count),
        WORKER(heartbeat.not_quiet_count),
        WORKER(heartbeat.ambiguous),
        WORKER(heartbeat.quiet_signal),
        WORKER(heartbeat.stop_signal),
        WORKER(deaf.processed_known),
        WORKER(deaf.processed),
        WORKER(deaf.took_at),
        WORKER(deaf.since),
        WORKER(deaf.taken),
        WORKER(deaf.taken_at),
        WORKER(deaf.found_at),
        WORKER(jobs.list_empty),
        WORKER(jobs.count),
        WORKER(jobs.read_at),
        WORKER(jobs.oldest_at),
        WORKER(jobs.interruptible_count),
        WORKER(jobs.interruptible_heartbeat),
        WORKER(evidence.threads_known),
        WORKER(evidence.threads_witness),
        WORKER(evidence.threads),
        WORKER(evidence.title_known),
        WORKER(evidence.title_quiet),
        WORKER(evidence.title_busy),
        WORKER(evidence.title_threads),
        WORKER(evidence.title_at),
        WORKER(evidence.title_idle_since),
        WORKER(evidence.still_since),
        WORKER(evidence.siblings_polled_at),
        WORKER(evidence.may_take_job_at),
        WORKER(evidence.may_take_job_seen_at),
        WORKER(memory.bytes),
        WORKER(memory.read_at),
        WORKER(memory.own_bytes),
        WORKER(memory.over_samples),
        WORKER(memory.over_threshold),
        WORKER(memory.over_limit),
        WORKER_ENUM(memory.breach, BREACH_LIMIT + 1),
        WORKER(memory.breach_at),
        WORKER(orders.quiet),
        WORKER(orders.forced),
        WORKER(orders.pressed),
        WORKER(orders.quiet_at),
        WORKER(orders.stop_at),
        WORKER(orders.stop_last_at),
        WORKER(orders.group_signaled),
        WORKER(orders.stop_acknowledged),
        WORKER(orders.finishes_job),
        WORKER(orders.succeeded),
        WORKER(orders.unconfirmed),
        WORKER(orders.quiet_uncaught),
        WORKER(orders.signal_error),
        WORKER(orders.killed_at),
};

#define TABLE(list)                                                                                          \
        {                                                                                                    \
                .fields = (list), .n = ELEMENTSOF(list)                                                      \
        }
static_assert(ELEMENTSOF(fleet_fields) <= MODEL_FIELDS_MAX && ELEMENTSOF(worker_fields) <= MODEL_FIELDS_MAX,
              "room for each field");

const struct model_table model_tables[_MODEL_PART_MAX] = {
        [MODEL_WORLD] = TABLE(world_fields),
        [MODEL_FLEET] = TABLE(fleet_fields),
        [MODEL_TEMPLATE] = TABLE(template_fields),
        [MODEL_WORKER] = TABLE(worker_fields),
};
