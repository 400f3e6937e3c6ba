#define _GNU_SOURCE
#include "CReceiveFilter.h"

#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>

/* The registered descriptors: pages of atomic pointers, which are allocated when they are first needed and never freed.
   So a lookup is two loads, without a lock. The lowest bit of an entry is set if the connection is encrypted. */
enum { page_size = 1024, page_count = 4096 };
typedef _Atomic(uintptr_t) entry;
static _Atomic(entry *) pages[page_count];

static _Atomic(onward_receive_function) receive_function;
static _Atomic(onward_has_input_function) has_input_function;
static _Atomic(onward_check_interval_function) check_interval_function;
static _Atomic(onward_precedes_file_function) precedes_file_function;

static entry *find_entry(int descriptor)
{
    if (descriptor < 0 || descriptor >= page_size * page_count)
        return NULL;
    entry *page = atomic_load_explicit(&pages[descriptor / page_size], memory_order_acquire);
    return page ? &page[descriptor % page_size] : NULL;
}

/* The value of a listening socket. No address of a connection is so low. */
enum { listener = 2 };

static uintptr_t find_value(int descriptor)
{
    entry *found = find_entry(descriptor);
    return found ? atomic_load_explicit(found, memory_order_acquire) : 0;
}

/* Returns the value of a connection; 0 if the descriptor is not registered as one. */
static uintptr_t find(int descriptor)
{
    uintptr_t value = find_value(descriptor);
    return value == listener ? 0 : value;
}

static void *connection_of(uintptr_t value) { return (void *)(value & ~(uintptr_t)1); }
static bool is_encrypted(uintptr_t value) { return value & 1; }

void onward_filter_install(onward_receive_function receive, onward_has_input_function has_input,
                           onward_check_interval_function check_interval, onward_precedes_file_function precedes_file)
{
    atomic_store(&receive_function, receive);
    atomic_store(&has_input_function, has_input);
    atomic_store(&check_interval_function, check_interval);
    atomic_store(&precedes_file_function, precedes_file);
}

static bool add_value(int descriptor, uintptr_t value)
{
    if (descriptor < 0 || descriptor >= page_size * page_count)
        return false;
    _Atomic(entry *) *slot = &pages[descriptor / page_size];
    if (!atomic_load_explicit(slot, memory_order_acquire)) {
        entry *page = calloc(page_size, sizeof(entry));
        if (!page)
            return false;
        entry *expected = NULL;
        /* Another thread may have allocated the page since. */
        if (!atomic_compare_exchange_strong(slot, &expected, page))
            free(page);
    }
    atomic_store_explicit(find_entry(descriptor), value, memory_order_release);
    return true;
}

bool onward_filter_add(int descriptor, void *connection, bool encrypted)
{
    return add_value(descriptor, (uintptr_t)connection | (encrypted ? 1 : 0));
}

bool onward_filter_add_listener(int descriptor) { return add_value(descriptor, listener); }

void onward_filter_remove(int descriptor)
{
    entry *found = find_entry(descriptor);
    if (found)
        atomic_store_explicit(found, 0, memory_order_release);
}

/* The function of this name that the dynamic linker would find if this module did not define one. The address is looked
   up once. */
static void *next_function(_Atomic(void *) *known, const char *name)
{
    void *function = atomic_load_explicit(known, memory_order_acquire);
    if (!function) {
        function = dlsym(RTLD_NEXT, name);
        if (!function)
            abort();
        atomic_store_explicit(known, function, memory_order_release);
    }
    return function;
}

static _Atomic(void *) known_accept, known_poll, known_recv, known_send, known_setsockopt, known_record_recv, known_transport,
    known_handshake, known_alert;

ssize_t onward_system_recv(int descriptor, void *buffer, size_t size, int flags)
{
    ssize_t (*function)(int, void *, size_t, int) = next_function(&known_recv, "recv");
    return function(descriptor, buffer, size, flags);
}

ssize_t onward_system_record_recv(void *session, void *buffer, size_t size)
{
    ssize_t (*function)(void *, void *, size_t) = next_function(&known_record_recv, "gnutls_record_recv");
    return function(session, buffer, size);
}

ssize_t recv(int descriptor, void *buffer, size_t size, int flags)
{
    uintptr_t found = find(descriptor);
    /* On an encrypted connection, GnuTLS calls this function to receive records. */
    if (!found || is_encrypted(found) || (flags & MSG_PEEK))
        return onward_system_recv(descriptor, buffer, size, flags);
    return atomic_load(&receive_function)(connection_of(found), NULL, buffer, size);
}

ssize_t send(int descriptor, const void *buffer, size_t size, int flags)
{
    ssize_t (*function)(int, const void *, size_t, int) = next_function(&known_send, "send");
    uintptr_t found = find(descriptor);
    /* GnuTLS sends the records of an encrypted connection, and libmicrohttpd then sends no file. */
    if (found && !is_encrypted(found) && atomic_load(&precedes_file_function)(connection_of(found)))
        flags |= MSG_MORE;
    return function(descriptor, buffer, size, flags);
}

