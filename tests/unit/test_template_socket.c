/* SPDX-License-Identifier: MIT */
/* Tests of daemon/workers/templates.h: what a template may say, and what sqmgr
 * sends. */
/* promises: P8 */
#include "base/fd.h"
#include "daemon/workers/templates.h"
#include "unit.h"
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>

static int ours, theirs;
static struct template_message message;

static void setup(void)
{
        ck_assert_int_eq(template_socket_pair(&ours, &theirs), 0);
        message = (struct template_message){.length = 0};
}

static void teardown(void)
{
        close(ours);
        close(theirs);
}

static void say(const char *words, size_t length)
{
        ck_assert_int_eq(send(theirs, words, length, 0), (ssize_t)length);
}
#define SAY(words) say(words, sizeof(words) - 1)

static unsigned count_descriptors(void)
{
        unsigned n = 0;

        for (int fd = 0; fd < 1024; fd++)
                n += fcntl(fd, F_GETFD) >= 0;
        return n;
}

TEST(never_waits_and_reports_the_end)
{
        ck_assert_int_eq(template_socket_receive(ours, &message), -EAGAIN);
        shutdown(theirs, SHUT_RDWR);
        ck_assert_int_eq(template_socket_receive(ours, &message), 0);
}

TEST(a_peer_that_closes_with_messages_unread_has_closed)
{
        ck_assert_int_eq(send(ours, "unread", 6, 0), 6);
        theirs = close_fd(theirs);
        ck_assert_int_eq(template_socket_receive(ours, &message), 0);
}

TEST(the_kernel_says_who_has_sent_a_message)
{
        pid_t pid = fork();

        if (pid == 0) {
                (void)!send(theirs, "hello", 5, 0);
                _exit(0);
        }
        ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
        ck_assert_int_eq(template_socket_receive(ours, &message), 1);
        ck_assert_int_eq(message.pid, pid);
        ck_assert(template_message_is(&message, "hello"));
        ck_assert(!template_message_is(&message, "hell"));
}

TEST(descriptors_are_refused_and_closed)
{
        unsigned before = count_descriptors();

        ck_assert_int_eq(fd_send(theirs, "hello", 5, STDIN_FILENO, 0), 0);
        ck_assert_int_eq(template_socket_receive(ours, &message), -EBADMSG);
        ck_assert_uint_eq(count_descriptors(), before);
}

TEST(a_message_that_is_too_long_is_refused)
{
        char text[TEMPLATE_MESSAGE_MAX + 1];

        memset(text, 'x', sizeof(text));
        say(text, TEMPLATE_MESSAGE_MAX);
        ck_assert_int_eq(template_socket_receive(ours, &message), 1);
        ck_assert_uint_eq(message.length, TEMPLATE_MESSAGE_MAX);
        ck_assert_uint_eq(strlen(message.text), TEMPLATE_MESSAGE_MAX);
        say(text, sizeof(text));
        ck_assert_int_eq(template_socket_receive(ours, &message), -EBADMSG);
}

TEST(words_are_bounded_and_printable)
{
        struct template_ready ready;
        struct quoted text;
        int error;

        SAY("ready\0version=1\0unsafe=a\0thread=x\33[31m\0thread=y");
        ck_assert_int_eq(template_socket_receive(ours, &message), 1);
        ck_assert(template_message_ready(&message, &ready));
        ck_assert_str_eq(quoted_reveal(&ready.unsafe), "a");
        ck_assert_str_eq(quoted_reveal(&ready.threads), "x?[31m, y");
        ck_assert(!template_message_error(&message, &error, &text));

        SAY("ready\0version=2");
        ck_assert_int_eq(template_socket_receive(ours, &message), 1);
        ck_assert(!template_message_ready(&message, &ready));

        SAY("error\0errno=12\0no \33memory");
        ck_assert_int_eq(template_socket_receive(ours, &message), 1);
        ck_assert(template_message_error(&message, &error, &text));
        ck_assert_int_eq(error, 12);
        ck_assert_str_eq(quoted_reveal(&text), "no ?memory");

        SAY("error\0errno=99999999999\0");
        ck_assert_int_eq(template_socket_receive(ours, &message), 1);
        ck_assert(template_message_error(&message, &error, &text));
        ck_assert_int_eq(error, 0);
}

/* Only names and numbers of sqmgr's own, and the setting `log`. */
TEST(a_request_names_the_worker_and_its_log)
{
        static const char expected[] = "fork\0SQMGR_WORKER=mail/3\0SQMGR_INDEX=3\0SQMGR_GENERATION=7\0"
                                       "SQMGR_START=12\0log=/var/log/mail";
        char logs[] = "/var/log/mail", inherited[] = "inherit", name[] = "mail";
        struct fleet_settings fleet = {.name = name, .log = logs};
        char text[TEMPLATE_MESSAGE_MAX], log[TEMPLATE_MESSAGE_MAX] = "";

        ck_assert_int_eq(template_socket_fork(ours, &fleet, 3, 7, 12, STDIN_FILENO), 0);
        ck_assert_int_eq(recv(theirs, text, sizeof(text), 0), sizeof(expected) - 1);
        ck_assert_mem_eq(text, expected, sizeof(expected) - 1);
        fleet.log = inherited;
        ck_assert_int_eq(template_socket_fork(ours, &fleet, 3, 7, 12, STDIN_FILENO), 0);
        ck_assert_int_eq(recv(theirs, text, sizeof(text), 0),
                         sizeof(expected) - 1 - sizeof("log=/var/log/mail"));
        ck_assert_int_eq(template_socket_go(ours), 0);
        ck_assert_int_eq(recv(theirs, text, sizeof(text), 0), 2);
        ck_assert_mem_eq(text, "go", 2);

        memset(log, 'x', sizeof(log) - 1);
        fleet.log = log;
        ck_assert_int_eq(template_socket_fork(ours, &fleet, 3, 7, 12, STDIN_FILENO), -ENAMETOOLONG);
        ck_assert_int_eq(recv(theirs, text, sizeof(text), MSG_DONTWAIT), -1);
}

TEST_MAIN("template_socket", .each = {setup, teardown})
