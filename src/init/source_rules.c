/* SPDX-License-Identifier: MIT */
/* Translates what another supervisor is configured with into keys of a fleet; see the header. */
#include "init/source_rules.h"
#include "base/argv.h"
#include "base/memstream.h"
#include "base/parse.h"
#include "settings/draft.h"
#include <ctype.h>
#include <string.h>

#define BLANKS       " \t"
#define NAME_LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"

/* Not a key: sqmgr does not run with it. */
#define UNFIT "unfit"

/* Names of one source, and the key of ours. NULL: sqmgr does this itself, or needs no such thing. */
struct translation {
        const char *name, *key;
};

/* A name that ends with '*' matches every name with that beginning. The first row that matches counts. */
static const struct translation of_systemd[] = {
        {"ExecStart", "command"},
        {"ExecStartPre", "before_start"},
        {"WorkingDirectory", "directory"},
        {"User", PROPOSAL_USER},
        {"Group", PROPOSAL_GROUP},
        {"EnvironmentFile", "environment_file"},
        {"KillSignal", "stop_signal"},
        {"TimeoutSec", "stop_timeout"},
        {"TimeoutStopSec", "stop_timeout"},
        {"DynamicUser", UNFIT},
        {"OOMScoreAdjust", UNFIT},
        {"PrivatePIDs", UNFIT},
        {"ProcSubset", UNFIT},
        {"Root*", UNFIT},
        {"ExecReload", NULL},
        {"ExecStop", NULL},
        {"KillMode", NULL},
        {"NotifyAccess", NULL},
        {"OOMPolicy", NULL},
        {"Restart*", NULL},
        {"Start*", NULL},
        {"StandardError", NULL},
        {"StandardInput", NULL},
        {"SyslogIdentifier", NULL},
        {"TimeoutStartSec", NULL},
        {"Type", NULL},
        {"WatchdogSec", NULL},
};

/* Names of systemd for the unit of sqmgr, from which workers inherit them. */
static const char of_unit[] = "Ambient* AppArmorProfile Bind* BlockIO* CPU* CacheDirectory Capability* "
                              "Device* ExecPaths IO* IP* Inaccessible* Keyring* Limit* LoadCredential* "
                              "LockPersonality LogsDirectory Memory* Mount* NUMA* Nice NoExecPaths "
                              "NoNewPrivileges PassEnvironment Private* Protect* Read* RemoveIPC "
                              "Restrict* RuntimeDirectory SELinuxContext SecureBits SetCredential* Slice "
                              "SmackProcessLabel StateDirectory SupplementaryGroups SystemCall* Tasks* "
                              "TemporaryFileSystem TimerSlackNSec UMask UnsetEnvironment";

static const struct translation of_supervisord[] = {
        {"command", "command"},
        {"directory", "directory"},
        {"user", PROPOSAL_USER},
        {"numprocs", "active_process_count"},
        {"stdout_logfile", "log"},
        {"stopsignal", "stop_signal"},
        {"stopwaitsecs", "stop_timeout"},
        {"auto*", NULL},
        {"exitcodes", NULL},
        {"killasgroup", NULL},
        {"numprocs_start", NULL},
        {"priority", NULL},
        {"process_name", NULL},
        {"redirect_stderr", NULL},
        {"start*", NULL},
        {"stderr_logfile*", NULL},
        {"stdout_*", NULL},
        {"stopasgroup", NULL},
};

struct reader {
        const char *text; /* the rest */
        size_t length;
        enum entries_style style;
        unsigned line; /* the last one that was read */
};

static bool is_blank(char c)
{
        return isspace((unsigned char)c) || c == '\0';
}

/* Takes one line, without its outer blanks. */
static const char *take_line(struct reader *reader, size_t *ret_length)
{
        const char *start = reader->text, *newline = memchr(start, '\n', reader->length);
        const char *end = newline ? newline : start + reader->length;

        reader->length -= (size_t)(end - start) + (newline ? 1 : 0);
        reader->text = newline ? newline + 1 : end;
        reader->line++;
        for (const char *p = start + 1; reader->style == ENTRIES_SUPERVISORD && p < end; p++)
                if ((*p == ';' || *p == '#') && is_blank(p[-1]))
                        end = p;
        while (start < end && is_blank(*start))
                start++;
        while (end > start && is_blank(end[-1]))
                end--;
        *ret_length = (size_t)(end - start);
        return start;
}

