/* SPDX-License-Identifier: MIT */
/* The command line of sqmgrctl: what is accepted is what --help lists. */
#include "base/text.h"
#include "ctl/ctl.h"
#include "ctl/output.h"
#include "unit.h"
#include <getopt.h>

#define HELP_WIDTH 80

static char error[512];

/* Reads a command line of up to four words, NULL for none. *ret_output is what it prints; to be freed. */
static int read_line(struct ctl *ctl, const char *const words[4], char **ret_output)
{
        char *argv[6] = {(char *)"sqmgrctl"};
        int argc = 1;
        size_t size;
        FILE *real = stdout;

        for (size_t i = 0; i < 4; i++)
                if (words[i])
                        argv[argc++] = (char *)words[i];
        *ctl = (struct ctl){.lines = UINT64_MAX};
        optind = 0;
        error[0] = '\0';
        output_errors_to(error, sizeof(error));
        stdout = open_memstream(ret_output, &size);
        int r = command_line_read(ctl, argc, argv);
        fclose(stdout);
        stdout = real;
        return r;
}

static int reads(const char *const words[4])
{
        _cleanup_free_ char *output = NULL;
        struct ctl ctl;
        int r = read_line(&ctl, words, &output);

        free(ctl.socket);
        free(ctl.instance);
        return r;
}

static char *help_of(const char *command)
{
        const char *const words[4] = {command, "--help"};
        struct ctl ctl;
        char *output;

        ck_assert_int_eq(read_line(&ctl, words, &output), CTL_DONE);
        ck_assert_ptr_null(ctl.command);
        return output;
}

static void fits(const char *help)
{
        for (const char *line = help; *line != '\0'; line += strcspn(line, "\n") + 1) {
                int length = (int)strcspn(line, "\n");

                ck_assert_msg(length <= HELP_WIDTH, "%d columns: %.*s", length, length, line);
                ck_assert_msg(length == 0 || line[length - 1] != ' ', "a blank ends: %.*s", length, line);
        }
}

TEST(each_command_has_a_help)
{
        for (size_t i = 0; i < n_commands; i++) {
                const char *const asked[4] = {"help", commands[i].name};
                _cleanup_free_ char *help = help_of(commands[i].name), *same = NULL;
                char begin[64];
                struct ctl ctl;

                snprintf(begin, sizeof(begin), "Usage: sqmgrctl %s [OPTION...]", commands[i].name);
                ck_assert_int_eq(strncmp(help, begin, strlen(begin)), 0);
                ck_assert_ptr_nonnull(strstr(help, "\nExit codes: 0 success, 1 failure"));
                fits(help);
                ck_assert_int_eq(read_line(&ctl, asked, &same), CTL_DONE);
                ck_assert_str_eq(help, same);
        }
}

/* Returns true if the help has a line for the option. */
static bool lists(const char *help, const char *option)
{
        char name[32];

        snprintf(name, sizeof(name), "--%s", option);
        for (const char *at = help; (at = strstr(at, name)); at++) {
                const char *line = at;

                while (line > help && line[-1] != '\n')
                        line--;
                if (strncmp(line, "  -", strlen("  -")) == 0 && (at == line + 2 || at == line + 6) &&
                    strchr(" [\n", at[strlen(name)]))
                        return true;
        }
        return false;
}

static const char *value_of(const struct usage_option *option)
{
        return option->value[0] == '\0' || option->value[0] == '[' ? ""
               : option->bit == OPTION_TIMEOUT                     ? "=1s"
                                                                   : "=1";
}

TEST(each_command_takes_the_options_that_its_help_lists_and_no_other)
{
        for (size_t i = 0; i < n_commands; i++) {
                _cleanup_free_ char *help = help_of(commands[i].name);

                for (size_t k = 0; k < usage_n_options; k++) {
                        const struct usage_option *option = &usage_options[k];
                        char text[64];

                        snprintf(text, sizeof(text), "--%s%s", option->name, value_of(option));
                        const char *const words[4] = {commands[i].name, text,
                                                      commands[i].min > 0 ? "x/1" : NULL,
                                                      commands[i].min > 1 ? "1" : NULL};
                        bool taken = reads(words) == CTL_DONE;
                        ck_assert_msg(taken == lists(help, option->name), "%s %s: %s", commands[i].name, text,
                                      error);
                }
        }
}

TEST(the_help_of_all_lists_each_command_and_option)
{
        _cleanup_free_ char *help = help_of(NULL);
        char line[64];

        fits(help);
        for (size_t i = 0; i < n_commands; i++) {
                snprintf(line, sizeof(line), "\n  %-8s %s", commands[i].name, commands[i].arguments);
                ck_assert_msg(strstr(help, line), "%s", commands[i].name);
        }
        for (size_t i = 0; i < usage_n_options; i++)
                ck_assert_msg(lists(help, usage_options[i].name), "--%s", usage_options[i].name);
        ck_assert_ptr_nonnull(strstr(help, "events, logs: continues with new ones"));
}

static const struct {
        const char *words[4];
        const char *error;
} wrong[] = {
        {{"help", "statsu"}, "unknown command 'statsu'. Did you mean 'status'?"},
        {{"nosuch", "--help"}, "unknown command 'nosuch'. For a list, run 'sqmgrctl --help'"},
        {{"status", "-s", "/s", "-ishop"}, "-s and -i both name a socket. Give one of them"},
        {{"--instance=shop", "-s", "/s", "status"}, "-s and -i both name a socket. Give one of them"},
        {{"status", "-i"}, "'-i' needs a value. See 'sqmgrctl --help'"},
        {{"-i", "", "status"}, "'' is not the name of an instance: give NAME for sqmgr@NAME.service"},
        {{"-i", "../x", "status"}, "'../x' is not the name of an instance: give NAME for sqmgr@NAME.service"},
        {{"top", "--json"}, "'top' has no option --json; 'status' has"},
};

TEST_LOOP(says_what_is_wrong, ELEMENTSOF(wrong))
{
        ck_assert_int_eq(reads(wrong[_i].words), CTL_USAGE);
        ck_assert_str_eq(error, wrong[_i].error);
}

TEST(a_socket_is_that_of_the_option)
{
        static const struct {
                const char *words[4];
                const char *socket; /* NULL: left to instances_choose() */
        } lines[] = {
                {{"status"}, NULL},
                {{"status", "-s", "/run/s"}, "/run/s"},
                {{"-s", "/run/r", "--socket=/run/s", "status"}, "/run/s"},
                {{"-i", "shop", "status"}, "/run/sqmgr/shop/control.sock"},
                {{"status", "-ishop", "-imail"}, "/run/sqmgr/mail/control.sock"},
                {{"status", "--instance=sqmgr@app"}, "/run/sqmgr/app/control.sock"},
        };

        FOREACH_ELEMENT(line, lines) {
                _cleanup_free_ char *output = NULL;
                struct ctl ctl;

                ck_assert_int_eq(read_line(&ctl, line->words, &output), CTL_DONE);
                ck_assert_str_eq(ctl.command->name, "status");
                ck_assert_pstr_eq(ctl.socket, line->socket);
                /* Only what was given by its name must answer by it. */
                ck_assert_int_eq(!ctl.instance, !(ctl.options & OPTION_INSTANCE));
                free(ctl.socket);
                free(ctl.instance);
        }
}

TEST_MAIN("usage")
