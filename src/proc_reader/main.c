/* SPDX-License-Identifier: MIT */
/* sqmgr-proc-reader answers sqmgr's questions about processes. The files that it reads can
 * make it wait without limit, so sqmgr does not read them itself. Started by sqmgr with the
 * socket as its standard input; exits when sqmgr closes the socket. */
#include "io/proc_answer.h"
#include <unistd.h>

int main(void)
{
        return proc_answer_serve(STDIN_FILENO) < 0 ? 1 : 0;
}
