/* SPDX-License-Identifier: MIT */
/* Implements org.varlink.service, which every Varlink service must offer. */
#include "daemon/api/introspect.h"
#include "wire/control.h"
#include <string.h>

static const char service_description[] =
        "interface org.varlink.service\n"
        "\n"
        "method GetInfo() -> (vendor: string, product: string, version: string, url: string, interfaces: "
        "[]string)\n"
        "\n"
        "method GetInterfaceDescription(interface: string) -> (description: string)\n"
        "\n"
        "error InterfaceNotFound (interface: string)\n"
        "\n"
        "error MethodNotFound (method: string)\n"
        "\n"
        "error MethodNotImplemented (method: string)\n"
        "\n"
        "error InvalidParameter (parameter: string)\n"
        "\n"
        "error PermissionDenied ()\n"
        "\n"
        "error ExpectedMore ()\n";

static json_t *describe(json_t *interface, const char **ret_error)
{
        const char *name = json_string_value(interface);

        if (name && strcmp(name, CONTROL_INTERFACE) == 0)
                return json_pack("{s:s}", "description", control_description);
        if (name && strcmp(name, INTROSPECT_INTERFACE) == 0)
                return json_pack("{s:s}", "description", service_description);
        *ret_error = name ? VARLINK_INTERFACE_NOT_FOUND : VARLINK_INVALID_PARAMETER;
        return name ? json_pack("{s:O}", "interface", interface)
                    : json_pack("{s:s}", "parameter", "interface");
}

json_t *introspect(const struct varlink_call *call, const char *version, const char **ret_error)
{
        const char *name = strrchr(call->method, '.') + 1;

        *ret_error = NULL;
        if (strcmp(name, "GetInfo") == 0)
                return json_pack("{s:s, s:s, s:s, s:s, s:[s, s]}", "vendor", "sqmgr", "product", "sqmgr",
                                 "version", version, "url", "", "interfaces", INTROSPECT_INTERFACE,
                                 CONTROL_INTERFACE);
        if (strcmp(name, "GetInterfaceDescription") == 0)
                return describe(json_object_get(call->parameters, "interface"), ret_error);
        *ret_error = VARLINK_METHOD_NOT_FOUND;
        return json_pack("{s:s}", "method", call->method);
}
