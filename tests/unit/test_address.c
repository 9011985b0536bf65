/* SPDX-License-Identifier: MIT */
/* Where sqmgr-web listens, and by which names it may be called. */
#include "unit.h"
#include "web/address.h"

static const struct {
        const char *text, *shown, *host;
        bool local;
} addresses[] = {
        {"127.0.0.1:80", "127.0.0.1:80", "127.0.0.1", true},
        {"127.0.0.1", "127.0.0.1:7433", "127.0.0.1", true},
        {"127.9.9.9:65535", "127.9.9.9:65535", "127.9.9.9", true},
        {"[::1]:7433", "[::1]:7433", "[::1]", true},
        {"[::1]", "[::1]:7433", "[::1]", true},
        {"[::ffff:127.0.0.1]:1", "[::ffff:127.0.0.1]:1", "[::ffff:127.0.0.1]", true},
        {"[::ffff:10.0.0.1]:1", "[::ffff:10.0.0.1]:1", "[::ffff:10.0.0.1]", false},
        {"0.0.0.0:80", "0.0.0.0:80", "0.0.0.0", false},
        {"[::]:80", "[::]:80", "[::]", false},
        {"192.0.2.1:80", "192.0.2.1:80", "192.0.2.1", false},
        {"unix:/run/x.sock", "unix:/run/x.sock", "", true},
};

TEST_LOOP(takes_an_address, ELEMENTSOF(addresses))
{
        struct address address;
        const char *error;
        char text[ADDRESS_TEXT_MAX];

        ck_assert_int_eq(address_parse(addresses[_i].text, &address, &error), 0);
        ck_assert_str_eq(address_format(&address, text, sizeof(text)), addresses[_i].shown);
        ck_assert_str_eq(address_format_host(&address, text, sizeof(text)), addresses[_i].host);
        ck_assert_int_eq(address_is_local(&address), addresses[_i].local);
}

static const char *const wrong[] = {
        "",
        ":80",
        "localhost:80",
        "127.0.0.1:",
        "127.0.0.1:0",
        "127.0.0.1:65536",
        "127.0.0.1:x",
        "127.0.0.1:80 ",
        "127.0.0.1:80:80",
        "::1",
        "[::1",
        "[::1]80",
        "[127.0.0.1]:80",
        "[]:80",
        "256.0.0.1:80",
        "unix:",
        "unix:x.sock",
        "7433",
        "[::1%lo]:80",
        "[00000000000000000000000000000000000000000000000000001]:80",
};

TEST_LOOP(refuses_what_is_none, ELEMENTSOF(wrong))
{
        struct address address;
        const char *error = NULL;

        ck_assert_int_eq(address_parse(wrong[_i], &address, &error), -EINVAL);
        ck_assert_ptr_nonnull(error);
}

TEST(refuses_a_path_that_is_too_long)
{
        char text[5 + 108 + 1] = "unix:";
        struct address address;
        const char *error;

        memset(text + 5, '/', 107);
        ck_assert_int_eq(address_parse(text, &address, &error), 0);
        text[5 + 107] = '/';
        ck_assert_int_eq(address_parse(text, &address, &error), -EINVAL);
}

static const struct {
        const char *header, *host;
        bool same;
} headers[] = {
        {"localhost", "localhost", true},
        {"LocalHost:80", "localhost", true},
        {"localhost:65535", "localhost", true},
        {"127.0.0.1:7433", "127.0.0.1", true},
        {"[::1]:7433", "[::1]", true},
        {"[::1]", "[::1]", true},
        {"localhost:", "localhost", false},
        {"localhost:x", "localhost", false},
        {"localhost:80:80", "localhost", false},
        {"localhost:65536", "localhost", false},
        {"localhost.", "localhost", false},
        {"localhost.evil.example", "localhost", false},
        {"evil.example", "localhost", false},
        {"user@localhost", "localhost", false},
        {" localhost", "localhost", false},
        {"", "localhost", false},
        {":80", "", true},
        {"[::1", "[::1]", false},
        {"[::1]x", "[::1]", false},
        {"127.0.0.1.evil.example", "127.0.0.1", false},
};

TEST_LOOP(knows_by_which_host_it_is_called, ELEMENTSOF(headers))
{
        ck_assert_int_eq(address_host_is(headers[_i].header, headers[_i].host), headers[_i].same);
}

TEST_MAIN("address")
