/* SPDX-License-Identifier: MIT */
/* Is an identity given to the worker in namespaces of its own that it belongs to, and to no other? */
/* promises: P1 P9 */
#include "frameworks/inside.h"
#include "io/proc.h"
#include "unit.h"

#define MOST 4

/* Workers 0, 1, ..., of the main pids 1000, 2000, ... */
static struct inside insides[MOST];
static char *identities[MOST];
static bool satisfied[MOST]; /* seeks no identity */
static usec_t read_at[MOST];
static size_t n_workers;
static struct inside_names names;
static struct candidate candidate;

static void setup(void)
{
        memset(insides, 0, sizeof(insides));
        memset(identities, 0, sizeof(identities));
        memset(satisfied, 0, sizeof(satisfied));
        memset(read_at, 0, sizeof(read_at));
        n_workers = 0;
}

static void teardown(void)
{
        inside_names_clear(&names);
}

static size_t add_worker(const char *unique, const char *variable)
{
        struct inside *inside = &insides[n_workers];

        inside->complete = true;
        snprintf(inside->unique, sizeof(inside->unique), "%s", unique);
        snprintf(inside->variable, sizeof(inside->variable), "%s", variable);
        read_at[n_workers] = 100;
        return n_workers++;
}

static void add_process(size_t worker, pid_t pid, pid_t own_pid, const char *host)
{
        struct inside *inside = &insides[worker];
        struct inside_process *process = &inside->list[inside->n++];

        *process = (struct inside_process){.pid = pid, .own_pid = own_pid};
        snprintf(process->host, sizeof(process->host), "%s", host);
}

static void make_names(void)
{
        struct inside_owner *owners = calloc(n_workers + 1, sizeof(*owners));

        ck_assert_ptr_nonnull(owners);
        for (size_t i = 0; i < n_workers; i++)
                owners[i] = (struct inside_owner){.owner = &insides[i],
                                                  .inside = &insides[i],
                                                  .identity = &identities[i],
                                                  .seeks = !satisfied[i],
                                                  .main_pid = 1000 * ((pid_t)i + 1),
                                                  .read_at = read_at[i]};
        inside_names_clear(&names);
        ck_assert_int_eq(inside_names_make(owners, n_workers, &names), 0);
}

/* Whose the candidate is, as `WORKER:PID`, with what is known of the process. */
static const char *found(void)
{
        static char text[64];

        make_names();
        bool has = inside_names_find(&names, &candidate);
        ck_assert(has == !!candidate.owner);
        if (!has) {
                ck_assert_int_eq(candidate.pid, candidate.own_pid);
                return "none";
        }
        ck_assert(candidate.claimed || identities[0]);
        snprintf(text, sizeof(text), "%td:%d%s%s", (const struct inside *)candidate.owner - insides,
                 (int)candidate.pid, candidate.unique ? " unique" : "", candidate.remote ? " remote" : "");
        return text;
}

/* The same for a new candidate, seen at 50. */
static const char *owner_of(const char *identity, size_t host_len, pid_t own_pid)
{
        candidate = (struct candidate){.identity = (char *)identity,
                                       .host_len = host_len,
                                       .own_pid = own_pid,
                                       .pid = own_pid,
                                       .seen_at = 50};
        return found();
}

