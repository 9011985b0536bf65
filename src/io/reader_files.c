/* SPDX-License-Identifier: MIT */
/* The files of the readers for TLS, which sqmgr reads for them. */
#include "io/reader_files.h"
#include "base/fd.h"
#include "queries/configuration.h"
#include <fcntl.h>
#include <unistd.h>

int reader_files_read(struct reader_configuration *configuration)
{
        FOREACH_ELEMENT(file, configuration->files) {
                if (!file->name)
                        continue;
                _cleanup_close_ int fd = open(file->name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
                int r = fd < 0 ? -errno
                               : fd_read_whole(fd, READER_FILE_BYTES_MAX, &file->bytes, &file->length);

                if (r < 0)
                        return r;
        }
        return 0;
}
