// A server that does only the necessary work for large uploads, with a thread for each connection. No such server can be
// faster.
//
//   upload_floor PORT DIRECTORY relaxed|durable|digest
//   upload_floor PORT DIRECTORY tls CERTIFICATE KEY
//   upload_floor digest
//
// Content is received into a large buffer and written to a new file in DIRECTORY. `durable` starts the write-back of each
// 4 MiB immediately, and synchronizes the file and DIRECTORY before the response. `digest` also computes the SHA-256 of the
// content, on a second thread and without reading the file. `tls` receives the content over TLS with GnuTLS, which libmicrohttpd
// uses, too, and is like `relaxed` apart from that. HEAD gets 204. Only curl and load.c may connect: nothing is checked. The
// last form only computes the SHA-256 of 1 GiB in memory, and ends.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <gnutls/gnutls.h>
#include <nettle/sha2.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HEAD_SIZE = 16 << 10, BUFFER_SIZE = 512 << 10, BUFFERS = 8, STEP = 4 << 20, RECORDS_SIZE = 128 << 10 };

static int directory, is_durable, has_digest;
static gnutls_certificate_credentials_t credentials;
static _Atomic int files;

// A connection; the session is NULL without TLS.
struct connection {
    int socket;
    gnutls_session_t session;
};

// Receives at most `size` bytes. Over TLS, waits until there are at least `least` bytes.
static ssize_t receive(struct connection *connection, char *buffer, size_t size, size_t least) {
    if (!connection->session) return recv(connection->socket, buffer, size, 0);
    size_t received = 0;
    do {
        ssize_t count = gnutls_record_recv(connection->session, buffer + received, size - received);
        if (count <= 0) return received ? (ssize_t)received : count;
        received += count;
    } while (received < size && received < least);
    return received;
}

static ssize_t respond(struct connection *connection, const char *text) {
    if (connection->session) return gnutls_record_send(connection->session, text, strlen(text));
    return send(connection->socket, text, strlen(text), MSG_NOSIGNAL);
}

static int handshake(struct connection *connection) {
    if (!credentials) return 1;
    const char *priorities = "SECURE128:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+AES-128-GCM";
    gnutls_init(&connection->session, GNUTLS_SERVER);
    gnutls_priority_set_direct(connection->session, priorities, NULL);
    gnutls_credentials_set(connection->session, GNUTLS_CRD_CERTIFICATE, credentials);
    gnutls_transport_set_int(connection->session, connection->socket);
    return gnutls_handshake(connection->session) == 0;
}

// The buffers of one upload. The receiving thread fills them in turn; with a digest, a second thread reads each of them.
struct ring {
    sem_t empty, full;
    ssize_t sizes[BUFFERS];
    char *bytes;
    struct sha256_ctx digest;
};

static void *digest(void *context) {
    struct ring *ring = context;
    for (int i = 0;; i = (i + 1) % BUFFERS) {
        sem_wait(&ring->full);
        if (ring->sizes[i] == 0) return NULL;
        sha256_update(&ring->digest, ring->sizes[i], (uint8_t *)ring->bytes + (size_t)i * BUFFER_SIZE);
        sem_post(&ring->empty);
    }
}

