/* SPDX-License-Identifier: MIT */
/* Reads the config file and checks it against this machine.
 *
 * inih finds the keys. Its line has 200 bytes, and what it does with indented lines, and with ';' in a value,
 * depends on its build: such lines are refused before, and values go past it. */
#include "io/ini.h"
#include "base/fd.h"
#include "io/file_access.h"
#include "io/host.h"
#include "io/users.h"
#include "settings/database_url.h"
#include "settings/draft.h"
#include "settings/errors.h"
#include "settings/settings.h"
#include <ctype.h>
#include <glob.h>
#include <grp.h>
#include <ini.h>
#include <stdio.h>

#define FILE_MAX_BYTES (1024 * 1024)
static_assert(FILE_MAX_BYTES + 1 < SETTINGS_LINES_MAX, "room for each of its lines");
#define BYTE_ORDER_MARK "\xEF\xBB\xBF"
#define BLANKS          " \t\v\f\r"
#define KEY_LETTERS     "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-."

struct reader {
        const char *text; /* remaining text of the file */
        size_t length;
        unsigned line; /* as encoded by settings_line() */
        struct settings_draft *draft;
        struct settings_errors *errors;
        int error;                              /* -ENOMEM: stop reading */
        const char *value;                      /* of the current line */
        char name[SETTINGS_LINE_BYTES_MAX + 1]; /* of the current line; the value follows */
};

#define refuse(reader, ...) settings_errors_add((reader)->errors, (reader)->line, __VA_ARGS__)

/* Refuses a comment after the value of a line. Returns true if there is one. */
static bool refuse_comment(struct reader *reader)
{
        const char *begin = NULL;
        bool blank = true;
        char quote = '\0';

        for (const char *p = reader->value; *p != '\0' && (quote || !begin); p++) {
                if (blank && (*p == '#' || *p == ';'))
                        begin = p;
                blank = isspace((unsigned char)*p);
                if (*p == '\\' && quote != '\'' && p[1] != '\0') {
                        p++;
                } else if (quote ? *p == quote : *p == '\'' || *p == '"') {
                        quote = quote ? '\0' : *p;
                        begin = NULL;
                }
        }
        /* An unclosed quote is an apostrophe and quotes nothing. */
        if (begin)
                refuse(reader,
                       "'%c' after a blank begins a comment, which cannot follow a value; put the comment on "
                       "its own line, or quote the '%c'",
                       *begin, *begin);
        return begin;
}

/* Handles a line `[NAME]` without outer blanks. */
static void take_section(struct reader *reader, char *line)
{
        char *close = strchr(line, ']');

        settings_draft_refuse_section(reader->draft);
        if (!close) {
                refuse(reader, "the section name has no closing ']'; add the ']'");
        } else if (close[1] != '\0') {
                refuse(reader, "text follows the section's ']'; move the text to its own line");
        } else {
                *close = '\0';
                reader->error = settings_draft_section(reader->draft, line + 1, reader->line);
        }
}

/* Splits a line of the form `key = value`. Returns false if it has another form. */
static bool split_pair(struct reader *reader, char *line)
{
        size_t name = strspn(line, KEY_LETTERS), equals = name + strspn(line + name, " \t");

        if (name > 0 && line[equals] == '=') {
                reader->value = line + equals + 1 + strspn(line + equals + 1, BLANKS);
                line[name] = '\0';
                return !refuse_comment(reader);
        }
        if (name > 0 && line[equals] == ':')
                refuse(reader, "'%.*s' is followed by ':'; write '%.*s = ...'", (int)name, line, (int)name,
                       line);
        else
                refuse(reader, "not a section, comment or 'key = value' line; begin comments with '#'");
        return false;
}

/* Reads the line from start to end. Returns true if reader->name and reader->value are those of the line. */
static bool take_line(struct reader *reader, const char *start, const char *end)
{
        size_t length = (size_t)(end - start);

        if (memchr(start, '\0', length)) {
                refuse(reader, "the line contains a NUL byte; make the file plain text");
                return false;
        }
        const char *text = start;
        while (text < end && isspace((unsigned char)*text))
                text++;
        while (end > text && isspace((unsigned char)end[-1]))
                end--;
        if (text == end || *text == '#' || *text == ';')
                return false;
        if (length > SETTINGS_LINE_BYTES_MAX) {
                refuse(reader,
                       "the line has %zu bytes, the maximum is %d; move a long command to a script, a long "
                       "environment to environment_file",
                       length, SETTINGS_LINE_BYTES_MAX);
        } else if (text > start) {
                refuse(reader, "the line is indented and would continue the previous line; remove the "
                               "indentation and write each value on one line");
        } else {
                memcpy(reader->name, text, (size_t)(end - text));
                reader->name[end - text] = '\0';
                if (*text != '[')
                        return split_pair(reader, reader->name);
                take_section(reader, reader->name);
                return false;
        }
        /* The keys of a refused section must not be added to the previous section. */
        if (*text == '[')
                settings_draft_refuse_section(reader->draft);
        return false;
}