static bool is_continued(const struct reader *reader, const char *line, size_t length)
{
        if (reader->style == ENTRIES_SYSTEMD)
                return line[length - 1] == '\\';
        return reader->length > 0 && (reader->text[0] == ' ' || reader->text[0] == '\t');
}

/* Writes the next line that is no comment, with those that continue it, at `to`. Returns its end: `to` if
 * there is none. *ret_line is its number. */
static char *join_lines(struct reader *reader, char *to, unsigned *ret_line)
{
        char *start = to;
        size_t length;
        bool more = true;

        while (more && reader->length > 0) {
                const char *line = take_line(reader, &length);

                if (length > 0 && (*line == '#' || *line == ';')) {
                        if (to > start && reader->style == ENTRIES_SUPERVISORD)
                                more = is_continued(reader, line, length);
                        continue;
                }
                if (to == start)
                        *ret_line = reader->line;
                more = length > 0 ? is_continued(reader, line, length) : to == start;
                if (more && length > 0 && reader->style == ENTRIES_SYSTEMD)
                        length--;
                for (size_t i = 0; i < length; i++)
                        *to++ = line[i] != '\0' ? line[i] : '?';
                if (more && to > start)
                        *to++ = ' ';
        }
        while (to > start && is_blank(to[-1]))
                to--;
        *to = '\0';
        return to;
}

/* Splits a line into name and value, in place. Returns -EINVAL for a line that is no entry. */
static int split_entry(char *line, enum entries_style style, struct entry *entry)
{
        char *separator = strpbrk(line, style == ENTRIES_SYSTEMD ? "=" : "=:"), *end = separator;

        if (!separator)
                return -EINVAL;
        while (end > line && is_blank(end[-1]))
                end--;
        *end = '\0';
        entry->name = line;
        entry->value = separator + 1;
        while (*entry->value != '\0' && is_blank(*entry->value))
                entry->value++;
        return 0;
}

int entries_read(struct entries *entries, const char *text, size_t length, enum entries_style style,
                 unsigned *ret_line)
{
        struct reader reader = {.text = text, .length = length, .style = style};
        const char *section = "";

        /* Each line ends with a NUL, where the text has a newline or ends. */
        char *line = entries->text = malloc(length + 2), *end;
        if (!line)
                return -ENOMEM;
        for (; (end = join_lines(&reader, line, ret_line)) > line; line = end + 1) {
                struct entry entry = {.section = section,
                                      .line = *ret_line,
                                      .too_long = end - line > SETTINGS_LINE_BYTES_MAX};
                char *bracket = *line == '[' ? strchr(line, ']') : NULL;

                if (bracket) {
                        *bracket = '\0';
                        section = line + 1;
                        continue;
                }
                if (*line == '[' || split_entry(line, style, &entry) < 0)
                        return -EINVAL;
                if (!ARRAY_RESERVE(entries->list, entries->n, entries->allocated))
                        return -ENOMEM;
                entries->list[entries->n++] = entry;
        }
        return 0;
}

void entries_done(struct entries *entries)
{
        free(entries->text);
        free(entries->list);
        *entries = (struct entries){0};
}

/* The pattern ends with a blank or the text. */
static bool matches(const char *pattern, const char *name)
{
        size_t length = strcspn(pattern, "* ");

        return strncmp(pattern, name, length) == 0 && (name[length] == '\0' || pattern[length] == '*');
}

static bool is_of_unit(const char *name)
{
        const char *pattern = of_unit;

        while (pattern && !matches(pattern, name)) {
                pattern = strchr(pattern, ' ');
                pattern = pattern ? pattern + 1 : NULL;
        }
        return pattern;
}

