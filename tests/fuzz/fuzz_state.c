/* SPDX-License-Identifier: MIT */
/* Fuzzes the bytes of a state file, and the world that continues from them. The first byte says whether they
 * come as they are, or behind a valid header. */
#include "base/hash.h"
#include "continuity/codec.h"
#include "continuity/state.h"
#include "decide/plan.h"
#include "frameworks/sidekiq/format.h"
#include "fuzz.h"
#include "model/fleets.h"
#include "model/world.h"
#include "observe/observe.h"
#include "observe/observe_template.h"

#define BOOT        "the-boot"
#define NOW         (1000 * USEC_PER_SEC)
#define MAGIC       "sqmgr.st"
#define HEADER      (sizeof(MAGIC) - 1 + 4 + 8 + 8)
#define AS_THEY_ARE 0xff

static char names[][8] = {"web", "mail"};
static struct fleet_settings fleet_settings[2];
static struct fleet_settings *fleet_list[] = {&fleet_settings[0], &fleet_settings[1]};
static struct settings settings = {.check_interval = 5 * USEC_PER_SEC, .fleets = fleet_list, .n_fleets = 2};

static struct state *unpack(const uint8_t *bytes, size_t size)
{
        struct state *state = NULL;

        return state_unpack(bytes, size, BOOT, NOW, &state) == STATE_READ ? state : NULL;
}

/* Unpacks the bytes behind a header with their length and checksum. */
static struct state *unpack_payload(const uint8_t *payload, size_t size)
{
        uint8_t *bytes = malloc(HEADER + size);

        fuzz_check(bytes);
        uint8_t *at = mempcpy(bytes, MAGIC, sizeof(MAGIC) - 1);
        codec_put_bytes(at, 4, 1);
        codec_put_bytes(at + 4, 8, size);
        if (size > 0)
                memcpy(bytes + HEADER, payload, size);
        codec_put_bytes(at + 12, 8, hash_bytes(HASH_INIT, bytes + HEADER, size));
        struct state *state = unpack(bytes, HEADER + size);
        free(bytes);
        return state;
}

static void continue_fleet(struct fleet *fleet, const struct state_fleet *saved)
{
        state_continue_fleet(fleet, saved, NOW);
        for (size_t i = 0; i < TEMPLATES_MAX; i++) {
                const struct template *template = &saved->templates[i];

                if (!template_is_alive(template))
                        continue;
                uint64_t main_start = template->generation % 3 == 1 ? 0 : template->pid_start;
                (void)template_observe_adopted(fleet, template, i == 0, main_start, template->serving_start);
        }
        for (size_t i = 0; i < saved->n_workers; i++) {
                const struct worker *worker = &saved->workers[i].worker;

                fuzz_check(i == 0 || saved->workers[i - 1].worker.index < worker->index);
                fuzz_check(saved->workers[i].identity);
                /* Some workers have ended meanwhile, and some have lost one of their two processes. */
                uint64_t main_start = worker->index % 3 == 1 ? 0 : worker->process.start;
                uint64_t heartbeat_start = worker->index % 4 == 1 ? 0 : worker->process.heartbeat_start;
                fuzz_check(observe_adopted(fleet, worker, main_start, heartbeat_start, NOW));
        }
}

/* Checks that a world can continue from what was read, and be saved again. */
static void go_on(const struct state *state)
{
        struct world *world = NULL;
        struct plan plan = {0};
        uint8_t *bytes = NULL;
        size_t size = 0;

        for (size_t i = 0; i < ELEMENTSOF(fleet_settings); i++)
                fleet_settings[i] = (struct fleet_settings){
                        .traits = &sidekiq_traits,
                        .name = names[i],
                        .active_process_count = 2,
                        .max_processes = 4,
                        .ready_after = 10 * USEC_PER_SEC,
                        .rollout_timeout = USEC_PER_HOUR,
                };
        fuzz_check(world_new(&settings, 1, &world) == 0);
        for (size_t i = 0; i < MIN(state->n_fleets, world->n_fleets); i++)
                continue_fleet(world->fleets[i], &state->fleets[i]);
        fuzz_check(plan_make(&plan, world, NOW) == 0);
        const struct state_source source = {.world = world, .dead = state->dead, .boot_id = BOOT, .now = NOW};
        fuzz_check(state_pack(&source, &bytes, &size) == 0);
        struct state *again = unpack(bytes, size);
        fuzz_check(again && again->n_fleets == world->n_fleets);
        state_free(again);
        free(bytes);
        plan_free(&plan);
        world_free(world);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct input input = {data, size};
        uint8_t kind = size == 0 ? AS_THEY_ARE : input_byte(&input);
        struct state *state =
                kind == AS_THEY_ARE ? unpack(input.at, input.left) : unpack_payload(input.at, input.left);

        if (state)
                go_on(state);
        state_free(state);
        return 0;
}
