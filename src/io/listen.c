/* SPDX-License-Identifier: MIT */
/* Opens a listening socket to which all may connect: lock, directory and mode. */
#include "io/listen.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/socket_path.h"
#include "base/text.h"
#include "io/proc.h"
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

/* The socket is created beside its final path and renamed once it is listening. */
#define BESIDE SOCKET_PATH_BESIDE
static_assert(SOCKET_PATH_MAX == sizeof(((struct sockaddr_un *)NULL)->sun_path) - sizeof(BESIDE),
              "a path that the settings take can be listened on");
/* Another process has the lock. */
#define LOCK_HELD 1
/* 5 s at most. */
#define LOCK_TRIES     500
#define LOCK_STEP_NSEC (10 * 1000 * 1000L)
/* A short queue: if strangers keep it full, connect() of others waits in turn instead of behind many of
 * them. */
#define BACKLOG 32
/* All may connect. */
#define SOCKET_MODE 0666

/* Writes the sentence to error and returns error_number, which is negative. */
static _printf_(4, 5) int fail(int error_number, char *error, size_t error_size, const char *format, ...)
{
        va_list arguments;

        va_start(arguments, format);
        int length = vsnprintf(error, error_size, format, arguments);
        va_end(arguments);
        if (length >= 0 && (size_t)length < error_size)
                snprintf(error + length, error_size - (size_t)length, ": %s", strerrordesc_np(-error_number));
        return error_number;
}

static int make_directory(const char *path, char *error, size_t error_size)
{
        _cleanup_free_ char *directory = strdup(path);
        char *slash = directory ? strrchr(directory, '/') : NULL;

        if (!directory)
                return fail(-ENOMEM, error, error_size, "cannot listen on '%s'", path);
        if (!slash || slash == directory)
                return 0;
        *slash = '\0';
        /* Clients must get through. */
        mode_t mask = umask(022);
        int r = mkdir(directory, 0755) < 0 && errno != EEXIST ? -errno : 0;
        (void)umask(mask);
        return r == 0 ? 0
                      : fail(r, error, error_size, "cannot create directory '%s' for the socket", directory);
}

/* Locks the file at path, which contains the pid of its holder, and writes ours into it. The lock belongs to
 * this process, not to its children; a child that shares our table of descriptors (CLONE_FILES) extends it
 * until that child has a table of its own. Closing any descriptor of the file in this process ends the lock:
 * a path is not locked twice. *ret_holder may have ended, and is 0 in another pid namespace. Returns 0,
 * LOCK_HELD or -errno. */
static int lock_take(const char *path, int *ret_fd, pid_t *ret_holder)
{
        /* Mode 0600: anyone who can open the file could lock it. */
        _cleanup_close_ int fd =
                open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        struct stat status;
        char text[32];

        if (fd < 0 || fstat(fd, &status) < 0)
                return -errno;
        if (!S_ISREG(status.st_mode))
                return -EEXIST;
        /* Unlike flock() or F_OFD_SETLK, this lock belongs to the process: copies of fd in its children do
         * not hold it. */
        if (fcntl(fd, F_SETLK, &lock) < 0) {
                if ((errno != EAGAIN && errno != EACCES) || fcntl(fd, F_GETLK, &lock) < 0)
                        return -errno;
                *ret_holder = MAX(lock.l_pid, 0);
                return LOCK_HELD;
        }

        int length = snprintf(text, sizeof(text), "%d\n", (int)getpid());
        /* On a full disk the pid may not fit. Overwriting the previous holder's pid needs no new space. */
        bool reported = pwrite(fd, text, (size_t)length, 0) == length;
        (void)!ftruncate(fd, reported ? length : 0);
        *ret_fd = TAKE_FD(fd);
        return 0;
}

#define HELD "holds '%s'; stop it, or give each its own socket and state_file"

/* Writes why the lock was not taken to error, and returns 0 or -errno. outcome and holder are those of
 * lock_take(). */
static int explain_lock(int outcome, pid_t holder, const char *path, char *error, size_t error_size)
{
        if (outcome < 0)
                return fail(outcome, error, error_size, "cannot lock '%s.lock'", path);
        if (outcome != LOCK_HELD)
                return 0;
        if (holder > 0)
                snprintf(error, error_size, "another sqmgr (pid %d) " HELD, (int)holder, path);
        else
                snprintf(error, error_size, "another sqmgr " HELD, path);
        return -EBUSY;
}

static bool has_ended(pid_t pid)
{
        _cleanup_proc_ struct proc *proc = NULL;
        int r = proc_open(pid, &proc);

        return r == -ESRCH || (r >= 0 && proc_has_exited(proc));
}

