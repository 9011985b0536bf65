/* SPDX-License-Identifier: MIT */
/* The statements with which Solid Queue's tables are read, for each engine. */
#pragma once

extern const struct database_texts solid_queue_postgresql, solid_queue_sqlite;
