/* SPDX-License-Identifier: MIT */
/* Replays the records in tests/replays: the planner must decide as it did when they were written. A record of
 * a bug report belongs there once its fault is fixed: `sqmgr-replay` then shows what the fix changes, and a
 * record of the fixed version is kept. */
#include "frameworks/table.h"
#include "record/replay_rules.h"
#include "settings/value.h"
#include "unit.h"
#include <dirent.h>

#define BYTES_MAX ((size_t)4 << 20)

static const struct settings_surroundings surroundings = {.frameworks = framework_traits};

static size_t read_record(const char *folder, const char *name, uint8_t *bytes)
{
        char path[1024];

        snprintf(path, sizeof(path), "%s/%s", folder, name);
        FILE *file = fopen(path, "re");
        ck_assert_msg(file, "%s: %s", path, strerror(errno));
        size_t size = fread(bytes, 1, BYTES_MAX, file);
        ck_assert_uint_lt(size, BYTES_MAX);
        (void)fclose(file);
        return size;
}

static unsigned replay(const char *name, const uint8_t *bytes, size_t size)
{
        struct replay *replay = NULL;
        struct replay_step step;
        char why[REPLAY_WHY_MAX] = "";
        unsigned actions = 0;

        int r = replay_new(bytes, size, &surroundings, &replay, why);
        while (r >= 0 && (r = replay_next(replay, &step, why)) > 0) {
                ck_assert_msg(step.same, "%s: sqmgr-replay shows which decisions differ", name);
                actions += (unsigned)step.recorded->n;
        }
        ck_assert_msg(r == 0, "%s: %s", name, why);
        replay_free(replay);
        return actions;
}

TEST(each_record_is_decided_as_before)
{
        const char *source = getenv("srcdir");
        uint8_t *bytes = malloc(BYTES_MAX);
        struct dirent **list;
        char folder[512];
        unsigned actions = 0, records = 0;

        ck_assert(bytes);
        snprintf(folder, sizeof(folder), "%s/tests/replays", source ? source : ".");
        int n = scandir(folder, &list, NULL, alphasort);
        ck_assert_int_gt(n, 0);
        for (int i = 0; i < n; i++) {
                if (list[i]->d_name[0] != '.') {
                        size_t size = read_record(folder, list[i]->d_name, bytes);

                        actions += replay(list[i]->d_name, bytes, size);
                        records++;
                }
                free(list[i]);
        }
        free(list);
        free(bytes);
        ck_assert_uint_gt(records, 0);
        ck_assert_uint_gt(actions, 50);
}

TEST_MAIN("replays", .timeout_seconds = 120)
