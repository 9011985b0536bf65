/* SPDX-License-Identifier: MIT */
/* The control interface: its methods, who may call which, and its description for introspection. */
#include "wire/control.h"
#include <string.h>

#define ROW(method, name, access, more) {#method, access, more},
const struct control_method control_methods[] = {CONTROL_METHODS(ROW)};
#undef ROW
const size_t control_n_methods = ELEMENTSOF(control_methods);

/* Made by make of org.sqmgr.Control.varlink, which is installed, too. */
const char control_description[] =
#include "wire/description_made.h"
        ;

const struct control_method *control_find_method(const char *name)
{
        for (size_t i = 0; i < control_n_methods; i++)
                if (strcmp(control_methods[i].name, name) == 0)
                        return &control_methods[i];
        return NULL;
}

bool control_has_parameter(const struct control_method *method, const char *name)
{
        size_t length = strlen(name), method_length = strlen(method->name);
        const char *at = control_description;
        int depth = 1;

        do {
                at = strstr(at, "\nmethod ");
                if (!at)
                        return false;
                at += strlen("\nmethod ");
        } while (strncmp(at, method->name, method_length) != 0 || at[method_length] != '(');
        for (at += method_length + 1; depth > 0; at++) {
                bool begins = depth == 1 && (at[-1] == '(' || at[-1] == ' ');

                if (begins && length > 0 && strncmp(at, name, length) == 0 && at[length] == ':')
                        return true;
                depth += (*at == '(') - (*at == ')');
        }
        return false;
}

static bool peer_in_group(const struct control_peer *peer, gid_t group)
{
        if (peer->gid == group)
                return true;
        for (size_t i = 0; i < peer->n_groups; i++)
                if (peer->groups[i] == group)
                        return true;
        return false;
}

enum control_access control_peer_access(const struct control_peer *peer, uid_t own_uid, gid_t group)
{
        if (peer->uid == 0 || peer->uid == own_uid)
                return CONTROL_OWN;
        if (group != CONTROL_NO_GROUP && peer_in_group(peer, group))
                return CONTROL_OPERATE;
        return CONTROL_READ;
}
