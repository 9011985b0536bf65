/* SPDX-License-Identifier: MIT */
/* Finding the instances of sqmgr, and connecting to none but those of the owners of their directories. */
#include "base/fd.h"
#include "base/locate.h"
#include "unit.h"

static char folder[64], found[1024];
static int listeners[8];
static size_t n_listeners;

static const char *in_folder(const char *name)
{
        static char paths[4][192];
        static size_t at;
        char *path = paths[at++ % ELEMENTSOF(paths)];

        snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
        return path;
}

static void make_directory(const char *name)
{
        ck_assert_int_eq(mkdir(in_folder(name), 0755), 0);
}

/* Listens there until the end of the test. */
static void serve(const char *name)
{
        listeners[n_listeners++] = unit_listen(in_folder(name), 0);
}

static void setup(void)
{
        unit_make_folder(folder);
        make_directory("run");
        make_directory("run/app");
        make_directory("run/shop");
        make_directory("user");
        make_directory("user/sqmgr");
        serve("run/app/control.sock");
        serve("run/shop/control.sock");
        serve("user/sqmgr/control.sock");
        found[0] = '\0';
}

static void teardown(void)
{
        while (n_listeners > 0)
                close_fd(listeners[--n_listeners]);
        unit_remove_tree(folder);
}

static void on_found(void *userdata, const struct located *instance)
{
        ck_assert_ptr_eq(userdata, found);
        ck_assert_uint_eq(instance->owner, geteuid());
        strcat(strcat(strcat(strcat(found, instance->name), " "), instance->socket + strlen(folder)), "\n");
}

TEST(instances_have_a_socket_in_a_directory_of_their_name)
{
        make_directory("run/stopped");
        make_directory("run/a b");
        serve("run/a b/control.sock");
        serve("run/control.sock");
        ck_assert_int_eq(symlink("app", in_folder("run/link")), 0);
        make_directory("run/linked");
        ck_assert_int_eq(symlink("../app/control.sock", in_folder("run/linked/control.sock")), 0);
        locate_instances(in_folder("run"), "relative", on_found, found);
        ck_assert_str_eq(found, "app /run/app/control.sock\nlinked /run/linked/control.sock\n"
                                "shop /run/shop/control.sock\n");
        found[0] = '\0';
        locate_instances("/nonexistent", "/nonexistent", on_found, found);
        ck_assert_str_eq(found, "");
}

TEST(the_instance_of_the_user_manager_has_the_name_of_its_user)
{
        const char *user = getenv("USER");

        locate_instances("/nonexistent", in_folder("user"), on_found, found);
        ck_assert_ptr_nonnull(strstr(found, " /user/sqmgr/control.sock\n"));
        if (geteuid() == 0)
                ck_assert_str_eq(found, "root /user/sqmgr/control.sock\n");
        else if (user)
                ck_assert_int_eq(strncmp(found, user, strlen(user)), 0);
}

/* Returns what locate_connect() does, 0 for a connection. reason: NULL for none. */
static int attempt(const char *name, bool named, const char **reason)
{
        *reason = NULL;
        int fd = locate_connect(in_folder(name), named, 0, USEC_INFINITY, reason);

        if (fd < 0)
                return fd;
        close_fd(fd);
        return 0;
}

static void expect_refused(const char *name, const char *expected)
{
        const char *reason;

        ck_assert_int_eq(attempt(name, true, &reason), -EKEYREJECTED);
        ck_assert_str_eq(reason, expected);
}

TEST(links_are_refused)
{
        const char *reason;

        ck_assert_int_eq(attempt("run/app/control.sock", true, &reason), 0);
        ck_assert_int_eq(symlink("app", in_folder("run/link")), 0);
        expect_refused("run/link/control.sock", "its directory is a link, or no directory");
        make_directory("run/linked");
        ck_assert_int_eq(symlink("../app/control.sock", in_folder("run/linked/control.sock")), 0);
        expect_refused("run/linked/control.sock", "its socket is a link");
        /* A path that the caller gives may be a link. */
        ck_assert_int_eq(attempt("run/link/control.sock", false, &reason), 0);
        ck_assert_int_eq(attempt("run/linked/control.sock", false, &reason), 0);
        ck_assert_int_eq(attempt("run/missing/control.sock", true, &reason), -ENOENT);
        ck_assert_int_eq(attempt("run/missing/control.sock", false, &reason), -ENOENT);
}

