/* SPDX-License-Identifier: MIT */
/* The live picture on the terminal, repainted in place. The state is global because a process has one
 * terminal. */
#pragma once

#include "base/macro.h"
#include <stdio.h>

/* Limits and style of the output. */
struct view {
        int columns; /* 0: line length is not limited */
        int rows;    /* 0: number of lines is not limited */
        bool colour;
        bool brief; /* count workers that are active and ready instead of listing them */
};

/* Returns true if standard output is a terminal with cursor movement. */
bool screen_is_there(void);
/* Returns the width of the terminal behind fd; 0 if fd is no terminal. */
int screen_columns(int fd);
/* The view for standard output. */
struct view screen_view(void);

/* Starts a live picture, unless there is one. whole: uses the alternate screen and reads single keys from
 * standard input, until screen_leave() restores the terminal. Otherwise the picture starts below earlier
 * output and stays there. */
void screen_enter(bool whole);
void screen_leave(void);
/* Stops the process like Ctrl-Z. The terminal is restored while the process is stopped. */
void screen_suspend(void);

/* Repaints the picture with the output of draw. If not all lines fit, draw is called again with view->brief.
 * Lines that still do not fit are cut off and counted in the last line. Lines may contain colors (ESC [ ...
 * m) but no other escape sequences. */
void screen_draw(void (*draw)(FILE *out, const struct view *view, void *userdata), void *userdata);
/* Counts the newlines in text. */
int screen_count_lines(const char *text);
/* Call before other output: the current picture stays, the next one starts below. */
void screen_release(void);
