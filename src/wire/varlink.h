/* SPDX-License-Identifier: MIT */
/* Varlink messages: splits a byte stream at NULs, decodes and encodes calls and replies. */
#pragma once

#include "wire/json.h"

#define VARLINK_CALL_MAX  ((size_t)1 << 20)  /* limit of the server for one call, in bytes */
#define VARLINK_REPLY_MAX ((size_t)16 << 20) /* limit of a client for one reply, in bytes */

/* Values in one call: far more than fleets to name, far fewer than a tree of VARLINK_CALL_MAX bytes can have.
 */
#define VARLINK_CALL_VALUES_MAX ((size_t)1 << 16)
/* Bytes of the limit of a reply for each value that it may have: no reply of sqmgr has as many values. */
#define VARLINK_REPLY_VALUE_BYTES 12
#define VARLINK_DEPTH_MAX         32

#define VARLINK_INTERFACE_NOT_FOUND    "org.varlink.service.InterfaceNotFound"
#define VARLINK_METHOD_NOT_FOUND       "org.varlink.service.MethodNotFound"
#define VARLINK_METHOD_NOT_IMPLEMENTED "org.varlink.service.MethodNotImplemented"
#define VARLINK_INVALID_PARAMETER      "org.varlink.service.InvalidParameter"
#define VARLINK_PERMISSION_DENIED      "org.varlink.service.PermissionDenied"
#define VARLINK_EXPECTED_MORE          "org.varlink.service.ExpectedMore"

/* Bytes received and not yet read. All zero means empty. */
struct varlink_input {
        char *data;
        size_t allocated;
        size_t start;   /* of the unread bytes */
        size_t end;     /* of the received bytes */
        size_t scanned; /* no NUL is between start and this offset */
};

/* Frees the buffer and leaves an empty input. */
void varlink_input_free(struct varlink_input *input);

/* Reserves space for size more bytes; *ret points there until the next call. Returns 0 or -ENOMEM. */
int varlink_input_reserve(struct varlink_input *input, size_t size, char **ret);
/* Adds size bytes that were written to the reserved space. */
void varlink_input_filled(struct varlink_input *input, size_t size);

/* Shrinks the buffer to the unread bytes, if there are any. */
void varlink_input_trim(struct varlink_input *input);

/* Returns the number of unread bytes. */
static inline size_t varlink_input_size(const struct varlink_input *input)
{
        return input->end - input->start;
}

/* Returns 1 if a whole message is available, 0 if not, or -EMSGSIZE if the first message is longer than max
 * bytes without its NUL. */
int varlink_input_ready(struct varlink_input *input, size_t max);
/* Reads one message; returns as varlink_input_ready(). With 1, *ret_text is the NUL-terminated message, valid
 * until the next call, and *ret_size its length without the NUL. */
int varlink_input_take(struct varlink_input *input, size_t max, const char **ret_text, size_t *ret_size);

struct varlink_call {
        json_t *message;    /* owned; method and parameters are borrowed from it */
        const char *method; /* qualified: INTERFACE.METHOD */
        json_t *parameters; /* an object, never NULL */
        bool more;
        bool oneway;
        bool upgrade;
};

/* Decodes a call. Returns 0 with *ret to be freed by varlink_call_free(), -EBADMSG if text is not a call or
 * exceeds the limits above, or -ENOMEM. */
int varlink_decode_call(const char *text, size_t size, struct varlink_call *ret);
/* Frees the message. Keeps more and oneway, which decide how to reply. */
void varlink_call_free(struct varlink_call *call);

struct varlink_reply {
        json_t *message;    /* owned; error and parameters are borrowed from it */
        const char *error;  /* NULL: none */
        json_t *parameters; /* an object, never NULL */
        bool continues;
};

/* Decodes a reply of at most max bytes. Returns as varlink_decode_call(); *ret is to be freed by
 * varlink_reply_free(). */
int varlink_decode_reply(const char *text, size_t size, size_t max, struct varlink_reply *ret);
void varlink_reply_free(struct varlink_reply *reply);

/* The encoders consume the reference to parameters, even on failure. NULL parameters mean an earlier
 * allocation failed. The caller frees *ret; *ret_size includes the NUL. Return 0 or -ENOMEM. */
int varlink_encode_call(const char *method, json_t *parameters, bool more, char **ret, size_t *ret_size);
/* error: NULL: none. */
int varlink_encode_reply(const char *error, json_t *parameters, bool continues, char **ret, size_t *ret_size);

/* Returns a JSON string of untrusted text: control characters except newlines, and bytes that are not UTF-8,
 * become '?'. NULL and "" become null. Returns NULL if memory is short. */
json_t *varlink_text(const char *text);

/* Returns a JSON string of an untrusted name, as one line: as varlink_text(), but newlines become '?' too,
 * and "" stays "". name must not be NULL. */
json_t *varlink_name(const char *name);