/* Passes the key of the next line to inih, as fgets() does, or an empty line. inih reports a key for which
 * its buffer is too small. */
static char *read_line(char *buffer, int size, void *stream)
{
        struct reader *reader = stream;

        if (reader->length == 0 || reader->error < 0)
                return NULL;
        const char *start = reader->text, *end = memchr(start, '\n', reader->length);
        size_t length = end ? (size_t)(end - start) + 1 : reader->length;
        reader->length -= length;
        reader->text += length;
        reader->line++;
        bool is_pair = take_line(reader, start, end ?: start + length);
        snprintf(buffer, (size_t)size, "%s%s\n", is_pair ? reader->name : "", is_pair ? " =" : "");
        return buffer;
}

static int take_pair(void *userdata, const char *section _unused_, const char *name,
                     const char *value _unused_)
{
        struct reader *reader = userdata;

        reader->error = settings_draft_set(reader->draft, name, reader->value, reader->line);
        return 1;
}

/* file is 0, or the number of an included file. */
static int read_ini(const char *text, size_t length, unsigned file, struct settings_draft *draft,
                    struct settings_errors *errors)
{
        struct reader reader = {
                .text = text,
                .length = length,
                .line = settings_line(file, 0),
                .draft = draft,
                .errors = errors,
        };

        if (length >= strlen(BYTE_ORDER_MARK) &&
            memcmp(text, BYTE_ORDER_MARK, strlen(BYTE_ORDER_MARK)) == 0) {
                reader.text += strlen(BYTE_ORDER_MARK);
                reader.length -= strlen(BYTE_ORDER_MARK);
        }
        settings_draft_begin_file(draft);
        int r = ini_parse_stream(read_line, &reader, take_pair, &reader);
        if (r < 0)
                return -ENOMEM;
        if (r > 0)
                settings_errors_add(errors, settings_line(file, (unsigned)r),
                                    "inih cannot read this line; write 'key = value'");
        return reader.error;
}

int ini_check_text(const char *text, const struct settings_surroundings *surroundings,
                   struct settings_errors *errors)
{
        _cleanup_settings_errors_ struct settings_errors warnings = {0};
        _cleanup_settings_draft_ struct settings_draft *draft = NULL;
        int r = settings_draft_new(surroundings, errors, &warnings, &draft);

        if (r == 0)
                r = read_ini(text, strlen(text), 0, draft, errors);
        if (r == 0)
                r = settings_draft_finish(draft);
        return r < 0 ? r : settings_errors_any(errors) ? -EINVAL : 0;
}

/* The state of loading one configuration. */
struct load {
        struct settings_draft *draft;
        struct settings *settings; /* owned by the draft */
        settings_tls_fn judge_tls; /* NULL: not judged */
        struct settings_errors *errors, *warnings;
};

/* A file to read. Errors are reported for the file itself, or for the line of the ini file that names it. */
struct ini_source {
        const char *path;
        const char *remedy;
        unsigned line;
        char prefix[256];
};

/* Describes the file that a key names. fleet is NULL if the key is not of a fleet. */
static struct ini_source source_of_key(const struct load *load, const struct fleet_settings *fleet,
                                       const char *key, const char *path, const char *remedy)
{
        struct ini_source source = {
                .path = path,
                .remedy = remedy,
                .line = settings_draft_line(load->draft, fleet, key),
        };

        snprintf(source.prefix, sizeof(source.prefix), "%s %s: ", key, path);
        return source;
}

#define refuse_key(load, fleet, key, ...)                                                                    \
        settings_errors_add((load)->errors, settings_draft_line((load)->draft, fleet, key), __VA_ARGS__)
#define refuse_source(load, source, format, ...)                                                             \
        settings_errors_add((load)->errors, (source)->line, "%s" format, (source)->prefix, __VA_ARGS__)

/* Reads a whole file. Returns 0; -EINVAL with an error added; or -ENOMEM. */
static int read_file(const struct load *load, const struct ini_source *source, char **ret, size_t *ret_length)
{
        char why[FILE_WHY_MAX];

        _cleanup_close_ int fd = file_access_open(source->path, why);
        if (fd < 0) {
                bool has_remedy = file_access_has_remedy(fd);
                refuse_source(load, source, "%s%s%s", why, has_remedy ? "" : "; ",
                              has_remedy ? "" : source->remedy);
                return -EINVAL;
        }
        int r = fd_read_whole(fd, FILE_MAX_BYTES, ret, ret_length);
        if (r < 0 && r != -ENOMEM) {
                refuse_source(load, source, "cannot read: %s; %s", strerror(-r), source->remedy);
                return -EINVAL;
        }
        return r;
}

