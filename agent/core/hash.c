#include "agent/core/hash.h"

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
