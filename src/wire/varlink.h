/* SPDX-License-Identifier: MIT */
/* Varlink messages: NUL-terminated JSON out of a byte stream, decoded calls and replies, encoded ones. */
#pragma once

#include "wire/json.h"

#define VARLINK_CALL_MAX  ((size_t)1 << 20)  /* bytes that the server takes for one call */
#define VARLINK_REPLY_MAX ((size_t)64 << 20) /* bytes that a client takes for one reply */

#define VARLINK_INTERFACE_NOT_FOUND    "org.varlink.service.InterfaceNotFound"
#define VARLINK_METHOD_NOT_FOUND       "org.varlink.service.MethodNotFound"
#define VARLINK_METHOD_NOT_IMPLEMENTED "org.varlink.service.MethodNotImplemented"
#define VARLINK_INVALID_PARAMETER      "org.varlink.service.InvalidParameter"
#define VARLINK_PERMISSION_DENIED      "org.varlink.service.PermissionDenied"
#define VARLINK_EXPECTED_MORE          "org.varlink.service.ExpectedMore"

/* What has come in and was not taken yet. Zero is an empty one. */
struct varlink_input {
        char *data;
        size_t allocated;
        size_t start;   /* of what was not taken */
        size_t end;     /* of what has come in */
        size_t scanned; /* no NUL from start up to here */
};

void varlink_input_free(struct varlink_input *input);

/* Makes room for size more bytes; *ret points at them until the next call. Returns 0 or -ENOMEM. */
int varlink_input_reserve(struct varlink_input *input, size_t size, char **ret);
/* size bytes of those reserved were filled. */
void varlink_input_filled(struct varlink_input *input, size_t size);

/* Keeps no more room than what was not taken needs. */
void varlink_input_trim(struct varlink_input *input);

/* Bytes not taken yet. */
static inline size_t varlink_input_size(const struct varlink_input *input)
{
        return input->end - input->start;
}

/* Is a whole message there? Returns 1 or 0, or -EMSGSIZE where the first one is longer than max bytes, its
 * NUL not counted. */
int varlink_input_ready(struct varlink_input *input, size_t max);
/* As varlink_input_ready(); where that is 1, *ret_text is the message, which ends with its NUL and lives
 * until the next call, and *ret_size its length without that. */
int varlink_input_take(struct varlink_input *input, size_t max, const char **ret_text, size_t *ret_size);

struct varlink_call {
        json_t *message;    /* owned; the method and the parameters are part of it */
        const char *method; /* qualified: INTERFACE.METHOD */
        json_t *parameters; /* an object, never NULL */
        bool more;
        bool oneway;
        bool upgrade;
};

/* Returns 0 with *ret to be freed by varlink_call_free(), -EBADMSG for what is no call, or -ENOMEM. */
int varlink_decode_call(const char *text, size_t size, struct varlink_call *ret);
/* Frees the message. How it is to be answered is kept. */
void varlink_call_free(struct varlink_call *call);

struct varlink_reply {
        json_t *message;    /* owned; the error and the parameters are part of it */
        const char *error;  /* NULL: none */
        json_t *parameters; /* an object, never NULL */
        bool continues;
};

/* Returns as varlink_decode_call(); *ret is to be freed by varlink_reply_free(). */
int varlink_decode_reply(const char *text, size_t size, struct varlink_reply *ret);
void varlink_reply_free(struct varlink_reply *reply);

/* These take over the reference to parameters, also where they fail; NULL stands for an allocation that
 * failed before. *ret_size counts the NUL in; *ret is to be freed. They return 0 or -ENOMEM. */
int varlink_encode_call(const char *method, json_t *parameters, bool more, char **ret, size_t *ret_size);
int varlink_encode_reply(json_t *parameters, bool continues, char **ret, size_t *ret_size);
int varlink_encode_error(const char *error, json_t *parameters, char **ret, size_t *ret_size);

/* A JSON string of text, which may be of foreign origin: control characters but newlines, and what is not
 * UTF-8, become '?'. NULL and "" become null. Returns NULL where memory is short. */
json_t *varlink_text(const char *text);

/* The same for a name, which is one line: newlines become '?' too, and "" stays "". */
json_t *varlink_name(const char *name);
