#ifndef ONWARD_CPOSTGRESQL_SHIM_H
#define ONWARD_CPOSTGRESQL_SHIM_H

#include <libpq-fe.h>

/* The definitions of libpq are not usable from Swift: they are macros with casts and characters (postgres_ext.h). */
enum {
    ONWARD_PG_SEVERITY = PG_DIAG_SEVERITY_NONLOCALIZED,
    ONWARD_PG_SQLSTATE = PG_DIAG_SQLSTATE,
    ONWARD_PG_MESSAGE = PG_DIAG_MESSAGE_PRIMARY,
    ONWARD_PG_FUNCTION = PG_DIAG_SOURCE_FUNCTION
};

#endif
