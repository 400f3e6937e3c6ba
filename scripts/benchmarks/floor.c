// Does only the necessary work for N small uploads in batches: without HTTP, and without decisions of the protocol.
//
//   floor DIRECTORY N BYTES BATCH relaxed|fdatasync|syncfs
//
// For each batch it creates and writes the files, synchronizes their contents, renames all of them, synchronizes the
// directory once, and commits one row for each file in one transaction of SQLite. `fdatasync` synchronizes each file, 16 at
// the same time, `syncfs` the entire file system once for a batch; `relaxed` synchronizes nothing. The program prints one line of JSON.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void check(int is_good, const char *what) {
    if (!is_good) fprintf(stderr, "floor: %s: %s\n", what, strerror(errno)), exit(1);
}

static sqlite3 *database;

static void execute(const char *sql) {
    if (sqlite3_exec(database, sql, NULL, NULL, NULL) == SQLITE_OK) return;
    fprintf(stderr, "floor: %s: %s\n", sql, sqlite3_errmsg(database));
    exit(1);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

int main(int count, char **arguments) {
    if (count != 6) fprintf(stderr, "usage: floor DIRECTORY N BYTES BATCH relaxed|fdatasync|syncfs\n"), exit(64);
    check(mkdir(arguments[1], 0700) == 0 && chdir(arguments[1]) == 0, arguments[1]);
    long total = atol(arguments[2]), size = atol(arguments[3]), batch = atol(arguments[4]);
    int syncs_files = strcmp(arguments[5], "fdatasync") == 0, syncs_system = strcmp(arguments[5], "syncfs") == 0;
    int is_durable = syncs_files || syncs_system;
    check(total > 0 && batch > 0 && (is_durable || strcmp(arguments[5], "relaxed") == 0), "arguments");
    check(mkdir("uploads", 0700) == 0 && mkdir("files", 0700) == 0, "mkdir");
    int uploads = open("uploads", O_RDONLY | O_DIRECTORY), files = open("files", O_RDONLY | O_DIRECTORY);
    char *content = malloc(size);
    int *open_files = malloc(batch * sizeof *open_files);
    check(uploads >= 0 && files >= 0 && content && open_files, "open");
    memset(content, 'x', size);

    if (sqlite3_open("rows.sqlite", &database)) check(0, "sqlite3_open");
    execute("PRAGMA journal_mode = WAL");
    execute(is_durable ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL");
    execute("CREATE TABLE uploads (id BLOB NOT NULL UNIQUE, name TEXT NOT NULL, size INTEGER NOT NULL)");
    sqlite3_stmt *insert;
    sqlite3_prepare_v2(database, "INSERT INTO uploads VALUES (randomblob(16), ?, ?)", -1, &insert, NULL);

    double began = now();
    for (long first = 0; first < total; first += batch) {
        long members = total - first < batch ? total - first : batch;
        char name[32];
        for (long i = 0; i < members; i++) {
            snprintf(name, sizeof name, "%ld", first + i);
            open_files[i] = openat(uploads, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
            check(open_files[i] >= 0, "openat");
            check(pwrite(open_files[i], content, size, 0) == size, "pwrite");
        }
        if (syncs_system) check(syncfs(uploads) == 0, "syncfs");
        if (syncs_files) {
#pragma omp parallel for schedule(dynamic, 1) num_threads(members < 16 ? members : 16)
            for (long i = 0; i < members; i++) check(fdatasync(open_files[i]) == 0, "fdatasync");
        }
        for (long i = 0; i < members; i++) {
            snprintf(name, sizeof name, "%ld", first + i);
            check(renameat2(uploads, name, files, name, RENAME_NOREPLACE) == 0, "renameat2");
            close(open_files[i]);
        }
        if (is_durable) check(fsync(files) == 0, "fsync");
        execute("BEGIN IMMEDIATE");
        for (long i = 0; i < members; i++) {
            sqlite3_bind_int64(insert, 1, first + i);
            sqlite3_bind_int64(insert, 2, size);
            if (sqlite3_step(insert) != SQLITE_DONE) check(0, sqlite3_errmsg(database));
            sqlite3_reset(insert);
        }
        execute("COMMIT");
    }
    double seconds = now() - began;
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    double cpu = usage.ru_utime.tv_sec + usage.ru_stime.tv_sec + (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
    printf("{\"requests\": %ld, \"seconds\": %.6f, \"rate\": %.2f, \"cpu\": %.4f}\n", total, seconds, total / seconds, cpu);
    sqlite3_finalize(insert);
    sqlite3_close(database);
    return 0;
}