/* Returns the first row for that name, or NULL. */
static const struct translation *find(const struct translation *rows, size_t n, const char *name)
{
        for (size_t i = 0; i < n; i++)
                if (matches(rows[i].name, name))
                        return &rows[i];
        return NULL;
}

/* Replaces each pair of that character by one, in place. Returns true if one stands alone. */
static bool undouble(char *text, char c)
{
        bool alone = false;
        char *to = text;

        for (const char *from = text; *from != '\0'; from++) {
                if (*from == c && from[1] == c)
                        from++;
                else if (*from == c)
                        alone = true;
                *to++ = *from;
        }
        *to = '\0';
        return alone;
}

/* Has a shell start a command with characters or assignments that sqmgr would take literally. The worker
 * should take the place of the shell, to which signals are sent. */
static void set_shell_command(struct proposal *proposal, const char *from, const char *command,
                              const char *special)
{
        size_t name = strspn(command, NAME_LETTERS);
        bool assigns = name > 0 && command[name] == '=';
        bool several = strchr(special, ';') &&
                       (strpbrk(command, ";&|(\n") || strncmp(command, "exec ", strlen("exec ")) == 0);
        const char *before = several ? "" : assigns ? "exec env " : "exec ";
        _cleanup_free_ char *quoted = NULL;
        size_t size = 0;

        if (!assigns && !strpbrk(command, special)) {
                proposal_set(proposal, from, "command", command);
                return;
        }
        _cleanup_free_ char *script = proposal_text(proposal, "%s%s", before, command);
        FILE *out = script ? open_memstream(&quoted, &size) : NULL;
        if (out) {
                fputs("/bin/sh -c ", out);
                argv_put_quoted(out, script);
        }
        proposal->lost |= memstream_close(out, &quoted) < 0;
        if (proposal->lost)
                return;
        proposal_note(proposal, "%s: a shell starts it, since sqmgr expands nothing%s", from,
                      several ? ": write 'exec' before the worker's program" : "");
        proposal_set(proposal, from, "command", quoted);
}

/* Refuses %i of systemd and %(ENV_HOME)s of supervisord: their values are not known here. */
static bool refuse_expansion(struct proposal *proposal, const char *name, char *value)
{
        if (!undouble(value, '%'))
                return false;
        proposal_note(proposal, "%s: not taken over: sqmgr does not expand the '%%' in '%s'", name, value);
        return true;
}

static void set_seconds(struct proposal *proposal, const char *name, const char *key, const char *value)
{
        char text[FORMAT_MAX];

        snprintf(text, sizeof(text), "%ss", value);
        if (strcmp(value, "infinity") == 0)
                value = "none";
        proposal_set(proposal, name, key, value[strspn(value, "0123456789")] == '\0' ? text : value);
}

/* The limit of the kernel ends a process in the middle of its jobs: sqmgr is to replace it before. */
static void set_memory(struct proposal *proposal, const char *name, const char *value)
{
        char text[FORMAT_MAX];
        uint64_t bytes;

        if (proposal_get(proposal, "memory_threshold"))
                return;
        if (parse_size(value, proposal->surroundings->memory_total_bytes, &bytes) < 0) {
                if (strcmp(value, "infinity") != 0)
                        proposal_note(proposal, "%s=%s: not taken over: set memory_threshold", name, value);
                return;
        }
        proposal_set(proposal, name, "memory_threshold",
                     format_size_exact((bytes / 4 * 3) & ~((UINT64_C(1) << 20) - 1), text, sizeof(text)));
        proposal_note(proposal,
                      "%s=%s: memory_threshold is three quarters of that, for each worker. In the drop-in it "
                      "is for all workers together: multiply it by their number",
                      name, value);
}

static void add_words(struct proposal *proposal, const char *name, const char *key, const char *value)
{
        const char *before = proposal_get(proposal, key);
        _cleanup_free_ char *both = proposal_text(proposal, "%s%s%s", before ?: "", before ? " " : "", value);

        proposal_set(proposal, name, key, both);
}

