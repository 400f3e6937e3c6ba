// A server that does only the necessary work for small uploads over HTTP: it uses libmicrohttpd with a thread for each
// connection, as Onward does, and makes no decisions of the protocol. The difference between this program and floor.c is the
// cost of HTTP. The difference between Onward and this program is the cost of everything else.
//
//   small_upload_floor PORT DIRECTORY relaxed|durable
//
// For each request it creates a file and writes the content. The first thread that has written its file publishes all files
// that are written by then: it synchronizes their contents with one syncfs, renames them, synchronizes the directory once, and
// commits one row for each in one transaction of SQLite. `relaxed` synchronizes nothing. Only load.c may connect: nothing is
// checked.
#define _GNU_SOURCE
#include <fcntl.h>
#include <microhttpd.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct upload {
    char name[64];
    int file;
    long size;
    int is_published;
    struct upload *next;
};

static int uploads, files, is_durable;
static sqlite3 *database;
static sqlite3_stmt *insert;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
// The uploads that wait, and whether a thread publishes others; both belong to the mutex.
static struct upload *waiting;
static int is_busy;

static void check(int is_good, const char *what) {
    if (!is_good) perror(what), exit(1);
}

static void execute(const char *sql) {
    if (sqlite3_exec(database, sql, NULL, NULL, NULL) == SQLITE_OK) return;
    fprintf(stderr, "small_upload_floor: %s: %s\n", sql, sqlite3_errmsg(database));
    exit(1);
}

static void publish(struct upload *first) {
    if (is_durable) check(syncfs(uploads) == 0, "syncfs");
    for (struct upload *one = first; one; one = one->next) {
        check(renameat2(uploads, one->name, files, one->name, RENAME_NOREPLACE) == 0, "renameat2");
        close(one->file);
    }
    if (is_durable) check(fsync(files) == 0, "fsync");
    execute("BEGIN IMMEDIATE");
    for (struct upload *one = first; one; one = one->next) {
        sqlite3_bind_text(insert, 1, one->name, -1, SQLITE_STATIC);
        sqlite3_bind_int64(insert, 2, one->size);
        check(sqlite3_step(insert) == SQLITE_DONE, "sqlite3_step");
        sqlite3_reset(insert);
    }
    execute("COMMIT");
}

/// Returns when the upload is published, by this thread or by another.
static void finish(struct upload *own) {
    pthread_mutex_lock(&mutex);
    own->next = waiting;
    waiting = own;
    while (is_busy && !own->is_published) pthread_cond_wait(&changed, &mutex);
    if (!own->is_published) {
        struct upload *batch = waiting;
        waiting = NULL;
        is_busy = 1;
        pthread_mutex_unlock(&mutex);
        publish(batch);
        pthread_mutex_lock(&mutex);
        is_busy = 0;
        for (struct upload *one = batch, *next; one; one = next) {
            next = one->next;
            one->is_published = 1;
        }
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&mutex);
}

static enum MHD_Result handle(void *context, struct MHD_Connection *connection, const char *url, const char *method,
                              const char *version, const char *data, size_t *size, void **request) {
    (void)context, (void)method, (void)version;
    struct upload *upload = *request;
    if (!upload) {
        *request = upload = calloc(1, sizeof *upload);
        snprintf(upload->name, sizeof upload->name, "%s", strrchr(url, '/') + 1);
        upload->file = openat(uploads, upload->name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        check(upload->file >= 0, "openat");
        return MHD_YES;
    }
    if (*size) {
        check(pwrite(upload->file, data, *size, upload->size) == (ssize_t)*size, "pwrite");
        upload->size += *size;
        *size = 0;
        return MHD_YES;
    }
    finish(upload);
    free(upload);
    *request = NULL;
    struct MHD_Response *response = MHD_create_response_from_buffer(0, "", MHD_RESPMEM_PERSISTENT);
    // The fields of a final response.
    MHD_add_response_header(response, "ETag", "\"0123456789abcdef\"");
    MHD_add_response_header(response, "Location", url);
    MHD_add_response_header(response, "Upload-Complete", "?1");
    MHD_add_response_header(response, "Upload-Offset", "4096");
    enum MHD_Result result = MHD_queue_response(connection, MHD_HTTP_CREATED, response);
    MHD_destroy_response(response);
    return result;
}

int main(int count, char **arguments) {
    if (count != 4 || chdir(arguments[2])) {
        fprintf(stderr, "usage: small_upload_floor PORT DIRECTORY relaxed|durable\n");
        return 2;
    }
    is_durable = strcmp(arguments[3], "durable") == 0;
    check(mkdir("uploads", 0700) == 0 && mkdir("files", 0700) == 0, "mkdir");
    uploads = open("uploads", O_RDONLY | O_DIRECTORY), files = open("files", O_RDONLY | O_DIRECTORY);
    check(uploads >= 0 && files >= 0 && sqlite3_open("rows.sqlite", &database) == SQLITE_OK, "open");
    execute("PRAGMA journal_mode = WAL");
    execute(is_durable ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL");
    execute("CREATE TABLE uploads (id BLOB NOT NULL UNIQUE, name TEXT NOT NULL, size INTEGER NOT NULL)");
    sqlite3_prepare_v2(database, "INSERT INTO uploads VALUES (randomblob(16), ?, ?)", -1, &insert, NULL);
    unsigned flags = MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL_INTERNAL_THREAD | MHD_USE_ITC;
    if (!MHD_start_daemon(flags, atoi(arguments[1]), NULL, NULL, handle, NULL, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                          (size_t)128 << 10, MHD_OPTION_END))
        return 1;
    for (;;) pause();
}
