/* SPDX-License-Identifier: MIT */
/* What is not for those who may do no more than look, and is left out of all that they are told. */
#include "wire/withhold.h"
#include <string.h>

static const struct {
        const char *phrase;
        const char *instead; /* no longer than that */
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
                if (strstr(text, phrases[i].phrase))
                        return true;
        return false;
}

/* Where each phrase is found next; NULL: nowhere. */
struct found {
        char *at[ELEMENTSOF(phrases)];
};

/* Looks again for those that were found before text. Returns which one comes first, or the number of phrases
 * where none does. */
static size_t find_first(struct found *found, char *text)
{
        size_t first = ELEMENTSOF(phrases);

        for (size_t i = 0; i < ELEMENTSOF(phrases); i++) {
                if (found->at[i] && found->at[i] < text)
                        found->at[i] = strstr(text, phrases[i].phrase);
                if (found->at[i] && (first == ELEMENTSOF(phrases) || found->at[i] < found->at[first]))
                        first = i;
        }
        return first;
}

void withhold_end(char *sentence)
{
        struct found found;

        for (size_t i = 0; i < ELEMENTSOF(phrases); i++)
                found.at[i] = strstr(sentence, phrases[i].phrase);
        size_t first = find_first(&found, sentence);
        if (first < ELEMENTSOF(phrases))
                memcpy(found.at[first], phrases[first].instead, strlen(phrases[first].instead) + 1);
}

/* The quote that ends the string in which at stands. */
static char *string_end(char *at)
{
        while (*at != '\0' && *at != '"')
                at += *at == '\\' && at[1] != '\0' ? 2 : 1;
        return at;
}

size_t withhold_cut(char *text, size_t size)
{
        char *from = text, *to = text, *end = text + size;
        struct found found;
        size_t i;

        for (i = 0; i < ELEMENTSOF(phrases); i++)
                found.at[i] = strstr(text, phrases[i].phrase);
        while ((i = find_first(&found, from)) < ELEMENTSOF(phrases)) {
                size_t before = (size_t)(found.at[i] - from), length = strlen(phrases[i].instead);

                memmove(to, from, before);
                memcpy(to + before, phrases[i].instead, length);
                to += before + length;
                from = string_end(found.at[i] + strlen(phrases[i].phrase));
        }
        memmove(to, from, (size_t)(end - from));
        return (size_t)(to - text) + (size_t)(end - from);
}
