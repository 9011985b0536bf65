/* SPDX-License-Identifier: MIT */
/* Fuzzes what Redis shows of BullMQ's workers. The input is a number of rounds. Each has the lines of CLIENT
 * LIST up to a line `.`, and active jobs up to another: queue, id, worker, name and start, separated by
 * blanks. */
#include "frameworks/bullmq/view.h"
#include "fuzz.h"
#include "model/heartbeat_info.h"
#include "model/job.h"

#define SEC UINT64_C(1000000)

/* Takes the text before the next line `.`, with its newlines. */
static struct field take_block(struct input *input)
{
        const uint8_t *from = input->at;
        size_t left = input->left, len = 0;

        while (len < left) {
                const uint8_t *end = memchr(from + len, '\n', left - len);
                size_t line = end ? (size_t)(end - from) - len : left - len;

                if (line == 1 && from[len] == '.')
                        break;
                len += MIN(line + 1, left - len);
        }
        struct field block = input_field(input, len);
        struct field dot = input_line(input);
        field_free(&dot);
        return block;
}

static struct field take_word(struct field *line)
{
        const char *blank = line->len > 0 ? memchr(line->text, ' ', line->len) : NULL;
        struct field word = {line->text, blank ? (size_t)(blank - line->text) : line->len};
        size_t skip = word.len + (blank ? 1 : 0);

        line->text += skip;
        line->len -= skip;
        return word.len > 0 ? word : (struct field){0};
}

static void take_jobs(struct bullmq_view *view, struct field text)
{
        struct field line;

        while (bullmq_next_line(&text, &line)) {
                const struct field queue = take_word(&line);
                struct field job[_BULLMQ_JOB_MAX];

                for (size_t i = 0; i < _BULLMQ_JOB_MAX; i++)
                        job[i] = take_word(&line);
                for (size_t i = 0; i < view->n_queues && queue.text; i++)
                        if (strlen(view->queues[i].name) == queue.len &&
                            memcmp(view->queues[i].name, queue.text, queue.len) == 0)
                                fuzz_check(bullmq_view_take_job(view, i, true, job) == 0);
        }
}

static void check_process(struct bullmq_view *view, struct bullmq_process *process, uint64_t now)
{
        const struct bullmq_connection *connection = process->connections;
        uint64_t sent = process->sent;
        size_t bytes = SIZE_MAX, host_len;
        pid_t pid;

        fuzz_check(
                bullmq_identity_parse(connection->identity, strlen(connection->identity), &host_len, &pid));
        fuzz_check(host_len == connection->host_len && pid == connection->pid && process->n_connections > 0);
        fuzz_check(bullmq_view_find(view, connection->identity) == process && sent <= now);
        if (!process->asked)
                return;
        bullmq_view_judge_jobs(view, process, now);
        bullmq_view_judge_limits(view, process, now);
        fuzz_check(process->sent >= sent && process->sent <= now);
        fuzz_check(process->unread || (process->busy > 0) == !!process->lock);
        (void)bullmq_view_concurrency(view, process);
        fuzz_check(!(bullmq_process_may_be_quiet(process) && process->waits));
        fuzz_check(job_list_decode(&process->list, bullmq_job_decode, &bytes) == 0);
        fuzz_check(process->list.n_jobs + job_list_unknown(&process->list) == process->busy);
        struct heartbeat_info *info = bullmq_process_info(process);
        const char *name = info ? info->queues : "";
        for (; *name != '\0'; name += strlen(name) + 1)
                fuzz_check(strlen(name) <= QUEUE_NAME_MAX);
        free(info);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct input input = {data, size};
        struct bullmq_view view = {.prefix = "bull"};

        for (uint64_t now = 1000 * SEC; input.left > 0; now += SEC) {
                struct field clients = take_block(&input), jobs = take_block(&input);

                fuzz_check(bullmq_view_take_clients(&view, &clients, now, now) == 0);
                for (size_t i = 0; i < view.n_processes; i += 2)
                        bullmq_view_ask(&view, view.processes[i].connections->identity);
                take_jobs(&view, jobs);
                for (size_t i = 0; i < view.n_processes; i++)
                        check_process(&view, &view.processes[i], now);
                field_free(&clients);
                field_free(&jobs);
        }
        bullmq_view_clear(&view);
        return 0;
}
