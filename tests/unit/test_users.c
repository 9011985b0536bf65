/* SPDX-License-Identifier: MIT */
/* Tests of io/users.h, and of the user of sqmgr-reader (io/reader_files.h). */
#include "io/reader_files.h"
#include "io/users.h"
#include "unit.h"

/* The machine as reader_user() sees it. */
static struct {
        bool is_set;
        uid_t own_uid;
        gid_t own_gid;
        bool has_reader;
        uid_t reader_uid;
        gid_t reader_gid;
} machine;

uid_t __real_geteuid(void);
uid_t __wrap_geteuid(void);
uid_t __wrap_geteuid(void)
{
        return machine.is_set ? machine.own_uid : __real_geteuid();
}

gid_t __real_getegid(void);
gid_t __wrap_getegid(void);
gid_t __wrap_getegid(void)
{
        return machine.is_set ? machine.own_gid : __real_getegid();
}

bool __real_users_find(const char *name, uid_t *ret_uid, gid_t *ret_gid);
bool __wrap_users_find(const char *name, uid_t *ret_uid, gid_t *ret_gid);
bool __wrap_users_find(const char *name, uid_t *ret_uid, gid_t *ret_gid)
{
        if (!machine.is_set)
                return __real_users_find(name, ret_uid, ret_gid);
        ck_assert_str_eq(name, "sqmgr-reader");
        if (machine.has_reader) {
                *ret_uid = machine.reader_uid;
                *ret_gid = machine.reader_gid;
        }
        return machine.has_reader;
}

TEST(names_who_is_there_and_nobody_else)
{
        char name[64] = "x";

        users_name(0, name, sizeof(name));
        ck_assert_str_eq(name, "root");
        users_name((uid_t)-2, name, sizeof(name));
        ck_assert_str_eq(name, "");
}

TEST(a_name_is_never_cut_off)
{
        char name[5] = "x";

        users_name(0, name, sizeof(name));
        ck_assert_str_eq(name, "root");
        users_name(0, name, sizeof(name) - 1);
        ck_assert_str_eq(name, "");
}

TEST(groups_are_those_of_the_file)
{
        gid_t group = 7;

        ck_assert(!users_group("no-such-group", &group));
        ck_assert_uint_eq(group, 7);
        ck_assert(users_group("root", &group));
        ck_assert_uint_eq(group, 0);
}

TEST(users_are_those_of_the_file)
{
        uid_t user = 7;
        gid_t group = 7;

        ck_assert(!users_find("no-such-user", &user, &group));
        ck_assert_uint_eq(user, 7);
        ck_assert_uint_eq(group, 7);
        ck_assert(users_find("root", &user, &group));
        ck_assert_uint_eq(user, 0);
        ck_assert_uint_eq(group, 0);
}

static const struct {
        uid_t own_uid;
        gid_t own_gid;
        bool has_reader;
        uid_t reader_uid;
        gid_t reader_gid;
        uid_t uid;
        gid_t gid;
} readers[] = {
        {0, 0, true, 990, 989, 990, 989},       {0, 0, false, 0, 0, 65534, 65534},
        {0, 0, true, 0, 989, 65534, 65534},     {0, 0, true, 990, 0, 65534, 65534},
        {1000, 100, true, 990, 989, 1000, 100},
};

TEST_LOOP(a_reader_is_never_root_and_without_root_our_own_user, (int)ELEMENTSOF(readers))
{
        uid_t uid = 1;
        gid_t gid = 1;

        machine.own_uid = readers[_i].own_uid;
        machine.own_gid = readers[_i].own_gid;
        machine.has_reader = readers[_i].has_reader;
        machine.reader_uid = readers[_i].reader_uid;
        machine.reader_gid = readers[_i].reader_gid;
        machine.is_set = true;
        reader_user(&uid, &gid);
        machine.is_set = false;
        ck_assert_uint_eq(uid, readers[_i].uid);
        ck_assert_uint_eq(gid, readers[_i].gid);
}

TEST_MAIN("users")
