/* SPDX-License-Identifier: MIT */
/* Measures the cost of reading the oldest job of a queue, which may be any text.
 *
 * json-cost SHAPE BYTES: builds a job of BYTES bytes, almost all of them items of one shape, and reads it.
 * Prints whether it was accepted, its bytes, and the maximum memory that jansson used. Callgrind counts the
 * instructions of bench_read().
 *
 * json-cost: prints the shapes. */
#include "frameworks/sidekiq/job.h"
#include "wire/json.h"
#include <malloc.h>
#include <stdio.h>

/* Each shape was the worst case of some parser or limit. */
static const struct {
        const char *name, *item;
} shapes[] = {
        {"objects", "{},"},
        {"arrays", "[],"},
        {"numbers", "0,"},
        {"long-numbers", "1"},
        {"strings", "\"\","},
        {"escapes", "\"\\u00e9\","},
        {"members", "{\"\":0},"},
        {"members-of-objects", "{\"\":{}},"},
        {"members-of-text", "{\"\":\"\"},"},
        {"nested", "["},
        {"text", "x"},
};

static size_t held, most;

static void *allocate(size_t size)
{
        void *allocated = malloc(size);

        /* Count the header of each block, too. */
        if (allocated)
                held += malloc_usable_size(allocated) + sizeof(size_t);
        most = MAX(most, held);
        return allocated;
}

static void release(void *allocated)
{
        if (allocated)
                held -= malloc_usable_size(allocated) + sizeof(size_t);
        free(allocated);
}

static char *make_job(const char *item, size_t size)
{
        /* The shape `text` is a single string. */
        static const char begin[] = "{\"class\":\"A\",\"enqueued_at\":1795238801,\"args\":[",
                          begin_text[] = "{\"class\":\"A\",\"enqueued_at\":1795238801,\"args\":[\"";
        bool is_text = *item == 'x';
        const char *end = is_text ? "\"]}" : "0]}";
        char *text = malloc(size + 1), *last = text + size - strlen(end);

        if (!text)
                return NULL;
        char *at = stpcpy(text, is_text ? begin_text : begin);
        while (at + strlen(item) <= last)
                at = stpcpy(at, item);
        memset(at, is_text ? 'x' : ' ', (size_t)(last - at));
        memcpy(last, end, strlen(end) + 1);
        return text;
}

/* Not static, so that callgrind finds it by name. */
bool bench_read(const char *text, size_t size);
__attribute__((noinline)) bool bench_read(const char *text, size_t size)
{
        char class[JOB_CLASS_MAX];
        uint64_t at;

        return sidekiq_job_head(text, size, &at, class);
}

int main(int argc, char **argv)
{
        size_t size = argc == 3 ? strtoul(argv[2], NULL, 10) : 0, i = 0;

        if (argc == 1) {
                for (; i < ELEMENTSOF(shapes); i++)
                        puts(shapes[i].name);
                return EXIT_SUCCESS;
        }
        while (argc == 3 && i < ELEMENTSOF(shapes) && strcmp(argv[1], shapes[i].name) != 0)
                i++;
        if (argc != 3 || i == ELEMENTSOF(shapes) || size < 100) {
                fprintf(stderr, "usage: %s [SHAPE BYTES]\n", argv[0]);
                return 2;
        }
        char *text = make_job(shapes[i].item, size);
        if (!text)
                return EXIT_FAILURE;
        json_set_alloc_funcs(allocate, release);
        bool read = bench_read(text, size);
        printf("%s %zu %zu\n", read ? "read" : "refused", size, most);
        free(text);
        return EXIT_SUCCESS;
}
