#ifndef ONWARD_CMICROHTTPD_SHIM_H
#define ONWARD_CMICROHTTPD_SHIM_H

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

static inline const union MHD_DaemonInfo *
onward_mhd_daemon_info(struct MHD_Daemon *daemon, enum MHD_DaemonInfoType type)
{
    return MHD_get_daemon_info(daemon, type);
}

#endif
