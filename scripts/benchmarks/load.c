// A load generator for HTTP/1.1: one thread, epoll, connections that are kept alive, one request after the other on each.
//
//   load [OPTIONS] KIND HOST:PORT TARGET
//
// KIND is create (a resumable upload that one request completes), begin (one that it does not complete), put (a plain
// upload), get or head. A `%` in TARGET is replaced by the number of the request, which begins with that of -b.
//
//   -c N  connections (1)               -b N     number of the first request (0)
//   -n N  requests (1)                  -m N     numbers repeat after N requests (never)
//   -s N  bytes of each content (0)     -f FILE  the content of uploads; without it they have arbitrary bytes
//   -H F  another field, repeatable     -v N     interop version of the draft (8)
//   -p US start at most one request every US microseconds (no limit); SIGTERM ends the run early without an error
//   -M M  method of uploads (PUT)       -l N     seconds after which the run has failed (120)
//   -a F  append the URL of each upload to this file when the 104 announces it, and again when the upload is complete.
//         The content is sent, and the next request begins, when the line is on stable storage. One synchronization can
//         make several lines durable.
//
// If a final response is not 2xx, a length is wrong, or a connection closes during a response, the program ends with status 1
// and a message. At the end it prints one line of JSON: requests, seconds, rate, latencies in milliseconds, its own CPU time
// in seconds, the number of each status, and of interim responses.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { HEAD_SIZE = 8192, INLINE_CONTENT = 256 << 10 };

struct connection {
    int socket;
    bool is_busy, waits_to_send;
    // With -a: whether the content waits for the 104, and whether the last line is not yet on stable storage.
    bool is_gated, waits_for_list;
    double began;
    char request[HEAD_SIZE];
    long head_size, head_sent, content_sent;
    char head[HEAD_SIZE];  // the head of the response
    long head_received;
    long content_left;  // the missing bytes of the response's content; -1 while its head is incomplete
};

static struct {
    const char *kind, *target, *method, *file, *address, *list;
    int connections, version;
    long requests, size, first, modulus, pace, limit;
    char fields[HEAD_SIZE / 2];
} option = {.connections = 1, .requests = 1, .version = 8, .method = "PUT", .limit = 120};

static bool is_upload, is_resumable, is_head;
static struct sockaddr_in server;
static int poller, content_file = -1, list = -1;
static char lines[1 << 16];  // the lines that are not in the list yet
static long lines_size;
static char *content;
static long started, finished, interim, statuses[600];
static float *latencies;
static volatile sig_atomic_t should_stop;

static void fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "load: %s %s%s: ", option.kind, option.address, option.target);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, " (after %ld of %ld requests)\n", finished, option.requests);
    exit(1);
}

static void stop(int signal) { (void)signal, should_stop = 1; }

