/* SPDX-License-Identifier: MIT */
/* The keys of `top`. No I/O, no clock. */
#include "ctl/top_model.h"
#include "wire/reply.h"
#include <string.h>

static const struct {
        const char *bytes;
        int key;
} sequences[] = {
        {"\033[A", TOP_KEY_UP},         {"\033[B", TOP_KEY_DOWN}, {"\033[C", TOP_KEY_RIGHT},
        {"\033[D", TOP_KEY_LEFT},       {"\033OA", TOP_KEY_UP},   {"\033OB", TOP_KEY_DOWN},
        {"\033OC", TOP_KEY_RIGHT},      {"\033OD", TOP_KEY_LEFT}, {"\033[5~", TOP_KEY_PAGE_UP},
        {"\033[6~", TOP_KEY_PAGE_DOWN}, {"\033[H", TOP_KEY_HOME}, {"\033[F", TOP_KEY_END},
        {"\033OH", TOP_KEY_HOME},       {"\033OF", TOP_KEY_END},  {"\033[1~", TOP_KEY_HOME},
        {"\033[4~", TOP_KEY_END},
};

/* The length of a sequence that begins with ESC [ or ESC O, known or unknown. */
static size_t sequence_length(const char *bytes, size_t n)
{
        size_t length = 2;

        while (length < n && bytes[length] >= 0x20 && bytes[length] < 0x40)
                length++;
        return MIN(length + 1, n);
}

size_t top_take_key(const char *bytes, size_t n, int *ret)
{
        *ret = TOP_KEY_NONE;
        if (n == 0)
                return 0;
        if (bytes[0] == '\033' && n > 1 && (bytes[1] == '[' || bytes[1] == 'O')) {
                size_t length = sequence_length(bytes, n);

                for (size_t i = 0; i < ELEMENTSOF(sequences); i++)
                        if (strlen(sequences[i].bytes) == length &&
                            memcmp(sequences[i].bytes, bytes, length) == 0)
                                *ret = sequences[i].key;
                return length;
        }
        if (bytes[0] == '\r')
                *ret = TOP_KEY_ENTER;
        else if (bytes[0] == '\b')
                *ret = TOP_KEY_ERASE;
        else if ((unsigned char)bytes[0] < 0x80)
                *ret = (unsigned char)bytes[0];
        return 1;
}

/* The choice is a worker, not a row: it moves with the worker. */
static void choose(struct top *top, const struct render_lines *rows, size_t at)
{
        if (rows->n == 0)
                return;
        top->at = MIN(at, rows->n - 1);
        snprintf(top->chosen, sizeof(top->chosen), "%s", reply_string(rows->lines[top->at].worker, "id"));
}

static const struct move {
        int key;
        bool down;
        size_t lines; /* 0: half a screen; SIZE_MAX: to the end */
} moves[] = {
        {TOP_KEY_UP, false, 1},          {'k', false, 1},
        {TOP_KEY_DOWN, true, 1},         {'j', true, 1},
        {TOP_KEY_PAGE_UP, false, 0},     {TOP_KEY_PAGE_DOWN, true, 0},
        {TOP_KEY_HOME, false, SIZE_MAX}, {TOP_KEY_END, true, SIZE_MAX},
};

/* Returns NULL if the key does not move. */
static const struct move *find_move(int key)
{
        for (size_t i = 0; i < ELEMENTSOF(moves); i++)
                if (moves[i].key == key)
                        return &moves[i];
        return NULL;
}

/* Returns the position after the move, at least 0. */
static size_t moved(size_t at, const struct move *move, const struct view *view)
{
        size_t step = move->lines > 0 ? move->lines : (size_t)view->rows / 2;

        if (move->down)
                return at > SIZE_MAX - step ? SIZE_MAX : at + step;
        return at > step ? at - step : 0;
}

static void press_in_filter(struct top *top, int key)
{
        size_t length = strlen(top->filter);

        if (key == TOP_KEY_ESCAPE)
                top->filter[0] = '\0';
        if (key == TOP_KEY_ESCAPE || key == TOP_KEY_ENTER)
                top->typing = false;
        else if (key == TOP_KEY_ERASE && length > 0)
                top->filter[length - 1] = '\0';
        else if (key >= ' ' && key < TOP_KEY_ERASE && length + 1 < sizeof(top->filter))
                memcpy(top->filter + length, (const char[]){(char)key, '\0'}, 2);
}

/* Any key but y or Y means no. */
static enum top_do press_at_question(struct top *top, int key)
{
        enum top_do asked = top->asked;

