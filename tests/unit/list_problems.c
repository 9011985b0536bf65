/* SPDX-License-Identifier: MIT */
/* Prints the codes of problems for tests/check-problems: name, severity, cause, remedy and command. */
#include "advice/problem.h"
#include <stdio.h>

int main(void)
{
        FOREACH_ELEMENT(kind, problem_kinds)
                printf("%s\t%s\t%s\t%s\t%s\n", kind->name, problem_severity_name(kind->severity), kind->cause,
                       kind->remedy, kind->command ?: "");
        return ferror(stdout) || fflush(stdout) != 0;
}
