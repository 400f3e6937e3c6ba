#ifndef ONWARD_CSQLITE_SHIM_H
#define ONWARD_CSQLITE_SHIM_H

#include <sqlite3.h>

/* SQLITE_TRANSIENT is a macro with a cast, which Swift does not import. */
static inline int onward_sqlite3_bind_text(sqlite3_stmt *statement, int index, const void *text, int count) {
    /* A null pointer would bind NULL, and an empty string may have no address. */
    return sqlite3_bind_text(statement, index, count == 0 ? "" : text, count, SQLITE_TRANSIENT);
}

static inline int onward_sqlite3_bind_blob(sqlite3_stmt *statement, int index, const void *bytes, int count) {
    return count == 0 ? sqlite3_bind_zeroblob(statement, index, 0)
                      : sqlite3_bind_blob(statement, index, bytes, count, SQLITE_TRANSIENT);
}

/* Sets the global variable, which Swift cannot access safely (sqlite.org/c3ref/temp_directory.html); NULL for the
   default. */
static inline void onward_sqlite3_set_temporary_directory(const char *path) {
    sqlite3_free(sqlite3_temp_directory);
    sqlite3_temp_directory = path ? sqlite3_mprintf("%s", path) : 0;
}

#endif
