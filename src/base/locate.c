/* SPDX-License-Identifier: MIT */
/* Finds the instances of sqmgr on this machine, and connects to them. */
#include "base/locate.h"
#include "base/fd.h"
#include "base/socket_path.h"
#include "base/text.h"
#include <fcntl.h>
#include <pwd.h>
#include <string.h>
#include <sys/socket.h>

#define SOCKET "control.sock"

/* The owner of a directory can redirect what is below. */
static bool is_trusted(uid_t owner)
{
        return owner == 0 || owner == geteuid();
}

static bool is_directory_of_trusted(const char *path)
{
        struct stat status;

        return stat(path, &status) == 0 && S_ISDIR(status.st_mode) && is_trusted(status.st_uid);
}

/* Fills *ret with the owner of the directory. Returns false if the directory has no control socket. A link is
 * reported, too: locate_connect() refuses it with a reason. */
static bool has_socket(const char *directory, const char *socket, uid_t *ret)
{
        struct stat status, file;

        if (lstat(directory, &status) < 0 || !S_ISDIR(status.st_mode) || lstat(socket, &file) < 0)
                return false;
        *ret = status.st_uid;
        return S_ISSOCK(file.st_mode) || S_ISLNK(file.st_mode);
}

char *locate_name(const char *socket, uid_t user)
{
        const char *end = strrchr(socket, '/') ?: socket, *name = end;

        while (name > socket && name[-1] != '/')
                name--;
        const struct passwd *entry = strncmp(name, "sqmgr/", strlen("sqmgr/")) == 0 ? getpwuid(user) : NULL;
        return entry ? strdup(entry->pw_name) : strndup(name, (size_t)(end - name));
}

bool locate_finds(const char *socket, const char *runtime_dir)
{
        _cleanup_free_ char *name = NULL, *system = NULL, *own = NULL;

        if (socket_path_default(NULL, runtime_dir, NULL, &own) == 0 && own && strcmp(own, socket) == 0)
                return true;
        name = locate_name(socket, geteuid());
        return name && socket_path_instance(name, &system) == 0 && strcmp(system, socket) == 0;
}

/* Calls found() for the instance whose directory is below parent, if any. has_name: the directory has the
 * name of the instance. */
static void see_directory(const char *parent, const char *below, bool has_name,
                          void (*found)(void *userdata, const struct located *instance), void *userdata)
{
        _cleanup_free_ char *directory = text_format("%s/%s", parent, below), *name = NULL;
        _cleanup_free_ char *socket = text_format("%s/%s/" SOCKET, parent, below);
        struct located instance = {.socket = socket};

        if (!directory || !socket || !has_socket(directory, socket, &instance.owner))
                return;
        name = has_name ? strdup(below) : locate_name(socket, instance.owner);
        instance.name = name;
        if (name)
                found(userdata, &instance);
}

void locate_instances(const char *system_dir, const char *user_dir,
                      void (*found)(void *userdata, const struct located *instance), void *userdata)
{
        struct dirent **entries = NULL;
        int n = is_directory_of_trusted(system_dir) ? scandir(system_dir, &entries, NULL, alphasort) : 0;

        for (int i = 0; i < n; i++) {
                if (socket_path_is_instance(entries[i]->d_name, strlen(entries[i]->d_name)))
                        see_directory(system_dir, entries[i]->d_name, true, found, userdata);
                free(entries[i]);
        }
        free(entries);
        if (user_dir && user_dir[0] == '/' && is_directory_of_trusted(user_dir))
                see_directory(user_dir, "sqmgr", false, found, userdata);
}

static int refuse(const char **ret_reason, const char *reason)
{
        *ret_reason = reason;
        return -EKEYREJECTED;
}

/* Reads who owns the socket's directory. Returns 0, -errno, or -EKEYREJECTED. */
static int check_place(const char *socket, bool named, uid_t *ret_owner, const char **ret_reason)
{
        const char *slash = strrchr(socket, '/'), *name = slash ? slash + 1 : socket;
        _cleanup_free_ char *directory =
                slash ? strndup(socket, MAX((size_t)(slash - socket), (size_t)1)) : strdup(".");
        struct stat status;

        if (!directory)
                return -ENOMEM;
        _cleanup_close_ int fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC | (named ? O_NOFOLLOW : 0));
        if (fd < 0 && errno == ENOTDIR && named)
                return refuse(ret_reason, "its directory is a link, or no directory");
        if (lstat(directory, &status) == 0 && S_ISLNK(status.st_mode) && !is_trusted(status.st_uid))
                return refuse(ret_reason, "its directory is a link of another user");
        if (fd < 0 || fstat(fd, &status) < 0)
                return -errno;
        *ret_owner = status.st_uid;
        if (!named)
                return 0;
        if (fstatat(fd, "..", &status, 0) < 0)
                return -errno;
        if (!is_trusted(status.st_uid))
                return refuse(ret_reason, "the directory above belongs to another user");
        if (fstatat(fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
                return -errno;
        return S_ISLNK(status.st_mode) ? refuse(ret_reason, "its socket is a link") : 0;
}

static bool is_server_trusted(uid_t server, uid_t owner, bool named)
{
        return server == owner || (!named && is_trusted(server) && is_trusted(owner));
}

int locate_connect(const char *socket, bool named, int flags, usec_t send_timeout, const char **ret_reason)
{
        struct ucred peer;
        socklen_t size = sizeof(peer);
        uid_t owner = (uid_t)-1;
        int r = check_place(socket, named, &owner, ret_reason);

        if (r < 0)
                return r;
        _cleanup_close_ int fd = fd_connect(socket, flags, send_timeout);
        if (fd < 0)
                return fd;
        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
                return -errno;
        if (!is_server_trusted(peer.uid, owner, named))
                return refuse(ret_reason, "its server runs as another user than the owner of its directory");
        return TAKE_FD(fd);
}
