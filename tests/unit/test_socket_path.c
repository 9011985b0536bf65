/* SPDX-License-Identifier: MIT */
/* The socket that is meant where none is named. */
#include "base/fd.h"
#include "base/macro.h"
#include "base/socket_path.h"
#include "unit.h"
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

static const struct {
        const char *service_dir, *runtime_dir;
        const char *path; /* NULL: none */
} places[] = {
        {NULL, SOCKET_PATH_SYSTEM_RUNTIME, "/run/sqmgr/control.sock"},
        {NULL, "/run/user/7", "/run/user/7/sqmgr/control.sock"},
        {"/run/sqmgr/shop", "/run", "/run/sqmgr/shop/control.sock"},
        {"/run/sqmgr/shop:/run/other", NULL, "/run/sqmgr/shop/control.sock"},
        {"relative", "/run", "/run/sqmgr/control.sock"},
        {"", "", NULL},
        {NULL, "relative", NULL},
        {NULL, NULL, NULL},
};

TEST_LOOP(is_in_the_services_directory_or_below_the_users, ELEMENTSOF(places))
{
        char *path = (char *)"unset";

        ck_assert_int_eq(socket_path_default(places[_i].service_dir, places[_i].runtime_dir, &path), 0);
        ck_assert_pstr_eq(path, places[_i].path);
        free(path);
}

static const struct {
        const char *socket, *status, *read;
} beside[] = {
        {"/run/sqmgr/control.sock", "/run/sqmgr/status", "/run/sqmgr/read.sock"},
        {"/run/sqmgr/shop.sock", "/run/sqmgr/shop.status", "/run/sqmgr/shop.read.sock"},
        {"/run/sqmgr/shop", "/run/sqmgr/shop.status", "/run/sqmgr/shop.read.sock"},
        {"/run/sqmgr/.sock", "/run/sqmgr/.sock.status", "/run/sqmgr/.sock.read.sock"},
        {"/control.sock", "/status", "/read.sock"},
};

TEST_LOOP(has_the_status_directories_and_the_read_socket_beside_it, ELEMENTSOF(beside))
{
        _cleanup_free_ char *status = socket_path_status(beside[_i].socket);
        _cleanup_free_ char *read = socket_path_read(beside[_i].socket);

        ck_assert_str_eq(status, beside[_i].status);
        ck_assert_str_eq(read, beside[_i].read);
}

static char folder[64], found_text[1024];

static const char *in_folder(const char *name)
{
        static char path[128];

        snprintf(path, sizeof(path), "%s/%s", folder, name);
        return path;
}

static void make_socket(const char *name)
{
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        snprintf(address.sun_path, sizeof(address.sun_path), "%.100s", in_folder(name));
        ck_assert_int_eq(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
}

static void on_found(void *userdata, const char *path)
{
        ck_assert_ptr_eq(userdata, found_text);
        ck_assert_int_eq(strncmp(path, folder, strlen(folder)), 0);
        strcat(strcat(found_text, path + strlen(folder)), "\n");
}

static void expect_found(const char *expected)
{
        char enabled[64];

        snprintf(enabled, sizeof(enabled), "%.40s/wants", folder);
        snprintf(found_text, sizeof(found_text), "%s", "");
        socket_path_find_instances(in_folder("run"), enabled, on_found, found_text);
        ck_assert_str_eq(found_text, expected);
}

TEST(instances_are_those_that_are_enabled_and_those_with_a_socket)
{
        static const char *const made[] = {"run",
                                           "wants",
                                           "run/shop",
                                           "run/blog",
                                           "run/status",
                                           "run/a b",
                                           "run/stale",
                                           "run/.hidden",
                                           "wants/sqmgr@mail.service",
                                           "wants/x@y.service",
                                           "wants/sqmgr@.service",
                                           "wants/sqmgr@a b.service",
                                           "wants/sqmgr-app@u.service",
                                           "wants/sqmgr-web.service",
                                           "run/stale/read.sock"};

        snprintf(folder, sizeof(folder), "/tmp/sqmgr-test.XXXXXX");
        ck_assert_ptr_nonnull(mkdtemp(folder));
        expect_found("");
        for (size_t i = 0; i < ELEMENTSOF(made); i++)
                ck_assert_int_eq(mkdir(in_folder(made[i]), 0700), 0);
        make_socket("run/shop/read.sock");
        make_socket("run/blog/read.sock");
        make_socket("run/a b/read.sock");
        make_socket("run/.hidden/read.sock");
        expect_found("/run/mail/read.sock\n/run/blog/read.sock\n/run/shop/read.sock\n");
        make_socket("run/read.sock");
        ck_assert_int_eq(mkdir(in_folder("wants/sqmgr.service"), 0700), 0);
        expect_found("/run/read.sock\n/run/read.sock\n/run/mail/read.sock\n/run/blog/read.sock\n"
                     "/run/shop/read.sock\n");
}

TEST_MAIN("socket_path")
