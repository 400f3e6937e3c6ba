#ifndef ONWARD_CRECEIVEFILTER_H
#define ONWARD_CRECEIVEFILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Functions of the C library and of GnuTLS that libmicrohttpd calls to receive: poll, recv and gnutls_record_recv; send,
   which holds the head of a response back until the file that follows it; setsockopt, which does not cork a connection
   without TLS; gnutls_handshake, which also sends the alert for a failed handshake, because libmicrohttpd does not send
   it; and accept4, which waits a moment if there are no descriptors for a connection. This module defines functions of
   these names, which the dynamic linker finds first. For a registered descriptor they call the functions below; for
   every other descriptor they call the function that they replace. */

/* Fills the buffer and returns a result as recv(2) does, and sets errno; for an encrypted connection as
   gnutls_record_recv does. `session` is NULL without TLS. */
typedef ssize_t (*onward_receive_function)(void *connection, void *session, void *buffer, size_t size);

/* Returns whether the receive function would return bytes or an end, even if the socket has no more bytes. */
typedef bool (*onward_has_input_function)(void *connection);

/* Returns after how many milliseconds of a wait for input the function above is called again; -1: not again. */
typedef int (*onward_check_interval_function)(void *connection);

/* Returns whether a file follows what is sent now, so that the kernel sends both together (MSG_MORE). */
typedef bool (*onward_precedes_file_function)(void *connection);

/* Sets the functions that are called for registered descriptors. Call it before the first registration. */
void onward_filter_install(onward_receive_function receive, onward_has_input_function has_input,
                           onward_check_interval_function check_interval, onward_precedes_file_function precedes_file);

/* Adds a descriptor whose input is filtered from now on. Returns false if its number is too large.
   `connection` must stay valid until the descriptor is removed. Its address must be even. */
bool onward_filter_add(int descriptor, void *connection, bool is_encrypted);

/* Adds a listening socket. Returns false if its number is too large. */
bool onward_filter_add_listener(int descriptor);

/* Removes a descriptor. Call this function before the descriptor is closed, when no thread receives on it any more. */
void onward_filter_remove(int descriptor);

/* The replaced functions. */
ssize_t onward_system_recv(int descriptor, void *buffer, size_t size, int flags);
ssize_t onward_system_record_recv(void *session, void *buffer, size_t size);

#endif