/* Returns true if systemd reads a backslash otherwise than sqmgr: \n, \x20, and any between single quotes. */
static bool has_escapes(const char *text)
{
        char quote = '\0';

        for (const char *p = text; *p != '\0'; p++) {
                if (quote ? *p == quote : *p == '\'' || *p == '"')
                        quote = quote ? '\0' : *p;
                else if (*p == '\\' &&
                         (quote == '\'' || p[1] == '\0' || !strchr(quote ? "\"\\" : "\"'\\", p[1])))
                        return true;
                else if (*p == '\\')
                        p++;
        }
        return false;
}

/* Compares what systemd and a shell make of a command. systemd expands ${NAME} anywhere, and $NAME if that is
 * a whole word; $$ is a dollar sign. *ret_same: a shell expands the same and nothing else. */
static void judge_variables(const char *command, bool *ret_expanded, bool *ret_same)
{
        char quote = '\0';

        *ret_expanded = false;
        *ret_same = true;
        for (const char *p = command; *p != '\0'; p++) {
                size_t name = *p == '$' ? strspn(p + 1, NAME_LETTERS) : 0;
                bool begins = p == command || strchr(quote ? "'\"" : BLANKS, p[-1]);
                bool quoted = quote && begins && name > 0 && p[1 + name] == quote;
                bool expanded = *p == '$' && (p[1] == '{' || quoted || (!quote && begins && p[1] != '$'));

                *ret_expanded |= expanded;
                if (*p == '$' && (quoted || p[1] == '$' || (!expanded && quote != '\'')))
                        *ret_same = false;
                if (*p == '$' && p[1] == '$')
                        p++;
                else if (quote ? *p == quote : *p == '\'' || *p == '"')
                        quote = quote ? '\0' : *p;
                else if (quote != '\'' && strchr(quote ? "`\\" : "`\\;&|<>()*?[#~", *p))
                        *ret_same = false;
        }
}

/* Returns false if none of the variables is set. */
static bool take_swarm_variables(struct proposal *proposal, const struct environment *variables)
{
        const char *count = environment_get(variables, "SIDEKIQ_COUNT");
        const char *memory = environment_get(variables, "SIDEKIQ_MAXMEM_MB");
        const char *groups = environment_get(variables, "SIDEKIQ_PRELOAD");
        const char *app = environment_get(variables, "SIDEKIQ_PRELOAD_APP");
        _cleanup_free_ char *size = memory ? proposal_text(proposal, "%sM", memory) : NULL;

        if (!count && !memory && !groups && !app)
                return false;
        if (!proposal_get(proposal, "command"))
                proposal_set(proposal, "command", "command", "bundle exec sidekiq");
        if (count)
                proposal_set(proposal, "SIDEKIQ_COUNT", "active_process_count", count);
        else
                proposal_note(proposal,
                              "SIDEKIQ_COUNT: not set, sidekiqswarm starts one process for each processor: "
                              "set active_process_count");
        proposal_set(proposal, "SIDEKIQ_MAXMEM_MB", "memory_threshold", size);
        if (app && *app != '\0' && strcmp(app, "0") != 0)
                proposal_set(proposal, "SIDEKIQ_PRELOAD_APP", "preload", "yes");
        else if (groups && *groups != '\0')
                proposal_note(proposal,
                              "SIDEKIQ_PRELOAD=%s: not taken over: 'preload = yes' loads the whole "
                              "application",
                              groups);
        return true;
}

/* sidekiqswarm forks workers, which sqmgr starts itself. */
static void replace_swarm(struct proposal *proposal)
{
        static const char swarm[] = "sidekiqswarm";
        const char *command = proposal_get(proposal, "command");
        _cleanup_environment_ struct environment variables = {0};
        const char *at = command ? proposal_find_program(command, swarm) : NULL;

        if (!at)
                return;
        _cleanup_free_ char *plain =
                proposal_text(proposal, "%.*ssidekiq%s", (int)(at - command), command, at + strlen(swarm));
        proposal_set(proposal, swarm, "command", plain);
        (void)proposal_get_variables(proposal, &variables);
        if (!take_swarm_variables(proposal, &variables))
                proposal_note(proposal, "sidekiqswarm: set active_process_count to its SIDEKIQ_COUNT");
}

