/* SPDX-License-Identifier: MIT */
/* The live picture on the terminal, repainted in place. The state is global because a process has one
 * terminal. */
#include "ctl/screen.h"
#include "base/memstream.h"
#include "base/text.h"
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>

#define DEFAULT_COLUMNS 80
#define DEFAULT_ROWS    24

static struct {
        bool on, whole, keys;
        struct termios before; /* valid if keys */
        int columns, rows;     /* size at the last paint */
        int painted;           /* lines of the picture above the cursor */
} screen;

bool screen_is_there(void)
{
        const char *term = getenv("TERM");

        return isatty(STDOUT_FILENO) && term && term[0] != '\0' && strcmp(term, "dumb") != 0;
}

static void measure(int fd, int *ret_columns, int *ret_rows)
{
        struct winsize size = {0};

        (void)ioctl(fd, TIOCGWINSZ, &size);
        *ret_columns = size.ws_col > 0 ? size.ws_col : DEFAULT_COLUMNS;
        *ret_rows = size.ws_row > 0 ? size.ws_row : DEFAULT_ROWS;
}

int screen_columns(int fd)
{
        int columns, rows;

        if (!isatty(fd))
                return 0;
        measure(fd, &columns, &rows);
        return columns;
}

/* Returns true if the terminal shows colors and the user wants them. */
static bool shows_colour(void)
{
        const char *no_color = getenv("NO_COLOR");

        return screen_is_there() && (!no_color || no_color[0] == '\0');
}

struct view screen_view(void)
{
        struct view view = {.colour = shows_colour()};

        if (isatty(STDOUT_FILENO))
                measure(STDOUT_FILENO, &view.columns, &view.rows);
        return view;
}

void screen_enter(bool whole)
{
        struct termios raw;

        if (screen.on)
                return;
        screen.on = true;
        screen.whole = whole;
        screen.painted = 0;
        screen.columns = screen.rows = 0;
        screen.keys = whole && tcgetattr(STDIN_FILENO, &screen.before) == 0;
        if (screen.keys) {
                raw = screen.before;
                raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
                raw.c_cc[VMIN] = 1;
                raw.c_cc[VTIME] = 0;
                (void)tcsetattr(STDIN_FILENO, TCSANOW, &raw);
        }
        /* Hide the cursor and disable automatic line wrapping. */
        printf("%s\033[?25l\033[?7l", whole ? "\033[?1049h" : "");
        fflush(stdout);
}

void screen_leave(void)
{
        if (!screen.on)
                return;
        printf("\033[?7h\033[?25h%s", screen.whole ? "\033[?1049l" : "");
        fflush(stdout);
        if (screen.keys)
                (void)tcsetattr(STDIN_FILENO, TCSANOW, &screen.before);
        screen.on = false;
}

void screen_suspend(void)
{
        bool on = screen.on, whole = screen.whole;

        screen_leave();
        (void)raise(SIGSTOP);
        if (on)
                screen_enter(whole);
}

static void begin_picture(int columns, int rows)
{
        bool resized = screen.columns != 0 && (columns != screen.columns || rows != screen.rows);

        /* After a resize the terminal may have rewrapped lines, so the old position is unknown. */
        if (screen.whole || resized)
                printf("\033[H%s", resized || screen.columns == 0 ? "\033[2J" : "");
        else if (screen.painted > 0)
                printf("\033[%dA\r", screen.painted);
        screen.columns = columns;
        screen.rows = rows;
        screen.painted = 0;
}

int screen_count_lines(const char *text)
{
        int n = 0;

        for (; *text != '\0'; text++)
                n += *text == '\n';
        return n;
}

static void redraw(const char *text)
{
        int columns, rows, lines = screen_count_lines(text);

        if (!screen.on)
                return;
        measure(STDOUT_FILENO, &columns, &rows);
        begin_picture(columns, rows);
        /* The cursor needs a line of its own below the picture. */
        int rows_max = MAX(rows - 1, 1), shown = lines <= rows_max ? lines : rows_max - 1;
        for (int i = 0; i < shown; i++) {
                size_t length = strcspn(text, "\n");

                size_t shown_length = text_fitting(text, length, columns);
                const char *end = memchr(text, '\033', shown_length) ? "\033[0m" : "";
                /* Clear the line first: after its last column the cursor would still be on that column. */
                printf("\033[K%.*s%s\n", (int)shown_length, text, end);
                text += length + 1;
        }
        if (shown < lines)
                printf("\033[K... %d more lines\n", lines - shown);
        screen.painted = shown + (shown < lines);
        printf("\033[J");
        fflush(stdout);
}

void screen_draw(void (*draw)(FILE *out, const struct view *view, void *userdata), void *userdata)
{
        struct view view = screen_view();
        bool again = true;

        while (again) {
                _cleanup_free_ char *text = NULL;
                size_t size;
                FILE *out = open_memstream(&text, &size);

                if (out)
                        draw(out, &view, userdata);
                if (memstream_close(out, &text) < 0)
                        return;
                again = !view.brief && screen_count_lines(text) >= view.rows;
                if (!again)
                        redraw(text);
                view.brief = true;
        }
}

void screen_release(void)
{
        screen.painted = 0;
        screen.columns = 0;
}