static void expire(int signal) {
    (void)signal;
    static const char text[] = "load: the time limit of -l is over\n";
    if (write(2, text, sizeof text - 1)) {}
    _exit(1);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static void watch(struct connection *c, int operation, bool waits_to_send) {
    struct epoll_event event = {.events = EPOLLIN | (waits_to_send ? EPOLLOUT : 0), .data.ptr = c};
    if (epoll_ctl(poller, operation, c->socket, &event)) fail("epoll_ctl: %s", strerror(errno));
    c->waits_to_send = waits_to_send;
}

static void open_connection(struct connection *c) {
    // Loopback: connect() does not wait.
    c->socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->socket < 0 || connect(c->socket, (struct sockaddr *)&server, sizeof server))
        fail("connect: %s", strerror(errno));
    int on = 1;
    setsockopt(c->socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    fcntl(c->socket, F_SETFL, O_NONBLOCK);
    watch(c, EPOLL_CTL_ADD, false);
}

// Continues to send the head and the content of the request.
static void send_more(struct connection *c) {
    for (;;) {
        ssize_t count;
        long head_left = c->head_size - c->head_sent, left = is_upload && !c->is_gated ? option.size - c->content_sent : 0;
        if (head_left + left == 0) break;
        if (head_left > 0 && content_file < 0) {
            struct iovec parts[] = {{c->request + c->head_sent, head_left}, {content, left}};
            struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
            count = sendmsg(c->socket, &message, MSG_NOSIGNAL);
        } else if (head_left > 0) {
            count = send(c->socket, c->request + c->head_sent, head_left, MSG_NOSIGNAL | MSG_MORE);
        } else if (content_file < 0) {
            count = send(c->socket, content + c->content_sent, left, MSG_NOSIGNAL);
        } else {
            off_t offset = c->content_sent;
            count = sendfile(c->socket, content_file, &offset, left);
        }
        if (count < 0 && errno == EAGAIN) {
            if (!c->waits_to_send) watch(c, EPOLL_CTL_MOD, true);
            return;
        }
        if (count <= 0) fail("sending: %s; response so far: %.*s", strerror(errno), (int)c->head_received, c->head);
        long head_part = count < head_left ? count : head_left;
        c->head_sent += head_part;
        c->content_sent += count - head_part;
    }
    if (c->waits_to_send) watch(c, EPOLL_CTL_MOD, false);
}

static void begin_request(struct connection *c) {
    long number = option.first + (option.modulus ? started % option.modulus : started);
    started++;
    const char *mark = strchr(option.target, '%');
    char target[1024];
    if (mark)
        snprintf(target, sizeof target, "%.*s%ld%s", (int)(mark - option.target), option.target, number, mark + 1);
    else
        snprintf(target, sizeof target, "%s", option.target);
    int size = snprintf(
        c->request, sizeof c->request, "%s %s HTTP/1.1\r\nHost: %s\r\n%s",
        is_upload ? option.method : is_head ? "HEAD" : "GET", target, option.address, option.fields);
    if (is_upload)
        size += snprintf(c->request + size, sizeof c->request - size, "Content-Length: %ld\r\n", option.size);
    if (is_resumable)
        size += snprintf(
            c->request + size, sizeof c->request - size, "Upload-Draft-Interop-Version: %d\r\nUpload-Complete: ?%d\r\n",
            option.version, strcmp(option.kind, "create") == 0);
    size += snprintf(c->request + size, sizeof c->request - size, "\r\n");
    if (size >= (int)sizeof c->request) fail("the head of the request is too long");
    c->head_size = size;
    c->head_sent = c->content_sent = c->head_received = 0;
    c->content_left = -1;
    c->is_busy = true;
    c->is_gated = list >= 0;
    c->began = now();
    send_more(c);
}

// Adds a line with the URL in the head of a response to the list.
static void note(struct connection *c, const char *state) {
    char *field = strcasestr(c->head, "\r\nLocation:");
    if (!field) fail("a response without Location: %.2000s", c->head);
    int length = strcspn(field + 11, "\r");
    lines_size += snprintf(lines + lines_size, sizeof lines - lines_size, "%s%.*s\n", state, length, field + 11);
    if (lines_size >= (long)sizeof lines) fail("too many lines for the list");
    c->waits_for_list = true;
}

static void end_request(struct connection *c) {
    latencies[finished++] = now() - c->began;
    c->is_busy = false;
}

// Makes the lines durable, and continues the requests that wait for them.
static void save_lines(struct connection *connections) {
    if (lines_size == 0) return;
    if (write(list, lines, lines_size) != lines_size || fdatasync(list)) fail("%s: %s", option.list, strerror(errno));
    lines_size = 0;
    for (struct connection *c = connections; c < connections + option.connections; c++) {
        if (!c->waits_for_list) continue;
        c->waits_for_list = false;
        if (c->is_gated) c->is_gated = false, send_more(c);
        else end_request(c);
    }
}

// Evaluates the heads in the buffer. Returns whether the final response has a complete head.
static bool parse_heads(struct connection *c) {
    for (;;) {
        c->head[c->head_received] = 0;
        char *end = strstr(c->head, "\r\n\r\n");
        if (!end) {
            if (c->head_received == HEAD_SIZE - 1) fail("the head of the response is too long");
            return false;
        }
        int status;
        if (sscanf(c->head, "HTTP/1.%*d %d", &status) != 1 || status < 100 || status > 599)
            fail("not a response: %.200s", c->head);
        long size = end + 4 - c->head;
        if (status >= 200) {
            statuses[status]++;
            if (status > 299) fail("the response is %.2000s", c->head);
            end[2] = 0;
            if (list >= 0) note(c, "complete");
            char *field = strcasestr(c->head, "\r\nContent-Length:");
            if (!field && status != 204 && !is_head) fail("a response without Content-Length: %.2000s", c->head);
            long length = field && status != 204 ? atol(field + 17) : 0;
            if (strcmp(option.kind, "get") == 0 && option.size && length != option.size)
                fail("the content has %ld bytes", length);
            c->content_left = (is_head ? 0 : length) - (c->head_received - size);
            if (c->content_left < 0) fail("more than one response");
            return true;
        }
        interim++;
        if (c->is_gated && status == 104) end[2] = 0, note(c, "begun");
        c->head_received -= size;
        memmove(c->head, c->head + size, c->head_received);
    }
}

static void receive_more(struct connection *c) {
    for (;;) {
        ssize_t count;
        if (c->content_left < 0)
            count = recv(c->socket, c->head + c->head_received, HEAD_SIZE - 1 - c->head_received, 0);
        else
            count = recv(c->socket, content, c->content_left < 1 << 20 ? c->content_left : 1 << 20, MSG_TRUNC);
        if (count < 0 && errno == EAGAIN) return;
        if (count < 0) fail("receiving: %s", strerror(errno));
        if (count == 0) {
            if (c->is_busy) fail("the server closed a connection without a response");
            // The server may close a connection between two requests.
            close(c->socket);
            open_connection(c);
            return;
        }
        if (!c->is_busy) fail("bytes that belong to no request");
        if (c->content_left < 0) {
            c->head_received += count;
            if (!parse_heads(c)) continue;
        } else {
            c->content_left -= count;
        }
        if (c->content_left > 0) continue;
        if (c->head_sent + c->content_sent < c->head_size + (is_upload ? option.size : 0))
            fail("a final response before the end of the request: %.2000s", c->head);
        if (!c->waits_for_list) end_request(c);
        return;
    }
}

static void run(struct connection *connections) {
    struct epoll_event events[256];
    double began = now();
    while (finished < option.requests) {
        if (should_stop && started > finished) option.requests = started;
        else if (should_stop) break;
        double due = 0;
        for (int i = 0; i < option.connections && started < option.requests; i++) {
            if (connections[i].is_busy) continue;
            due = option.pace ? began + started * option.pace / 1e6 - now() : 0;
            if (due > 0) break;
            begin_request(&connections[i]);
        }
        int count = epoll_wait(poller, events, 256, due > 0 ? due * 1000 + 1 : -1);
        if (count < 0 && errno != EINTR) fail("epoll_wait: %s", strerror(errno));
        for (int i = 0; i < count; i++) {
            struct connection *c = events[i].data.ptr;
            if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) receive_more(c);
            if (c->is_busy && events[i].events & EPOLLOUT) send_more(c);
            // The next request begins before the events of other connections are handled.
            if (!c->is_busy && !option.pace && !should_stop && started < option.requests) begin_request(c);
        }
        save_lines(connections);
    }
}

