/* SPDX-License-Identifier: MIT */
/* What stays in its place on the terminal and is painted anew. There is one terminal, so this is one, too. */
#pragma once

#include "base/macro.h"

/* Is standard output a terminal on which one can move about? */
bool screen_is_there(void);
/* The columns of the terminal that fd leads to; 0 where it leads to none. */
int screen_columns(int fd);

/* Begins. whole: takes all of the terminal until screen_leave(), which gives it back as it was, and keys come
 * one by one on standard input. Else the picture grows below what was printed before, and stays. */
void screen_enter(bool whole);
void screen_leave(void);
/* Stops the process as Ctrl-Z does, the terminal left as it was meanwhile. */
void screen_suspend(void);

/* Does it have no more lines than there is room for? */
bool screen_fits(const char *text);
/* Paints lines in the place of those painted last. What does not fit is cut off, with a word on it where
 * lines are missing. The text may hold colours (ESC [ ... m), no other escape sequences. */
void screen_paint(const char *text);
/* Something else is to be printed: what is painted stays, the next picture comes below. */
void screen_release(void);
