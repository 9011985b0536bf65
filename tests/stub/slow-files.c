/* SPDX-License-Identifier: MIT */
/* A worker that makes the readers of its files wait: it serves a FUSE file system of its own, which never
 * answers a read or a write, in namespaces of its own, as any user can. Other users cannot read it.
 *
 *   slow-files dir FOLDER   /mnt/fuse/hang below its root cannot be entered
 *   slow-files lock FOLDER  holds its mmap_lock without end: cmdline, environ and smaps_rollup cannot be read
 *   slow-files try FOLDER   tests whether FUSE is permitted here, and waits
 *   slow-files log FOLDER   standard output becomes a file of an overlay of the FUSE: its reads wait
 *
 * FOLDER/fuse is a device node like /dev/fuse that the user may open. FOLDER/pid.MODE is written once the
 * files are slow, and FOLDER/server.MODE at first: the process that serves. */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_NODE  2
#define FILE_BYTES 4096

static const char *mode, *folder;

static void write_file(const char *path, const char *text)
{
        int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

        if (fd < 0 || write(fd, text, strlen(text)) < 0)
                err(EXIT_FAILURE, "%s", path);
        close(fd);
}

static void report(const char *what, pid_t pid)
{
        char path[4200], place[4096], text[32];

        snprintf(place, sizeof(place), "%s/%s.%s", folder, what, mode);
        snprintf(path, sizeof(path), "%s.new", place);
        snprintf(text, sizeof(text), "%d\n", (int)pid);
        write_file(path, text);
        if (rename(path, place) < 0)
                err(EXIT_FAILURE, "%s", place);
}

static struct fuse_attr attributes(uint64_t node)
{
        return (struct fuse_attr){
                .ino = node,
                .mode = node == FILE_NODE ? S_IFREG | 0666 : S_IFDIR | 0777,
                .nlink = 1,
                .uid = getuid(),
                .gid = getgid(),
                .size = node == FILE_NODE ? FILE_BYTES : 0,
        };
}

/* Returns the length of the answer, or -errno. */
static int answer(const struct fuse_in_header *in, void *out)
{
        static unsigned n_opened;
        struct fuse_init_out *init = out;
        struct fuse_entry_out *entry = out;
        struct fuse_attr_out *attr = out;
        struct fuse_open_out *opened = out;
        struct fuse_statfs_out *statfs = out;

        switch (in->opcode) {
        case FUSE_INIT:
                *init = (struct fuse_init_out){
                        .major = FUSE_KERNEL_VERSION, .minor = 31, .max_write = FILE_BYTES};
                return sizeof(*init);
        case FUSE_LOOKUP:
                if (strcmp((const char *)(in + 1), "file") != 0)
                        return -ENOENT;
                *entry = (struct fuse_entry_out){.nodeid = FILE_NODE,
                                                 .attr_valid = 3600,
                                                 .entry_valid = 3600,
                                                 .attr = attributes(FILE_NODE)};
                return sizeof(*entry);
        case FUSE_GETATTR:
                *attr = (struct fuse_attr_out){.attr_valid = 3600, .attr = attributes(in->nodeid)};
                return sizeof(*attr);
        case FUSE_OPEN:
        case FUSE_OPENDIR:
                /* Direct I/O: mapping such a file writes back the pages of it that are cached. */
                *opened = (struct fuse_open_out){.open_flags = in->opcode == FUSE_OPEN && n_opened++ > 0
                                                                       ? FOPEN_DIRECT_IO
                                                                       : FOPEN_KEEP_CACHE};
                return sizeof(*opened);
        case FUSE_STATFS:
                *statfs = (struct fuse_statfs_out){.st = {.bsize = FILE_BYTES, .namelen = 255}};
                return sizeof(*statfs);
        case FUSE_GETXATTR:
                return -ENODATA;
        case FUSE_FLUSH:
        case FUSE_READDIR:
        case FUSE_RELEASE:
        case FUSE_RELEASEDIR:
                return 0;
        default:
                return -ENOSYS;
        }
}

