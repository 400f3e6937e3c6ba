// A server that only sends files, with libmicrohttpd and a thread for each connection. No server that uses this library can
// be faster.
//
//   download_floor PORT DIRECTORY [complete]
//
// The path of the URL is that of the file below DIRECTORY. With `complete`, the program also does the work for each download
// that HTTP and the promises of Onward require: it opens the file below DIRECTORY/files without following links, evaluates
// the conditional fields, creates validators that change with the file, sends all fields of Onward's response, and notes the
// state of the connection and the number of responses. It parses nothing itself. Only load.c may connect: nothing else is
// checked.
#include <fcntl.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int directory, is_complete;
static long responses;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void format_time(char *text, size_t size, time_t seconds) {
    struct tm parts;
    strftime(text, size, "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&seconds, &parts));
}

/// The timeouts of a connection depend on its state, and a thread checks them for all connections.
static void note_state(long *change) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    pthread_mutex_lock(&mutex);
    *change += 1;
    pthread_mutex_unlock(&mutex);
}

/// Returns the number of bytes that the client has received before this response, for the log of an interrupted one.
static long acknowledged_bytes(struct MHD_Connection *connection) {
    char info[256];
    socklen_t size = sizeof info;
    int socket = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    return getsockopt(socket, IPPROTO_TCP, TCP_INFO, info, &size) ? -1 : *(long *)(info + 120);
}

static int has_condition(struct MHD_Connection *connection) {
    static const char *const names[] = {"If-Match",  "If-None-Match", "If-Modified-Since", "If-Unmodified-Since",
                                        "If-Range", "Range",         "Want-Repr-Digest",  "Authorization",
                                        "Cookie",    "Expect",        "Forwarded",         "Via"};
    for (size_t index = 0; index < sizeof names / sizeof *names; index++)
        if (MHD_lookup_connection_value(connection, MHD_HEADER_KIND, names[index])) return 1;
    return 0;
}

static void add_all_fields(struct MHD_Response *response, const struct stat *status) {
    char tag[128], modified[40], date[40];
    snprintf(tag, sizeof tag, "\"%lx-%lx-%lx-%lx-%lx-%lx\"", status->st_ino, status->st_size, status->st_mtim.tv_sec,
             status->st_mtim.tv_nsec, status->st_ctim.tv_sec, status->st_ctim.tv_nsec);
    format_time(modified, sizeof modified, status->st_mtim.tv_sec);
    format_time(date, sizeof date, time(NULL));
    MHD_add_response_header(response, "ETag", tag);
    MHD_add_response_header(response, "Last-Modified", modified);
    MHD_add_response_header(response, "Accept-Ranges", "bytes");
    MHD_add_response_header(response, "Content-Type", "application/octet-stream");
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(response, "Content-Security-Policy",
                            "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src 'self'; media-src 'self'");
    MHD_add_response_header(response, "Cross-Origin-Resource-Policy", "same-origin");
    MHD_add_response_header(response, "Cache-Control", "no-cache");
    MHD_add_response_header(response, "Date", date);
}

static int open_file(const char *url) {
    if (!is_complete) return openat(directory, url + 1, O_RDONLY | O_CLOEXEC);
    const char *name = url + strlen("/files/");
    if (strncmp(url, "/files/", strlen("/files/")) || strchr(name, '/') || *name == '.') return -1;
    return openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
}

static enum MHD_Result answer(void *context, struct MHD_Connection *connection, const char *url, const char *method,
                              const char *version, const char *data, size_t *size, void **request) {
    (void)context, (void)method, (void)version, (void)data, (void)size;
    static long receives, responds, waits;
    // A response of the first call would close the connection.
    if (!*request) {
        *request = &directory;
        if (is_complete) note_state(&receives);
        return MHD_YES;
    }
    *request = NULL;
    if (is_complete && has_condition(connection)) return MHD_NO;
    struct stat status;
    int file = open_file(url);
    if (file < 0 || fstat(file, &status) || !S_ISREG(status.st_mode)) return MHD_NO;
    struct MHD_Response *response = MHD_create_response_from_fd64(status.st_size, file);
    if (!response) return MHD_NO;
    if (is_complete) {
        add_all_fields(response, &status);
        if (acknowledged_bytes(connection) < 0) return MHD_NO;
        note_state(&responds);
    } else {
        // The fields that are always sent with a file.
        MHD_add_response_header(response, "ETag", "\"0123456789abcdef\"");
        MHD_add_response_header(response, "Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT");
        MHD_add_response_header(response, "Content-Type", "application/octet-stream");
    }
    enum MHD_Result result = MHD_queue_response(connection, MHD_HTTP_OK, response);
    MHD_destroy_response(response);
    if (is_complete) note_state(&responses), note_state(&waits);
    return result;
}

int main(int count, char **arguments) {
    is_complete = count == 4 && strcmp(arguments[3], "complete") == 0;
    if (count < 3 || count > 3 + is_complete || chdir(arguments[2]) ||
        (directory = open(is_complete ? "files" : ".", O_RDONLY | O_DIRECTORY)) < 0) {
        fprintf(stderr, "usage: download_floor PORT DIRECTORY [complete]\n");
        return 2;
    }
    unsigned flags = MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL_INTERNAL_THREAD | MHD_USE_ITC;
    if (!MHD_start_daemon(flags, atoi(arguments[1]), NULL, NULL, answer, NULL, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                          (size_t)32 << 10, MHD_OPTION_END))
        return 1;
    for (;;) pause();
}
