/* SPDX-License-Identifier: MIT */
/* Cleanup attributes and the few macros that every room uses. */
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

/* Loops over an array of n pointers; item is declared. The array may be moved meanwhile, as its index is what
 * is kept; `break` and `continue` do what they do in any loop. */
#define FOREACH_POINTER(item, array, n)                                                                      \
        for (size_t item##_at = 0, item##_held = 0; !item##_held && item##_at < (n); item##_at++)            \
                for (__auto_type item = (item##_held = 1, (array)[item##_at]); item##_held; item##_held = 0)

/* Loops over an array of a fixed size; item is declared, and points to const where the array is. */
#define FOREACH_ELEMENT(item, array)                                                                         \
        for (__auto_type item = &(array)[0]; item < (array) + ELEMENTSOF(array); item++)

/* Makes room for one more element behind the n of an array of which so many are allocated. False where memory
 * is short: all stays as it is. */
#define ARRAY_MAKE_ROOM(array, n, allocated)                                                                 \
        ({                                                                                                   \
                size_t _more = MAX((size_t)16, 2 * (allocated));                                             \
                __typeof__(array) _larger = (array);                                                         \
                if ((n) == (allocated)) {                                                                    \
                        _larger = reallocarray((array), _more, sizeof(*(array)));                            \
                        if (_larger) {                                                                       \
                                (array) = _larger;                                                           \
                                (allocated) = _more;                                                         \
                        }                                                                                    \
                }                                                                                            \
                !!_larger;                                                                                   \
        })

/* The name of each value of an enum: defines `const char *function(type value)`, which looks it up in table.
 */
#define DEFINE_ENUM_NAMES(function, type, max, table)                                                        \
        static_assert(ELEMENTSOF(table) == (max), "an entry for each value");                                \
        const char *function(type value)                                                                     \
        {                                                                                                    \
                return (table)[value];                                                                       \
        }

#define _cleanup_(f)         __attribute__((cleanup(f)))
#define _printf_(fmt, first) __attribute__((format(printf, fmt, first)))
#define _unused_             __attribute__((unused))

/* Defines function_pointer() for _cleanup_(): it calls function() for the variable, unless that is NULL. */
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

/* Closes fd, which may be -1, and keeps errno. Returns -1 always: `fd = close_fd(fd)`. */
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

#define TAKE_PTR(p)                                                                                          \
        ({                                                                                                   \
                __typeof__(p) _taken = (p);                                                                  \
                (p) = NULL;                                                                                  \
                _taken;                                                                                      \
        })

#define TAKE_FD(fd)                                                                                          \
        ({                                                                                                   \
                int _taken = (fd);                                                                           \
                (fd) = -1;                                                                                   \
                _taken;                                                                                      \
        })

/* Removes item from the list that begins at first and is linked by the member next; one that is not in it may
 * be handed in, too. */
#define LIST_UNLINK(first, item)                                                                             \
        ({                                                                                                   \
                __typeof__(&(first)) _link = &(first);                                                       \
                while (*_link && *_link != (item))                                                           \
                        _link = &(*_link)->next;                                                             \
                if (*_link)                                                                                  \
                        *_link = (item)->next;                                                               \
        })
