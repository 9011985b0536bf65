/* SPDX-License-Identifier: MIT */
/* The entries of a unit of systemd or a config file of supervisord. inih splits sections, names and values;
 * it is given whole lines only, so that its build options make no difference. */
#include "init/entries.h"
#include <ctype.h>
#include <ini.h>
#include <string.h>

/* Replaces a ';' after a blank, which inih would take for the beginning of a comment. */
#define MASK '\001'

struct reader {
        const char *text; /* the rest */
        size_t length;
        enum entries_style style;
        unsigned line;       /* the last one that was read */
        unsigned begun;      /* the first one of the current entry */
        unsigned wrong_line; /* 0: none */
        bool cut;            /* the current entry is longer than inih's buffer */
        struct entries *entries;
        bool lost; /* memory was short */
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

/* Passes the next entry to inih, as fgets() does. */
static char *read_line(char *buffer, int size, void *stream)
{
        struct reader *reader = stream;
        size_t used = 0, length;
        bool more = true;

        reader->cut = false;
        while (more && reader->length > 0) {
                const char *line = take_line(reader, &length);

                if (length > 0 && (*line == '#' || *line == ';')) {
                        if (used > 0 && reader->style == ENTRIES_SUPERVISORD)
                                more = is_continued(reader, line, length);
                        continue;
                }
                if (used == 0)
                        reader->begun = reader->line;
                if (length == 0) {
                        more = used == 0;
                        continue;
                }
                more = is_continued(reader, line, length);
                if (more && reader->style == ENTRIES_SYSTEMD)
                        length--;
                for (size_t i = 0; i < length + (more ? 1 : 0); i++) {
                        char c = i < length ? line[i] : ' ';
                        bool comment = c == ';' && used > 0 && is_blank(buffer[used - 1]);

                        if (c == ' ' && used == 0)
                                continue;
                        if (used + sizeof("\n") < (size_t)size)
                                buffer[used++] = comment ? MASK : c == '\0' || c == MASK ? '?' : c;
                        else
                                reader->cut = true;
                }
        }
        if (used == 0)
                return NULL;
        buffer[used] = '\n';
        buffer[used + 1] = '\0';
        const char *separators = reader->style == ENTRIES_SYSTEMD ? "=" : "=:";
        if (reader->wrong_line == 0 &&
            !(buffer[0] == '[' ? strchr(buffer, ']') : strpbrk(buffer, separators)))
                reader->wrong_line = reader->begun;
        return buffer;
}

static int take_entry(void *userdata, const char *section, const char *name, const char *value)
{
        struct reader *reader = userdata;
        struct entries *entries = reader->entries;

        if (!ARRAY_RESERVE(entries->list, entries->n, entries->allocated)) {
                reader->lost = true;
                return 1;
        }
        struct entry *entry = &entries->list[entries->n++];
        *entry = (struct entry){
                .section = strdup(section),
                .name = strdup(name),
                .value = strdup(value ?: ""),
                .line = reader->begun,
                .cut = reader->cut,
        };
        reader->lost = reader->lost || !entry->section || !entry->name || !entry->value;
        for (char *p = entry->value; p && *p != '\0'; p++)
                if (*p == MASK)
                        *p = ';';
        return 1;
}

int entries_read(struct entries *entries, const char *text, size_t length, enum entries_style style,
                 unsigned *ret_line)
{
        struct reader reader = {.text = text, .length = length, .style = style, .entries = entries};
        int r = ini_parse_stream(read_line, &reader, take_entry, &reader);

        if (r < 0 || reader.lost)
                return -ENOMEM;
        *ret_line = reader.wrong_line ?: (unsigned)r;
        return *ret_line > 0 ? -EINVAL : 0;
}

void entries_done(struct entries *entries)
{
        for (size_t i = 0; i < entries->n; i++) {
                free(entries->list[i].section);
                free(entries->list[i].name);
                free(entries->list[i].value);
        }
        free(entries->list);
        *entries = (struct entries){0};
}
