/* SPDX-License-Identifier: MIT */
/* Fuzzes what a helper program of a database sends to sqmgr: messages that are whole or not, and bytes that
 * are none. If the first byte is odd, the helper is connected, and a batch runs. Each step is a byte, with
 * its number in the low bits; HOLD: the next step belongs to the same piece. */
#include "base/fd.h"
#include "base/printable.h"
#include "database/messages.h"
#include "fuzz.h"
#include <sys/socket.h>

#define HOLD       0x80
#define STATEMENTS 2

static sd_event *event;
static struct database *database;
static struct codec_writer unsent;
static int helper_fd;
static unsigned run, done, starts, stops;

static int start(struct database_starter *starter _unused_, enum database_engine engine _unused_,
                 void (*ended)(const char *how, void *userdata) _unused_, void *userdata _unused_,
                 struct database_helper **ret, int *ret_fd)
{
        int fds[2];

        fuzz_check(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == 0);
        helper_fd = fds[1];
        starts++;
        *ret = (struct database_helper *)&starts;
        *ret_fd = fds[0];
        return 0;
}

static void stop(struct database_helper *helper _unused_)
{
        stops++;
}

/* Errors are shown to people. */
static void check_error(const struct error_report *error)
{
        char text[sizeof(error->text)];

        snprintf(text, sizeof(text), "%s", error->text);
        printable_replace(text, strlen(text), false);
        fuzz_check(text[0] != '\0' && strcmp(text, error->text) == 0);
}

static void on_state(struct database *of, enum database_state state, const struct error_report *error,
                     void *userdata _unused_)
{
        fuzz_check(state < _DATABASE_STATE_MAX && state == database_state(of));
        fuzz_check(state != DATABASE_CONNECTED || !error);
        if (error)
                check_error(error);
}

static int on_row(size_t statement, const struct database_row *row, void *userdata _unused_)
{
        unsigned sum = 0;

        fuzz_check(done < run && statement < STATEMENTS && row->n <= DATABASE_COLUMNS_MAX);
        for (size_t i = 0; i < row->n; i++) {
                const struct field *value = &row->values[i];

                fuzz_check(!value->text || value->text[value->len] == '\0');
                for (size_t k = 0; k < value->len; k++)
                        sum += (unsigned char)value->text[k];
        }
        return sum == 7 ? -E2BIG : 0;
}

static void on_done(enum database_result result, const struct error_report *error, void *userdata _unused_)
{
        done++;
        fuzz_check(done == run && result < _DATABASE_RESULT_MAX && (result == DATABASE_DONE) == !error);
        if (error)
                check_error(error);
}

static void run_batch(void)
{
        static const struct database_batch_ops ops = {.row = on_row, .done = on_done};
        static const struct database_statement statements[STATEMENTS] = {{.sql = "one"}, {.sql = "two"}};

        if (database_run(database, statements, STATEMENTS, false, &ops, NULL) == 0)
                run++;
}

static void run_loop(void)
{
        for (unsigned turn = 0; turn < 100 && sd_event_run(event, 0) > 0; turn++)
                ;
}

static void send_unsent(void)
{
        if (helper_fd >= 0 && unsent.size > 0)
                (void)send(helper_fd, unsent.bytes, unsent.size, MSG_DONTWAIT | MSG_NOSIGNAL);
        unsent.size = 0;
        run_loop();
}

static void put(const void *bytes, size_t n)
{
        uint8_t *at = n > 0 ? codec_write_space(&unsent, n) : NULL;

        fuzz_check(n == 0 || at);
        if (n > 0)
                memcpy(at, bytes, n);
}

static void put_field(struct input *input)
{
        size_t length = input_byte(input);
        struct field field = input_field(input, length);

        put(field.text, field.len);
        field_free(&field);
}

static void put_text(struct input *input)
{
        size_t place = codec_write_later(&unsent);
        size_t before = unsent.size;

        put_field(input);
        codec_fill_number(&unsent, place, unsent.size - before);
}

/* The byte that ends a value comes from the top bit of the length, 0xff: SQL NULL. */
static void put_value(struct input *input)
{
        uint8_t byte = input_byte(input);
        struct field field = input_field(input, byte == 0xff ? 0 : byte & 0x7f);
        uint8_t length[sizeof(uint32_t)] = {(uint8_t)field.len};

        if (byte == 0xff)
                memset(length, 0xff, sizeof(length));
        put(length, sizeof(length));
        if (byte != 0xff) {
                put(field.text, field.len);
                put(byte & 0x80 ? "x" : "", 1);
        }
        field_free(&field);
}

static void connect_helper(void)
{
        const struct database_report report = {.state = DATABASE_CONNECTED, .connections = 1};

        (void)codec_write_space(&unsent, sizeof(uint32_t));
        database_report_write(&unsent, &report);
        codec_put_bytes(unsent.bytes, sizeof(uint32_t), unsent.size - sizeof(uint32_t));
        send_unsent();
}

enum { PUT_BYTES, PUT_MESSAGE, PUT_STATE, PUT_ROW, PUT_END, RUN_BATCH, HANG_UP, _ACTION_MAX };

/* Writes a message whose numbers are bytes of the input. */
static void put_message(unsigned action, struct input *input)
{
        size_t begin = unsent.size;

        (void)codec_write_space(&unsent, sizeof(uint32_t));
        if (action == PUT_MESSAGE) {
                put_field(input);
        } else if (action == PUT_ROW) {
                codec_write_number(&unsent, DATABASE_ROW);
                codec_write_number(&unsent, input_byte(input));
                size_t n = input_byte(input);
                codec_write_number(&unsent, n);
                for (size_t i = 0; i < n && input->left > 0; i++)
                        put_value(input);
        } else {
                codec_write_number(&unsent, action == PUT_STATE ? DATABASE_STATE : DATABASE_END);
                codec_write_number(&unsent, input_byte(input));
                codec_write_number(&unsent, input_byte(input));
                put_text(input);
                put_text(input);
        }
        codec_put_bytes(unsent.bytes + begin, sizeof(uint32_t), unsent.size - begin - sizeof(uint32_t));
}

static void step(struct input *input)
{
        uint8_t byte = input_byte(input);
        unsigned action = (byte & ~HOLD) % _ACTION_MAX;

        if (action == PUT_BYTES)
                put_field(input);
        else if (action == RUN_BATCH)
                run_batch();
        else if (action == HANG_UP)
                helper_fd = close_fd(helper_fd);
        else
                put_message(action, input);
        if (!(byte & HOLD))
                send_unsent();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static struct database_starter starter = {.start = start, .stop = stop};
        static const struct database_ops ops = {.state = on_state};
        const struct database_settings settings = {.engine = DATABASE_SQLITE,
                                                   .starter = &starter,
                                                   .url = "sqlite3:/srv/q",
                                                   .probe = "SELECT 1",
                                                   .timeout = USEC_PER_HOUR};
        struct input input = {data, size};

        run = done = starts = stops = 0;
        fuzz_check(sd_event_new(&event) >= 0);
        fuzz_check(database_new(event, &settings, &ops, NULL, &database) == 0);
        run_loop();
        fuzz_check(starts == 1);
        if (input_byte(&input) % 2 == 1) {
                connect_helper();
                run_batch();
                fuzz_check(run == 1);
        }
        while (input.left > 0)
                step(&input);
        send_unsent();
        database_free(database);
        fuzz_check(run == done && stops == 1);
        event = sd_event_unref(event);
        helper_fd = close_fd(helper_fd);
        free(TAKE_PTR(unsent.bytes));
        unsent = (struct codec_writer){0};
        return 0;
}