static int compare(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static void report(double seconds) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    double cpu = usage.ru_utime.tv_sec + usage.ru_stime.tv_sec + (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
    qsort(latencies, finished, sizeof *latencies, compare);
    printf(
        "{\"requests\": %ld, \"seconds\": %.6f, \"rate\": %.2f, \"p50\": %.4f, \"p99\": %.4f, \"max\": %.4f, "
        "\"cpu\": %.4f, \"interim\": %ld, \"statuses\": {",
        finished, seconds, finished / seconds, latencies[finished / 2] * 1e3, latencies[finished * 99 / 100] * 1e3,
        latencies[finished - 1] * 1e3, cpu, interim);
    const char *separator = "";
    for (int status = 200; status < 600; status++)
        if (statuses[status]) printf("%s\"%d\": %ld", separator, status, statuses[status]), separator = ", ";
    printf("}}\n");
}

static void read_options(int count, char **arguments) {
    int letter;
    while ((letter = getopt(count, arguments, "c:n:s:b:m:f:H:v:p:M:l:a:")) != -1) switch (letter) {
        case 'c': option.connections = atoi(optarg); break;
        case 'n': option.requests = atol(optarg); break;
        case 's': option.size = atol(optarg); break;
        case 'b': option.first = atol(optarg); break;
        case 'm': option.modulus = atol(optarg); break;
        case 'f': option.file = optarg; break;
        case 'v': option.version = atoi(optarg); break;
        case 'p': option.pace = atol(optarg); break;
        case 'M': option.method = optarg; break;
        case 'l': option.limit = atol(optarg); break;
        case 'a': option.list = optarg; break;
        case 'H':
            if (strlen(option.fields) + strlen(optarg) + 3 > sizeof option.fields) exit(64);
            strcat(strcat(option.fields, optarg), "\r\n");
            break;
        default: exit(64);
        }
    if (count - optind != 3) fprintf(stderr, "usage: load [OPTIONS] KIND HOST:PORT TARGET\n"), exit(64);
    option.kind = arguments[optind], option.address = arguments[optind + 1], option.target = arguments[optind + 2];
    is_resumable = strcmp(option.kind, "create") == 0 || strcmp(option.kind, "begin") == 0;
    is_upload = is_resumable || strcmp(option.kind, "put") == 0;
    is_head = strcmp(option.kind, "head") == 0;
    if (!is_upload && !is_head && strcmp(option.kind, "get") != 0) exit(64);
    char host[64] = "";
    int port = 0;
    if (sscanf(option.address, "%63[0-9.]:%d", host, &port) != 2 || inet_pton(AF_INET, host, &server.sin_addr) != 1)
        fail("the address is no IPv4 address with a port");
    server.sin_family = AF_INET, server.sin_port = htons(port);
}

int main(int count, char **arguments) {
    read_options(count, arguments);
    if (option.connections > option.requests) option.connections = option.requests;
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    signal(SIGTERM, stop), signal(SIGALRM, expire), signal(SIGPIPE, SIG_IGN);
    alarm(option.limit);
    if (option.file && (content_file = open(option.file, O_RDONLY | O_CLOEXEC)) < 0)
        fail("%s: %s", option.file, strerror(errno));
    if (option.list && (list = open(option.list, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)) < 0)
        fail("%s: %s", option.list, strerror(errno));
    if (is_upload && !option.file && option.size > INLINE_CONTENT) fail("content of this size requires -f");
    content = malloc(1 << 20);  // the bytes to send, or a buffer for received bytes
    for (long i = 0; i < 1 << 20; i++) content[i] = i * 2654435761u >> 13;
    latencies = malloc((option.requests + 1) * sizeof *latencies);
    struct connection *connections = calloc(option.connections, sizeof *connections);
    if (!content || !latencies || !connections || (poller = epoll_create1(EPOLL_CLOEXEC)) < 0) fail("no memory");
    for (int i = 0; i < option.connections; i++) open_connection(&connections[i]);
    double began = now();
    run(connections);
    double seconds = now() - began;
    if (finished == 0) fail("no request has finished");
    report(seconds);
    return 0;
}
