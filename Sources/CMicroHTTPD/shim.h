#ifndef ONWARD_CMICROHTTPD_SHIM_H
#define ONWARD_CMICROHTTPD_SHIM_H

#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/socket.h>
#include <microhttpd.h>

/* libmicrohttpd's variadic functions with fixed arguments: Swift cannot call variadics. */

static inline struct MHD_Daemon *
onward_mhd_start(unsigned int flags, MHD_AcceptPolicyCallback policy, MHD_AccessHandlerCallback handler,
                 void *context, struct MHD_OptionItem *options)
{
    return MHD_start_daemon(flags, 0, policy, context, handler, context,
                            MHD_OPTION_ARRAY, options, MHD_OPTION_END);
}

static inline const union MHD_ConnectionInfo *
onward_mhd_connection_info(struct MHD_Connection *connection, enum MHD_ConnectionInfoType type)
{
    return MHD_get_connection_info(connection, type);
}

static inline enum MHD_Result
onward_mhd_set_flags(struct MHD_Response *response, enum MHD_ResponseFlags flags)
{
    return MHD_set_response_options(response, flags, MHD_RO_END);
}

struct onward_mhd_field {
    const char *name, *value;
    char *stored;
};

static inline enum MHD_Result
onward_mhd_find_field(void *context, enum MHD_ValueKind kind, const char *name, const char *value)
{
    struct onward_mhd_field *field = context;
    (void)kind;
    if (strcmp(name, field->name) == 0 && strcmp(value, field->value) == 0)
        field->stored = (char *)value;
    return MHD_YES;
}

/* Adds a field whose value can be empty or contain tabs, which MHD_add_response_header refuses. In place of an empty
   value one space is sent, which recipients remove. A value with tabs is added with spaces, and the tabs are then
   written into the copy that libmicrohttpd has made. */
static inline enum MHD_Result
onward_mhd_add_field(struct MHD_Response *response, const char *name, const char *value)
{
    if (!*value)
        return MHD_add_response_header(response, name, " ");
    if (!strchr(value, '\t'))
        return MHD_add_response_header(response, name, value);
    char *spaced = strdup(value);
    if (!spaced)
        return MHD_NO;
    for (char *byte = spaced; *byte; byte++)
        if (*byte == '\t')
            *byte = ' ';
    enum MHD_Result result = MHD_add_response_header(response, name, spaced);
    if (result == MHD_YES) {
        struct onward_mhd_field field = {name, spaced, NULL};
        MHD_get_response_headers(response, onward_mhd_find_field, &field);
        if (field.stored)
            memcpy(field.stored, value, strlen(value));
    }
    free(spaced);
    return result;
}

static inline const union MHD_DaemonInfo *
onward_mhd_daemon_info(struct MHD_Daemon *daemon, enum MHD_DaemonInfoType type)
{
    return MHD_get_daemon_info(daemon, type);
}

#endif
