/* SPDX-License-Identifier: MIT */
/* Whether what a reader answered can be of this framework. The reader decodes by the same rules: an answer
 * that breaks one shows that the process is not a reader of ours. Pure. */
#pragma once

#include "frameworks/framework.h"
#include "queries/answer.h"

/* host: whose identities were asked for; NULL: those of all. */
bool answer_check(const struct framework *framework, const struct answer *answer, const char *host);
