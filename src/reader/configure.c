/* SPDX-License-Identifier: MIT */
/* Makes the connection that a configuration describes. */
#include "reader/configure.h"
#include "base/fd.h"
#include "frameworks/heartbeat_format.h"
#include "frameworks/live_format.h"
#include "frameworks/redis_format.h"
#include "redis/tls.h"
#include "settings/redis_url.h"
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define PATH_SIZE 32

/* OpenSSL wants paths, and this process may open no file: the bytes become files of its own memory. */
struct memory_file {
        int fd;
        char path[PATH_SIZE];
};

static int make_file(const struct reader_file *file, struct memory_file *ret)
{
        int r;

        ret->fd = memfd_create("tls", MFD_CLOEXEC);
        if (ret->fd < 0)
                return -errno;
        r = fd_write_all(ret->fd, file->bytes, file->length);
        snprintf(ret->path, sizeof(ret->path), "/proc/self/fd/%d", ret->fd);
        return r;
}

static int load_tls(const struct reader_configuration *configuration, struct tls **ret,
                    struct settings_tls_refusal *refusal)
{
        struct memory_file files[_SETTINGS_TLS_MAX] = {{-1, ""}, {-1, ""}, {-1, ""}};
        const char *paths[_SETTINGS_TLS_MAX] = {NULL};
        int r = 0;

        for (size_t i = 0; i < _SETTINGS_TLS_MAX && r >= 0; i++) {
                if (!configuration->files[i].name)
                        continue;
                r = make_file(&configuration->files[i], &files[i]);
                paths[i] = files[i].path;
        }
        const struct redis_settings settings = {
                .tls_ca_file = (char *)paths[SETTINGS_TLS_CA],
                .tls_cert_file = (char *)paths[SETTINGS_TLS_CERT],
                .tls_key_file = (char *)paths[SETTINGS_TLS_KEY],
        };
        const struct redis_settings shown = {
                .tls_ca_file = configuration->files[SETTINGS_TLS_CA].name,
                .tls_cert_file = configuration->files[SETTINGS_TLS_CERT].name,
                .tls_key_file = configuration->files[SETTINGS_TLS_KEY].name,
        };
        if (r >= 0)
                r = tls_new(&settings, &shown, ret, refusal);
        FOREACH_ELEMENT(file, files)
                close_fd(file->fd);
        return r;
}

/* Probes the key that is read first: for records, the set of identities. */
static int probe(struct redis *redis, const struct redis_format *format, const char *namespace)
{
        const struct heartbeat_format *heartbeats = format->heartbeats;
        _cleanup_free_ char *key = format->live ? format->live->probe_key(namespace)
                                                : heartbeats->key(namespace, heartbeats->set, NULL);

        return key ? redis_probe(redis, key) : -ENOMEM;
}

int configure_redis(sd_event *event, const struct reader_configuration *configuration,
                    redis_state_fn on_state, void *userdata, struct redis **ret,
                    struct settings_tls_refusal *refusal)
{
        const struct redis_settings settings = {
                .url = configuration->url ?: configuration->default_url,
                .username = configuration->username,
                .password = configuration->password,
                .sentinels = configuration->url ? NULL : configuration->sentinels,
                .master_name = configuration->master_name,
                .sentinel_password = configuration->sentinel_password,
                .connect_timeout = configuration->connect_timeout,
                .command_timeout = configuration->command_timeout,
        };
        const struct redis_format *format = redis_format_of(configuration->framework);
        _cleanup_redis_url_ struct redis_url parsed = {0};
        struct redis *redis = NULL;
        struct tls *tls = NULL;

        *refusal = (struct settings_tls_refusal){.file = _SETTINGS_TLS_MAX};
        int r = format && settings.url ? redis_url_parse(settings.url, &parsed, NULL) : -EBADMSG;

        if (r >= 0 && (parsed.tls || configuration->check))
                r = load_tls(configuration, &tls, refusal);
        if (r < 0 || configuration->check) {
                if (tls)
                        tls_free(tls);
                return r;
        }
        r = redis_new(event, &settings, tls, on_state, userdata, &redis);
        if (r < 0) {
                if (tls)
                        tls_free(tls);
                return r;
        }
        r = probe(redis, format, configuration->namespace);
        if (r < 0)
                redis_free(redis);
        else
                *ret = redis;
        return r;
}
