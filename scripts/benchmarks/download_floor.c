// A server that only sends files, with libmicrohttpd and a thread for each connection. No server that uses this library can
// be faster.
//
//   download_floor PORT DIRECTORY
//
// The path of the URL is that of the file below DIRECTORY. Only load.c may connect: nothing is checked.
#include <fcntl.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int directory;

static enum MHD_Result answer(void *context, struct MHD_Connection *connection, const char *url, const char *method,
                              const char *version, const char *data, size_t *size, void **request) {
    (void)context, (void)method, (void)version, (void)data, (void)size;
    // A response of the first call would close the connection.
    if (!*request) {
        *request = &directory;
        return MHD_YES;
    }
    *request = NULL;
    struct stat status;
    int file = openat(directory, url + 1, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &status)) return MHD_NO;
    struct MHD_Response *response = MHD_create_response_from_fd64(status.st_size, file);
    if (!response) return MHD_NO;
    // The fields that are always sent with a file.
    MHD_add_response_header(response, "ETag", "\"0123456789abcdef\"");
    MHD_add_response_header(response, "Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT");
    MHD_add_response_header(response, "Content-Type", "application/octet-stream");
    enum MHD_Result result = MHD_queue_response(connection, MHD_HTTP_OK, response);
    MHD_destroy_response(response);
    return result;
}

int main(int count, char **arguments) {
    if (count != 3 || (directory = open(arguments[2], O_RDONLY | O_DIRECTORY)) < 0) {
        fprintf(stderr, "usage: download_floor PORT DIRECTORY\n");
        return 2;
    }
    unsigned flags = MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL_INTERNAL_THREAD | MHD_USE_ITC;
    if (!MHD_start_daemon(flags, atoi(arguments[1]), NULL, NULL, answer, NULL, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                          (size_t)128 << 10, MHD_OPTION_END))
        return 1;
    for (;;) pause();
}
