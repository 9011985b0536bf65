/* SPDX-License-Identifier: MIT */
/* Parses the messages of templates and of the workers that they fork. */
#include "io/template_message.h"
#include "base/parse.h"
#include "base/printable.h"
#include <stdio.h>
#include <string.h>

/* Returns the word at *at and advances *at, which starts at 0; NULL: no more words. */
static const char *message_word(const struct template_message *message, size_t *at)
{
        const char *word = message->text + *at;

        if (*at >= message->length)
                return NULL;
        *at += strlen(word) + 1;
        return word;
}

bool template_message_is(const struct template_message *message, const char *word)
{
        size_t at = 0;
        const char *first = message_word(message, &at);

        return first && strcmp(first, word) == 0;
}

static const char *value_of(const char *word, const char *name)
{
        size_t length = strlen(name);

        return strncmp(word, name, length) == 0 && word[length] == '=' ? word + length + 1 : NULL;
}

/* Appends as much as fits. */
static void append(char *text, size_t size, const char *more)
{
        size_t length = strlen(text);

        snprintf(text + length, size - length, "%s%s", length > 0 ? ", " : "", more);
}

bool template_message_ready(const struct template_message *message, struct template_ready *ret)
{
        char unsafe[256] = "", threads[256] = "";
        const char *word, *value;
        bool known = false;
        size_t at = 0;

        *ret = (struct template_ready){0};
        if (!template_message_is(message, "ready"))
                return false;
        while ((word = message_word(message, &at))) {
                if ((value = value_of(word, "version")))
                        known = strcmp(value, "1") == 0;
                else if ((value = value_of(word, "unsafe")))
                        append(unsafe, sizeof(unsafe), value);
                else if ((value = value_of(word, "thread")))
                        append(threads, sizeof(threads), value);
        }
        quoted_set(&ret->unsafe, unsafe);
        quoted_set(&ret->threads, threads);
        return known;
}

bool template_message_error(const struct template_message *message, int *ret_errno, struct quoted *ret_text)
{
        const char *word, *value;
        uint64_t number = 0;
        size_t at = 0;

        *ret_errno = 0;
        quoted_set(ret_text, NULL);
        if (!template_message_is(message, "error"))
                return false;
        (void)message_word(message, &at);
        while ((word = message_word(message, &at))) {
                if ((value = value_of(word, "errno")) && parse_unsigned(value, 1, INT16_MAX, &number) == 0)
                        *ret_errno = (int)number;
                else
                        quoted_set(ret_text, word);
        }
        return true;
}
