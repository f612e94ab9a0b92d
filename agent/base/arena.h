/*
 * An arena: memory that is taken piece by piece and freed all at once.
 *
 * hunter-c has two lifetimes, the configuration's and a job's, and each is one arena. Memory is
 * zeroed and aligned for any type. Running out of memory aborts, so nothing here returns NULL;
 * callers cap sizes that come from outside. An arena belongs to one thread at a time.
 */
#ifndef AGENT_BASE_ARENA_H
#define AGENT_BASE_ARENA_H

#include <stdarg.h>
#include <stddef.h>

#include "agent/base/error.h"

struct arena;

/* The caller owns the arena until arena_free, which accepts NULL. */
struct arena *arena_new(void);
void arena_free(struct arena *arena);

/* From now on the arena holds secrets: arena_free wipes all of it. */
void arena_holds_secrets(struct arena *arena);

/* `size` zeroed bytes; size 0 gives a valid pointer. */
void *arena_alloc(struct arena *arena, size_t size) __attribute__((malloc, returns_nonnull));

/* Room for `count` items of `size` bytes, zeroed; aborts where the product overflows. */
void *arena_array(struct arena *arena, size_t count, size_t size)
	__attribute__((malloc, returns_nonnull));

/* Copies that live as long as the arena. arena_strdup(NULL) is NULL. */
char *arena_strdup(struct arena *arena, const char *text);
char *arena_strndup(struct arena *arena, const char *text, size_t length);
char *arena_printf(struct arena *arena, const char *format, ...) PRINTF_LIKE(2, 3);
char *arena_vprintf(struct arena *arena, const char *format, va_list arguments) PRINTF_LIKE(2, 0);

/* Takes over `size` bytes from malloc, of which it uses the first ARENA_HEAD itself. */
enum { ARENA_HEAD = 32 };
void arena_take(struct arena *arena, void *memory, size_t size);

/* Moves everything in `other` into this arena; `other` is gone. */
void arena_join(struct arena *arena, struct arena *other);

/* A copy of items; NULL stays NULL. */
void *arena_copy(struct arena *arena, const void *items, size_t count, size_t size);

/* Bytes taken from the system so far (blocks, not pieces). */
size_t arena_size(const struct arena *arena);

/* malloc and realloc that abort instead of returning NULL, for memory outside an arena. */
void *memory_new(size_t count, size_t size) __attribute__((returns_nonnull));
char *memory_strdup(const char *text) __attribute__((returns_nonnull));
char *memory_printf(const char *format, ...) PRINTF_LIKE(1, 2) __attribute__((returns_nonnull));
void *memory_resize(void *memory, size_t count, size_t size) __attribute__((returns_nonnull));

/*
 * Arrays that grow. memory_grow returns the array with room for at least `needed` items, moving it
 * to twice the capacity, or to `needed`, if *capacity is less. arena_grow returns an array with
 * room for one more than its `count` items; it must have made the array itself, starting from NULL,
 * one item after the other.
 */
void *memory_grow(void *items, size_t *capacity, size_t needed, size_t size)
	__attribute__((returns_nonnull));
void *arena_grow(struct arena *arena, void *items, size_t count, size_t size)
	__attribute__((returns_nonnull));

#endif
