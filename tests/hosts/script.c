/* SPDX-License-Identifier: MIT */
/* Runs the script of a rollout like Redis, on simulated keys. */
#include "hosts.h"
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdio.h>
#include <string.h>

static lua_State *lua;
static struct redis *running; /* the simulated Redis that the script works on */
static usec_t running_at;

const struct entry *keys_find(const struct keys *keys, unsigned key, const char *name)
{
        for (size_t i = 0; i < keys->key[key].n; i++)
                if (strcmp(keys->key[key].list[i].name, name) == 0)
                        return &keys->key[key].list[i];
        return NULL;
}

void keys_copy(struct keys *to, const struct keys *from)
{
        for (size_t i = 0; i < ROLLOUT_SCRIPT_KEYS; i++) {
                to->key[i].n = from->key[i].n;
                memcpy(to->key[i].list, from->key[i].list, from->key[i].n * sizeof(from->key[i].list[0]));
        }
}

int keys_state(const struct keys *keys, const char *name)
{
        const struct entry *entry = keys_find(keys, KEY_STATES, name);

        return entry ? (int)entry->score : -1;
}

unsigned keys_count(const struct keys *keys, int from, int to)
{
        unsigned n = 0;

        for (size_t i = 0; i < keys->key[KEY_STATES].n; i++)
                n += keys->key[KEY_STATES].list[i].score >= from && keys->key[KEY_STATES].list[i].score <= to;
        return n;
}

const char *keys_field(const struct keys *keys, const char *field)
{
        const struct entry *entry = keys_find(keys, KEY_ROLLOUT, field);

        return entry ? entry->value : "";
}

void keys_put(struct keys *keys, unsigned key, const char *name, const char *value, double score)
{
        struct entry *entry = (struct entry *)keys_find(keys, key, name);

        if (!entry) {
                assert(keys->key[key].n < ENTRIES_MAX);
                entry = &keys->key[key].list[keys->key[key].n++];
                snprintf(entry->name, sizeof(entry->name), "%s", name);
        }
        snprintf(entry->value, sizeof(entry->value), "%s", value);
        entry->score = score;
}

void keys_remove(struct keys *keys, unsigned key, const char *name)
{
        const struct entry *entry = keys_find(keys, key, name);

        if (entry)
                keys->key[key].list[entry - keys->key[key].list] = keys->key[key].list[--keys->key[key].n];
}

/* Returns the index of a key. Keys are named "0" to "4" here. */
static unsigned key_of(lua_State *L, int i)
{
        return (unsigned)luaL_checkint(L, i);
}

static double bound_of(lua_State *L, int i, bool *ret_open)
{
        const char *text = luaL_checkstring(L, i);

        *ret_open = *text == '(';
        text += *ret_open;
        if (strcmp(text, "-inf") == 0)
                return -1e300;
        return strcmp(text, "+inf") == 0 ? 1e300 : strtod(text, NULL);
}

static int by_score(const void *a, const void *b)
{
        const struct entry *x = a, *y = b;

        return x->score < y->score ? -1 : x->score > y->score ? 1 : strcmp(x->name, y->name);
}

static struct key *sorted(unsigned key)
{
        struct key *list = &running->keys.key[key];

        qsort(list->list, list->n, sizeof(list->list[0]), by_score);
        return list;
}

static int call_time(lua_State *L)
{
        int64_t at = (int64_t)running_at + running->clock_usec;
        char text[32];

        lua_newtable(L);
        snprintf(text, sizeof(text), "%lld", (long long)(at / 1000000));
        lua_pushstring(L, text);
        lua_rawseti(L, -2, 1);
        snprintf(text, sizeof(text), "%lld", (long long)(at % 1000000));
        lua_pushstring(L, text);
        lua_rawseti(L, -2, 2);
        return 1;
}

static int call_hget(lua_State *L)
{
        const struct entry *entry = keys_find(&running->keys, key_of(L, 2), luaL_checkstring(L, 3));

        if (entry)
                lua_pushstring(L, entry->value);
        else
                lua_pushboolean(L, false);
        return 1;
}

static int call_hset(lua_State *L)
{
        for (int i = 3; i < lua_gettop(L); i += 2)
                keys_put(&running->keys, key_of(L, 2), luaL_checkstring(L, i), luaL_checkstring(L, i + 1), 0);
        return 0;
}

static int call_remove(lua_State *L)
{
        for (int i = 3; i <= lua_gettop(L); i++)
                keys_remove(&running->keys, key_of(L, 2), luaL_checkstring(L, i));
        return 0;
}

static int call_del(lua_State *L)
{
        for (int i = 2; i <= lua_gettop(L); i++)
                running->keys.key[key_of(L, i)].n = 0;
        return 0;
}

static int call_type(lua_State *L)
{
        unsigned key = key_of(L, 2);

        lua_newtable(L);
        lua_pushstring(L, running->keys.key[key].n == 0 ? "none" : key <= KEY_HOSTS ? "hash" : "zset");
        lua_setfield(L, -2, "ok");
        return 1;
}

static int call_zscore(lua_State *L)
{
        const struct entry *entry = keys_find(&running->keys, key_of(L, 2), luaL_checkstring(L, 3));
        char text[40];

        if (!entry) {
                lua_pushboolean(L, false);
                return 1;
        }
        snprintf(text, sizeof(text), "%.17g", entry->score);
        lua_pushstring(L, text);
        return 1;
}

