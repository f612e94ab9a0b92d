/*
 * Two hashes: FNV-1a for telling texts apart, and SipHash-2-4 for tables: names come from outside,
 * from somebody who might want them all in one slot.
 */
#ifndef CORE_HASH_H
#define CORE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_START UINT64_C(0xcbf29ce484222325)

/* `hash`, HASH_START at first, with the bytes added. Its value may be stored: it stays the same. */
uint64_t hash_add(uint64_t hash, const void *bytes, size_t length);

/* For the places of a cache, in which a new text takes the place of another: the low bits are as
 * good as the high ones. In a table whoever knows this hash fills one slot: hash_keyed. */
size_t hash_slot(const char *text, size_t length);

/* A secret of the table, without which nobody knows which texts share a slot. */
struct hash_key {
	uint64_t words[2];
};

/* A random one. */
struct hash_key hash_key_new(void);

uint64_t hash_keyed(struct hash_key key, const void *bytes, size_t length);

#endif
