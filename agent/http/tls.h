/*
 * TLS for the web server: a certificate with its key, and the enabled versions and ciphers. A
 * connection keeps what it began with, so both can be replaced at any time.
 */
#ifndef AGENT_HTTP_TLS_H
#define AGENT_HTTP_TLS_H

#include <gnutls/abstract.h>
#include <microhttpd.h>

#include "agent/base/error.h"

struct tls;

/* Reads the files. NULL and ERROR_USAGE if they cannot be used. The caller is the only holder. */
struct tls *tls_new(const char *cert_file, const char *key_file, bool tls13, struct error *error);
void tls_release(struct tls *tls); /* accepts NULL */

/* To be called when the connection begins. Holds `tls` for it; tls_release must follow when the
 * connection has ended. NULL: the connection cannot be used. */
struct tls *tls_begin(struct tls *tls, struct MHD_Connection *connection);

/* For MHD_OPTION_HTTPS_CERT_CALLBACK: libmicrohttpd wants a certificate, of which tls_begin makes
 * no use. Always fails. */
gnutls_certificate_retrieve_function2 tls_no_certificate;

#endif
