/* SPDX-License-Identifier: MIT */
/* Embeds a file in the program. */
#pragma once

/* NAME_begin and NAME_end delimit the bytes of the file; a NUL follows them. The compiler notes no dependency
 * on the file: a rule in Makefile.am must. */
#define EMBED_FILE(name, file)                                                                               \
        __asm__(".pushsection .rodata\n"                                                                     \
                ".global " #name "_begin\n.global " #name "_end\n" #name "_begin:\n.incbin \"" file          \
                "\"\n" #name "_end:\n.byte 0\n.popsection\n");                                               \
        extern const char name##_begin[] __attribute__((visibility("hidden")));                              \
        extern const char name##_end[] __attribute__((visibility("hidden")));
