/* SPDX-License-Identifier: MIT */
/* The command `jobs`: what runs now. */
#include "ctl/client.h"
#include "ctl/commands.h"
#include "ctl/exit.h"
#include "ctl/job_table.h"
#include "ctl/reply.h"
#include "ctl/say.h"
#include "ctl/screen.h"
#include <stdio.h>
#include <time.h>

int ctl_jobs(struct ctl *ctl)
{
        _cleanup_json_ json_t *reply = NULL;
        json_t *jobs, *errors, *error;
        size_t i;
        int r = client_call(ctl, "GetJobs", json_pack("{s:o}", "fleets", client_fleets(ctl)), &reply);

        if (r != CTL_DONE)
                return r;
        jobs = json_object_get(reply, "jobs");
        errors = json_object_get(reply, "errors");
        if (ctl->json) {
                reply_print_json(reply);
                return json_array_size(errors) > 0 ? CTL_FAILED : CTL_DONE;
        }
        if (json_array_size(jobs) > 0) {
                struct view view = screen_view();

                if (job_table_print(stdout, jobs, time(NULL), &view) < 0)
                        r = say_error(CTL_FAILED, "there is too little memory");
        } else if (json_array_size(errors) == 0)
                printf("no job is known to run\n");
        json_array_foreach(errors, i, error) r = say_error(CTL_FAILED, "%s", json_string_value(error));
        return r;
}