int listener_lock(const char *path, int *ret_fd, char *error, size_t error_size)
{
        _cleanup_free_ char *lock_path = text_format("%s.lock", path);
        pid_t holder = 0;

        if (!lock_path)
                return fail(-ENOMEM, error, error_size, "cannot lock '%s'", path);
        int r = lock_take(lock_path, ret_fd, &holder);
        /* For a moment, a child just forked may share the descriptors of its sqmgr, which has ended or is the
         * previous image of this one. */
        for (unsigned i = 0;
             r == LOCK_HELD && (holder == 0 || holder == getpid() || has_ended(holder)) && i < LOCK_TRIES;
             i++) {
                (void)nanosleep(&(struct timespec){.tv_nsec = LOCK_STEP_NSEC}, NULL);
                r = lock_take(lock_path, ret_fd, &holder);
        }
        return explain_lock(r, holder, path, error, error_size);
}

/* Writes the address, in the abstract namespace, of the claim of a path. Returns its size. */
static socklen_t claim_address(const char *path, struct sockaddr_un *ret)
{
        struct stat namespace = {0};

        (void)stat("/proc/self/ns/pid", &namespace);
        *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
        int length = snprintf(ret->sun_path + 1, sizeof(ret->sun_path) - 1, "sqmgr/%u/%llu/%016llx",
                              (unsigned)geteuid(), (unsigned long long)namespace.st_ino,
                              (unsigned long long)hash_bytes(HASH_INIT, path, strlen(path)));
        return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

/* Returns the process of our user that listens at the address, which may have ended; 0: not known. */
static pid_t claim_holder(int fd, const struct sockaddr_un *address, socklen_t size)
{
        struct ucred holder = {0};
        socklen_t holder_size = sizeof(holder);

        if (connect(fd, (const struct sockaddr *)address, size) < 0 ||
            getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &holder, &holder_size) < 0 || holder.uid != geteuid())
                return 0;
        return holder.pid;
}

int listener_claim(const char *path, int *ret_fd, char *error, size_t error_size)
{
        struct sockaddr_un address;
        socklen_t size = claim_address(path, &address);
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        if (fd < 0 || (bind(fd, (const struct sockaddr *)&address, size) < 0 && errno != EADDRINUSE))
                return fail(-errno, error, error_size, "cannot claim '%s'", path);
        if (listen(fd, BACKLOG) == 0) {
                *ret_fd = TAKE_FD(fd);
                return 0;
        }
        pid_t holder = claim_holder(fd, &address, size);
        if (holder <= 0 || holder == getpid() || has_ended(holder))
                return 0;
        snprintf(error, error_size,
                 "another sqmgr (pid %d) manages the workers of '%s', although its lock file is gone; stop "
                 "that sqmgr first or set another state_file",
                 (int)holder, path);
        return -EBUSY;
}

/* SOCKET_PATH_MAX leaves space for the suffix. */
static struct sockaddr_un address_beside(const struct sockaddr_un *address)
{
        struct sockaddr_un beside = *address;
        size_t length = strlen(beside.sun_path);

        snprintf(beside.sun_path + length, sizeof(beside.sun_path) - length, BESIDE);
        return beside;
}

/* True if fd is connected to the socket of a sqmgr that has ended: only a copy in its child is left. */
static bool is_left_behind(int fd, const struct sockaddr_un *address)
{
        const struct sockaddr_un beside = address_beside(address);
        struct sockaddr_un bound = {0};
        struct ucred listener = {0};
        socklen_t size = sizeof(bound) - 1, listener_size = sizeof(listener);

        return getpeername(fd, (struct sockaddr *)&bound, &size) == 0 &&
               strcmp(bound.sun_path, beside.sun_path) == 0 &&
               getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &listener, &listener_size) == 0 && listener.pid > 0 &&
               has_ended(listener.pid);
}

/* Refuses to replace anything but a socket on which nothing answers. */
static int check_place(const struct sockaddr_un *address, char *error, size_t error_size)
{
        struct stat status;

        if (lstat(address->sun_path, &status) < 0) {
                if (errno == ENOENT)
                        return 0;
                return fail(-errno, error, error_size, "cannot access '%s'", address->sun_path);
        }
        if (!S_ISSOCK(status.st_mode)) {
                snprintf(error, error_size, "'%s' exists and is not a socket; remove it or set another path",
                         address->sun_path);
                return -EEXIST;
        }
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return fail(-errno, error, error_size, "cannot create a socket");
        if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 && errno != EAGAIN)
                return 0;
        if (is_left_behind(fd, address))
                return 0;
        snprintf(error, error_size, "another program listens on '%s'", address->sun_path);
        return -EADDRINUSE;
}