static int call_zcard(lua_State *L)
{
        lua_pushinteger(L, (lua_Integer)running->keys.key[key_of(L, 2)].n);
        return 1;
}

static int call_zadd(lua_State *L)
{
        keys_put(&running->keys, key_of(L, 2), luaL_checkstring(L, 4), "", luaL_checknumber(L, 3));
        return 0;
}

static bool is_within(lua_State *L, double score)
{
        bool open_min, open_max;
        double min = bound_of(L, 3, &open_min), max = bound_of(L, 4, &open_max);

        return (open_min ? score > min : score >= min) && (open_max ? score < max : score <= max);
}

static int call_zcount(lua_State *L)
{
        const struct key *list = &running->keys.key[key_of(L, 2)];
        int n = 0;

        for (size_t i = 0; i < list->n; i++)
                n += is_within(L, list->list[i].score);
        lua_pushinteger(L, n);
        return 1;
}

static int call_zrangebyscore(lua_State *L)
{
        const struct key *list = sorted(key_of(L, 2));
        int n = 0, limit = lua_gettop(L) >= 7 ? luaL_checkint(L, 7) : ENTRIES_MAX;

        lua_newtable(L);
        for (size_t i = 0; i < list->n && n < limit; i++) {
                /* The table is on top of the arguments, which is_within() finds by their index. */
                if (!is_within(L, list->list[i].score))
                        continue;
                lua_pushstring(L, list->list[i].name);
                lua_rawseti(L, -2, ++n);
        }
        return 1;
}

static int call_zremrangebyscore(lua_State *L)
{
        struct key *list = &running->keys.key[key_of(L, 2)];

        for (size_t i = list->n; i-- > 0;)
                if (is_within(L, list->list[i].score))
                        list->list[i] = list->list[--list->n];
        return 0;
}

static int call_zrange(lua_State *L)
{
        const struct key *list = sorted(key_of(L, 2));

        lua_newtable(L);
        for (size_t i = 0; i < list->n; i++) {
                lua_pushstring(L, list->list[i].name);
                lua_rawseti(L, -2, (int)i + 1);
        }
        return 1;
}

static int call_nothing(lua_State *L _unused_)
{
        return 0;
}

static int redis_call(lua_State *L)
{
        static const struct {
                const char *name;
                lua_CFunction call;
        } calls[] = {
                {"TIME", call_time},
                {"HGET", call_hget},
                {"HSET", call_hset},
                {"HDEL", call_remove},
                {"ZREM", call_remove},
                {"DEL", call_del},
                {"TYPE", call_type},
                {"ZSCORE", call_zscore},
                {"ZCARD", call_zcard},
                {"ZADD", call_zadd},
                {"ZCOUNT", call_zcount},
                {"ZRANGE", call_zrange},
                {"ZRANGEBYSCORE", call_zrangebyscore},
                {"ZREMRANGEBYSCORE", call_zremrangebyscore},
                /* Not simulated: there are never that many entries, and no run takes that long. */
                {"ZREMRANGEBYRANK", call_nothing},
                {"EXPIRE", call_nothing},
        };
        const char *name = luaL_checkstring(L, 1);

        for (size_t i = 0; i < ELEMENTSOF(calls); i++)
                if (strcmp(calls[i].name, name) == 0)
                        return calls[i].call(L);
        return luaL_error(L, "the modelled Redis has no '%s'", name);
}

bool script_open(void)
{
        lua = luaL_newstate();
        if (!lua)
                return false;
        luaL_openlibs(lua);
        lua_newtable(lua);
        lua_pushcfunction(lua, redis_call);
        lua_setfield(lua, -2, "call");
        lua_setglobal(lua, "redis");
        lua_newtable(lua);
        for (int i = 0; i < ROLLOUT_SCRIPT_KEYS; i++) {
                lua_pushinteger(lua, i);
                lua_rawseti(lua, -2, i + 1);
        }
        lua_setglobal(lua, "KEYS");
        if (luaL_loadstring(lua, rollout_script) != 0) {
                fprintf(stderr, "hosts: the script is none: %s\n", lua_tostring(lua, -1));
                return false;
        }
        /* The script stays at the bottom of the stack. */
        return true;
}

void script_close(void)
{
        lua_close(lua);
        lua = NULL;
}

size_t script_run(struct redis *redis, usec_t now, const char *const words[], size_t n,
                  struct field ret[WORDS_MAX], const char **error)
{
        size_t kept = redis->n_calls++ % CALLS_KEPT, n_ret;

        keys_copy(&redis->before[kept], &redis->keys);
        redis->before_at[kept] = now;
        running = redis;
        running_at = now;
        lua_settop(lua, 1);
        lua_newtable(lua);
        for (size_t i = 0; i < n; i++) {
                lua_pushstring(lua, words[i]);
                lua_rawseti(lua, -2, (int)i + 1);
        }
        lua_setglobal(lua, "ARGV");
        lua_pushvalue(lua, 1);
        if (lua_pcall(lua, 0, 1, 0) != 0 || !lua_istable(lua, -1)) {
                *error = lua_tostring(lua, -1);
                return 0;
        }
        n_ret = lua_objlen(lua, -1);
        assert(n_ret <= WORDS_MAX);
        for (size_t i = 0; i < n_ret; i++) {
                lua_rawgeti(lua, 2, (int)i + 1);
                ret[i].text = lua_tolstring(lua, -1, &ret[i].len);
                /* The table keeps a reference to the string. */
                lua_pop(lua, 1);
        }
        return n_ret;
}