// Receives and stores content whose first bytes have arrived already. Returns whether all of it was stored.
static int store(struct connection *connection, const char *first, ssize_t offset, long length, struct ring *ring) {
    char name[32];
    snprintf(name, sizeof name, "upload-%d", files++);
    int file = openat(directory, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0 || pwrite(file, first, offset, 0) != offset) return 0;
    pthread_t thread;
    sem_init(&ring->empty, 0, BUFFERS), sem_init(&ring->full, 0, 0);
    sha256_init(&ring->digest);
    if (has_digest) {
        sha256_update(&ring->digest, offset, (const uint8_t *)first);
        pthread_create(&thread, NULL, digest, ring);
    }
    long started = 0;
    int i = 0;
    while (offset < length) {
        if (has_digest) sem_wait(&ring->empty);
        // A record of TLS has at most 16 KiB. Several of them are stored with one system call.
        char *buffer = ring->bytes + (size_t)i * BUFFER_SIZE;
        ssize_t count = receive(connection, buffer, length - offset < BUFFER_SIZE ? length - offset : BUFFER_SIZE, RECORDS_SIZE);
        if (count <= 0 || pwrite(file, buffer, count, offset) != count) break;
        offset += count;
        if (is_durable && offset - started >= STEP)
            sync_file_range(file, started, offset - started, SYNC_FILE_RANGE_WRITE), started = offset;
        // Without a digest always the same buffer is used, which stays in the cache of the processor.
        if (!has_digest) continue;
        ring->sizes[i] = count;
        sem_post(&ring->full);
        i = (i + 1) % BUFFERS;
    }
    if (has_digest) {
        uint8_t result[SHA256_DIGEST_SIZE];
        sem_wait(&ring->empty);
        ring->sizes[i] = 0;
        sem_post(&ring->full);
        pthread_join(thread, NULL);
        sha256_digest(&ring->digest, sizeof result, result);
    }
    int is_synchronized = !is_durable || (fdatasync(file) == 0 && fsync(directory) == 0);
    close(file);
    return offset == length && is_synchronized;
}

static void *serve(void *context) {
    struct connection connection = {.socket = (int)(long)context};
    struct ring ring = {.bytes = aligned_alloc(4096, (size_t)BUFFERS * BUFFER_SIZE)};
    char head[HEAD_SIZE + 1];
    int is_open = handshake(&connection);
    for (ssize_t received = 0; is_open;) {
        ssize_t count = receive(&connection, head + received, HEAD_SIZE - received, 1);
        if (count <= 0) break;
        head[received += count] = 0;
        char *end = memmem(head, received, "\r\n\r\n", 4);
        if (!end) continue;
        const char *response = "HTTP/1.1 204 No Content\r\n\r\n", *field = strcasestr(head, "\r\nContent-Length:");
        if (field && field < end) {
            if (!store(&connection, end + 4, head + received - end - 4, atol(field + 17), &ring)) break;
            response = "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n";
        }
        if (respond(&connection, response) < 0) break;
        received = 0;
    }
    if (connection.session) gnutls_deinit(connection.session);
    close(connection.socket);
    free(ring.bytes);
    return NULL;
}

static int compute_digest(void) {
    static uint8_t buffer[BUFFER_SIZE], result[SHA256_DIGEST_SIZE];
    struct sha256_ctx digest;
    sha256_init(&digest);
    for (int i = 0; i < (1 << 30) / BUFFER_SIZE; i++) sha256_update(&digest, sizeof buffer, buffer);
    sha256_digest(&digest, sizeof result, result);
    return 0;
}

int main(int count, char **arguments) {
    if (count == 2 && strcmp(arguments[1], "digest") == 0) return compute_digest();
    int has_tls = count == 6 && strcmp(arguments[3], "tls") == 0;
    if ((count != 4 && !has_tls) || (directory = open(arguments[2], O_RDONLY | O_DIRECTORY)) < 0) {
        fprintf(stderr, "usage: upload_floor PORT DIRECTORY relaxed|durable|digest|tls [CERTIFICATE KEY]\n");
        return 64;
    }
    if (has_tls && (gnutls_certificate_allocate_credentials(&credentials) ||
                    gnutls_certificate_set_x509_key_file(credentials, arguments[4], arguments[5], GNUTLS_X509_FMT_PEM)))
        return 1;
    is_durable = strcmp(arguments[3], "durable") == 0, has_digest = strcmp(arguments[3], "digest") == 0;
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(atoi(arguments[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 128)) return 1;
    for (;;) {
        pthread_t thread;
        int connection = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (connection >= 0 && pthread_create(&thread, NULL, serve, (void *)(long)connection) == 0) pthread_detach(thread);
    }
}
