/* SPDX-License-Identifier: MIT */
/* Opens files that decide what sqmgr does or that hold its secrets; see the header. */
#include "io/file_access.h"
#include "io/users.h"
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#define NAME_SIZE 64

static const char *user_name(uid_t uid, char name[static NAME_SIZE])
{
        users_name_or_number(uid, name, NAME_SIZE);
        return name;
}

static const char *group_name(gid_t gid, char name[static NAME_SIZE])
{
        const struct group *group = getgrgid(gid);

        snprintf(name, NAME_SIZE, "%u", (unsigned)gid);
        if (group)
                snprintf(name, NAME_SIZE, "%s", group->gr_name);
        return name;
}

/* Judges a file, or its directory. Returns 0, or -EPERM with the sentence. */
static int judge(const char *path, const struct stat *status, char why[static FILE_WHY_MAX])
{
        bool is_directory = S_ISDIR(status->st_mode), is_sticky = is_directory && status->st_mode & S_ISVTX;
        char owner[NAME_SIZE], own[NAME_SIZE], place[FILE_WHY_MAX / 2] = "";

        if (is_directory)
                snprintf(place, sizeof(place), "directory '%s' is ", path);
        if (status->st_uid != 0 && status->st_uid != geteuid())
                snprintf(why, FILE_WHY_MAX,
                         "%sowned by user %s, who can change what is read; %srun 'chown %s %s'", place,
                         user_name(status->st_uid, owner),
                         geteuid() == 0 ? "if sqmgr runs as that user, check as that user, else " : "",
                         user_name(geteuid(), own), path);
        else if ((status->st_mode & (S_IWGRP | S_IWOTH)) && !is_sticky)
                snprintf(why, FILE_WHY_MAX, "%swritable by others (mode %04o); run 'chmod go-w %s'", place,
                         (unsigned)(status->st_mode & 07777), path);
        else
                return 0;
        return -EPERM;
}

/* path is absolute. */
static int judge_both(int fd, const char *path, char why[static FILE_WHY_MAX])
{
        char link[32], directory[PATH_MAX];
        struct stat status, above;
        struct statvfs mount;

        /* The directory of the file itself: path may be a link. */
        snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        ssize_t length = readlink(link, directory, sizeof(directory) - 1);
        if (length <= 0 || directory[0] != '/')
                length = snprintf(directory, sizeof(directory), "%s", path);
        directory[MIN(length, (ssize_t)sizeof(directory) - 1)] = '\0';
        directory[MAX(strrchr(directory, '/') - directory, (ptrdiff_t)1)] = '\0';
        if (fstat(fd, &status) < 0 || stat(directory, &above) < 0) {
                int r = -errno;
                snprintf(why, FILE_WHY_MAX, "cannot check the owner: %s", strerrordesc_np(-r));
                return r;
        }
        if (!S_ISREG(status.st_mode)) {
                snprintf(why, FILE_WHY_MAX, "not a regular file");
                return -EINVAL;
        }
        int r = judge(path, &status, why);
        if (r < 0)
                return r;
        /* Kubernetes mounts a ConfigMap with mode 0777, but read-only. */
        bool is_read_only = statvfs(directory, &mount) == 0 && mount.f_flag & ST_RDONLY;
        return is_read_only ? 0 : judge(directory, &above, why);
}

/* Finds the first directory on the way that we cannot enter, or else the file, and says how to open it.
 * Changes place, the absolute path. */
static void explain_denied(char *place, char why[static FILE_WHY_MAX])
{
        char group[NAME_SIZE], user[NAME_SIZE];
        struct stat status = {0};
        char *end;

        for (end = strchr(place + 1, '/'); end; end = strchr(end + 1, '/')) {
                *end = '\0';
                if (access(place, X_OK) < 0)
                        break;
                *end = '/';
        }
        char bit = end ? 'x' : 'r';
        mode_t of_group = end ? S_IXGRP : S_IRGRP;
        int length = snprintf(why, FILE_WHY_MAX, "cannot open: %s; run '", strerrordesc_np(EACCES));
        size_t left = FILE_WHY_MAX - (size_t)length;

        why += length;
        if (stat(place, &status) == 0 && status.st_uid == geteuid())
                snprintf(why, left, "chmod u+%c %s'", bit, place);
        else if ((status.st_mode & of_group) && status.st_gid != 0)
                snprintf(why, left, "usermod -aG %s %s', then restart sqmgr",
                         group_name(status.st_gid, group), user_name(geteuid(), user));
        else
                snprintf(why, left, "chgrp %s %s && chmod g+%c %s'", group_name(getegid(), group), place, bit,
                         place);
}

int file_access_open(const char *path, char why[static FILE_WHY_MAX])
{
        char absolute[PATH_MAX] = "";
        size_t length = 0;

        if (path[0] != '/' && getcwd(absolute, sizeof(absolute)))
                length = strlen(absolute);
        snprintf(absolute + length, sizeof(absolute) - length, "%s%s", path[0] == '/' ? "" : "/", path);
        /* Without O_NONBLOCK, opening a pipe would wait for a writer. */
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        int r = fd < 0 ? -errno : judge_both(fd, absolute, why);

        if (r == -EACCES)
                explain_denied(absolute, why);
        else if (fd < 0)
                snprintf(why, FILE_WHY_MAX, "cannot open: %s", strerrordesc_np(-r));
        return r < 0 ? r : TAKE_FD(fd);
}

void file_access_log_remedy(int error, char remedy[static FILE_REMEDY_MAX])
{
        static const char set[] = "; set log = ", name[] = "/workers.log",
                          unknown[] = "; set log to a file in a directory of sqmgr's user";
        const char *list = getenv("LOGS_DIRECTORY");
        size_t length = list ? strcspn(list, ":") : 0;

        remedy[0] = '\0';
        if (error != EACCES && error != EPERM && error != EROFS)
                return;
        memcpy(remedy, unknown, sizeof(unknown));
        if (length == 0 || length >= PATH_MAX)
                return;
        char *end = mempcpy(remedy, set, strlen(set));
        end = mempcpy(end, list, length);
        memcpy(end, name, sizeof(name));
}
