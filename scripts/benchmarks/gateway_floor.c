// A server that only forwards GET requests, with libmicrohttpd, a thread for each connection, and a handle of libcurl for each
// thread, whose connection to the origin stays open. No gateway that uses these libraries in this way can be faster.
//
//   gateway_floor PORT ORIGIN
//
// ORIGIN is a URL without a path, such as http://127.0.0.1:3000. The origin gets the target and the fields of the request, and
// the client the status, the fields and the content of the response. Only load.c may connect: nothing is checked, and no
// limit of time or size applies.
#include <curl/curl.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static const char *origin;

// What one thread needs for all requests of its connection.
static _Thread_local struct exchange {
    CURL *easy;
    struct curl_slist *fields;
    struct MHD_Response *response;
    char *content;
    size_t size, capacity;
    struct {
        char *name, *value;
    } lines[64];
    int count;
} exchange;

static size_t receive_field(char *line, size_t size, size_t count, void *context) {
    (void)size, (void)context;
    char *colon = memchr(line, ':', count);
    if (!colon || exchange.count == 64) return count;
    size_t name = colon - line, value = count - name - 1;
    char *start = colon + 1;
    while (value > 0 && *start == ' ') start++, value--;
    while (value > 0 && (start[value - 1] == '\r' || start[value - 1] == '\n')) value--;
    exchange.lines[exchange.count].name = strndup(line, name);
    exchange.lines[exchange.count++].value = strndup(start, value);
    return count;
}

static size_t receive_content(char *bytes, size_t size, size_t count, void *context) {
    (void)size, (void)context;
    if (exchange.size + count > exchange.capacity) {
        exchange.capacity = 2 * (exchange.size + count);
        exchange.content = realloc(exchange.content, exchange.capacity);
    }
    memcpy(exchange.content + exchange.size, bytes, count);
    exchange.size += count;
    return count;
}

static enum MHD_Result add_field(void *context, enum MHD_ValueKind kind, const char *name, const char *value) {
    (void)context, (void)kind;
    if (strcasecmp(name, "Host") && strcasecmp(name, "Connection")) {
        char line[1024];
        snprintf(line, sizeof line, "%s: %s", name, value);
        exchange.fields = curl_slist_append(exchange.fields, line);
    }
    return MHD_YES;
}

static void prepare(void) {
    exchange.easy = curl_easy_init();
    curl_easy_setopt(exchange.easy, CURLOPT_URL, origin);
    curl_easy_setopt(exchange.easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(exchange.easy, CURLOPT_PROXY, "");
    curl_easy_setopt(exchange.easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(exchange.easy, CURLOPT_HEADERFUNCTION, receive_field);
    curl_easy_setopt(exchange.easy, CURLOPT_WRITEFUNCTION, receive_content);
}

static enum MHD_Result answer(void *context, struct MHD_Connection *connection, const char *url, const char *method,
                              const char *version, const char *data, size_t *size, void **request) {
    (void)context, (void)method, (void)version, (void)data, (void)size;
    // A response of the first call would close the connection.
    if (!*request) {
        *request = &origin;
        return MHD_YES;
    }
    *request = NULL;
    if (!exchange.easy) prepare();
    MHD_get_connection_values(connection, MHD_HEADER_KIND, add_field, NULL);
    curl_easy_setopt(exchange.easy, CURLOPT_REQUEST_TARGET, url);
    curl_easy_setopt(exchange.easy, CURLOPT_HTTPHEADER, exchange.fields);
    exchange.size = 0, exchange.count = 0;
    CURLcode code = curl_easy_perform(exchange.easy);
    curl_slist_free_all(exchange.fields);
    exchange.fields = NULL;
    long status = 502;
    if (code == CURLE_OK) curl_easy_getinfo(exchange.easy, CURLINFO_RESPONSE_CODE, &status);
    struct MHD_Response *response = MHD_create_response_from_buffer(
        code == CURLE_OK ? exchange.size : 0, exchange.content, MHD_RESPMEM_MUST_COPY);
    for (int i = 0; i < exchange.count; i++) {
        const char *name = exchange.lines[i].name;
        if (strcasecmp(name, "Content-Length") && strcasecmp(name, "Transfer-Encoding") && strcasecmp(name, "Connection"))
            MHD_add_response_header(response, name, exchange.lines[i].value);
        free(exchange.lines[i].name), free(exchange.lines[i].value);
    }
    enum MHD_Result result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

int main(int count, char **arguments) {
    if (count != 3) {
        fprintf(stderr, "usage: gateway_floor PORT ORIGIN\n");
        return 2;
    }
    origin = arguments[2];
    curl_global_init(CURL_GLOBAL_DEFAULT);
    unsigned flags = MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL_INTERNAL_THREAD | MHD_USE_ITC;
    if (!MHD_start_daemon(flags, atoi(arguments[1]), NULL, NULL, answer, NULL, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                          (size_t)128 << 10, MHD_OPTION_END))
        return 1;
    for (;;) pause();
}
