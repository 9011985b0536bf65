/* SPDX-License-Identifier: MIT */
/* sqmgrctl: runs the command of the command line. */
#include "base/fd.h"
#include "ctl/ctl.h"
#include "ctl/output.h"
#include <fcntl.h>
#include <stdio.h>

static int run(struct ctl *ctl, int argc, char **argv)
{
        int r = command_line_read(ctl, argc, argv);

        if (r != CTL_DONE || !ctl->command)
                return r;
        return instances_run(ctl);
}

int main(int argc, char **argv)
{
        struct ctl ctl = {.lines = UINT64_MAX, .fd = -1, .signal_fd = -1, .key_fd = -1};
        int code = CTL_DONE;

        /* A closed standard stream is opened read-only, so that writing to it fails. */
        if (fd_open_standard(O_RDONLY) < 0)
                return CTL_FAILED;
        /* For shells only: not listed in --help. */
        if (argc > 1 && strcmp(argv[1], "--complete") == 0)
                complete(&ctl, argc - 1, argv + 1);
        else
                code = run(&ctl, argc, argv);

        client_close(&ctl);
        close_fd(ctl.signal_fd);
        free(ctl.socket);
        free(ctl.instance);
        if (fflush(stdout) != 0 || ferror(stdout))
                return output_error(CTL_FAILED, "cannot write to standard output: %s",
                                    strerrordesc_np(errno));
        return code;
}
