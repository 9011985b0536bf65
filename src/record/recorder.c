/* SPDX-License-Identifier: MIT */
/* Writes the record; see the header. */
#include "record/recorder.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/parse.h"
#include "daemon/runtime/subsystem.h"
#include "daemon/takeover/persist.h"
#include "io/log.h"
#include "model/world.h"
#include "privileged/record_file.h"
#include "record/record_rules.h"
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Slots begin at pages of the file. */
#define PAGE_BYTES UINT64_C(4096)
/* Space that must be left for the decision when the state is written. */
#define DECISION_BYTES 4096
/* Pause after an error. */
#define RETRY_USEC USEC_PER_MIN

struct recorder {
        const struct persist *persist; /* not owned */
        int fd;                        /* -1: no file is open */
        int error;                     /* reported; 0: none */
        uint64_t size;                 /* the setting when the file was opened */
        usec_t retry_at; /* nothing is written before; USEC_INFINITY: until the settings change */

        struct record_header header; /* of the current segment */
        unsigned slot;
        bool begun;                      /* the segment can be continued */
        const struct settings *settings; /* the segment has these; NULL: to be compared; not owned */
        struct codec_writer begin;       /* the same as the segment has them */
        struct recorded_world recorded;
        struct codec_writer frame; /* reused from pass to pass */
        bool framed;               /* frame has the state of a pass that is being planned */
};

static int begin(struct persist *persist, void **ret)
{
        struct recorder *recorder = calloc(1, sizeof(*recorder));

        if (!recorder)
                return -ENOMEM;
        *recorder = (struct recorder){.persist = persist, .fd = -1};
        *ret = recorder;
        return 0;
}

static const struct world *world_of(const struct recorder *recorder)
{
        return recorder->persist->runtime->world;
}

static void close_file(struct recorder *recorder)
{
        recorder->fd = close_fd(recorder->fd);
        recorder->begun = recorder->framed = false;
        recorded_world_free(&recorder->recorded);
        free(recorder->frame.bytes);
        free(recorder->begin.bytes);
        recorder->frame = recorder->begin = (struct codec_writer){0};
}

/* Stops for a while, and reports the error unless it is the last one again. */
static void fail(struct recorder *recorder, int error, usec_t now)
{
        if (error != recorder->error)
                log_warning("cannot write the record '%s.record': %s",
                            world_of(recorder)->settings->state_file, strerrordesc_np(-error));
        recorder->error = error;
        recorder->retry_at = usec_add(now, RETRY_USEC);
        close_file(recorder);
}

static void join(void *self)
{
        struct recorder *recorder = self;

        recorder->settings = NULL;
        recorder->error = 0;
        recorder->retry_at = 0;
        if (recorder->size != world_of(recorder)->settings->record)
                close_file(recorder);
}

static void end(void *self)
{
        struct recorder *recorder = self;

        close_file(recorder);
        free(recorder);
}

static uint64_t slot_bytes(const struct recorder *recorder)
{
        return recorder->size / RECORD_SLOTS / PAGE_BYTES * PAGE_BYTES;
}

/* A disk that fills up later does not end the record. Not all file systems can reserve space. */
static int reserve(const struct recorder *recorder)
{
        struct stat before;

        if (fstat(recorder->fd, &before) < 0)
                return -errno;
        if (fallocate(recorder->fd, 0, 0, (off_t)(RECORD_SLOTS * slot_bytes(recorder))) == 0 ||
            errno != ENOSPC)
                return 0;
        /* Some file systems keep what they could reserve: the state must still find room. */
        return ftruncate(recorder->fd, before.st_size) < 0 ? -errno : -ENOSPC;
}

/* Finds the newest segment, so that the next one follows it. An empty one is overwritten: a disk that refuses
 * the passes again and again must not cost one old segment each time. A file that has another size, or is not
 * a record, is begun anew. */
