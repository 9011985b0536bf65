/* SPDX-License-Identifier: MIT */
/* What was, in rings of fixed size. No I/O, no clock. */
#include "web/history.h"

struct history {
        usec_t last;
};

int history_new(struct history **ret)
{
        *ret = calloc(1, sizeof(**ret));
        return *ret ? 0 : -ENOMEM;
}

struct history *history_free(struct history *history)
{
        free(history);
        return NULL;
}

void history_add(struct history *history, usec_t realtime, const struct history_sample *samples _unused_,
                 size_t n _unused_)
{
        history->last = realtime;
}

void history_mark(struct history *history _unused_, usec_t realtime _unused_, const char *socket _unused_,
                  const char *fleet _unused_, const char *event _unused_, const char *text _unused_)
{
}

json_t *history_json(const struct history *history _unused_, enum history_range range, usec_t now)
{
        static const char *const names[] = {
                [HISTORY_HOUR] = "hour", [HISTORY_DAY] = "day", [HISTORY_MONTH] = "month"};
        static const int steps[] = {[HISTORY_HOUR] = 5, [HISTORY_DAY] = 60, [HISTORY_MONTH] = 600};

        return json_pack("{s:s, s:i, s:I, s:[], s:[]}", "range", names[range], "step_seconds", steps[range],
                         "end", (json_int_t)(now / USEC_PER_SEC), "fleets", "marks");
}