static void take_exec(struct proposal *proposal, const struct entry *entry, const char *key)
{
        char *command = entry->value + strspn(entry->value, "-:+!|@");
        size_t prefixes = (size_t)(command - entry->value);
        bool literal = memchr(entry->value, ':', prefixes), expanded, same;

        judge_variables(command, &expanded, &same);
        expanded = expanded && !literal;
        if (!literal && !expanded)
                (void)undouble(command, '$');
        if (proposal_get(proposal, key))
                proposal_note(proposal, "%s=%s: not taken over: a fleet has one %s", entry->name, command,
                              key);
        else if (expanded && (strcmp(key, "command") != 0 || !same))
                proposal_note(proposal, "%s=%s: not taken over: sqmgr expands no variables", entry->name,
                              command);
        else if (strcmp(key, "command") != 0)
                proposal_set(proposal, entry->name, key, command);
        else if (memchr(entry->value, '@', prefixes))
                (void)proposal_fail(proposal,
                                    "%s=%s: sqmgr cannot give a program another name: write the command "
                                    "without '@' and the name",
                                    entry->name, entry->value);
        else if (expanded)
                set_shell_command(proposal, entry->name, command, "$");
        else
                proposal_set(proposal, entry->name, key, command);
        if (strcmp(key, "command") != 0 && memchr(entry->value, '-', prefixes))
                proposal_note(proposal, "%s: sqmgr starts no worker if this fails, in spite of the '-'",
                              entry->name);
        if (memchr(entry->value, '+', prefixes) || memchr(entry->value, '!', prefixes))
                proposal_note(proposal, "%s: runs as sqmgr's user, without the rights of '+' or '!'",
                              entry->name);
}

static void note_too_long(struct proposal *proposal, const struct entry *entry, const char *remedy)
{
        proposal_note(proposal, "%s, line %u: not taken over: longer than %d bytes: %s", entry->name,
                      entry->line, SETTINGS_LINE_BYTES_MAX, remedy);
}

static bool has_controls(const char *text)
{
        for (; *text != '\0'; text++)
                if ((unsigned char)*text < ' ' && *text != '\t')
                        return true;
        return false;
}

/* Returns true if the value has a specifier that stands for the name of its unit. */
static bool names_its_unit(const char *value)
{
        for (const char *p = value; (p = strchr(p, '%')); p += p[1] != '\0' ? 2 : 1)
                if (p[1] != '\0' && strchr("fiIjJnNpP", p[1]))
                        return true;
        return false;
}

/* An empty value takes back what comes before. */
static void take_for_unit(struct proposal *proposal, const struct entry *entry, const char *name)
{
        if (entry->too_long) {
                note_too_long(proposal, entry, "copy it to the drop-in");
        } else if (has_controls(entry->value)) {
                proposal_note(proposal, "%s=%s: not taken over: it has control characters", name,
                              entry->value);
        } else if (names_its_unit(entry->value)) {
                proposal_note(proposal,
                              "%s=%s: not taken over: the '%%' has another value in the unit of sqmgr", name,
                              entry->value);
        } else {
                proposal_add_unit(proposal, name, entry->value);
                if (*entry->value != '\0' &&
                    (strcmp(name, "MemoryMax") == 0 || strcmp(name, "MemoryHigh") == 0 ||
                     strcmp(name, "MemoryLimit") == 0))
                        set_memory(proposal, name, entry->value);
        }
}

static void note_unknown(struct proposal *proposal, const struct entry *entry, const char *key)
{
        const char *why = !key                                         ? "sqmgr has no such key"
                          : strcmp(entry->name, "OOMScoreAdjust") == 0 ? "sqmgr is small, and its workers "
                                                                         "would inherit it"
                                                                       : "sqmgr does not run with it";

        proposal_note(proposal, "%s=%s: not taken over: %s", entry->name, entry->value, why);
}

