#ifndef ONWARD_CNETTLE_SHIM_H
#define ONWARD_CNETTLE_SHIM_H

#include <nettle/hmac.h>
#include <nettle/md5.h>
#include <nettle/sha2.h>
#include <nettle/version.h>

/* The contexts' fields and the digest functions' length argument changed with nettle 4. */
#if NETTLE_VERSION_MAJOR != 3
#error "nettle 3 is required"
#endif

#endif
