/* SPDX-License-Identifier: MIT */
/* The socket that is meant where none is named. */
#include "base/macro.h"
#include "base/socket_path.h"
#include "unit.h"

static const struct {
        const char *service_dir, *runtime_dir, *user;
        const char *path; /* NULL: none */
} places[] = {
        {NULL, NULL, "app", "/run/sqmgr/app/control.sock"},
        {NULL, NULL, "root", "/run/sqmgr/root/control.sock"},
        {NULL, "/run/user/7", NULL, "/run/user/7/sqmgr/control.sock"},
        {NULL, "/run/user/0", "root", "/run/user/0/sqmgr/control.sock"},
        {"/run/sqmgr/shop", "/run", NULL, "/run/sqmgr/shop/control.sock"},
        {"/run/sqmgr/shop:/run/other", NULL, "root", "/run/sqmgr/shop/control.sock"},
        {"relative", "/run", NULL, "/run/sqmgr/control.sock"},
        {"", "", NULL, NULL},
        {NULL, "relative", NULL, NULL},
        {NULL, NULL, NULL, NULL},
};

TEST_LOOP(is_in_the_services_directory_or_below_the_users, ELEMENTSOF(places))
{
        char *path = (char *)"unset";

        ck_assert_int_eq(
                socket_path_default(places[_i].service_dir, places[_i].runtime_dir, places[_i].user, &path),
                0);
        ck_assert_pstr_eq(path, places[_i].path);
        free(path);
}

static const struct {
        const char *socket, *status;
} beside[] = {
        {"/run/sqmgr/shop/control.sock", "/run/sqmgr/shop/status"},
        {"/run/sqmgr/shop.sock", "/run/sqmgr/shop.status"},
        {"/run/sqmgr/shop", "/run/sqmgr/shop.status"},
        {"/run/sqmgr/.sock", "/run/sqmgr/.sock.status"},
        {"/control.sock", "/status"},
};

TEST_LOOP(has_the_status_directories_beside_it, ELEMENTSOF(beside))
{
        _cleanup_free_ char *status = socket_path_status(beside[_i].socket);

        ck_assert_str_eq(status, beside[_i].status);
}

static const struct {
        const char *name;
        const char *path; /* NULL: no name of an instance */
} instances[] = {
        {"shop", "/run/sqmgr/shop/control.sock"},
        {"sqmgr@shop", "/run/sqmgr/shop/control.sock"},
        {"my\\x2dshop_2.b:c-d", "/run/sqmgr/my\\x2dshop_2.b:c-d/control.sock"},
        {"", NULL},
        {".", NULL},
        {"..", NULL},
        {"a/b", NULL},
        {"/run/sqmgr/shop", NULL},
        {"sqmgr@", NULL},
        {"sqmgr-app@app", NULL},
        {"sqmgr@../sqmgr", NULL},
        {"sqmgr@a@b", NULL},
        {"other@shop", NULL},
        {"@shop", NULL},
        {"a b", NULL},
        {"a\n", NULL},
};

TEST_LOOP(of_an_instance_is_in_the_runtime_directory_of_its_unit, ELEMENTSOF(instances))
{
        char *path = NULL;

        ck_assert_int_eq(socket_path_instance(instances[_i].name, &path), instances[_i].path ? 0 : -EINVAL);
        ck_assert_pstr_eq(path, instances[_i].path);
        free(path);
}

TEST_MAIN("socket_path")
