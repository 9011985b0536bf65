/* SPDX-License-Identifier: MIT */
/* Fuzzes a simulated world and its faults, made from the bytes: the promises must hold in each. */
#include "../sim/story.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        const struct origin origin = origin_of_bytes(data, size);
        struct sim *sim = calloc(1, sizeof(*sim));

        fuzz_check(sim);
        sim_open(sim, &origin);
        sim_run(sim);
        bool broken = sim->broken;
        sim_close(sim);
        free(sim);
        if (broken) {
                story_explain(&origin);
                fflush(stdout);
                abort();
        }
        return 0;
}