/* Serves the file system. Answers reads until the files must be slow. */
static void serve(int device)
{
        static char in[1 << 17], out[1 << 14];
        const struct fuse_in_header *request = (const void *)in;
        struct fuse_out_header *reply = (void *)out;
        bool slow = strcmp(mode, "log") == 0;

        for (;;) {
                ssize_t n = read(device, in, sizeof(in));
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        _exit(EXIT_SUCCESS);
                memset(out, 0, sizeof(out));
                int r = 0;
                switch (request->opcode) {
                case FUSE_READ:
                        if (slow)
                                continue;
                        r = FILE_BYTES;
                        break;
                case FUSE_LOOKUP:
                        if (strcmp((const char *)(request + 1), "hang") == 0)
                                continue;
                        r = answer(request, out + sizeof(*reply));
                        break;
                case FUSE_WRITE:
                case FUSE_FORGET:
                case FUSE_BATCH_FORGET:
                case FUSE_INTERRUPT:
                        continue;
                default:
                        r = answer(request, out + sizeof(*reply));
                }
                reply->unique = request->unique;
                reply->error = r < 0 ? r : 0;
                reply->len = (uint32_t)(sizeof(*reply) + (r > 0 ? (size_t)r : 0));
                (void)!write(device, out, reply->len);
        }
}

static void enter_namespaces(void)
{
        char text[64];
        unsigned uid = getuid(), gid = getgid();

        if (unshare(CLONE_NEWNS | CLONE_NEWUSER) < 0)
                err(EXIT_FAILURE, "unshare");
        write_file("/proc/self/setgroups", "deny");
        snprintf(text, sizeof(text), "%u %u 1", uid, uid);
        write_file("/proc/self/uid_map", text);
        snprintf(text, sizeof(text), "%u %u 1", gid, gid);
        write_file("/proc/self/gid_map", text);
}

static void mount_files(void)
{
        char path[4096], options[128];

        snprintf(path, sizeof(path), "%s/fuse", folder);
        int device = open(path, O_RDWR | O_CLOEXEC);
        if (device < 0)
                err(EXIT_FAILURE, "%s", path);
        /* Processes of the same user may use it, also those outside of the namespaces. */
        snprintf(options, sizeof(options), "fd=%d,rootmode=40777,user_id=%u,group_id=%u", device, getuid(),
                 getgid());
        if (mount("tmpfs", "/mnt", "tmpfs", 0, NULL) < 0 || mkdir("/mnt/fuse", 0777) < 0 ||
            mkdir("/mnt/upper", 0777) < 0 || mkdir("/mnt/work", 0777) < 0 ||
            mkdir("/mnt/overlay", 0777) < 0 ||
            mount("fuse", "/mnt/fuse", "fuse", MS_NOSUID | MS_NODEV, options) < 0)
                err(EXIT_FAILURE, "mount");
        pid_t parent = getpid(), pid = fork();
        if (pid == 0) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                if (getppid() == parent)
                        serve(device);
                _exit(EXIT_FAILURE);
        }
        report("server", pid);
        close(device);
}

/* Holds mmap_lock: mmap() of the file writes back its cached page, and that write is never answered. */
static void hold_lock(void)
{
        int cached = open("/mnt/fuse/file", O_RDWR | O_CLOEXEC),
            direct = open("/mnt/fuse/file", O_RDONLY | O_CLOEXEC);
        char *page = mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, cached, 0);

        if (cached < 0 || direct < 0 || page == MAP_FAILED)
                err(EXIT_FAILURE, "mmap");
        page[0] = 'x';
        report("pid", getpid());
        (void)mmap(NULL, FILE_BYTES, PROT_READ, MAP_PRIVATE, direct, 0);
}

static void replace_output(void)
{
        if (mount("overlay", "/mnt/overlay", "overlay", 0,
                  "lowerdir=/mnt/fuse,upperdir=/mnt/upper,workdir=/mnt/work,userxattr") < 0)
                err(EXIT_FAILURE, "overlay");
        int fd = open("/mnt/overlay/file", O_RDONLY | O_CLOEXEC);
        if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0)
                err(EXIT_FAILURE, "open");
        report("pid", getpid());
}

int main(int argc, char **argv)
{
        if (argc != 3)
                errx(EXIT_FAILURE, "usage: slow-files dir|lock|log FOLDER");
        mode = argv[1];
        folder = argv[2];
        enter_namespaces();
        mount_files();
        if (strcmp(mode, "lock") == 0)
                hold_lock();
        else if (strcmp(mode, "log") == 0)
                replace_output();
        else
                report("pid", getpid());
        for (;;)
                pause();
}