static int continue_ring(struct recorder *recorder)
{
        bool foreign = false;

        recorder->header = (struct record_header){.slot_bytes = slot_bytes(recorder)};
        recorder->slot = RECORD_SLOTS - 1;
        for (unsigned slot = 0; slot < RECORD_SLOTS && !foreign; slot++) {
                uint8_t bytes[RECORD_HEADER_SIZE] = {0};
                struct record_header header;
                ssize_t n = TEMP_FAILURE_RETRY(
                        pread(recorder->fd, bytes, sizeof(bytes), (off_t)(slot * slot_bytes(recorder))));

                if (n < 0)
                        return -errno;
                int r = record_header_parse(bytes, &header);
                foreign = r < 0 || (r > 0 && header.slot_bytes != slot_bytes(recorder));
                if (r <= 0 || foreign || header.used == 0 || header.sequence <= recorder->header.sequence)
                        continue;
                recorder->header.sequence = header.sequence;
                recorder->slot = slot;
        }
        if (foreign) {
                recorder->header.sequence = 0;
                recorder->slot = RECORD_SLOTS - 1;
                if (ftruncate(recorder->fd, 0) < 0)
                        return -errno;
        }
        return reserve(recorder);
}

static int record_path(const struct recorder *recorder, char path[static PATH_MAX])
{
        const char *state_file = world_of(recorder)->settings->state_file;

        return (size_t)snprintf(path, PATH_MAX, "%s.record", state_file) < PATH_MAX ? 0 : -ENAMETOOLONG;
}

static int open_file(struct recorder *recorder)
{
        char path[PATH_MAX];
        int r = record_path(recorder, path);

        recorder->size = world_of(recorder)->settings->record;
        if (r < 0)
                return r;
        recorder->fd = record_file_open(path);
        return recorder->fd < 0 ? recorder->fd : continue_ring(recorder);
}

/* At each regular poll: a file that was deleted, moved or truncated is opened or made again. */
static void poll(void *self, usec_t now _unused_)
{
        struct recorder *recorder = self;
        struct stat ours, there;
        char path[PATH_MAX];

        if (recorder->fd < 0)
                return;
        uint64_t end =
                recorder->slot * recorder->header.slot_bytes + RECORD_HEADER_SIZE + recorder->header.used;
        if (record_path(recorder, path) < 0 || fstat(recorder->fd, &ours) < 0 || lstat(path, &there) < 0 ||
            ours.st_dev != there.st_dev || ours.st_ino != there.st_ino || (uint64_t)ours.st_size < end)
                close_file(recorder);
}

static int write_at(const struct recorder *recorder, const uint8_t *bytes, size_t size, uint64_t offset)
{
        ssize_t n = TEMP_FAILURE_RETRY(pwrite(
                recorder->fd, bytes, size, (off_t)(recorder->slot * recorder->header.slot_bytes + offset)));

        return n < 0 ? -errno : n < (ssize_t)size ? -ENOSPC : 0;
}

static int write_header(const struct recorder *recorder)
{
        uint8_t bytes[RECORD_HEADER_SIZE];

        record_header_write(&recorder->header, bytes);
        return write_at(recorder, bytes, sizeof(bytes), 0);
}

static bool fits(const struct recorder *recorder, size_t more)
{
        uint64_t size = recorder->header.used + recorder->frame.size;

        return size + more <= recorder->header.slot_bytes - RECORD_HEADER_SIZE &&
               recorder->recorded.work <= RECORD_WORK_PER_BYTE * size;
}

