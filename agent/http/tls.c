/*
 * libmicrohttpd makes a GnuTLS session for each connection and reports the connection before the
 * handshake. The session is then given credentials and priorities of ours, in place of those of
 * the daemon, which last as long as the daemon.
 */
#include "agent/http/tls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/base/arena.h"
#include "agent/base/log.h"

/* Only forward secrecy with authenticated encryption. */
#define CIPHERS                                                                                    \
	"-KX-ALL:+ECDHE-ECDSA:+ECDHE-RSA:-CIPHER-ALL:+AES-256-GCM:+AES-128-GCM:"                   \
	"+CHACHA20-POLY1305:-MAC-ALL:+AEAD:%SERVER_PRECEDENCE"

struct tls {
	gnutls_certificate_credentials_t credentials;
	gnutls_priority_t priorities;
	size_t holders;
};

/* Opening a pipe would block. */
static bool check_file(const char *option, const char *path, bool secret, struct error *error)
{
	struct stat status;

	if (stat(path, &status) != 0 || access(path, R_OK) != 0)
		return error_set(error, ERROR_USAGE, "%s: cannot read \"%.200s\": %s", option, path,
			strerror(errno));
	if (!S_ISREG(status.st_mode))
		return error_set(
			error, ERROR_USAGE, "%s: \"%.200s\" is not a regular file", option, path);
	if (secret && status.st_mode & S_IROTH)
		log_event(LEVEL_WARN, "web configuration is readable by every user of this machine",
			LOG_TEXT("file", path));
	return true;
}

struct tls *tls_new(const char *cert_file, const char *key_file, bool tls13, struct error *error)
{
	struct tls *tls;
	int failed;

	if (!check_file("cert_file", cert_file, false, error) ||
		!check_file("key_file", key_file, true, error))
		return NULL;
	tls = memory_new(1, sizeof *tls);
	tls->holders = 1;
	failed = gnutls_certificate_allocate_credentials(&tls->credentials);
	if (!failed)
		failed = gnutls_priority_init(&tls->priorities,
			tls13 ? "NORMAL:-VERS-ALL:+VERS-TLS1.3:" CIPHERS
			      : "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:" CIPHERS,
			NULL);
	if (!failed)
		failed = gnutls_certificate_set_x509_key_file(
			tls->credentials, cert_file, key_file, GNUTLS_X509_FMT_PEM);
	if (failed >= 0)
		return tls;
	error_set(error, ERROR_USAGE, "cert_file \"%.200s\" and key_file \"%.200s\": %s", cert_file,
		key_file, gnutls_strerror(failed));
	tls_release(tls);
	return NULL;
}

void tls_release(struct tls *tls)
{
	if (!tls || --tls->holders > 0)
		return;
	if (tls->priorities)
		gnutls_priority_deinit(tls->priorities);
	if (tls->credentials)
		gnutls_certificate_free_credentials(tls->credentials);
	free(tls);
}

struct tls *tls_begin(struct tls *tls, struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
	gnutls_session_t session = info ? info->tls_session : NULL;

	if (!session || gnutls_priority_set(session, tls->priorities) != GNUTLS_E_SUCCESS ||
		gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, tls->credentials) !=
			GNUTLS_E_SUCCESS)
		return NULL;
	tls->holders++;
	return tls;
}

int tls_no_certificate(gnutls_session_t session, const gnutls_datum_t *issuers, int issuer_count,
	const gnutls_pk_algorithm_t *algorithms, int algorithm_count,
	gnutls_pcert_st **certificates, unsigned *certificate_count, gnutls_privkey_t *key)
{
	(void)session, (void)issuers, (void)issuer_count, (void)algorithms, (void)algorithm_count;
	(void)certificates, (void)certificate_count, (void)key;
	return -1;
}