static void take_of_systemd(struct proposal *proposal, struct entry *entry)
{
        const struct translation *row = find(of_systemd, ELEMENTSOF(of_systemd), entry->name);
        const char *key = row ? row->key : NULL, *name = entry->name;
        char *value = entry->value;

        if (strcmp(name, "Environment") == 0)
                key = "environment";
        if (!row && is_of_unit(name)) {
                take_for_unit(proposal, entry, name);
        } else if (*value == '\0') {
                if (key)
                        environment_remove(&proposal->keys, key);
        } else if (strcmp(name, "Type") == 0 && strcmp(value, "forking") == 0) {
                proposal_note(proposal, "Type=forking: the command of sqmgr must stay in the foreground");
        } else if (row && !key) {
                return;
        } else if (entry->too_long) {
                note_too_long(proposal, entry, "move a long command to a script");
        } else if (refuse_expansion(proposal, name, value)) {
                return;
        } else if (key && (strncmp(name, "Exec", strlen("Exec")) == 0 || strcmp(key, "environment") == 0) &&
                   has_escapes(value)) {
                proposal_note(proposal,
                              "%s=%s: not taken over: sqmgr does not read backslashes as systemd does", name,
                              value);
        } else if (strcmp(name, "StandardOutput") == 0) {
                const char *path = strchr(value, ':');
                if (path)
                        proposal_set(proposal, name, "log", path + 1);
        } else if (strcmp(name, "Environment") == 0) {
                add_words(proposal, name, key, value);
        } else if (!key || strcmp(key, UNFIT) == 0) {
                note_unknown(proposal, entry, key);
        } else if (strncmp(name, "Exec", strlen("Exec")) == 0) {
                take_exec(proposal, entry, key);
        } else if (strcmp(name, "EnvironmentFile") == 0 && proposal_get(proposal, key)) {
                proposal_note(proposal,
                              "%s=%s: not taken over: a fleet has one environment_file: put both into one",
                              name, value);
        } else if (strcmp(key, "stop_timeout") == 0) {
                set_seconds(proposal, name, key, value);
        } else {
                bool optional = *value == '-' && (strcmp(name, "WorkingDirectory") == 0 ||
                                                  strcmp(name, "EnvironmentFile") == 0);
                if (optional)
                        proposal_note(proposal, "%s=%s: sqmgr starts no worker while this is missing", name,
                                      value);
                proposal_set(proposal, name, key, value + optional);
        }
}

int source_systemd(struct proposal *proposal, const struct entries *entries)
{
        bool service = false;

        for (size_t i = 0; i < entries->n; i++)
                if (strcmp(entries->list[i].section, "Service") == 0) {
                        service = true;
                        if (strcmp(entries->list[i].name, "User") == 0)
                                environment_remove(&proposal->keys, PROPOSAL_USER);
                        take_of_systemd(proposal, &entries->list[i]);
                }
        if (!service)
                return proposal_fail(proposal,
                                     "there is no section [Service]: this is no service of systemd");
        replace_swarm(proposal);
        return proposal->error[0] != '\0' ? -EINVAL : 0;
}

/* A="b",C="d" as A="b" C="d": commas outside of quotes become blanks. */
static void set_pairs(struct proposal *proposal, const char *name, char *value)
{
        char quote = '\0';

        for (char *p = value; *p != '\0'; p++) {
                if (quote ? *p == quote : *p == '\'' || *p == '"')
                        quote = quote ? '\0' : *p;
                else if (*p == ',' && !quote)
                        *p = ' ';
        }
        proposal_set(proposal, name, "environment", value);
}

static void take_of_supervisord(struct proposal *proposal, struct entry *entry)
{
        const struct translation *row = find(of_supervisord, ELEMENTSOF(of_supervisord), entry->name);
        char *value = entry->value;

        if (row && !row->key)
                return;
        if (strcmp(entry->name, "umask") == 0)
                take_for_unit(proposal, entry, "UMask");
        else if (entry->too_long)
                note_too_long(proposal, entry, "move a long command to a script");
        else if (refuse_expansion(proposal, entry->name, value))
                return;
        else if (strcmp(entry->name, "environment") == 0)
                set_pairs(proposal, entry->name, value);
        else if (!row)
                note_unknown(proposal, entry, NULL);
        else if (strcmp(row->key, "stop_timeout") == 0)
                set_seconds(proposal, entry->name, row->key, value);
        else if (strcmp(row->key, "log") != 0 || *value == '/')
                proposal_set(proposal, entry->name, row->key, value);
}

