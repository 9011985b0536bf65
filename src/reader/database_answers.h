/* SPDX-License-Identifier: MIT */
/* Answers queries from what the rows of a batch say. */
#pragma once

#include "queries/query.h"

struct ask;
struct database_view;

/* Returns true if queries of this kind are answered from a batch that reads. */
bool database_answers(enum query_kind kind);
/* Answers the query, and frees the ask. A list of jobs is handed out once. */
void database_answer(const struct database_view *view, struct ask *ask);