/* Begins a segment in the next slot. Returns 0, -EOVERFLOW if the state does not fit, or -errno. */
static int begin_segment(struct recorder *recorder, usec_t now)
{
        const struct world *world = world_of(recorder);

        recorded_world_free(&recorder->recorded);
        recorder->settings = world->settings;
        recorder->slot = (recorder->slot + 1) % RECORD_SLOTS;
        recorder->header.sequence++;
        recorder->header.used = 0;
        recorder->header.checksum = HASH_INIT;
        int r = write_header(recorder);
        if (r == 0)
                r = recorded_world_init(&recorder->recorded, world->n_fleets);
        if (r < 0)
                return r;
        recorder->frame.size = recorder->begin.size = 0;
        record_write_begin(&recorder->frame, world->settings);
        record_write_begin(&recorder->begin, world->settings);
        r = record_write_state(&recorder->frame, &recorder->recorded, world, now);
        if (r < 0 || recorder->frame.failed || recorder->begin.failed)
                return -ENOMEM;
        recorder->begun = true;
        return fits(recorder, DECISION_BYTES) ? 0 : -EOVERFLOW;
}

/* Returns true if the segment has the current settings: most reloads change nothing that is recorded. */
static bool has_settings(struct recorder *recorder)
{
        const struct settings *settings = world_of(recorder)->settings;

        if (recorder->settings != settings) {
                recorder->frame.size = 0;
                record_write_begin(&recorder->frame, settings);
                if (recorder->frame.failed || recorder->frame.size != recorder->begin.size ||
                    memcmp(recorder->frame.bytes, recorder->begin.bytes, recorder->begin.size) != 0)
                        return false;
                recorder->settings = settings;
        }
        return true;
}

/* Prepares the frame of this pass. */
static int write_state(struct recorder *recorder, usec_t now)
{
        const struct world *world = world_of(recorder);

        if (!recorder->begun || !has_settings(recorder) || recorder->recorded.n_fleets != world->n_fleets)
                return begin_segment(recorder, now);
        recorder->frame.size = 0;
        int r = record_write_state(&recorder->frame, &recorder->recorded, world, now);
        if (r < 0 || recorder->frame.failed)
                return -ENOMEM;
        return fits(recorder, DECISION_BYTES) ? 0 : begin_segment(recorder, now);
}

static void planning(void *self, usec_t now)
{
        struct recorder *recorder = self;

        recorder->framed = false;
        /* The other sqmgr continues the ring meanwhile. */
        if (recorder->persist->locked_out)
                close_file(recorder);
        if (world_of(recorder)->settings->record == 0 || now < recorder->retry_at ||
            recorder->persist->locked_out)
                return;
        int r = recorder->fd < 0 ? open_file(recorder) : 0;
        if (r == 0)
                r = write_state(recorder, now);
        recorder->framed = r == 0;
        if (r == -EOVERFLOW) {
                char size[32];

                format_size(2 * RECORD_SLOTS * (uint64_t)recorder->frame.size, size, sizeof(size));
                log_warning(
                        "nothing is recorded (reason: the state does not fit); set 'record' to %s or more",
                        size);
                close_file(recorder);
                recorder->retry_at = USEC_INFINITY;
        } else if (r < 0) {
                fail(recorder, r, now);
        }
}

static void planned(void *self, const struct plan *plan, usec_t now)
{
        struct recorder *recorder = self;
        uint64_t at = RECORD_HEADER_SIZE + recorder->header.used;

        if (!recorder->framed)
                return;
        record_write_decision(&recorder->frame, plan, world_of(recorder), now);
        /* A very large decision: the next pass begins a segment. */
        if (recorder->frame.failed || !fits(recorder, 0)) {
                recorder->begun = false;
                return;
        }
        /* The header makes the bytes valid. */
        int r = write_at(recorder, recorder->frame.bytes, recorder->frame.size, at);
        if (r == 0) {
                recorder->header.checksum =
                        hash_bytes(recorder->header.checksum, recorder->frame.bytes, recorder->frame.size);
                recorder->header.used += recorder->frame.size;
                r = write_header(recorder);
        }
        if (r < 0)
                fail(recorder, r, now);
        else
                recorder->error = 0;
}

const struct subsystem recorder_subsystem = {
        .name = "record",
        .begin = begin,
        .join = join,
        .poll = poll,
        .planning = planning,
        .planned = planned,
        .end = end,
};
