/* SPDX-License-Identifier: MIT */
/* What stays in its place on the terminal and is painted anew. There is one terminal, so this is one, too. */
#pragma once

#include "base/macro.h"
#include <stdio.h>

/* How what is told is shown. */
struct view {
        int columns; /* 0: lines may be as long as they want */
        int rows;    /* 0: there may be as many as they want */
        bool colour;
        bool brief; /* only what is on its way: workers that just do their work are counted */
};

/* Is standard output a terminal on which one can move about? */
bool screen_is_there(void);
/* The columns of the terminal that fd leads to; 0 where it leads to none. */
int screen_columns(int fd);
/* How standard output shows it. */
struct view screen_view(void);

/* Begins. whole: takes all of the terminal until screen_leave(), which gives it back as it was, and keys come
 * one by one on standard input. Else the picture grows below what was printed before, and stays. */
void screen_enter(bool whole);
void screen_leave(void);
/* Stops the process as Ctrl-Z does, the terminal left as it was meanwhile. */
void screen_suspend(void);

/* Paints the lines that draw prints in the place of those painted last: in brief where there is no room for
 * all. What does not fit even so is cut off, with a word on it where lines are missing. The lines may hold
 * colours (ESC [ ... m), no other escape sequences. */
void screen_draw(void (*draw)(FILE *out, const struct view *view, void *userdata), void *userdata);
/* The lines of a text of whole lines. */
int screen_count_lines(const char *text);
/* Something else is to be printed: what is painted stays, the next picture comes below. */
void screen_release(void);