/* file is the number of an included file, from 1; 0: the config file itself. */
static int read_ini_file(const struct load *load, const char *path, unsigned file, const char *remedy)
{
        const struct ini_source source = {.path = path, .remedy = remedy, .line = settings_line(file, 0)};
        _cleanup_free_ char *text = NULL;
        size_t length = 0;

        int r = read_file(load, &source, &text, &length);
        return r < 0 ? r : read_ini(text, length, file, load->draft, load->errors);
}

/* A missing directory contains no files, but an unreadable directory may. */
static int on_glob_error(const char *path _unused_, int error)
{
        return error != ENOENT && error != ENOTDIR;
}

/* Reads the files that match `include`, in the order of their names, as if appended to the config file. */
static int read_included(const struct load *load)
{
        const char *pattern = load->settings->include;
        unsigned line = settings_draft_line(load->draft, NULL, "include");
        glob_t found = {0};
        int r = 0;

        if (!pattern)
                return 0;
        int outcome = glob(pattern, GLOB_NOMAGIC, on_glob_error, &found);
        if (outcome == GLOB_NOSPACE)
                r = -ENOMEM;
        else if (outcome == GLOB_ABORTED)
                refuse_key(load, NULL, "include",
                           "include = %s: cannot read the directory; make the directory readable by sqmgr's "
                           "user",
                           pattern);
        else if (found.gl_pathc > SETTINGS_FILES_MAX)
                refuse_key(load, NULL, "include",
                           "include = %s: %zu files match, the maximum is %d; merge some of them", pattern,
                           (size_t)found.gl_pathc, SETTINGS_FILES_MAX);
        else if (found.gl_pathc == 0)
                settings_errors_add(load->warnings, line, "include = %s: no file matches", pattern);
        for (unsigned i = 0; i < found.gl_pathc && found.gl_pathc <= SETTINGS_FILES_MAX && r == 0; i++) {
                r = settings_errors_add_file(load->errors, found.gl_pathv[i]);
                if (r == 0)
                        r = settings_errors_add_file(load->warnings, found.gl_pathv[i]);
                if (r == 0)
                        r = read_ini_file(load, found.gl_pathv[i], i + 1, "exclude the path from 'include'");
                /* Continue with the other files, to report all errors at once. */
                if (r == -EINVAL)
                        r = 0;
        }
        globfree(&found);
        return r;
}

/* Sets the password to the first line of password_file. Returns 0, also if an error was added, or -ENOMEM. */
static int read_password(const struct load *load)
{
        struct redis_settings *redis = &load->settings->redis;
        _cleanup_free_ char *text = NULL;
        size_t length = 0;

        if (!redis->password_file || redis->password)
                return 0;
        struct ini_source source = source_of_key(load, NULL, "password_file", redis->password_file,
                                                 "put the password on the first line of that file");
        int r = read_file(load, &source, &text, &length);
        if (r < 0)
                return r == -EINVAL ? 0 : r;

        size_t end = strcspn(text, "\r\n");
        if (end == 0 || (end == strlen(text) && end < length)) {
                refuse_source(load, &source, "the first line is %s; put the password there",
                              end == 0 ? "empty" : "not text");
                return 0;
        }
        text[end] = '\0';
        redis->password = TAKE_PTR(text);
        return 0;
}

/* Sets the fleet's database_url to that of its database_url_file. */
static int read_database_url(const struct load *load, struct fleet_settings *fleet)
{
        const struct settings_key *key = settings_key_find(SETTINGS_FLEET, "database_url");
        const struct settings_surroundings nothing = {0};
        _cleanup_free_ char *text = NULL, *url = NULL;
        const char *error = NULL;
        char why[SETTINGS_WHY_MAX];
        size_t length = 0;

        if (!fleet->database_url_file || fleet->database_url || !fleet_settings_need_database(fleet))
                return 0;
        struct ini_source source = source_of_key(load, fleet, "database_url_file", fleet->database_url_file,
                                                 "put the URL of the database into that file");
        int r = read_file(load, &source, &text, &length);
        if (r < 0)
                return r == -EINVAL ? 0 : r;
        r = database_url_of_file(text, length, &url, &error);
        if (r == -EINVAL)
                refuse_source(load, &source, "%s; %s", error, source.remedy);
        if (r < 0)
                return r == -EINVAL ? 0 : r;
        r = settings_value_parse(key, url, &nothing, fleet, why);
        if (r == -EINVAL)
                refuse_source(load, &source, "%s", why);
        else if (r == 0 && !fleet_settings_database_fits(fleet))
                refuse_source(load, &source, "framework '%s' requires postgresql://", fleet->traits->name);
        return r == -EINVAL ? 0 : r;
}

