#include "agent/base/sha256.h"

#include <gnutls/crypto.h>
#include <stdlib.h>

_Static_assert(SHA256_BYTES == 32, "of GNUTLS_DIG_SHA256");

void sha256(const void *data, size_t length, unsigned char out[SHA256_BYTES])
{
	if (gnutls_hash_fast(GNUTLS_DIG_SHA256, data, length, out) < 0)
		abort(); /* out of memory */
}

void sha256_hmac(const void *key, size_t key_length, const void *data, size_t length,
	unsigned char out[SHA256_BYTES])
{
	if (gnutls_hmac_fast(GNUTLS_MAC_SHA256, key, key_length, data, length, out) < 0)
		abort();
}

void sha256_hex(const unsigned char sum[SHA256_BYTES], char out[2 * SHA256_BYTES + 1])
{
	static const char digits[] = "0123456789abcdef";

	for (int i = 0; i < SHA256_BYTES; i++) {
		out[2 * i] = digits[sum[i] >> 4];
		out[2 * i + 1] = digits[sum[i] & 15];
	}
	out[2 * SHA256_BYTES] = '\0';
}
