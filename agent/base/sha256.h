/* SHA-256 (FIPS 180-4) and HMAC with it (RFC 2104), for signing requests. */
#ifndef AGENT_BASE_SHA256_H
#define AGENT_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { SHA256_BYTES = 32, SHA256_BLOCK = 64 };

struct sha256 {
	uint32_t state[8];
	uint64_t length; /* bytes so far */
	unsigned char block[SHA256_BLOCK];
};

void sha256_begin(struct sha256 *sum);
void sha256_add(struct sha256 *sum, const void *data, size_t length);
void sha256_end(struct sha256 *sum, unsigned char out[SHA256_BYTES]);

/* The message authentication code of data added in pieces of any size. */
struct hmac {
	struct sha256 inner, outer;
};

void hmac_begin(struct hmac *code, const void *key, size_t length);
void hmac_add(struct hmac *code, const void *data, size_t length);
void hmac_end(struct hmac *code, unsigned char out[SHA256_BYTES]);

/* The lower-case digits and a NUL. */
void sha256_hex(const unsigned char sum[SHA256_BYTES], char out[2 * SHA256_BYTES + 1]);

#endif
