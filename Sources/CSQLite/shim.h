#ifndef ONWARD_CSQLITE_SHIM_H
#define ONWARD_CSQLITE_SHIM_H

#include <sqlite3.h>

/* Sets the global variable, which Swift cannot access safely (sqlite.org/c3ref/temp_directory.html); NULL for the
   default. */
static inline void onward_sqlite3_set_temporary_directory(const char *path) {
    sqlite3_free(sqlite3_temp_directory);
    sqlite3_temp_directory = path ? sqlite3_mprintf("%s", path) : 0;
}

#endif
