// A server that does only the necessary work for small uploads over HTTP: it uses libmicrohttpd with a thread for each
// connection, as Onward does, and makes no decisions of the protocol. The difference between this program and floor.c is the
// cost of HTTP. The difference between Onward and this program is the cost of everything else.
//
//   small_upload_floor PORT DIRECTORY relaxed|durable [complete]
//
// For each request it creates a file and writes the content. The first thread that has written its file publishes all files
// that are written by then: it synchronizes their contents with one syncfs, renames them, synchronizes the directory once, and
// commits one row for each in one transaction of SQLite. `relaxed` synchronizes nothing. Only load.c may connect: nothing is
// checked.
//
// With `complete`, the program also does the work for each upload that the protocol and the promises of Onward require: it
// looks for a file of the same name at the start and before the publication, reads the free space, announces the URL of the
// upload with 104, gives the file a time of its own, and commits the rows of Onward's catalog: that of the upload, with the
// final response, and that of the file.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <time.h>
#include <unistd.h>

struct upload {
    char name[64], url[64], tag[128], modified[40];
    unsigned char id[16];
    int file;
    long size;
    int is_published;
    struct upload *next;
};

static int uploads, files, is_durable, is_complete;
static sqlite3 *database;
static sqlite3_stmt *insert, *insert_file;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
// The uploads that wait, and whether a thread publishes others; both belong to the mutex.
static struct upload *waiting;
static int is_busy;

static const char *const small_tables =
    "CREATE TABLE uploads (id BLOB NOT NULL UNIQUE, name TEXT NOT NULL, size INTEGER NOT NULL)";
static const char *const all_tables =
    "CREATE TABLE uploads (number INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, name TEXT NOT NULL, size INTEGER NOT NULL,"
    " created INTEGER NOT NULL, expires INTEGER NOT NULL, response BLOB NOT NULL);"
    "CREATE INDEX by_expiry ON uploads (expires);"
    "CREATE TABLE files (name TEXT NOT NULL PRIMARY KEY, size INTEGER NOT NULL, identity TEXT NOT NULL) WITHOUT ROWID";

static void check(int is_good, const char *what) {
    if (!is_good) perror(what), exit(1);
}

static void execute(const char *sql) {
    if (sqlite3_exec(database, sql, NULL, NULL, NULL) == SQLITE_OK) return;
    fprintf(stderr, "small_upload_floor: %s: %s\n", sql, sqlite3_errmsg(database));
    exit(1);
}

static sqlite3_stmt *prepare(const char *sql) {
    sqlite3_stmt *statement = NULL;
    check(sqlite3_prepare_v2(database, sql, -1, &statement, NULL) == SQLITE_OK, sql);
    return statement;
}

static void step(sqlite3_stmt *statement) {
    check(sqlite3_step(statement) == SQLITE_DONE, "sqlite3_step");
    sqlite3_reset(statement);
}

// MARK: The work of `complete`

static void require_new_name(const char *name) {
    check(openat(files, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) < 0 && errno == ENOENT, "the name is in use");
}

static void begin_completely(struct upload *upload, struct MHD_Connection *connection) {
    require_new_name(upload->name);
    struct statfs space;
    check(fstatfs(uploads, &space) == 0 && space.f_bavail > 0, "fstatfs");
    check(getentropy(upload->id, sizeof upload->id) == 0, "getentropy");
    char *end = upload->url + sprintf(upload->url, "/uploads/");
    for (size_t index = 0; index < sizeof upload->id; index++) end += sprintf(end, "%02x", upload->id[index]);
    char head[256];
    int size = snprintf(head, sizeof head, "HTTP/1.1 104 Upload Resumption Supported\r\nUpload-Draft-Interop-Version: 8\r\n"
                        "Location: %s\r\nUpload-Limit: max-age=604800\r\n\r\n", upload->url);
    int socket = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    check(send(socket, head, size, MSG_NOSIGNAL | MSG_DONTWAIT | MSG_MORE) == size, "send");
}

/// Gives the file a time that no other file has, and creates its validators.
static void describe(struct upload *upload) {
    static long last;
    require_new_name(upload->name);
    struct timespec now, times[2] = {{.tv_nsec = UTIME_OMIT}};
    clock_gettime(CLOCK_REALTIME, &now);
    long unique = now.tv_sec * 1000000000 + now.tv_nsec;
    pthread_mutex_lock(&mutex);
    last = unique > last ? unique : last + 1;
    times[1] = (struct timespec){last / 1000000000, last % 1000000000};
    pthread_mutex_unlock(&mutex);
    check(futimens(upload->file, times) == 0, "futimens");
}