int setsockopt(int descriptor, int level, int option, const void *value, socklen_t size)
{
    int (*function)(int, int, int, const void *, socklen_t) = next_function(&known_setsockopt, "setsockopt");
    uintptr_t found = find(descriptor);
    /* libmicrohttpd would cork the socket while it sends a large file. A corked socket sends only complete segments,
       whose size is not a multiple of that of a page. So pages would be cut, and the receiver could not merge segments:
       over the loopback interface both ends then need a third more CPU time. The head is sent with MSG_MORE. */
    if (found && !is_encrypted(found) && level == IPPROTO_TCP && option == TCP_CORK)
        return 0;
    return function(descriptor, level, option, value, size);
}

int accept4(int descriptor, struct sockaddr *address, socklen_t *length, int flags)
{
    int (*function)(int, struct sockaddr *, socklen_t *, int) = next_function(&known_accept, "accept4");
    int result = function(descriptor, address, length, flags);
    int error = errno;
    bool lacks_resources = error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
    if (result < 0 && lacks_resources && find_value(descriptor) == listener) {
        /* The connection that waits to be accepted keeps the socket readable, so libmicrohttpd would call this function
           again at once, until a descriptor is closed. */
        int (*system_poll)(struct pollfd *, nfds_t, int) = next_function(&known_poll, "poll");
        system_poll(NULL, 0, 50);
    }
    errno = error;
    return result;
}

static uintptr_t find_session(void *session)
{
    int (*descriptor_of)(void *) = next_function(&known_transport, "gnutls_transport_get_int");
    return find(descriptor_of(session));
}

int gnutls_handshake(void *session)
{
    int (*handshake)(void *) = next_function(&known_handshake, "gnutls_handshake");
    int result = handshake(session);
    if (result < 0 && is_encrypted(find_session(session))) {
        /* libmicrohttpd closes the connection without an alert, so the alert is sent here. There is no alert for an
           error that is not fatal. */
        int (*send_alert)(void *, int) = next_function(&known_alert, "gnutls_alert_send_appropriate");
        send_alert(session, result);
    }
    return result;
}

ssize_t gnutls_record_recv(void *session, void *buffer, size_t size)
{
    uintptr_t found = find_session(session);
    if (!found || !is_encrypted(found))
        return onward_system_record_recv(session, buffer, size);
    return atomic_load(&receive_function)(connection_of(found), session, buffer, size);
}

int poll(struct pollfd *entries, nfds_t count, int timeout)
{
    int (*system_poll)(struct pollfd *, nfds_t, int) = next_function(&known_poll, "poll");
    /* Entries that do not wait for input, and descriptors that are not registered, are passed on unchanged. */
    bool is_ours = false, has_input = false;
    int interval = -1;
    for (nfds_t index = 0; index < count; index++) {
        if (!(entries[index].events & POLLIN))
            continue;
        uintptr_t found = find(entries[index].fd);
        if (!found)
            continue;
        is_ours = true;
        has_input = has_input || atomic_load(&has_input_function)(connection_of(found));
        if (count == 1)
            interval = atomic_load(&check_interval_function)(connection_of(found));
    }
    if (has_input && count == 1) {
        entries[0].revents = POLLIN;
        return 1;
    }
    int result;
    for (;;) {
        bool is_part = interval >= 0 && (timeout < 0 || interval < timeout);
        result = system_poll(entries, count, has_input ? 0 : is_part ? interval : timeout);
        if (result != 0 || !is_part)
            break;
        if (atomic_load(&has_input_function)(connection_of(find(entries[0].fd)))) {
            entries[0].revents = POLLIN;
            return 1;
        }
        if (timeout >= 0)
            timeout -= interval;
    }
    if (!is_ours || result < 0)
        return result;
    for (nfds_t index = 0; index < count; index++) {
        struct pollfd *entry = &entries[index];
        uintptr_t found = entry->events & POLLIN ? find(entry->fd) : 0;
        if (!found)
            continue;
        bool was_ready = entry->revents != 0;
        /* On these events libmicrohttpd closes a connection at once and discards unread input. They are replaced by the
           events that libmicrohttpd waits for, so that it reads all input and gets the end from recv. */
        if (entry->revents & (POLLERR | POLLHUP))
            entry->revents = (short)((entry->revents & ~(POLLERR | POLLHUP)) | (entry->events & (POLLIN | POLLOUT)));
        if (has_input && atomic_load(&has_input_function)(connection_of(found)))
            entry->revents |= POLLIN;
        if (!was_ready && entry->revents != 0)
            result++;
    }
    return result;
}
