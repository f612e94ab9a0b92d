/*
 * Blocks double from 4 KiB to 1 MiB, so that a small job touches little memory and a large one
 * makes few calls. A piece larger than a quarter of the next block gets a block of its own size.
 */
#include "agent/base/arena.h"

#include <assert.h>
#include <stdalign.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_BLOCK = 4096, LAST_BLOCK = 1 << 20, FIRST_ITEMS = 4 };

struct block {
	struct block *next;
	size_t size; /* of `data` */
	alignas(max_align_t) unsigned char data[];
};

struct arena {
	struct block *blocks;
	unsigned char *at, *end; /* free part of the current block */
	size_t next_size, taken;
	bool secrets;
};

static void out_of_memory(void)
{
	fputs("hunter-c: out of memory\n", stderr);
	abort();
}

void *memory_new(size_t count, size_t size)
{
	void *memory = calloc(count ? count : 1, size ? size : 1);
	if (!memory)
		out_of_memory();
	return memory;
}

char *memory_strdup(const char *text)
{
	size_t size = strlen(text) + 1;

	return memcpy(memory_new(size, 1), text, size);
}

char *memory_printf(const char *format, ...)
{
	va_list arguments;
	char *text;

	va_start(arguments, format);
	if (vasprintf(&text, format, arguments) < 0)
		abort();
	va_end(arguments);
	return text;
}

void *memory_resize(void *memory, size_t count, size_t size)
{
	size_t bytes;
	if (__builtin_mul_overflow(count, size, &bytes))
		out_of_memory();
	memory = realloc(memory, bytes ? bytes : 1);
	if (!memory)
		out_of_memory();
	return memory;
}

void *memory_grow(void *items, size_t *capacity, size_t needed, size_t size)
{
	size_t least = *capacity > FIRST_ITEMS / 2 ? 2 * *capacity : FIRST_ITEMS;

	if (items && needed <= *capacity)
		return items;
	*capacity = needed > least ? needed : least;
	return memory_resize(items, *capacity, size);
}

struct arena *arena_new(void)
{
	struct arena *arena = memory_new(1, sizeof *arena);
	arena->next_size = FIRST_BLOCK;
	return arena;
}

void arena_free(struct arena *arena)
{
	if (!arena)
		return;
	for (struct block *block = arena->blocks, *next; block; block = next) {
		next = block->next;
		if (arena->secrets)
			explicit_bzero(block->data, block->size);
		free(block);
	}
	free(arena);
}

void arena_holds_secrets(struct arena *arena)
{
	arena->secrets = true;
}

static struct block *block_add(struct arena *arena, size_t size)
{
	if (size > PTRDIFF_MAX - sizeof(struct block))
		out_of_memory();
	struct block *block = memory_new(1, sizeof *block + size);
	block->next = arena->blocks;
	block->size = size;
	arena->blocks = block;
	arena->taken += sizeof *block + size;
	return block;
}

void *arena_alloc(struct arena *arena, size_t size)
{
	if (size > PTRDIFF_MAX)
		out_of_memory();
	size = ((size ? size : 1) + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
	if (size <= (size_t)(arena->end - arena->at)) {
		void *piece = arena->at;
		arena->at += size;
		return piece;
	}
	if (size > arena->next_size / 4)
		return block_add(arena, size)->data;
	struct block *block = block_add(arena, arena->next_size);
	arena->at = block->data + size;
	arena->end = block->data + arena->next_size;
	if (arena->next_size < LAST_BLOCK)
		arena->next_size *= 2;
	return block->data;
}

void *arena_array(struct arena *arena, size_t count, size_t size)
{
	size_t bytes;
	if (__builtin_mul_overflow(count, size, &bytes))
		out_of_memory();
	return arena_alloc(arena, bytes);
}

/* The capacity is the least power of two that is not below the count. */
void *arena_grow(struct arena *arena, void *items, size_t count, size_t size)
{
	if (count & (count - 1))
		return items;
	void *more = arena_array(arena, count ? 2 * count : 1, size);
	return count ? memcpy(more, items, count * size) : more;
}

char *arena_strndup(struct arena *arena, const char *text, size_t length)
{
	char *copy = arena_alloc(arena, length + 1);
	memcpy(copy, text, length);
	return copy;
}

void *arena_copy(struct arena *arena, const void *items, size_t count, size_t size)
{
	void *copy = items ? arena_array(arena, count, size) : NULL;
	return count > 0 && items ? memcpy(copy, items, count * size) : copy;
}

char *arena_strdup(struct arena *arena, const char *text)
{
	return text ? arena_strndup(arena, text, strlen(text)) : NULL;
}

char *arena_vprintf(struct arena *arena, const char *format, va_list arguments)
{
	va_list again;
	va_copy(again, arguments);
	int length = vsnprintf(NULL, 0, format, again);
	va_end(again);
	if (length < 0)
		out_of_memory();
	char *text = arena_alloc(arena, (size_t)length + 1);
	vsnprintf(text, (size_t)length + 1, format, arguments);
	return text;
}

char *arena_printf(struct arena *arena, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	char *text = arena_vprintf(arena, format, arguments);
	va_end(arguments);
	return text;
}

void arena_take(struct arena *arena, void *memory, size_t size)
{
	struct block *block = memory;

	_Static_assert(sizeof *block <= ARENA_HEAD, "the head is large enough");
	assert(size >= ARENA_HEAD);
	block->next = arena->blocks;
	block->size = size - sizeof *block;
	arena->blocks = block;
	arena->taken += size;
}

void arena_join(struct arena *arena, struct arena *other)
{
	struct block **end = &other->blocks;
	while (*end)
		end = &(*end)->next;
	*end = arena->blocks;
	arena->blocks = other->blocks;
	arena->taken += other->taken;
	arena->secrets |= other->secrets;
	free(other);
}

size_t arena_size(const struct arena *arena)
{
	return arena->taken;
}
