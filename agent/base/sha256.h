/* SHA-256 (FIPS 180-4) and HMAC with it (RFC 2104), by GnuTLS, for signing requests. */
#ifndef AGENT_BASE_SHA256_H
#define AGENT_BASE_SHA256_H

#include <stddef.h>

enum { SHA256_BYTES = 32 };

void sha256(const void *data, size_t length, unsigned char out[SHA256_BYTES]);

/* The message authentication code. */
void sha256_hmac(const void *key, size_t key_length, const void *data, size_t length,
	unsigned char out[SHA256_BYTES]);

/* The lower-case digits and a NUL. */
void sha256_hex(const unsigned char sum[SHA256_BYTES], char out[2 * SHA256_BYTES + 1]);

#endif
