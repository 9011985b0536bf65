/* SPDX-License-Identifier: MIT */
/* The log: the journal if stderr leads there, otherwise lines on stderr. */
#define SD_JOURNAL_SUPPRESS_LOCATION
#include "io/log.h"
#include "model/names.h"
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <systemd/sd-id128.h>
#include <systemd/sd-journal.h>
#include <time.h>

/* How long to wait for a busy journal. */
#define JOURNAL_WAIT_MSEC 100
/* With its default SplitMode=uid, a journal on disk has a file for each user from this uid on. */
#define JOURNAL_OF_USER_UID 1000

static int log_level = LOG_INFO;

void log_set_level(int level)
{
        log_level = level;
}

/* If systemd connected stderr to the journal, JOURNAL_STREAM has its device and inode. */
bool log_is_journal(void)
{
        static int journal = -1;

        if (journal < 0) {
                const char *stream = getenv("JOURNAL_STREAM");
                unsigned long long device, inode;
                struct stat st;

                journal = stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 &&
                          fstat(STDERR_FILENO, &st) == 0 && st.st_dev == device && st.st_ino == inode;
        }
        return journal;
}

static bool may_access(const char *folder, const char *machine, const char *file, int mode)
{
        char path[128];
        int n = snprintf(path, sizeof(path), "%s/%s/%s", folder, machine, file);

        return n < (int)sizeof(path) && access(path, mode) == 0;
}

/* Returns true if sqmgr can read what its workers write to the journal. */
static bool journal_is_readable(void)
{
        static const char on_disk[] = "/var/log/journal", in_memory[] = "/run/log/journal";
        char machine[SD_ID128_STRING_MAX];
        sd_id128_t id;

        if (sd_id128_get_machine(&id) < 0)
                return true;
        sd_id128_to_string(id, machine);
        return may_access(on_disk, machine, "system.journal", R_OK) ||
               may_access(in_memory, machine, "system.journal", R_OK) ||
               (geteuid() >= JOURNAL_OF_USER_UID && may_access(on_disk, machine, "", F_OK));
}

const char *log_of_workers(const char *setting)
{
        static const char *found;
        static char file[PATH_MAX];
        const char *folder = getenv("LOGS_DIRECTORY");

        if (setting || found)
                return setting ?: found;
        found = log_is_journal() ? "journal" : "inherit";
        if (folder && folder[0] == '/' && log_is_journal() && !journal_is_readable() &&
            snprintf(file, sizeof(file), "%.*s/workers.log", (int)strcspn(folder, ":"), folder) <
                    (int)sizeof(file))
                found = file;
        return found;
}

/* A slow reader of stderr must not block us. stderr cannot be made non-blocking, since workers share it. A
 * pipe that polls writable takes a whole line. */
static bool log_has_space(void)
{
        struct pollfd pollfd = {.fd = STDERR_FILENO, .events = POLLOUT};

        return poll(&pollfd, 1, 0) > 0;
}

/* sd_journal_send() blocks without limit if journald does not read. A socket connected to the same address
 * polls writable only while the queue has space. */
static bool journal_has_space(int timeout_msec)
{
        static const struct sockaddr_un address = {.sun_family = AF_UNIX,
                                                   .sun_path = "/run/systemd/journal/socket"};
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        struct pollfd pollfd = {.fd = fd, .events = POLLOUT};

        /* Without a listener, sending fails at once. */
        return fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
               poll(&pollfd, 1, timeout_msec) != 0;
}

/* Writes each quoted line on a line of its own. */
static void write_quoted(const struct quoted *quoted)
{
        const char *line = quoted && !quoted_is_empty(quoted) ? quoted_reveal(quoted) : NULL;

        while (line && log_has_space()) {
                size_t length = strcspn(line, "\n");

                dprintf(STDERR_FILENO, "    | %.*s\n", (int)length, line);
                line = line[length] != '\0' ? line + length + 1 : NULL;
        }
}

static void log_line(int level, const char *text, const struct quoted *quoted)
{
        static const char *const names[] = {
                [LOG_ERR] = "error: ", [LOG_WARNING] = "warning: ", [LOG_INFO] = "", [LOG_DEBUG] = "debug: "};
        const char *name = level >= LOG_ERR && level <= LOG_DEBUG && names[level] ? names[level] : "";
        char stamp[64] = "";
        time_t now = time(NULL);
        struct tm parts;

        if (localtime_r(&now, &parts))
                strftime(stamp, sizeof(stamp), "%Y-%m-%d %H:%M:%S", &parts);
        dprintf(STDERR_FILENO, "%s %s%s\n", stamp, name, text);
        write_quoted(quoted);
}

