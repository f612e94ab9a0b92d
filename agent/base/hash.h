/*
 * Two hashes: FNV-1a to identify texts, and SipHash-2-4 for tables: names come from outside, and
 * an attacker might choose them to collide.
 */
#ifndef AGENT_BASE_HASH_H
#define AGENT_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_START UINT64_C(0xcbf29ce484222325)

/* Adds the bytes to `hash`, which starts as HASH_START. Values may be stored: the function never
 * changes. */
uint64_t hash_add(uint64_t hash, const void *bytes, size_t length);

/* A slot of a cache in which a new text replaces another: the low bits are as good as the high
 * ones. It has no key, so an attacker can make texts collide; tables use hash_keyed. */
size_t hash_slot(const char *text, size_t length);

/* A table's secret, which makes the slots of texts unpredictable. */
struct hash_key {
	uint64_t words[2];
};

/* A random one. */
struct hash_key hash_key_new(void);

uint64_t hash_keyed(struct hash_key key, const void *bytes, size_t length);

#endif
