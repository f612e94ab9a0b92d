/* SipHash is by Aumasson and Bernstein; its words are little-endian. */
#include "agent/base/hash.h"

#include <endian.h>
#include <string.h>
#include <unistd.h>

uint64_t hash_add(uint64_t hash, const void *bytes, size_t length)
{
	const unsigned char *at = bytes;
	for (size_t i = 0; i < length; i++)
		hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
	return hash;
}

size_t hash_slot(const char *text, size_t length)
{
	uint64_t hash = hash_add(HASH_START, text, length);
	return (size_t)(hash ^ hash >> 32);
}

/* Without random bytes of the system the hash is unkeyed. */
struct hash_key hash_key_new(void)
{
	struct hash_key key;
	if (getentropy(&key, sizeof key) != 0)
		key = (struct hash_key){0};
	return key;
}

static uint64_t rotate(uint64_t word, int bits)
{
	return word << bits | word >> (64 - bits);
}

static void sip_rounds(uint64_t v[4], int rounds)
{
	for (int i = 0; i < rounds; i++) {
		v[0] += v[1];
		v[1] = rotate(v[1], 13) ^ v[0];
		v[0] = rotate(v[0], 32);
		v[2] += v[3];
		v[3] = rotate(v[3], 16) ^ v[2];
		v[0] += v[3];
		v[3] = rotate(v[3], 21) ^ v[0];
		v[2] += v[1];
		v[1] = rotate(v[1], 17) ^ v[2];
		v[2] = rotate(v[2], 32);
	}
}

static void sip_add(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	sip_rounds(v, 2);
	v[0] ^= word;
}

uint64_t hash_keyed(struct hash_key key, const void *bytes, size_t length)
{
	const unsigned char *at = bytes;
	uint64_t v[4] = {key.words[0] ^ UINT64_C(0x736f6d6570736575),
		key.words[1] ^ UINT64_C(0x646f72616e646f6d),
		key.words[0] ^ UINT64_C(0x6c7967656e657261),
		key.words[1] ^ UINT64_C(0x7465646279746573)};
	uint64_t word;
	size_t left = length;
	for (; left >= sizeof word; at += sizeof word, left -= sizeof word) {
		memcpy(&word, at, sizeof word);
		sip_add(v, le64toh(word));
	}
	word = (uint64_t)length << 56;
	for (size_t i = 0; i < left; i++)
		word |= (uint64_t)at[i] << (i * 8);
	sip_add(v, word);
	v[2] ^= 0xff;
	sip_rounds(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}
