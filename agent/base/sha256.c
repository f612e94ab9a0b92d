/*
 * Our own implementation: libcurl comes with OpenSSL here and with GnuTLS there, so using
 * either's would bind the program to one of them for a hundred lines.
 */
#include "agent/base/sha256.h"

#include <string.h>

static const uint32_t rounds[64] = {0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b,
	0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
	0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6,
	0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d,
	0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
	0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585,
	0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
	0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa,
	0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t turn(uint32_t x, int by)
{
	return (x >> by) | (x << (32 - by));
}

static void expand(const unsigned char *block, uint32_t words[64])
{
	for (int i = 0; i < 16; i++)
		words[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
			   (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
	for (int i = 16; i < 64; i++) {
		uint32_t a = words[i - 15], b = words[i - 2];

		words[i] = words[i - 16] + (turn(a, 7) ^ turn(a, 18) ^ (a >> 3)) + words[i - 7] +
			   (turn(b, 17) ^ turn(b, 19) ^ (b >> 10));
	}
}

static void compress(struct sha256 *sum, const unsigned char *block)
{
	uint32_t words[64], s[8];

	expand(block, words);
	memcpy(s, sum->state, sizeof s);
	for (int i = 0; i < 64; i++) {
		uint32_t e = turn(s[4], 6) ^ turn(s[4], 11) ^ turn(s[4], 25);
		uint32_t choice = (s[4] & s[5]) ^ (~s[4] & s[6]);
		uint32_t first = s[7] + e + choice + rounds[i] + words[i];
		uint32_t a = turn(s[0], 2) ^ turn(s[0], 13) ^ turn(s[0], 22);
		uint32_t majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);

		memmove(s + 1, s, 7 * sizeof *s);
		s[4] += first;
		s[0] = first + a + majority;
	}
	for (int i = 0; i < 8; i++)
		sum->state[i] += s[i];
}

void sha256_begin(struct sha256 *sum)
{
	*sum = (struct sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
				       0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void sha256_add(struct sha256 *sum, const void *data, size_t length)
{
	const unsigned char *bytes = data;

	while (length > 0) {
		size_t used = sum->length % SHA256_BLOCK, room = SHA256_BLOCK - used;
		size_t part = length < room ? length : room;

		memcpy(sum->block + used, bytes, part);
		sum->length += part;
		bytes += part;
		length -= part;
		if (part == room)
			compress(sum, sum->block);
	}
}

void sha256_end(struct sha256 *sum, unsigned char out[SHA256_BYTES])
{
	static const unsigned char padding[SHA256_BLOCK] = {0x80};
	size_t used = sum->length % SHA256_BLOCK;
	uint64_t bits = 8 * sum->length;
	unsigned char tail[8];

	for (int i = 0; i < 8; i++)
		tail[i] = (unsigned char)(bits >> (56 - 8 * i));
	sha256_add(sum, padding, (used < 56 ? 56 : 120) - used);
	sha256_add(sum, tail, sizeof tail);
	for (int i = 0; i < SHA256_BYTES; i++)
		out[i] = (unsigned char)(sum->state[i / 4] >> (24 - 8 * (i % 4)));
}

void hmac_begin(struct hmac *code, const void *key, size_t length)
{
	unsigned char inner[SHA256_BLOCK] = {0}, outer[SHA256_BLOCK];

	if (length > sizeof inner) {
		sha256_begin(&code->inner);
		sha256_add(&code->inner, key, length);
		sha256_end(&code->inner, inner);
	} else if (length > 0) {
		memcpy(inner, key, length);
	}
	for (size_t i = 0; i < sizeof inner; i++) {
		outer[i] = inner[i] ^ 0x5c;
		inner[i] ^= 0x36;
	}
	sha256_begin(&code->inner);
	sha256_add(&code->inner, inner, sizeof inner);
	sha256_begin(&code->outer);
	sha256_add(&code->outer, outer, sizeof outer);
	explicit_bzero(inner, sizeof inner);
	explicit_bzero(outer, sizeof outer);
}

void hmac_add(struct hmac *code, const void *data, size_t length)
{
	sha256_add(&code->inner, data, length);
}

void hmac_end(struct hmac *code, unsigned char out[SHA256_BYTES])
{
	sha256_end(&code->inner, out);
	sha256_add(&code->outer, out, SHA256_BYTES);
	sha256_end(&code->outer, out);
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