static void insert_rows(struct upload *upload) {
    struct stat status;
    check(fstat(upload->file, &status) == 0 && status.st_size == upload->size, "fstat");
    snprintf(upload->tag, sizeof upload->tag, "\"%lx-%lx-%lx-%lx-%lx-%lx\"", status.st_ino, status.st_size,
             status.st_mtim.tv_sec, status.st_mtim.tv_nsec, status.st_ctim.tv_sec, status.st_ctim.tv_nsec);
    struct tm parts;
    strftime(upload->modified, sizeof upload->modified, "%a, %d %b %Y %H:%M:%S GMT",
             gmtime_r(&status.st_mtim.tv_sec, &parts));
    char response[512], identity[48];
    int size = snprintf(response, sizeof response, "201 Location: /files/%s ETag: %s Last-Modified: %s", upload->name,
                        upload->tag, upload->modified);
    snprintf(identity, sizeof identity, "%ld.%ld", status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
    sqlite3_bind_blob(insert, 1, upload->id, sizeof upload->id, SQLITE_STATIC);
    sqlite3_bind_text(insert, 2, upload->name, -1, SQLITE_STATIC);
    sqlite3_bind_int64(insert, 3, upload->size);
    sqlite3_bind_int64(insert, 4, status.st_mtim.tv_sec);
    sqlite3_bind_int64(insert, 5, status.st_mtim.tv_sec + 86400);
    sqlite3_bind_blob(insert, 6, response, size, SQLITE_STATIC);
    step(insert);
    sqlite3_bind_text(insert_file, 1, upload->name, -1, SQLITE_STATIC);
    sqlite3_bind_int64(insert_file, 2, upload->size);
    sqlite3_bind_text(insert_file, 3, identity, -1, SQLITE_STATIC);
    step(insert_file);
}

// MARK: The work of every upload

static void insert_row(struct upload *upload) {
    if (is_complete) return insert_rows(upload);
    sqlite3_bind_text(insert, 1, upload->name, -1, SQLITE_STATIC);
    sqlite3_bind_int64(insert, 2, upload->size);
    step(insert);
}

static void publish(struct upload *first) {
    if (is_durable) check(syncfs(uploads) == 0, "syncfs");
    for (struct upload *one = first; one; one = one->next)
        check(renameat2(uploads, one->name, files, one->name, RENAME_NOREPLACE) == 0, "renameat2");
    if (is_durable) check(fsync(files) == 0, "fsync");
    execute("BEGIN IMMEDIATE");
    for (struct upload *one = first; one; one = one->next) {
        insert_row(one);
        close(one->file);
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

static struct MHD_Response *response_to(const struct upload *upload, const char *url) {
    struct MHD_Response *response = MHD_create_response_from_buffer(0, "", MHD_RESPMEM_PERSISTENT);
    // The fields of a final response.
    MHD_add_response_header(response, "ETag", is_complete ? upload->tag : "\"0123456789abcdef\"");
    MHD_add_response_header(response, "Location", is_complete ? upload->url : url);
    MHD_add_response_header(response, "Upload-Complete", "?1");
    MHD_add_response_header(response, "Upload-Offset", "4096");
    if (!is_complete) return response;
    MHD_add_response_header(response, "Content-Location", url);
    MHD_add_response_header(response, "Last-Modified", upload->modified);
    MHD_add_response_header(response, "Date", upload->modified);
    MHD_add_response_header(response, "Upload-Draft-Interop-Version", "8");
    MHD_add_response_header(response, "Upload-Limit", "max-age=604800");
    return response;
}

static enum MHD_Result handle(void *context, struct MHD_Connection *connection, const char *url, const char *method,
                              const char *version, const char *data, size_t *size, void **request) {
    (void)context, (void)method, (void)version;
    struct upload *upload = *request;
    if (!upload) {
        *request = upload = calloc(1, sizeof *upload);
        snprintf(upload->name, sizeof upload->name, "%s", strrchr(url, '/') + 1);
        if (is_complete) begin_completely(upload, connection);
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
    if (is_complete) describe(upload);
    finish(upload);
    struct MHD_Response *response = response_to(upload, url);
    free(upload);
    *request = NULL;
    enum MHD_Result result = MHD_queue_response(connection, MHD_HTTP_CREATED, response);
    MHD_destroy_response(response);
    return result;
}

int main(int count, char **arguments) {
    is_complete = count == 5 && strcmp(arguments[4], "complete") == 0;
    if (count < 4 || count > 4 + is_complete || chdir(arguments[2])) {
        fprintf(stderr, "usage: small_upload_floor PORT DIRECTORY relaxed|durable [complete]\n");
        return 2;
    }
    is_durable = strcmp(arguments[3], "durable") == 0;
    check(mkdir("uploads", 0700) == 0 && mkdir("files", 0700) == 0, "mkdir");
    uploads = open("uploads", O_RDONLY | O_DIRECTORY), files = open("files", O_RDONLY | O_DIRECTORY);
    check(uploads >= 0 && files >= 0 && sqlite3_open("rows.sqlite", &database) == SQLITE_OK, "open");
    execute("PRAGMA journal_mode = WAL");
    execute(is_durable ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL");
    execute(is_complete ? all_tables : small_tables);
    insert = prepare(is_complete ? "INSERT INTO uploads (id, name, size, created, expires, response) VALUES (?, ?, ?, ?, ?, ?)"
                                 : "INSERT INTO uploads VALUES (randomblob(16), ?, ?)");
    if (is_complete) insert_file = prepare("INSERT INTO files VALUES (?, ?, ?)");
    unsigned flags = MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL_INTERNAL_THREAD | MHD_USE_ITC;
    if (!MHD_start_daemon(flags, atoi(arguments[1]), NULL, NULL, handle, NULL, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                          (size_t)32 << 10, MHD_OPTION_END))
        return 1;
    for (;;) pause();
}