        top->asked = TOP_NOTHING;
        if (key == 'y' || key == 'Y')
                return asked;
        snprintf(top->reported, sizeof(top->reported), "canceled");
        return TOP_NOTHING;
}

static void ask(struct top *top, enum top_do what)
{
        if (top->chosen[0] == '\0')
                return;
        snprintf(top->target, sizeof(top->target), "%s", top->chosen);
        if (what == TOP_RESTART)
                top->target[strcspn(top->target, "/")] = '\0';
        top->asked = what;
}

/* The newest events and lines are shown first. */
static void begin_tab(struct top *top)
{
        top->scroll = top->tab == TOP_JOBS ? 0 : TOP_SCROLL_END;
}

/* At the end, the view keeps showing the newest lines. */
static void scroll(struct top *top, const struct move *move, const struct top_replies *replies,
                   const struct view *view)
{
        _cleanup_free_ char *text = NULL;
        size_t size;
        FILE *out = open_memstream(&text, &size);

        if (!out)
                return;
        size_t last = top_draw(out, top, replies, view);
        (void)fclose(out);
        size_t to = moved(MIN(top->scroll, last), move, view);
        top->scroll = to >= last && top->tab != TOP_JOBS ? TOP_SCROLL_END : MIN(to, last);
}

static enum top_do press_opened(struct top *top, int key)
{
        switch (key) {
        case TOP_KEY_ESCAPE:
        case TOP_KEY_ERASE:
        case TOP_KEY_ENTER:
                top->opened = false;
                return TOP_NOTHING;
        case TOP_KEY_LEFT:
                top->tab = (top->tab + _TOP_TAB_MAX - 1) % _TOP_TAB_MAX;
                break;
        case TOP_KEY_RIGHT:
        case TOP_KEY_TAB:
                top->tab = (top->tab + 1) % _TOP_TAB_MAX;
                break;
        case '1':
        case '2':
        case '3':
                top->tab = (enum top_tab)(key - '1');
                break;
        default:
                return TOP_NOTHING;
        }
        begin_tab(top);
        return TOP_POLL;
}

static enum top_do press_in_list(struct top *top, int key)
{
        static const char sorts[] = {
                [TOP_SORT_NAME] = 'n', [TOP_SORT_MEMORY] = 'm', [TOP_SORT_BUSY] = 'b',
                [TOP_SORT_AGE] = 'a',  [TOP_SORT_STATE] = 't',
        };
        static_assert(sizeof(sorts) == _TOP_SORT_MAX, "a key for each");
        const char *at = key > 0 && key < 128 ? memchr(sorts, key, sizeof(sorts)) : NULL;

        if (at)
                top->sort = (enum top_sort)(at - sorts);
        else if (key == 's')
                top->sort = (top->sort + 1) % _TOP_SORT_MAX;
        else if (key == '/')
                top->typing = true;
        else if (key == TOP_KEY_ESCAPE)
                top->filter[0] = '\0';
        else if (key == TOP_KEY_ENTER && top->chosen[0] != '\0') {
                top->opened = true;
                begin_tab(top);
                return TOP_POLL;
        }
        return TOP_NOTHING;
}

static enum top_do press_plain(struct top *top, int key)
{
        if (key == 'Q')
                ask(top, TOP_QUIET);
        else if (key == 'R')
                ask(top, TOP_RESTART);
        else if (key == '?' || key == 'h')
                top->help = true;
        else if (key == 'q')
                return TOP_QUIT;
        else
                return top->opened ? press_opened(top, key) : press_in_list(top, key);
        return TOP_NOTHING;
}

enum top_do top_press(struct top *top, int key, const struct top_replies *replies, const struct view *view)
{
        _cleanup_top_rows_ struct render_lines rows = {0};
        const struct move *move = find_move(key);
        enum top_do todo = TOP_NOTHING;

        if (key == TOP_KEY_NONE || top_rows_collect(&rows, top, replies->status) < 0)
                return TOP_NOTHING;
        top->reported[0] = '\0';
        /* A terminal that is too small accepts only q. */
        if (top_is_too_small(view))
                return key == 'q' ? TOP_QUIT : TOP_NOTHING;
        if (!top->opened)
                choose(top, &rows, top_rows_find(&rows, top));
        if (top->help)
                top->help = false;
        else if (top->asked != TOP_NOTHING)
                todo = press_at_question(top, key);
        else if (top->typing)
                press_in_filter(top, key);
        else if (!move)
                todo = press_plain(top, key);
        else if (top->opened)
                scroll(top, move, replies, view);
        else
                choose(top, &rows, moved(top->at, move, view));
        return todo;
}
