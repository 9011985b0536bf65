/* SPDX-License-Identifier: MIT */
/* Checks the answer of a reader against the rules of its framework. A reader decodes by the same rules, so an
 * answer that breaks one shows that the reader was taken over. Pure. */
#pragma once

#include "frameworks/framework.h"
#include "queries/answer.h"

/* Returns false if the framework cannot have caused this answer. Answers that are not ANSWER_OK pass. host:
 * the host whose identities were queried; NULL: all hosts. */
bool answer_check(const struct framework *framework, const struct answer *answer, const char *host);
