/* SPDX-License-Identifier: MIT */
/* Answers questions about a process from files that can make the caller wait. */
#pragma once

#include "io/proc_question.h"

/* Fills reply except for the unused end of its text. log_fd: for PROC_LOG_TAIL, as log_tail_read() takes it.
 * May wait without limit. */
void proc_answer(const struct proc_question *question, int log_fd, struct proc_reply *reply);

/* Answers the questions that arrive on the socket fd until the other end is closed. Returns 0 or -errno. */
int proc_answer_serve(int fd);
