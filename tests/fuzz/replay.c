/* SPDX-License-Identifier: MIT */
/* Replaces libFuzzer: runs a target with the named files, or with those of its corpus. */
#include "fuzz.h"
#include <dirent.h>
#include <sys/stat.h>

static unsigned replay(const char *path);

static unsigned replay_folder(const char *path)
{
        struct dirent **entries;
        int n_entries = scandir(path, &entries, NULL, alphasort);
        unsigned n = 0;

        fuzz_check(n_entries >= 0);
        for (int i = 0; i < n_entries; i++) {
                _cleanup_free_ char *entry = NULL;

                if (entries[i]->d_name[0] != '.') {
                        fuzz_check(asprintf(&entry, "%s/%s", path, entries[i]->d_name) >= 0);
                        n += replay(entry);
                }
                free(entries[i]);
        }
        free(entries);
        return n;
}

/* Runs the target with a file, or with all files of a folder. Returns their number. */
static unsigned replay(const char *path)
{
        struct stat st;
        FILE *file = fopen(path, "re");

        if (!file || fstat(fileno(file), &st) < 0) {
                perror(path);
                exit(1);
        }
        if (S_ISDIR(st.st_mode)) {
                fclose(file);
                return replay_folder(path);
        }
        size_t size = (size_t)st.st_size;
        uint8_t *data = malloc(size + 1);
        fuzz_check(data && fread(data, 1, size, file) == size);
        fclose(file);
        /* Allocated with the exact size, so that sanitizers detect reads beyond it. */
        uint8_t *exact = malloc(size);
        fuzz_check(exact || size == 0);
        if (size > 0)
                memcpy(exact, data, size);
        free(data);
        (void)LLVMFuzzerTestOneInput(exact, size);
        free(exact);
        return 1;
}

int main(int argc, char *argv[])
{
        const char *folder = getenv("srcdir"), *name = strrchr(argv[0], '/');
        unsigned n = 0;

        for (int i = 1; i < argc; i++)
                n += replay(argv[i]);
        if (argc == 1) {
                _cleanup_free_ char *corpus = NULL;

                name = strstr(name ? name : argv[0], "fuzz_");
                fuzz_check(name && asprintf(&corpus, "%s/tests/fuzz/corpus/%s", folder ? folder : ".",
                                            name + strlen("fuzz_")) >= 0);
                (void)LLVMFuzzerTestOneInput(NULL, 0);
                n = replay(corpus);
        }
        printf("%u inputs\n", n);
        /* Fails if there was no file. */
        return n > 0 ? 0 : 1;
}
