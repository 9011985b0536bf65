/* SPDX-License-Identifier: MIT */
/* Which servers are in quarantine: what is in the ledger as sqmgr ends, and what the next sqmgr makes of it.
 */
/* promises: P4 P5 */
#include "continuity/quarantine.h"
#include "io/ledger_file.h"
#include "unit.h"
#include <signal.h>
#include <sys/wait.h>

#define BOOT   "0f3c"
#define AT     (3 * USEC_PER_HOUR)
#define WITHIN QUARANTINE_WITHIN_USEC

static char dir[32], path[64];
static struct ledger_file file;
static uint32_t a, b;

static void setup(void)
{
        const char *why;

        unit_make_folder(dir);
        snprintf(path, sizeof(path), "%s/starts", dir);
        file = LEDGER_FILE_INIT;
        ck_assert_int_eq(ledger_file_open(&file, path, BOOT, 4, &why), LEDGER_FILE_NEW);
        a = quarantine_key("redis://a/0");
        b = quarantine_key("redis://b/0");
}

static void teardown(void)
{
        ledger_file_close(&file);
        unit_remove_tree(dir);
}

/* sqmgr ends while it decodes bytes of the server; the next one begins at that time. */
static void crash(uint32_t key, usec_t at)
{
        quarantine_decoding(&file.ledger, key);
        ck_assert_uint_eq(quarantine_take_over(&file.ledger, at), key);
        ck_assert_uint_eq(quarantine_take_over(&file.ledger, at), 0);
}

static bool holds(uint32_t key)
{
        return quarantine_holds(&file.ledger, key);
}

TEST(the_databases_of_a_server_have_one_key)
{
        static const char *const same[][2] = {
                {"redis://a/0", "redis://a/1"},
                {"redis://a:7000/0", "redis://a:7000"},
                {"unix:///run/a.sock", "unix:///run/a.sock?db=3"},
                {"postgresql://a/app", "postgresql://a/other"},
        };
        static const char *const others[] = {"redis://ab/0",       "redis://a:7000/0",   "rediss://a/0",
                                             "unix:///run/a.sock", "unix:///run/b.sock", ""};

        for (size_t i = 0; i < ELEMENTSOF(same); i++)
                ck_assert_uint_eq(quarantine_key(same[i][0]), quarantine_key(same[i][1]));
        for (size_t i = 0; i < ELEMENTSOF(others); i++) {
                ck_assert_uint_ne(quarantine_key(others[i]), a);
                ck_assert_uint_ne(quarantine_key(others[i]), 0);
        }
}

TEST(an_end_while_nothing_is_decoded_is_no_crash_of_a_server)
{
        for (unsigned i = 0; i < 3; i++) {
                quarantine_decoding(&file.ledger, a);
                quarantine_decoding(&file.ledger, 0);
                ck_assert_uint_eq(quarantine_take_over(&file.ledger, AT), 0);
        }
        ck_assert(!holds(a) && !holds(b));
}

TEST(the_second_end_within_ten_minutes_puts_the_server_into_quarantine)
{
        crash(a, AT);
        ck_assert(!holds(a));
        crash(a, AT + WITHIN);
        ck_assert(holds(a));
        ck_assert(!holds(b));
}

TEST(ends_further_apart_do_not)
{
        for (unsigned i = 0; i < 5; i++)
                crash(a, AT + i * (WITHIN + USEC_PER_SEC));
        ck_assert(!holds(a));
        /* The last end counts, not the first. */
        crash(a, AT + 4 * (WITHIN + USEC_PER_SEC) + WITHIN);
        ck_assert(holds(a));
}

TEST(ends_of_two_servers_are_counted_separately)
{
        crash(a, AT);
        crash(b, AT + USEC_PER_SEC);
        ck_assert(!holds(a) && !holds(b));
        crash(b, AT + 2 * USEC_PER_SEC);
        ck_assert(!holds(a) && holds(b));
        crash(a, AT + 3 * USEC_PER_SEC);
        ck_assert(holds(a) && holds(b));
}

TEST(a_quarantine_lasts_until_it_is_ended)
{
        crash(a, AT);
        crash(a, AT);
        for (unsigned i = 1; i < 4; i++) {
                crash(a, AT + i * USEC_PER_HOUR);
                ck_assert(holds(a));
        }
        quarantine_end(&file.ledger);
        ck_assert(!holds(a));
        /* Two more ends are needed. */
        crash(a, AT + 4 * USEC_PER_HOUR);
        ck_assert(!holds(a));
        crash(a, AT + 4 * USEC_PER_HOUR);
        ck_assert(holds(a));
}

TEST(servers_in_quarantine_are_kept_the_longest)
{
        crash(a, AT);
        crash(a, AT);
        for (uint32_t key = 1; key <= 3 * LEDGER_CRASHES; key++) {
                crash(key, AT + key * USEC_PER_SEC);
                ck_assert(holds(a));
        }
        /* The most recent servers are still known. */
        crash(3 * LEDGER_CRASHES, AT + WITHIN);
        ck_assert(holds(3 * LEDGER_CRASHES) && holds(a));
        /* With more servers in quarantine than there is space, the oldest gives way. */
        for (uint32_t key = 1; key < LEDGER_CRASHES; key++) {
                crash(key, AT + WITHIN + key * USEC_PER_SEC);
                crash(key, AT + WITHIN + key * USEC_PER_SEC);
        }
        ck_assert(!holds(a) && holds(1) && holds(LEDGER_CRASHES - 1));
}

TEST(a_process_that_dies_names_its_server_to_the_next)
{
        const char *why;

        for (unsigned i = 0; i < 2; i++) {
                pid_t pid = unit_fork();

                if (pid == 0) {
                        quarantine_decoding(&file.ledger, b);
                        (void)raise(SIGKILL);
                }
                ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
                ledger_file_close(&file);
                ck_assert_int_eq(ledger_file_open(&file, path, BOOT, 4, &why), LEDGER_FILE_KEPT);
                ck_assert_uint_eq(quarantine_take_over(&file.ledger, AT), b);
        }
        ck_assert(holds(b));
        /* A new boot begins with a new ledger. */
        ledger_file_close(&file);
        ck_assert_int_eq(ledger_file_open(&file, path, "another", 4, &why), LEDGER_FILE_NEW);
        ck_assert(!holds(b));
}

TEST_MAIN("quarantine", .each = {setup, teardown})
