/* SPDX-License-Identifier: MIT */
/* What adopting the workers of an earlier sqmgr and searching for them share. */
#pragma once

#include "daemon/run/keep.h"
#include "io/proc.h"

/* A start that was under way when the state was written. */
struct underway {
        struct fleet *fleet;
        unsigned index;
        uint64_t generation;
};

/* A process that carries our mark, or looks like a worker of ours. */
struct marked {
        struct proc *proc;
        struct proc_place place;
        struct fleet *fleet;
        unsigned index;      /* 0: not told */
        uint64_t generation; /* 0: not told */
};

/* A fleet whose workers are looked for. */
struct sought {
        struct fleet *fleet;
        uid_t uid; /* whose its workers are */
        bool lost; /* nothing is known of them */
};

struct adoption {
        struct crew *crew;
        struct keeper *keeper;
        struct sought *sought; /* the configured ones */
        size_t n_sought;
        struct underway *underway;
        size_t n_underway;
        char service[512]; /* our control group where nothing but workers shares it; "" : none */
        usec_t until;
        unsigned clear; /* searches in a row that left nothing unclear */
        int failed;     /* the last search, so; 0: it did not */
        sd_event_source *timer;

        unsigned launching; /* in this search: processes that have not begun their command */
        struct marked *marked;
        size_t n_marked;
        size_t allocated;

        unsigned adopted, gone, found;
};

struct sought *adoption_sought(const struct adoption *adoption, const struct fleet *fleet);
/* Is nothing known of the fleet's workers? */
bool adoption_lost(const struct adoption *adoption, const struct fleet *fleet);

/* Finds out whether we are a service of systemd's, whose control group tells who is ours. Returns 0 or
 * -errno. */
int search_service(struct adoption *adoption);
/* Looks once at all processes, and adopts the workers that it finds. Returns 0 or more, or -errno: those that
 * are not adopted yet can be found by another search. */
int search_workers(struct adoption *adoption, usec_t now);
void search_forget(struct adoption *adoption);
