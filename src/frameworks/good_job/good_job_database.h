/* SPDX-License-Identifier: MIT */
/* The statements with which GoodJob's tables are read. GoodJob works with PostgreSQL only. */
#pragma once

extern const struct database_texts good_job_postgresql;
