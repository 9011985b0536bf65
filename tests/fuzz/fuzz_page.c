/* SPDX-License-Identifier: MIT */
/* Renders the page from arbitrary input. The first byte selects the part. The rest is the document or, if it
 * is no JSON, a text that replaces each name and sentence of a document. */
#include "../skeleton.h"
#include "fuzz.h"
#include "web/page.h"
#include "wire/json.h"

#define NOW (1795414673 * USEC_PER_SEC)

static json_t *make_rollouts(json_t *word)
{
        return json_pack(
                "[{s:O, s:O, s:i, s:s, s:O, s:O, s:O, s:O, s:O, s:[O], s:[{s:O, s:s}, {s:O, s:s, s:O}, {s:O, "
                "s:s, s:s}]}]",
                "fleet", word, "group", word, "epoch", 7, "state", "halted", "error", word, "trouble", word,
                "release", word, "began_by", word, "hosts_at_once", word, "left", word, "hosts", "host", word,
                "state", "lost", "host", word, "state", "failed", "error", word, "host", word, "state",
                "rolling", "progress", "1 of 2");
}

/* Returns a document with text in place of each foreign string. */
static json_t *make_document(const char *text)
{
        json_t *word = json_string_nocheck(text);
        json_t *worker = json_pack("{s:O, s:i, s:s, s:b, s:O, s:O}", "id", word, "pid", 7, "state", "quiet",
                                   "ready", 0, "reason", word, "waits_for", word);
        json_t *fleet = json_pack(
                "{s:O, s:O, s:i, s:i, s:O, s:O, s:O, s:{s:s, s:O}, s:{s:s, s:O}, s:{s:O}, s:[o], s:[{s:O}]}",
                "name", word, "framework", word, "target", 2, "active", 1, "state", word, "state_text", word,
                "waits_for", word, "rollout", "state", "halted", "error", word, "crash", "state", "failing",
                "text", word, "template", "refused", word, "workers", worker, "culprits", "text", word);
        json_t *status = json_pack("{s:O, s:[{s:O, s:s, s:O}], s:[o]}", "version", word, "redis", "url", word,
                                   "state", "down", "error", word, "fleets", fleet);
        json_t *document = json_pack("{s:{s:[{s:O, s:b, s:O, s:o, s:[{s:O, s:[{s:O, s:i}]}]}]}, s:[{s:O, "
                                     "s:O, s:O, s:s, s:O, s:f}]}",
                                     "status", "instances", "socket", word, "reachable", text[0] % 2 != 0,
                                     "error", word, "status", status, "queues", "url", word, "queues", "name",
                                     word, "size", 3, "events", "socket", word, "fleet", word, "event", word,
                                     "level", "error", "text", word, "at", 1795414670.5);

        json_object_set_new(
                json_array_get(json_object_get(json_object_get(document, "status"), "instances"), 0),
                "rollouts", make_rollouts(word));
        json_decref(word);
        return document;
}

/* Returns the tags of the page without its texts, to be freed. */
static char *build(const json_t *document, enum page_part part)
{
        char *html = NULL, *skeleton;
        size_t size;

        fuzz_check(page_render(part, json_object_get(document, "status"), json_object_get(document, "events"),
                               NOW, &html, &size) == 0);
        fuzz_check(strlen(html) == size);
        skeleton = skeleton_of(html);
        fuzz_check(skeleton);
        free(html);
        return skeleton;
}

/* A text from outside changes only texts of the page: the tags are the same as with a harmless word. */
static void compare(const char *text, enum page_part part)
{
        /* The parity of the first byte decides whether the instance is reachable, so the harmless word has
         * the same parity. An empty text is skipped: the page leaves it out. */
        json_t *hostile = make_document(text), *clean = make_document(text[0] % 2 != 0 ? "axx" : "bxx");

        fuzz_check(hostile && clean);
        if (text[0] != '\0') {
                char *one = build(hostile, part), *other = build(clean, part);

                fuzz_check(strcmp(one, other) == 0);
                free(one);
                free(other);
        }
        json_decref(hostile);
        json_decref(clean);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct input input = {data, size};
        enum page_part part = input_byte(&input) % 2 ? PAGE_LIVE : PAGE_WHOLE;
        struct field text = input_field(&input, size);
        const struct json_bounds bounds = {.bytes = size, .values = size + 1, .depth = 64};
        json_t *document = NULL;

        if (json_load(&bounds, text.text, text.len, JSON_ALLOW_NUL, &document) == 0) {
                free(build(document, part));
                json_decref(document);
        } else {
                compare(text.text, part);
        }
        field_free(&text);
        return 0;
}