#define FIND(host, pid, expected)                                                                            \
        do {                                                                                                 \
                ck_assert_str_eq(owner_of(host ":" #pid ":aaaa", strlen(host), pid), expected);              \
                if (strcmp(expected, "none") != 0)                                                           \
                        ck_assert(inside_names_have(&names, host, strlen(host), pid));                       \
        } while (0)

TEST(nobody_has_no_identity)
{
        FIND("vm", 7, "none");
        ck_assert(!inside_names_have(&names, "vm", 2, 7));
}

TEST(a_unique_name_finds_the_process_below_by_its_own_pid)
{
        size_t a = add_worker("vm:mail.0.x", "");
        size_t b = add_worker("vm:mail.1.y", "");

        add_process(a, 1000, 1000, "vm");
        add_process(a, 1001, 7, "box");
        add_process(b, 2000, 2000, "vm");
        add_process(b, 2001, 7, "box");
        FIND("vm:mail.0.x", 7, "0:1001 unique");
        FIND("vm:mail.1.y", 7, "1:2001 unique");
        FIND("vm:mail.1", 7, "none");
        FIND("vm:mail.1.yy", 7, "none");
        FIND("vm", 7, "none");
}

TEST(a_unique_name_needs_no_host_name_and_no_worker_that_seeks)
{
        size_t a = add_worker("u", "");

        add_process(a, 1001, 7, "");
        satisfied[a] = true;
        FIND("u", 7, "0:1001 unique");
        identities[a] = (char *)"u:7:aaaa";
        FIND("u", 7, "0:1001 unique");
}

TEST(a_unique_name_goes_before_all_others)
{
        size_t thief = add_worker("", "u");
        size_t a = add_worker("u", "");

        add_process(thief, 1001, 7, "u");
        add_process(a, 2001, 7, "box");
        FIND("u", 7, "1:2001 unique");
        /* Even if it is not known which process of the owner it is. */
        add_process(a, 2002, 7, "box");
        FIND("u", 7, "none");
}

TEST(a_process_that_is_not_below_is_remote_once_the_list_is_whole_and_new)
{
        size_t a = add_worker("u", "");

        add_process(a, 1000, 1000, "vm");
        FIND("u", 7, "0:1000 unique remote");
        insides[a].complete = false;
        FIND("u", 7, "none");
        insides[a].complete = true;
        read_at[a] = 49; /* the process may have begun since then */
        FIND("u", 7, "none");
        read_at[a] = 50;
        FIND("u", 7, "0:1000 unique remote");
        /* The process becomes visible: its candidate is not remote any more. */
        add_process(a, 1009, 7, "box");
        ck_assert_str_eq(found(), "0:1009 unique");
}

TEST(parents_in_our_pid_namespace_do_not_hide_the_process_below)
{
        size_t a = add_worker("u", "");

        add_process(a, 7, 7, "vm"); /* `unshare` */
        FIND("u", 7, "0:7 unique"); /* in no PID namespace of its own */
        add_process(a, 12, 7, "box");
        FIND("u", 7, "0:12 unique");
        add_process(a, 13, 7, "box"); /* another namespace below the same worker */
        FIND("u", 7, "none");
        ck_assert(inside_names_have(&names, "u", 1, 7));
}

TEST(the_name_of_a_uts_namespace_finds_its_process)
{
        size_t a = add_worker("", "");

        add_process(a, 1000, 1000, "vm");
        add_process(a, 1001, 7, "box");
        add_process(a, 1002, 8, "box");
        add_process(a, 1003, 9, "crate");
        FIND("box", 7, "0:1001");
        FIND("box", 8, "0:1002");
        FIND("box", 9, "none");
        FIND("crate", 9, "0:1003");
        FIND("vm", 1000, "0:1000");
        FIND("vm", 7, "none");
        ck_assert(!inside_names_have(&names, "vm", 2, 7));
}

TEST(the_users_own_variable_is_a_name_of_all_processes)
{
        size_t a = add_worker("u", "mine");

        add_process(a, 1001, 7, "box");
        FIND("mine", 7, "0:1001");
        FIND("box", 7, "0:1001");
        FIND("mine", 8, "none"); /* not remote: others may have the name */
}

TEST(an_identity_of_two_workers_is_nobodys)
{
        size_t a = add_worker("", ""), b = add_worker("", "");

        add_process(a, 1001, 7, "box");
        add_process(b, 2001, 7, "box");
        add_process(b, 2002, 8, "box");
        FIND("box", 7, "none");
        FIND("box", 8, "1:2002");
        satisfied[b] = true; /* B's identity is another */
        FIND("box", 7, "0:1001");
        satisfied[a] = true;
        FIND("box", 7, "none");
        satisfied[b] = false;
        FIND("box", 7, "1:2001"); /* the order of adding is of no importance */
}

TEST(an_identity_of_one_worker_whose_processes_share_the_pid_is_nobodys)
{
        size_t a = add_worker("", "");

        add_process(a, 1001, 7, "box");
        add_process(a, 1002, 7, "box");
        FIND("box", 7, "none");
}

TEST(a_claim_ends_when_another_worker_is_read_that_has_the_name_too)
{
        size_t a = add_worker("", "");

        add_process(a, 1001, 7, "box");
        FIND("box", 7, "0:1001");
        size_t b = add_worker("", "");
        add_process(b, 2001, 7, "box");
        ck_assert_str_eq(found(), "none");
        insides[a].n = 0;
        ck_assert_str_eq(found(), "1:2001");
        insides[b].n = 0;
        ck_assert_str_eq(found(), "none");
}

TEST(a_known_identity_stays_with_its_worker)
{
        size_t a = add_worker("", ""), b = add_worker("", "");

        add_process(a, 1001, 7, "box");
        FIND("box", 7, "0:1001");
        identities[a] = (char *)"box:7:aaaa";
        satisfied[a] = true;
        add_process(b, 2001, 7, "box"); /* which names its namespace so, and gives itself the pid */
        ck_assert_str_eq(found(), "0:1001");
        FIND("box", 7, "none"); /* nor is it B's as a new candidate */
}

TEST(a_full_list_of_processes)
{
        size_t a = add_worker("u", "");

        for (pid_t pid = 0; pid < INSIDE_PROCESSES_MAX; pid++)
                add_process(a, 1001 + pid, 1 + pid, pid % 2 ? "odd" : "even");
        insides[a].complete = false;
        FIND("odd", 64, "0:1064");
        FIND("even", 63, "0:1063");
        FIND("u", 64, "0:1064 unique");
        FIND("u", 65, "none");
}

static const char *unique(const char *boot_id, const char *instance, const char *fleet, unsigned index,
                          usec_t started_at)
{
        static char texts[2][UNIQUE_HOST_MAX];
        static unsigned at;
        const struct unique_host of = {boot_id, instance, fleet, index, started_at};

        return unique_host(&of, "vm", texts[at++ % 2]);
}

TEST(unique_names_differ_by_all_that_they_are_made_of)
{
        char first[UNIQUE_HOST_MAX];

        strcpy(first, unique("b", "i", "mail", 3, 77));
        ck_assert_str_eq(unique("b", "i", "mail", 3, 77), first);
        ck_assert_int_eq(strncmp(first, "vm:mail.3.", 10), 0);
        ck_assert_uint_eq(strlen(first), 10 + 13);
        ck_assert_str_ne(unique("c", "i", "mail", 3, 77), first);
        ck_assert_str_ne(unique("b", "j", "mail", 3, 77), first);
        ck_assert_str_ne(unique("b", "i", "male", 3, 77), first);
        ck_assert_str_ne(unique("b", "i", "mail", 4, 77), first);
        ck_assert_str_ne(unique("b", "i", "mail", 3, 78), first);
        /* The border between two parts counts. */
        ck_assert_str_ne(strrchr(unique("bi", "", "mail", 3, 77), '.'), strrchr(first, '.'));
}

TEST(unique_names_of_the_longest_host_and_fleet_are_whole)
{
        char host[400], fleet[49], text[UNIQUE_HOST_MAX];
        const struct unique_host of = {"b", "i", fleet, UINT32_MAX, 77};

        memset(host, 'h', sizeof(host) - 1);
        host[sizeof(host) - 1] = '\0';
        memset(fleet, 'f', sizeof(fleet) - 1);
        fleet[sizeof(fleet) - 1] = '\0';
        unique_host(&of, host, text);
        ck_assert_uint_eq(unique_host_base(text, strlen(text)), 255);
        ck_assert_uint_eq(strlen(strrchr(text, '.')), 1 + 13);
}

TEST(the_host_of_a_name)
{
        ck_assert_uint_eq(unique_host_base("vm:mail.0.x", 11), 2);
        ck_assert_uint_eq(unique_host_base("vm", 2), 2);
        ck_assert_uint_eq(unique_host_base("vm:mail", 2), 2);
        ck_assert_uint_eq(unique_host_base("", 0), 0);
        ck_assert_uint_eq(unique_host_base(":", 1), 0);
}

static int last_pid(const char *text)
{
        pid_t pid = -1;
        int r = procfile_last_pid(text, "NSpid:", &pid);

        ck_assert(r == 0 || pid == -1);
        return r < 0 ? r : pid;
}

TEST(the_innermost_pid_of_a_status_file)
{
        ck_assert_int_eq(last_pid("Name:\tx\nNSpid:\t4711\nThreads:\t9\n"), 4711);
        ck_assert_int_eq(last_pid("NSpid:\t4711\t12\t7\nThreads:\t9\n"), 7);
        ck_assert_int_eq(last_pid("NSpid:\t4711 7"), 7);
        ck_assert_int_eq(last_pid("Name:\tNSpid: 5\nNSpid:\t6\n"), 6);
        ck_assert_int_eq(last_pid("Name:\tx\nThreads:\t9\n"), -ENODATA);
        ck_assert_int_eq(last_pid("NSpid:\t\nThreads:\t9\n"), -ENODATA);
        ck_assert_int_eq(last_pid("NSpid:\t0\n"), -ENODATA); /* it has exited */
        ck_assert_int_eq(last_pid("NSpid:\t-1\n"), -ENODATA);
        ck_assert_int_eq(last_pid("NSpid:\t7x\n"), -ENODATA);
        ck_assert_int_eq(last_pid("NSpid:\t99999999999999999999\n"), -ENODATA);
        ck_assert_int_eq(last_pid(""), -ENODATA);
}

TEST_MAIN("inside", .each = {setup, teardown})
