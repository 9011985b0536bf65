/* SPDX-License-Identifier: MIT */
/* Fuzzes what an instance sends to sqmgrctl. The first byte selects the command. Each further line is a
 * message; the first connection gets all of them, the next one those after the first, and so on. */
#include "base/locate.h"
#include "base/printable.h"
#include "ctl/ctl.h"
#include "ctl/output.h"
#include "fuzz.h"
#include "wire/reply.h"
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <sys/socket.h>

static const char *const lines[][4] = {
        {"status"},
        {"events"},
        {"why", "mail/1"},
        {"why", "mail"},
        {"restart"},
        {"rollback"},
        {"jobs"},
        {"queues"},
        {"doctor"},
        {"metrics"},
        {"quiet", "mail/1"},
        {"stop", "mail"},
        {"scale", "mail", "3"},
        {"reload"},
        {"abort"},
        {"reexec"},
        {"ping", "--ready"},
        {"version"},
        {"logs", "mail"},
        {"logs", "mail/1"},
        {"status", "-i", "shop"},
        {"logs", "mail/1", "--previous"},
        {"stop", "mail", "-i", "shop"},
};

static struct field rest; /* what the next connection gets */

int __wrap_locate_connect(const char *socket, bool named, int flags, usec_t send_timeout,
                          const char **ret_reason);
int __wrap_locate_connect(const char *socket _unused_, bool named _unused_, int flags _unused_,
                          usec_t send_timeout _unused_, const char **ret_reason _unused_)
{
        int ends[2];

        fuzz_check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
        for (size_t i = 0, next; i < rest.len; i = next + 1) {
                const char *newline = memchr(rest.text + i, '\n', rest.len - i);

                next = newline ? (size_t)(newline - rest.text) : rest.len;
                (void)send(ends[1], rest.text + i, next - i, MSG_DONTWAIT | MSG_NOSIGNAL);
                (void)send(ends[1], "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
        }
        (void)close(ends[1]);
        const char *newline = memchr(rest.text, '\n', rest.len);
        size_t first = newline ? (size_t)(newline - rest.text) + 1 : rest.len;
        rest.text += first;
        rest.len -= first;
        return ends[0];
}

int __wrap_execvp(const char *file, char *const argv[]);
int __wrap_execvp(const char *file _unused_, char *const argv[])
{
        size_t n = 0;

        while (argv[n])
                n++;
        fuzz_check(n < REPLY_WORKERS_MAX + 16);
        errno = ENOENT;
        return -1;
}

pid_t __wrap_fork(void);
pid_t __wrap_fork(void)
{
        errno = EAGAIN;
        return -1;
}

static void check_printable(char *text, size_t size)
{
        char *copy = malloc(size + 1);

        fuzz_check(copy);
        memcpy(copy, text, size);
        printable_replace(copy, size, true);
        fuzz_check(memcmp(copy, text, size) == 0);
        free(copy);
        free(text);
}

static void run(const char *const *words, FILE *out, FILE *errors)
{
        struct ctl ctl = {.lines = UINT64_MAX, .fd = -1, .signal_fd = -1, .key_fd = -1};
        FILE *kept[] = {stdout, stderr};
        char *argv[6] = {(char *)"sqmgrctl"};
        int argc = 1;

        for (size_t i = 0; i < ELEMENTSOF(lines[0]) && words[i]; i++)
                argv[argc++] = (char *)words[i];
        optind = 0;
        stdout = out;
        stderr = errors;
        fuzz_check(command_line_read(&ctl, argc, argv) == CTL_DONE && ctl.command);
        if (!ctl.socket)
                ctl.socket = strdup("/run/s");
        (void)ctl.command->run(&ctl);
        client_close(&ctl);
        free(ctl.socket);
        free(ctl.instance);
        stdout = kept[0];
        stderr = kept[1];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct input input = {data, size};
        const char *const *words = lines[input_byte(&input) % ELEMENTSOF(lines)];
        struct field messages = input_field(&input, size);
        char *text = NULL, *error_text = NULL;
        size_t text_size, error_size;
        FILE *out = open_memstream(&text, &text_size), *errors = open_memstream(&error_text, &error_size);

        (void)signal(SIGPIPE, SIG_IGN);
        fuzz_check(out && errors);
        rest = messages;
        run(words, out, errors);
        fuzz_check(fclose(out) == 0 && fclose(errors) == 0);
        check_printable(text, text_size);
        check_printable(error_text, error_size);
        field_free(&messages);
        return 0;
}