/* Returns the name of the program in a section [program:NAME], or NULL. */
static const char *program_of(const struct entry *entry)
{
        static const char prefix[] = "program:";

        return strncmp(entry->section, prefix, strlen(prefix)) == 0 ? entry->section + strlen(prefix) : NULL;
}

int source_supervisord(struct proposal *proposal, const struct entries *entries, const char *program,
                       const char **ret_name)
{
        const char *found = NULL;

        for (size_t i = 0; i < entries->n; i++) {
                const char *name = program_of(&entries->list[i]);

                if (!name || (program && strcmp(name, program) != 0))
                        continue;
                if (found && strcmp(found, name) != 0)
                        return proposal_fail(
                                proposal,
                                "there are several programs, as '%s' and '%s': choose one by --entry", found,
                                name);
                found = name;
        }
        if (!found)
                return proposal_fail(proposal, "there is no section [program:%s]", program ?: "NAME");
        for (size_t i = 0; i < entries->n; i++) {
                const char *name = program_of(&entries->list[i]);

                if (name && strcmp(name, found) == 0)
                        take_of_supervisord(proposal, &entries->list[i]);
        }
        *ret_name = found;
        replace_swarm(proposal);
        return proposal->error[0] != '\0' ? -EINVAL : 0;
}

/* Reads the line `NAME: COMMAND` at text. Returns the command, or NULL for a comment or a blank line;
 * *ret_length is that of the name. */
static const char *process_of(const char *text, size_t *ret_length)
{
        size_t name = strcspn(text, ": \t\n");

        *ret_length = name;
        return name > 0 && text[name] == ':' && text[0] != '#'
                       ? text + name + 1 + strspn(text + name + 1, " \t")
                       : NULL;
}

int source_procfile(struct proposal *proposal, const char *text, const char *process, char **ret_name)
{
        static const char *const usual[] = {"worker", "sidekiq"};
        const char *command = NULL, *name = NULL;
        size_t length = 0, n = 0;
        bool chosen = false;

        for (const char *line = text; *line != '\0'; line += strcspn(line, "\n"), line += *line == '\n') {
                size_t here;
                const char *found = process_of(line, &here);
                bool wanted = process && strlen(process) == here && strncmp(line, process, here) == 0;

                for (size_t i = 0; !process && i < ELEMENTSOF(usual); i++)
                        wanted |= strlen(usual[i]) == here && strncmp(line, usual[i], here) == 0;
                if (!found || (process && !wanted) || chosen)
                        continue;
                n++;
                chosen = wanted;
                command = found;
                name = line;
                length = here;
        }
        if (n == 0)
                return proposal_fail(proposal,
                                     process ? "there is no line '%s: COMMAND'"
                                             : "there is no line 'NAME: COMMAND'%s",
                                     process ?: "");
        if (n > 1 && !chosen)
                return proposal_fail(proposal, "there are several processes: choose one by --entry");
        size_t end = strcspn(command, "\r\n");
        _cleanup_free_ char *copy = strndup(command, end);
        *ret_name = strndup(name, length);
        if (!copy || !*ret_name) {
                proposal->lost = true;
                return proposal_fail(proposal, "out of memory");
        }
        set_shell_command(proposal, *ret_name, copy, "$`;&|<>()*?[#~");
        replace_swarm(proposal);
        return 0;
}

int source_sidekiqswarm(struct proposal *proposal, const struct environment *variables)
{
        if (take_swarm_variables(proposal, variables))
                return 0;
        return proposal_fail(proposal, "none of SIDEKIQ_COUNT, SIDEKIQ_MAXMEM_MB, SIDEKIQ_PRELOAD and "
                                       "SIDEKIQ_PRELOAD_APP is set");
}
