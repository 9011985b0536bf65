/* SPDX-License-Identifier: MIT */
/* Cleanup attributes and the few macros that every module uses. */
#pragma once

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define ELEMENTSOF(x) (sizeof(x) / sizeof((x)[0]))
#define MIN(a, b)     ((a) < (b) ? (a) : (b))
#define MAX(a, b)     ((a) > (b) ? (a) : (b))

/* Loops over an array of n pointers and declares item. The loop keeps an index, so the body may reallocate
 * the array. `break` and `continue` work as in any loop. */
#define FOREACH_POINTER(item, array, n)                                                                      \
        for (size_t item##_at = 0, item##_held = 0; !item##_held && item##_at < (n); item##_at++)            \
                for (__auto_type item = (item##_held = 1, (array)[item##_at]); item##_held; item##_held = 0)

/* Loops over an array of fixed size and declares item, a pointer to each element; pointer to const if the
 * array is const. */
#define FOREACH_ELEMENT(item, array)                                                                         \
        for (__auto_type item = &(array)[0]; item < (array) + ELEMENTSOF(array); item++)

/* Gives an array space for n elements. Returns false, with everything unchanged, if memory is short. */
#define ARRAY_RESIZE(array, n)                                                                               \
        ({                                                                                                   \
                __typeof__(array) _larger = reallocarray((array), (n), sizeof(*(array)));                    \
                if (_larger)                                                                                 \
                        (array) = _larger;                                                                   \
                !!_larger;                                                                                   \
        })

/* Makes space for one more element after the n elements of an array with `allocated` elements allocated.
 * Returns as ARRAY_RESIZE(). */
#define ARRAY_RESERVE(array, n, allocated)                                                                   \
        ({                                                                                                   \
                bool _is_full = (n) == (allocated);                                                          \
                size_t _more = _is_full ? MAX((size_t)16, 2 * (allocated)) : (allocated);                    \
                bool _has_space = !_is_full || ARRAY_RESIZE(array, _more);                                   \
                (allocated) = _has_space ? _more : (allocated);                                              \
                _has_space;                                                                                  \
        })

/* Defines `const char *function(type value)`, which returns the name of an enum value from table. value must
 * be below max: not checked. */
#define DEFINE_ENUM_NAMES(function, type, max, table)                                                        \
        static_assert(ELEMENTSOF(table) == (max), "an entry for each value");                                \
        const char *function(type value)                                                                     \
        {                                                                                                    \
                return (table)[value];                                                                       \
        }

#define _cleanup_(f)         __attribute__((cleanup(f)))
#define _printf_(fmt, first) __attribute__((format(printf, fmt, first)))
#define _unused_             __attribute__((unused))

/* Defines function_pointer() for _cleanup_(), which calls function() for the variable unless that is NULL. */
#define DEFINE_CLEANUP(type, function)                                                                       \
        static inline void function##_pointer(type *variable)                                                \
        {                                                                                                    \
                if (*variable)                                                                               \
                        (void)function(*variable);                                                           \
        }

static inline void free_pointer(void *p)
{
        free(*(void **)p);
}
#define _cleanup_free_ _cleanup_(free_pointer)

/* Closes fd, which may be -1, and preserves errno. Always returns -1: `fd = close_fd(fd)`. */
static inline int close_fd(int fd)
{
        if (fd >= 0) {
                int saved = errno;
                (void)close(fd);
                errno = saved;
        }
        return -1;
}

static inline void close_pointer(int *fd)
{
        *fd = close_fd(*fd);
}
#define _cleanup_close_ _cleanup_(close_pointer)

/* Returns p and sets the variable to NULL: passes the ownership on. */
#define TAKE_PTR(p)                                                                                          \
        ({                                                                                                   \
                __typeof__(p) _taken = (p);                                                                  \
                (p) = NULL;                                                                                  \
                _taken;                                                                                      \
        })

/* Returns fd and sets the variable to -1: passes the ownership on. */
#define TAKE_FD(fd)                                                                                          \
        ({                                                                                                   \
                int _taken = (fd);                                                                           \
                (fd) = -1;                                                                                   \
                _taken;                                                                                      \
        })

/* Removes item from the list that begins at first and is linked by the member `next`. An item that is not in
 * the list is ignored. */
#define LIST_UNLINK(first, item)                                                                             \
        ({                                                                                                   \
                __typeof__(&(first)) _link = &(first);                                                       \
                while (*_link && *_link != (item))                                                           \
                        _link = &(*_link)->next;                                                             \
                if (*_link)                                                                                  \
                        *_link = (item)->next;                                                               \
        })

typedef uint64_t usec_t;

#define USEC_INFINITY ((usec_t)UINT64_MAX)
#define USEC_PER_MSEC ((usec_t)1000)
#define USEC_PER_SEC  ((usec_t)1000000)
#define USEC_PER_MIN  (60 * USEC_PER_SEC)
#define USEC_PER_HOUR (60 * USEC_PER_MIN)
#define USEC_PER_DAY  (24 * USEC_PER_HOUR)

/* Returns a + b, at most USEC_INFINITY. */
static inline usec_t usec_add(usec_t a, usec_t b)
{
        return a > USEC_INFINITY - b ? USEC_INFINITY : a + b;
}

/* Returns seconds. */
static inline double usec_seconds(usec_t usec)
{
        return (double)usec / (double)USEC_PER_SEC;
}

/* Returns a - b, at least 0. */
static inline usec_t usec_sub(usec_t a, usec_t b)
{
        return a > b ? a - b : 0;
}

struct field {
        const char *text; /* borrowed; NULL if absent */
        size_t len;
};

/* Defines functions that enclose all calls of callbacks: an object that was freed meanwhile stays until the
 * outermost call has returned. -fanalyzer: each leave follows an enter. */
#define DEFINE_ENTER_AND_LEAVE(type, enter, leave, destroy)                                                  \
        static void enter(type *object)                                                                      \
        {                                                                                                    \
                object->entered++;                                                                           \
        }                                                                                                    \
        static void leave(type *object)                                                                      \
        {                                                                                                    \
                if (--object->entered == 0 && object->freed)                                                 \
                        destroy(object);                                                                     \
        }