/* Checks that TLS files are trusted as the password file is, and usable. */
static int check_tls(const struct load *load)
{
        const struct redis_settings *redis = &load->settings->redis;
        const struct {
                const char *key, *path;
        } files[] = {
                [SETTINGS_TLS_CA] = {"tls_ca_file", redis->tls_ca_file},
                [SETTINGS_TLS_CERT] = {"tls_cert_file", redis->tls_cert_file},
                [SETTINGS_TLS_KEY] = {"tls_key_file", redis->tls_key_file},
        };
        size_t before = load->errors->n;
        struct settings_tls_refusal refusal;
        bool any = false;

        for (size_t i = 0; i < ELEMENTSOF(files); i++) {
                _cleanup_free_ char *text = NULL;
                size_t length;

                if (!files[i].path)
                        continue;
                any = true;
                struct ini_source source = source_of_key(load, NULL, files[i].key, files[i].path,
                                                         "put a PEM file there or set another path");
                int r = read_file(load, &source, &text, &length);
                if (text)
                        explicit_bzero(text, length);
                if (r == -ENOMEM)
                        return r;
        }
        if (!any || !load->judge_tls || load->errors->n > before || load->errors->lost)
                return 0;
        int r = load->judge_tls(redis, &refusal);
        if (r == 0 || r == -ENOMEM)
                return r;
        if (r != -EINVAL) {
                settings_errors_add(load->warnings, 0, "the TLS files could not be checked: %s",
                                    strerrordesc_np(-r));
                return 0;
        }
        refuse_key(load, NULL, files[refusal.file].key, "%s", refusal.why);
        return 0;
}

static void check_group(const struct load *load, const char *name)
{
        if (!name)
                return;
        errno = 0;
        if (getgrnam(name))
                return;
        bool is_unknown = errno == 0 || errno == ENOENT || errno == ESRCH || errno == EBADF || errno == EPERM;
        refuse_key(load, NULL, "socket_group", "socket_group = %s: %s", name,
                   is_unknown ? "no such group; create the group or set another" : strerror(errno));
}

static int load_draft(const struct load *load, const char *path)
{
        const struct settings *settings = load->settings;

        int r = read_ini_file(load, path, 0,
                              "write it with 'sqmgr init', or name another file with -c or SQMGR_CONFIG");
        if (r == 0)
                r = read_included(load);
        if (r == 0)
                r = settings_draft_finish(load->draft);
        if (r == 0)
                r = read_password(load);
        if (r == 0)
                r = check_tls(load);
        for (size_t i = 0; i < settings->n_fleets && r == 0; i++)
                r = read_database_url(load, settings->fleets[i]);
        if (r < 0)
                return r;
        check_group(load, settings->socket_group);
        return settings_errors_any(load->errors) ? -EINVAL : 0;
}

int ini_load_for(const char *path, const struct settings_surroundings *surroundings, struct settings **ret,
                 struct settings_errors *errors, struct settings_errors *warnings)
{
        struct load load = {.judge_tls = surroundings->judge_tls, .errors = errors, .warnings = warnings};
        _cleanup_settings_draft_ struct settings_draft *draft = NULL;

        int r = settings_draft_new(surroundings, errors, warnings, &draft);
        if (r == 0) {
                load.draft = draft;
                load.settings = settings_draft_settings(draft);
                r = load_draft(&load, path);
        }
        if (r == -ENOMEM)
                errors->lost = true;
        if (r < 0)
                return r;
        *ret = settings_draft_take(draft);
        return 0;
}

int ini_load(const char *path, const struct traits *const *frameworks, settings_tls_fn judge_tls,
             struct settings **ret, struct settings_errors *errors, struct settings_errors *warnings)
{
        char user[256];

        users_name(geteuid(), user, sizeof(user));
        struct settings_surroundings surroundings = {
                .frameworks = frameworks,
                .user = user[0] != '\0' ? user : NULL,
                .redis_url = getenv("REDIS_URL"),
                .database_url = getenv("DATABASE_URL"),
                .service_dir = getenv("RUNTIME_DIRECTORY"),
                .runtime_dir = getenv("XDG_RUNTIME_DIR"),
                .state_dir = getenv("STATE_DIRECTORY"),
                .state_home = getenv("XDG_STATE_HOME"),
                .home = getenv("HOME"),
                .judge_tls = judge_tls,
        };
        struct proc_host *host = NULL;

        /* If unknown (0), only values in percent of memory are refused. */
        if (proc_host_open(NULL, NULL, &host) == 0) {
                (void)proc_total_memory_bytes(host, &surroundings.memory_total_bytes);
                proc_host_close(host);
        }
        return ini_load_for(path, &surroundings, ret, errors, warnings);
}