/* Users of whom none is root or the caller. */
#define OTHER 4242
#define THIRD 4243

/* Serves a socket as another user would: the kernel remembers who called listen(). */
static void serve_as(uid_t uid, const char *name)
{
        ck_assert_int_eq(seteuid(uid), 0);
        serve(name);
        ck_assert_int_eq(seteuid(0), 0);
}

TEST(the_server_is_the_owner_of_the_directory)
{
        const char *reason;
        static const struct {
                uid_t owner, server;
                bool named, given; /* accepted if it was found, or if the path was given */
        } cases[] = {
                {OTHER, OTHER, true, true}, {OTHER, THIRD, false, false}, {OTHER, 0, false, false},
                {0, OTHER, false, false},   {0, 0, true, true},
        };

        if (geteuid() != 0)
                return;
        ck_assert_int_eq(chmod(folder, 0755), 0);
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                make_directory("run/case");
                ck_assert_int_eq(chmod(in_folder("run/case"), 0777), 0);
                serve_as(cases[i].server, "run/case/control.sock");
                ck_assert_int_eq(chown(in_folder("run/case"), cases[i].owner, (gid_t)-1), 0);
                ck_assert_int_eq(attempt("run/case/control.sock", true, &reason),
                                 cases[i].named ? 0 : -EKEYREJECTED);
                ck_assert_int_eq(attempt("run/case/control.sock", false, &reason),
                                 cases[i].given ? 0 : -EKEYREJECTED);
                if (!cases[i].given)
                        ck_assert_str_eq(reason, "its server runs as another user than the owner of its "
                                                 "directory");
                ck_assert_int_eq(unlink(in_folder("run/case/control.sock")), 0);
                ck_assert_int_eq(rmdir(in_folder("run/case")), 0);
                close_fd(listeners[--n_listeners]);
        }
        /* Another user could exchange what is in the directory above. */
        ck_assert_int_eq(chown(in_folder("run"), OTHER, (gid_t)-1), 0);
        expect_refused("run/app/control.sock", "the directory above belongs to another user");
        locate_instances(in_folder("run"), NULL, on_found, found);
        ck_assert_str_eq(found, "");
        /* A caller's own server in a directory of root. */
        ck_assert_int_eq(chmod(in_folder("run/app"), 0777), 0);
        serve_as(OTHER, "run/app/other.sock");
        ck_assert_int_eq(seteuid(OTHER), 0);
        ck_assert_int_eq(attempt("run/app/other.sock", false, &reason), 0);
        ck_assert_int_eq(seteuid(0), 0);
        ck_assert_int_eq(seteuid(THIRD), 0);
        ck_assert_int_eq(attempt("run/app/other.sock", false, &reason), -EACCES);
        ck_assert_int_eq(seteuid(0), 0);
}

static const struct {
        const char *socket, *name;
        bool found;
} names[] = {
        {"/run/sqmgr/shop/control.sock", "shop", true},
        {"/run/sqmgr/shop/other.sock", "shop", false},
        {"/run/user/0/sqmgr/control.sock", "root", true}, /* of its user */
        {"/run/user/7/sqmgr/control.sock", "root", false},
        {"/srv/jobs/control.sock", "jobs", false},
        {"/control.sock", "", false},
};

TEST_LOOP(an_instance_has_the_name_of_its_directory, ELEMENTSOF(names))
{
        _cleanup_free_ char *name = locate_name(names[_i].socket, 0);

        ck_assert_str_eq(name, names[_i].name);
        ck_assert_int_eq(locate_finds(names[_i].socket, "/run/user/0"), names[_i].found);
}

TEST_MAIN("locate", .each = {setup, teardown})