#define FIELDS_MAX 11

struct fields {
        struct iovec list[FIELDS_MAX];
        int n;
};

/* Adds "NAME=VALUE". Skips the field if memory is short. */
static _printf_(2, 3) void add_field(struct fields *fields, const char *format, ...)
{
        va_list arguments;
        char *text;

        assert(fields->n < FIELDS_MAX);
        va_start(arguments, format);
        int length = vasprintf(&text, format, arguments);
        va_end(arguments);
        if (length >= 0)
                fields->list[fields->n++] = (struct iovec){.iov_base = text, .iov_len = (size_t)length};
}

static void add_quoted(struct fields *fields, const struct quoted *quoted)
{
        if (quoted && !quoted_is_empty(quoted))
                add_field(fields, "SQMGR_QUOTED=%s", quoted_reveal(quoted));
}

static void send_fields(struct fields *fields)
{
        sd_journal_sendv(fields->list, fields->n);
        for (int i = 0; i < fields->n; i++)
                free(fields->list[i].iov_base);
}

static void write_entry(int level, const char *text, const struct quoted *quoted)
{
        struct fields fields = {0};

        if (!log_is_journal()) {
                log_line(level, text, quoted);
                return;
        }
        add_field(&fields, "MESSAGE=%s", text);
        add_field(&fields, "PRIORITY=%d", level);
        add_quoted(&fields, quoted);
        send_fields(&fields);
}

static bool has_space(int timeout_msec)
{
        return log_is_journal() ? journal_has_space(timeout_msec) : log_has_space();
}

/* Returns true if an entry of that level is to be written, and can be. Otherwise the entry is lost and
 * counted; a later entry reports the count. */
static bool log_is_ready(int level)
{
        static unsigned lost;
        bool one = lost == 1, journal = log_is_journal();
        char text[128];

        if (level > log_level)
                return false;
        if (lost > 0 && has_space(0)) {
                snprintf(text, sizeof(text), "%u %s lost here: %s %s", lost,
                         journal ? (one ? "entry was" : "entries were") : (one ? "line was" : "lines were"),
                         journal ? "the journal did not accept" : "the reader of the log did not read",
                         one ? "it" : "them");
                lost = 0;
                write_entry(LOG_WARNING, text, NULL);
        }
        if (lost == 0 && has_space(JOURNAL_WAIT_MSEC))
                return true;
        lost++;
        return false;
}

static void write_sentence(int level, const struct quoted *quoted, const char *format, va_list arguments)
{
        char text[2048];

        if (!log_is_ready(level))
                return;
        vsnprintf(text, sizeof(text), format, arguments);
        write_entry(level, text, quoted);
}

void log_write(int level, const char *format, ...)
{
        va_list arguments;

        va_start(arguments, format);
        write_sentence(level, NULL, format, arguments);
        va_end(arguments);
}

void log_quoted(int level, const struct quoted *quoted, const char *format, ...)
{
        va_list arguments;

        va_start(arguments, format);
        write_sentence(level, quoted, format, arguments);
        va_end(arguments);
}

static void send_event(const struct event *event)
{
        const char *name = event->fleet ? event->fleet->settings->name : "";
        struct fields fields = {0};

        add_field(&fields, "MESSAGE=%s", event->text);
        add_field(&fields, "PRIORITY=%d", event_level(event));
        add_field(&fields, "MESSAGE_ID=%s", event_kinds[event->kind].message_id);
        add_field(&fields, "SQMGR_EVENT=%s", event_kinds[event->kind].name);
        add_field(&fields, "SQMGR_REASON=%s", reason_name(event->reason));
        if (event->fleet) {
                add_field(&fields, "SQMGR_FLEET=%s", name);
                add_field(&fields, "SQMGR_GENERATION=%" PRIu64, event->generation);
        }
        if (event->index != 0) {
                add_field(&fields, "SQMGR_WORKER=%s", WORKER_ID_OF(name, event->index));
                add_field(&fields, "SQMGR_PID=%d", (int)event->pid);
        }
        if (event->by.known)
                add_field(&fields, "SQMGR_BY_UID=%u", event->by.uid);
        add_quoted(&fields, event->quoted);
        send_fields(&fields);
}

void log_event(const struct event *event)
{
        int level = event_level(event);

        if (!log_is_ready(level))
                return;
        if (log_is_journal())
                send_event(event);
        else
                log_line(level, event->text, event->quoted);
}
