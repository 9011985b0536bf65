/* SPDX-License-Identifier: MIT */
/* What a piece of HTML is built of, without its texts: whether it is well-formed, and which elements and
 * attributes it has. For what web/ writes, which closes each element that it opens and quotes each attribute.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SKELETON_DEPTH 32
#define SKELETON_NAME  32

struct skeleton {
        FILE *out;
        char open[SKELETON_DEPTH][SKELETON_NAME];
        size_t n_open;
};

static inline bool skeleton_take_name(const char **at, char name[SKELETON_NAME])
{
        size_t length = strspn(*at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-");

        if (length == 0 || length >= SKELETON_NAME)
                return false;
        snprintf(name, SKELETON_NAME, "%.*s", (int)length, *at);
        *at += length;
        return true;
}

/* A '&' begins one of the five that are written, or a '%' of no meaning here. */
static inline bool skeleton_is_text(const char *text, size_t length)
{
        static const char *const references[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};

        for (size_t i = 0; i < length; i++) {
                bool known = text[i] != '&';

                for (size_t k = 0; k < sizeof(references) / sizeof(references[0]); k++)
                        known |= strncmp(text + i, references[k], strlen(references[k])) == 0;
                if (!known || text[i] == '<' || text[i] == '>' ||
                    ((unsigned char)text[i] < ' ' && !strchr("\n\t", text[i])))
                        return false;
        }
        return true;
}

static inline bool skeleton_take_attributes(struct skeleton *skeleton, const char **at)
{
        char name[SKELETON_NAME];

        while (**at == ' ') {
                ++*at;
                if (!skeleton_take_name(at, name) || strncmp(*at, "=\"", 2) != 0)
                        return false;
                *at += 2;
                const char *end = strchr(*at, '"');
                if (!end || !skeleton_is_text(*at, (size_t)(end - *at)))
                        return false;
                fprintf(skeleton->out, " %s", name);
                *at = end + 1;
        }
        return true;
}

static inline bool skeleton_take_end(struct skeleton *skeleton, const char **at)
{
        char name[SKELETON_NAME];

        *at += 2;
        if (!skeleton_take_name(at, name) || **at != '>' || skeleton->n_open == 0 ||
            strcmp(name, skeleton->open[--skeleton->n_open]) != 0)
                return false;
        ++*at;
        fputs(")", skeleton->out);
        return true;
}

static inline bool skeleton_take_element(struct skeleton *skeleton, const char **at)
{
        char name[SKELETON_NAME];

        ++*at;
        if (skeleton->n_open == SKELETON_DEPTH || !skeleton_take_name(at, name))
                return false;
        fprintf(skeleton->out, "(%s", name);
        if (!skeleton_take_attributes(skeleton, at))
                return false;
        if (strncmp(*at, "/>", 2) == 0) {
                *at += 2;
                fputs(")", skeleton->out);
                return true;
        }
        if (**at != '>')
                return false;
        ++*at;
        snprintf(skeleton->open[skeleton->n_open++], SKELETON_NAME, "%s", name);
        /* A style sheet is no text: nothing of foreign origin may stand there. */
        if (strcmp(name, "style") == 0)
                *at = strstr(*at, "</style>");
        return *at;
}

/* To be freed; NULL: it is not well-formed. */
static inline char *skeleton_of(const char *html)
{
        static const char doctype[] = "<!DOCTYPE html>\n";
        struct skeleton skeleton = {0};
        char *text = NULL;
        size_t size;
        bool good = true;

        skeleton.out = open_memstream(&text, &size);
        if (!skeleton.out)
                abort();
        if (strncmp(html, doctype, strlen(doctype)) == 0)
                html += strlen(doctype);
        while (good && *html != '\0') {
                size_t length = strcspn(html, "<");

                good = skeleton_is_text(html, length);
                html += length;
                if (!good || *html == '\0')
                        break;
                good = html[1] == '/' ? skeleton_take_end(&skeleton, &html)
                                      : skeleton_take_element(&skeleton, &html);
        }
        fclose(skeleton.out);
        if (good && skeleton.n_open == 0)
                return text;
        free(text);
        return NULL;
}
