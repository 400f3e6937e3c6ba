#ifndef ONWARD_CGNUTLS_SHIM_H
#define ONWARD_CGNUTLS_SHIM_H

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

/* gnutls_free is a variable, which Swift treats as mutable shared state. */
static inline void onward_gnutls_free(void *memory) { gnutls_free(memory); }

#endif
