/* SPDX-License-Identifier: MIT */
/* Where the control socket is as long as nobody says otherwise: sqmgr listens there, sqmgrctl looks there. */
#pragma once

/* Its longest path: it is made beside its place first, under a name of SOCKET_PATH_BESIDE more. */
#define SOCKET_PATH_BESIDE ".new"
#define SOCKET_PATH_MAX    103

/* Of root's sqmgr. Another user's is in XDG_RUNTIME_DIR. */
#define SOCKET_PATH_SYSTEM_RUNTIME "/run"

/* In service_dir, which systemd made for the unit (a list, of which the first counts), so that each has a
 * socket of its own; else below runtime_dir. Either may be NULL; one that is not absolute is passed over.
 * Returns 0 with *ret to be freed, NULL where there is no such directory; or -ENOMEM. */
int socket_path_default(const char *service_dir, const char *runtime_dir, char **ret);

/* Where those who may only look reach sqmgr, beside it: `read.sock` for a control.sock, `NAME.read.sock` for
 * a NAME.sock. To be freed; NULL: out of memory. */
char *socket_path_read(const char *socket);

/* Where the status directories of workers are, beside it: `status` for a control.sock, `NAME.status` for a
 * NAME.sock. To be freed; NULL: out of memory. */
char *socket_path_status(const char *socket);
