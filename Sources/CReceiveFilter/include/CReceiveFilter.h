#ifndef ONWARD_CRECEIVEFILTER_H
#define ONWARD_CRECEIVEFILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Functions of the C library and of GnuTLS that libmicrohttpd calls to receive: poll, recv and gnutls_record_recv; and
   gnutls_handshake, which also sends the alert that libmicrohttpd does not send when it fails. This
   module defines functions of these names, which the dynamic linker finds first. For a registered descriptor they call the
   functions below; for every other one they call the function that they replace. */

/* Fills the buffer and returns what recv(2) would, errno included; for an encrypted connection what gnutls_record_recv
   would. `session` is NULL for a connection in the clear. */
typedef ssize_t (*onward_receive_function)(void *connection, void *session, void *buffer, size_t size);

/* Whether a receive would return something although the socket may have no more. */
typedef bool (*onward_has_input_function)(void *connection);

/* Sets the functions that are called for registered descriptors. To be called before the first registration. */
void onward_filter_install(onward_receive_function receive, onward_has_input_function has_input);

/* Filters what is received on a descriptor from now on. False if there is no room for it.
   `connection` has to stay valid until the descriptor is removed. Its address has to be even. */
bool onward_filter_add(int descriptor, void *connection, bool is_encrypted);

/* Ends that. To be called before the descriptor is closed, when no thread receives on it any more. */
void onward_filter_remove(int descriptor);

/* The replaced functions. */
ssize_t onward_system_recv(int descriptor, void *buffer, size_t size, int flags);
ssize_t onward_system_record_recv(void *session, void *buffer, size_t size);

#endif
