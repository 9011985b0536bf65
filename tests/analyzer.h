/* SPDX-License-Identifier: MIT */
/* For gcc -fanalyzer alone: glibc declares reallocarray() as what deallocates, so that its caller seems to
 * use freed memory; realloc() it knows better. */
#pragma once

#include <malloc.h>
#include <stdlib.h>

#define reallocarray(memory, n, size) realloc((memory), (n) * (size))
