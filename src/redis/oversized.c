/* SPDX-License-Identifier: MIT */
/* The commands to one Redis whose replies were too large. */
#include "redis/oversized.h"
#include "base/hash.h"
#include <string.h>

/* Runs for every command to Redis: printf() took a quarter of a command's total cost. */
static char *add_word(char *at, const char *end, const char *word)
{
        for (; *word != '\0' && at < end; word++)
                *at++ = (unsigned char)*word < ' ' || *word == 0x7f ? '?' : *word;
        return at;
}

struct question question_of(int argc, const char *const argv[], const size_t argvlen[])
{
        struct question question = {.hash = HASH_INIT};

        for (int i = 0; i < argc; i++) {
                size_t length = argvlen ? argvlen[i] : strlen(argv[i]);

                question.hash = hash_bytes(question.hash, &length, sizeof(length));
                question.hash = hash_bytes(question.hash, argv[i], length);
        }
        /* The last byte stays NUL. */
        const char *end = question.text + sizeof(question.text) - 1;
        char *at = add_word(question.text, end, argv[0]);
        if (argc > 1)
                add_word(add_word(at, end, " "), end, argv[1]);
        return question;
}

void oversized_expire(struct oversized *oversized, usec_t now)
{
        size_t kept = 0;

        for (size_t i = 0; i < oversized->n; i++)
                if (now < oversized->list[i].until)
                        oversized->list[kept++] = oversized->list[i];
        oversized->n = kept;
}

void oversized_add(struct oversized *oversized, const struct question *question, usec_t now)
{
        if (oversized->n == OVERSIZED_MAX)
                memmove(&oversized->list[0], &oversized->list[1],
                        --oversized->n * sizeof(oversized->list[0]));
        oversized->list[oversized->n].question = *question;
        oversized->list[oversized->n++].until = usec_add(now, OVERSIZED_USEC);
}

bool oversized_has(const struct oversized *oversized, const struct question *question)
{
        /* Hash collisions are easy to construct, so compare the text too. */
        for (size_t i = 0; i < oversized->n; i++)
                if (oversized->list[i].question.hash == question->hash &&
                    strcmp(oversized->list[i].question.text, question->text) == 0)
                        return true;
        return false;
}
