/* SPDX-License-Identifier: MIT */
/* Answers questions about a process from files that can make the caller wait. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/* Reading any of these can make the reader wait:
 *
 * - PROC_TITLE, PROC_ENVIRONMENT and PROC_MEMORY need the mmap_lock of the process. A thread of the process
 *   that waits for a file server holds the lock without limit.
 * - PROC_PEERS: a process may have very many sockets.
 * - PROC_LOG_TAIL: the log may be on a file server. */
enum proc_subject {
        PROC_TITLE,       /* text: as proc_title() returns it, with its NUL */
        PROC_ENVIRONMENT, /* text: the variables that begin with one of PROC_VARIABLES, each with its NUL */
        PROC_MEMORY,      /* numbers */
        PROC_PEERS,       /* text: as proc_peers() returns it, with its NUL */
        PROC_LOG_TAIL,    /* text: as log_tail_read() returns it, with its NUL */
        _PROC_SUBJECT_MAX,
};

/* The name of the program that answers. sqmgr executed under this name does the same. */
#define PROC_READER_NAME "sqmgr-proc-reader"
/* The markers of a worker, and the variable of its host name (traits.h). */
#define PROC_VARIABLES                                                                                       \
        {                                                                                                    \
                "SQMGR_", "DYNO="                                                                            \
        }

/* A message holds up to PROC_QUESTIONS_MAX questions, or one PROC_LOG_TAIL with the log attached. */
struct proc_question {
        uint64_t start; /* start time of the process; for PROC_LOG_TAIL: size of the log at the start of the
                           worker */
        int32_t pid;
        uint32_t subject;  /* enum proc_subject */
        int32_t other_pid; /* PROC_LOG_TAIL: of another process whose lines count; 0: none; -1: any */
};

#define PROC_QUESTIONS_MAX 64
#define PROC_TEXT_MAX      4096

/* Each message holds one answer, without the unused end of text. Answers are in the order of the questions.
 */
struct proc_reply {
        int32_t error;       /* 0 or -errno */
        uint32_t length;     /* of text */
        uint32_t read_bytes; /* PROC_ENVIRONMENT: size of the whole environment, as far as it was read */
        uint64_t pss_bytes;
        uint64_t private_bytes;
        char text[PROC_TEXT_MAX];
};

/* Fills reply except for the unused end of its text. log_fd: for PROC_LOG_TAIL, as log_tail_read() takes it.
 * May wait without limit. */
void proc_answer(const struct proc_question *question, int log_fd, struct proc_reply *reply);

/* Answers the questions that arrive on the socket fd until the other end is closed. Returns 0 or -errno. */
int proc_answer_serve(int fd);