int listener_check(const char *path, char *error, size_t error_size)
{
        _cleanup_free_ char *directory = strdup(path);
        char *slash = directory ? strrchr(directory, '/') : NULL;
        struct stat status;

        if (lstat(path, &status) == 0 && !S_ISSOCK(status.st_mode))
                return fail(-EEXIST, error, error_size, "cannot listen on '%s'", path);
        if (!slash)
                return directory ? 0 : fail(-ENOMEM, error, error_size, "cannot listen on '%s'", path);
        /* The directory itself is created if missing, its parents are not. */
        slash[slash == directory] = '\0';
        if (access(directory, F_OK) < 0 && errno == ENOENT && (slash = strrchr(directory, '/')))
                slash[slash == directory] = '\0';
        if (access(directory, W_OK | X_OK) < 0)
                return fail(-errno, error, error_size, "cannot listen on '%s' in directory '%s'", path,
                            directory);
        return 0;
}

static int listen_beside(const struct sockaddr_un *address)
{
        const struct sockaddr_un beside = address_beside(address);
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        if (fd < 0)
                return -errno;
        if (unlink(beside.sun_path) < 0 && errno != ENOENT)
                return -errno;
        mode_t mask = umask(0777 & ~SOCKET_MODE);
        int r = bind(fd, (const struct sockaddr *)&beside, sizeof(beside)) < 0 ? -errno : 0;
        (void)umask(mask);
        if (r == 0 && (listen(fd, BACKLOG) < 0 || rename(beside.sun_path, address->sun_path) < 0))
                r = -errno;
        if (r < 0)
                (void)unlink(beside.sun_path);
        return r < 0 ? r : TAKE_FD(fd);
}

/* Removes the path of an inherited socket: a client must not connect where nothing accepts. */
static void remove_name(const struct sockaddr_un *bound)
{
        struct sockaddr_un place = *bound;
        char *suffix = strstr(place.sun_path, BESIDE);

        if (!suffix || suffix[strlen(BESIDE)] != '\0')
                return;
        *suffix = '\0';
        (void)unlink(place.sun_path);
}

/* True if the socket already listens on path. */
static bool can_keep(int inherited, const struct sockaddr_un *address)
{
        const struct sockaddr_un beside = address_beside(address);
        struct sockaddr_un bound = {0};
        socklen_t size = sizeof(bound) - 1;
        struct stat status;

        if (inherited <= 0 || getsockname(inherited, (struct sockaddr *)&bound, &size) < 0)
                return false;
        if (strcmp(bound.sun_path, beside.sun_path) != 0) {
                remove_name(&bound);
                return false;
        }
        return lstat(address->sun_path, &status) == 0 && S_ISSOCK(status.st_mode) &&
               status.st_uid == geteuid();
}

/* Returns a new socket that listens at the address, or -errno with a sentence in error. */
static int listen_anew(const struct sockaddr_un *address, char *error, size_t error_size)
{
        int r = check_place(address, error, error_size);

        if (r < 0)
                return r;
        r = listen_beside(address);
        return r < 0 ? fail(r, error, error_size, "cannot listen on '%s'", address->sun_path) : r;
}

static bool is_in_place(const struct listener *listener)
{
        struct stat there;

        return lstat(listener->path, &there) == 0 && there.st_dev == listener->device &&
               there.st_ino == listener->inode;
}

/* Notes which file is the socket's. */
static void note_place(struct listener *listener)
{
        struct stat there = {0};

        (void)lstat(listener->path, &there);
        listener->device = there.st_dev;
        listener->inode = there.st_ino;
}

int listener_open(struct listener *listener, const char *path, int inherited, char *error, size_t error_size)
{
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        _cleanup_close_ int lock_fd = -1, fd = inherited > 0 ? inherited : -1;
        _cleanup_free_ char *copy = NULL;

        snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
        copy = strdup(path);
        if (!copy)
                return fail(-ENOMEM, error, error_size, "cannot listen on '%s'", path);

        int r = make_directory(path, error, error_size);
        if (r == 0)
                r = listener_lock(path, &lock_fd, error, error_size);
        if (r < 0)
                return r;
        if (!can_keep(fd, &address)) {
                close_pointer(&fd);
                r = listen_anew(&address, error, error_size);
                if (r < 0)
                        return r;
                fd = r;
        }
        *listener = (struct listener){
                .fd = TAKE_FD(fd),
                .lock_fd = TAKE_FD(lock_fd),
                .path = TAKE_PTR(copy),
        };
        note_place(listener);
        return 0;
}

int listener_open_again(struct listener *listener, int *ret_fd, char *error, size_t error_size)
{
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        const char *path = listener->path;

        if (is_in_place(listener))
                return 0;
        snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
        int r = make_directory(path, error, error_size);
        if (r >= 0)
                r = listen_anew(&address, error, error_size);
        if (r < 0)
                return r;
        *ret_fd = r;
        note_place(listener);
        return 1;
}

void listener_close(struct listener *listener)
{
        if (listener->path && is_in_place(listener))
                (void)unlink(listener->path);
        close_fd(listener->fd);
        close_fd(listener->lock_fd);
        free(listener->path);
        *listener = LISTENER_NONE;
}
