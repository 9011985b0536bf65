/* SPDX-License-Identifier: MIT */
/* Removes text that read-only clients may not see. */
#include "wire/withhold.h"
#include <string.h>

static const struct phrase {
        const char *text;
        const char *instead; /* not longer than text */
} phrases[] = {
        {WITHHOLD_LAST_LINES, ""},
        {WITHHOLD_NOT_STARTED, "could not be started"},
        {WITHHOLD_NOT_FORKED, "could not be forked"},
        {WITHHOLD_SHARED, "what all workers would share"},
        {WITHHOLD_ANSWER, "it refuses"},
};

bool withhold_finds(const char *text)
{
        for (size_t i = 0; i < ELEMENTSOF(phrases); i++)
                if (strstr(text, phrases[i].text))
                        return true;
        return false;
}

void withhold_end(char *sentence)
{
        FOREACH_ELEMENT(phrase, phrases) {
                char *at = strstr(sentence, phrase->text);

                if (at)
                        memcpy(at, phrase->instead, strlen(phrase->instead) + 1);
        }
}

/* Returns the closing quote of the string that contains at. */
static char *string_end(char *at)
{
        while (*at != '\0' && *at != '"')
                at += *at == '\\' && at[1] != '\0' ? 2 : 1;
        return at;
}

/* Cuts all strings at one phrase. */
static size_t cut_at(const struct phrase *phrase, char *text, size_t size)
{
        char *from = text, *to = text, *end = text + size, *at;

        while ((at = strstr(from, phrase->text))) {
                size_t before = (size_t)(at - from), length = strlen(phrase->instead);

                memmove(to, from, before);
                memcpy(to + before, phrase->instead, length);
                to += before + length;
                from = string_end(at + strlen(phrase->text));
        }
        memmove(to, from, (size_t)(end - from));
        return (size_t)(to - text) + (size_t)(end - from);
}

/* The order does not matter: no phrase begins within another phrase or within a replacement. */
size_t withhold_cut(char *text, size_t size)
{
        FOREACH_ELEMENT(phrase, phrases)
                size = cut_at(phrase, text, size);
        return size;
}
