/* SPDX-License-Identifier: MIT */
/* The bytes of a record: what the planner saw, and what it decided, pass after pass.
 *
 * A file is a ring of RECORD_SLOTS slots of equal size. A slot holds a segment: a header, the settings, and
 * then frames. The first frame has the whole state of the model, each later one the difference from the frame
 * before; and each has the decision. A number is a LEB128 varint, a difference is zigzag-encoded. The names
 * of the fields are in the segment, so that a later sqmgr, whose model has other fields, can read it: fields
 * that it does not know are skipped, new ones are 0.
 *
 * No text of the model, no command, argument, environment, path or URL is recorded: only numbers, and the
 * names of fleets and frameworks. */
#pragma once

#include "base/usec.h"
#include "continuity/codec.h"
#include "model/template.h"
#include "record/model_field_rules.h"

struct plan;
struct settings;
struct settings_key;
struct settings_surroundings;
struct world;

#define RECORD_MAGIC       "sqmgr.rc"
#define RECORD_VERSION     1
#define RECORD_SLOTS       8
#define RECORD_HEADER_SIZE 48
/* Limits of what is read. */
#define RECORD_FLEETS_MAX  4096
#define RECORD_WORKERS_MAX 30000 /* of all fleets */
/* A replay visits each worker in each pass, but a pass in which nothing changes has a dozen bytes. So a
 * segment ends before its passes visit more workers for each of its bytes. A replay refuses twice as many:
 * half is left for what changed settings start. */
#define RECORD_WORK_PER_BYTE 16
#define REPLAY_WORK_PER_BYTE 32

struct record_header {
        uint64_t slot_bytes; /* size of each slot, with its header */
        uint64_t sequence;   /* from 1, raised with each segment */
        uint64_t used;       /* bytes behind the header */
        uint64_t checksum;   /* hash_bytes() of the used bytes */
};

void record_header_write(const struct record_header *header, uint8_t bytes[static RECORD_HEADER_SIZE]);
/* Returns 1; 0 for a slot that is all zeros; or -EBADMSG. Does not read what is behind the header. */
int record_header_parse(const uint8_t bytes[static RECORD_HEADER_SIZE], struct record_header *ret);
/* The same, and checks the bytes behind the header. size: bytes of the file from the slot on. */
int record_header_read(const uint8_t *bytes, size_t size, struct record_header *ret);

/* Returns true for settings that are recorded: those that are numbers, or one of a few names. */
bool settings_key_is_recorded(const struct settings_key *key);

struct recorded_worker {
        unsigned index;
        uint64_t values[MODEL_FIELDS_MAX];
};

struct recorded_fleet {
        uint64_t values[MODEL_FIELDS_MAX];
        uint64_t templates[TEMPLATES_MAX][MODEL_FIELDS_MAX];
        struct recorded_worker **workers; /* owned, ordered by index */
        size_t n_workers, allocated;
};

/* The recorded fields of a world. Zeroed at the start of a segment. */
struct recorded_world {
        usec_t now;
        uint64_t values[MODEL_FIELDS_MAX];
        struct recorded_fleet *fleets; /* owned */
        size_t n_fleets;
        size_t n_workers; /* of all fleets, while reading */
        uint64_t work;    /* workers visited by the passes up to this one */
};

/* Returns 0 or -ENOMEM. Free with recorded_world_free(). */
int recorded_world_init(struct recorded_world *recorded, size_t n_fleets);
void recorded_world_free(struct recorded_world *recorded);

/* Writes the beginning of a segment: the names of the fields, and the settings. */
void record_write_begin(struct codec_writer *writer, const struct settings *settings);
/* Writes the difference between recorded and the world, and changes recorded accordingly. The world has the
 * fleets of the settings, in the same order. Returns 0; or -ENOMEM, after which the segment must
 * end. */
int record_write_state(struct codec_writer *writer, struct recorded_world *recorded,
                       const struct world *world, usec_t now);
/* Writes the decision of the plan: its actions, and when to plan again. */
void record_write_decision(struct codec_writer *writer, const struct plan *plan, const struct world *world,
                           usec_t now);

/* Maps the fields of a segment to our fields. */
struct record_names {
        struct {
                int16_t own[MODEL_FIELDS_MAX]; /* -1: this sqmgr has no such field */
                size_t n;
        } parts[_MODEL_PART_MAX];
};

/* Reads what record_write_begin() wrote. Returns 0 with *ret_settings to be freed by settings_free(); or
 * -ENOMEM. reader->wrong is set, and *ret_settings NULL, if the bytes are wrong. */
int record_read_begin(struct codec_reader *reader, const struct settings_surroundings *surroundings,
                      struct record_names *names, struct settings **ret_settings);
/* Reads a difference into recorded. Returns 0 or -ENOMEM; sets reader->wrong if the bytes are wrong. */
int record_read_state(struct codec_reader *reader, const struct record_names *names,
                      struct recorded_world *recorded);

/* An action of a decision. */
struct recorded_action {
        unsigned kind;   /* enum action_kind */
        size_t fleet;    /* position in the settings */
        unsigned index;  /* of the worker, existing or to be started; 0: none */
        unsigned slot;   /* of the template, from 1; 0: none */
        unsigned reason; /* enum reason */
};
struct decision {
        struct recorded_action *actions; /* owned */
        size_t n;
        usec_t wake_at; /* USEC_INFINITY: never */
};
/* Reads a decision, whose actions are freed by the caller. Returns 0 or -ENOMEM; sets reader->wrong. */
int record_read_decision(struct codec_reader *reader, usec_t now, size_t n_fleets, struct decision *ret);
