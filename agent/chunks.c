/*
 * What follows the last line end of a block is carried over to the next chunk. read(2) is called
 * directly: a block is what the other side has written, not what fills a buffer.
 */
#include "agent/chunks.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/core/arena.h"
#include "agent/core/buf.h"
#include "sources/input.h"

enum {
	BLOCK = 256 * 1024,
	KEPT_OF_CUT = 4096,        /* bytes of a line that is too long: enough to see its id */
	KEPT_CAPACITY = 4 * BLOCK, /* more than this is given back after use */
};

struct chunk_reader {
	struct strings files;
	size_t next; /* file to open */
	size_t max_line;
	struct input input; /* fd -1: none is open */
	uint64_t line;
	bool fresh;    /* nothing was read from the file yet */
	bool skipping; /* within the rest of a line that was cut */
	struct buf carry;
};

void chunk_free(struct chunk *chunk)
{
	free(chunk->data);
	*chunk = (struct chunk){0};
}

bool chunk_line(const struct chunk *chunk, size_t *offset, struct chunk_text *out)
{
	if (*offset >= chunk->length)
		return false;
	const char *from = chunk->data + *offset;
	const char *end = memchr(from, '\n', chunk->length - *offset);
	size_t size = end ? (size_t)(end - from) : chunk->length - *offset;
	*offset += size + 1;
	if (size > 0 && from[size - 1] == '\r')
		size--;
	bool cut = chunk->cut || size > chunk->max_line;
	size_t kept = chunk->max_line < KEPT_OF_CUT ? chunk->max_line : KEPT_OF_CUT;
	*out = (struct chunk_text){from, cut ? kept : size, cut};
	return true;
}

struct chunk_reader *chunk_reader_new(const struct strings *files, size_t max_line)
{
	struct chunk_reader *reader = memory_new(1, sizeof *reader);
	*reader = (struct chunk_reader){.files = *files, .max_line = max_line, .input = {.fd = -1}};
	return reader;
}

static void close_file(struct chunk_reader *reader)
{
	if (reader->input.fd != STDIN_FILENO)
		input_close(&reader->input);
	reader->input.fd = -1;
	reader->skipping = false;
	buf_clear(&reader->carry);
}

void chunk_reader_free(struct chunk_reader *reader)
{
	if (!reader)
		return;
	close_file(reader);
	buf_free(&reader->carry);
	free(reader);
}

static bool open_next(struct chunk_reader *reader, struct error *error)
{
	const char *name = reader->files.items[reader->next++];
	reader->line = 1;
	reader->fresh = true;
	if (strcmp(name, "-") != 0)
		return input_open(&reader->input, name, error);
	reader->input = (struct input){.name = "standard input", .fd = STDIN_FILENO};
	return true;
}

/* What is there, at most a block, behind what the chunk holds; 0 at the end, -1 after an error. */
static ssize_t read_block(struct chunk_reader *reader, struct chunk *chunk, struct error *error)
{
	size_t need = chunk->length + BLOCK;
	if (chunk->capacity < need) {
		chunk->capacity = need + need / 2;
		chunk->data = memory_resize(chunk->data, chunk->capacity, 1);
	}
	for (;;) {
		ssize_t got = read(reader->input.fd, chunk->data + chunk->length, BLOCK);
		if (got >= 0)
			return got;
		if (errno == EAGAIN) {
			struct pollfd ready = {.fd = reader->input.fd, .events = POLLIN};
			poll(&ready, 1, -1);
		} else if (errno != EINTR) {
			error_set(error, ERROR_DATA, "%s: cannot be read: %s", reader->input.name,
				strerror(errno));
			return -1;
		}
	}
}

/* Drops a byte order mark at the beginning of a file. */
static void drop_mark(struct chunk_reader *reader, struct chunk *chunk)
{
	if (!reader->fresh)
		return;
	reader->fresh = false;
	if (chunk->length < 3 || memcmp(chunk->data, "\xEF\xBB\xBF", 3) != 0)
		return;
	chunk->length -= 3;
	memmove(chunk->data, chunk->data + 3, chunk->length);
}

/* Drops the rest of the line that was cut, as far as the chunk holds it. */
static void drop_rest(struct chunk_reader *reader, struct chunk *chunk)
{
	const char *end = reader->skipping ? memchr(chunk->data, '\n', chunk->length) : NULL;
	if (!reader->skipping)
		return;
	size_t used = end ? (size_t)(end - chunk->data) + 1 : chunk->length;
	chunk->length -= used;
	memmove(chunk->data, chunk->data + used, chunk->length);
	reader->skipping = end == NULL;
}

static uint64_t count_lines(const char *data, size_t length)
{
	uint64_t count = 0;
	const char *end = data + length;
	for (const char *at = data; (at = memchr(at, '\n', (size_t)(end - at))); at++)
		count++;
	return count;
}

/* Keeps the whole lines in the chunk, if there are any, and carries over what follows them. */
static bool keep_lines(struct chunk_reader *reader, struct chunk *chunk, size_t searched)
{
	const char *last = memrchr(chunk->data + searched, '\n', chunk->length - searched);
	if (!last)
		return false;
	size_t kept = (size_t)(last - chunk->data) + 1;
	buf_append(&reader->carry, last + 1, chunk->length - kept);
	chunk->length = kept;
	reader->line += count_lines(chunk->data, kept);
	return true;
}

/* The chunk holds nothing but the beginning of a line that is too long. */
static enum chunk_step cut_line(struct chunk_reader *reader, struct chunk *chunk)
{
	chunk->cut = true;
	reader->skipping = true;
	reader->line++;
	return CHUNK_LINES;
}

/* Reads until there is a whole line, or the end of the file. */
static enum chunk_step read_lines(
	struct chunk_reader *reader, struct chunk *chunk, struct error *error)
{
	for (;;) {
		size_t searched = chunk->length;
		ssize_t got = read_block(reader, chunk, error);
		if (got <= 0) {
			close_file(reader);
			return got < 0 ? CHUNK_FAILED : chunk->length ? CHUNK_LINES : CHUNK_END;
		}
		chunk->length += (size_t)got;
		drop_mark(reader, chunk);
		drop_rest(reader, chunk);
		if (searched > chunk->length)
			searched = 0;
		if (keep_lines(reader, chunk, searched))
			return CHUNK_LINES;
		if (chunk->length > reader->max_line + 1)
			return cut_line(reader, chunk);
	}
}

static void begin_chunk(struct chunk_reader *reader, struct chunk *chunk)
{
	if (chunk->capacity > KEPT_CAPACITY)
		chunk_free(chunk);
	chunk->length = 0;
	chunk->cut = false;
	chunk->max_line = reader->max_line;
	chunk->file = reader->input.name;
	chunk->line = reader->line;
	if (reader->carry.length > chunk->capacity) {
		chunk->capacity = reader->carry.length;
		chunk->data = memory_resize(chunk->data, chunk->capacity, 1);
	}
	if (reader->carry.length > 0)
		memcpy(chunk->data, reader->carry.data, reader->carry.length);
	chunk->length = reader->carry.length;
	if (reader->carry.capacity > KEPT_CAPACITY)
		buf_free(&reader->carry);
	buf_clear(&reader->carry);
}

enum chunk_step chunk_read(struct chunk_reader *reader, struct chunk *chunk, struct error *error)
{
	for (;;) {
		if (reader->input.fd < 0) {
			if (reader->next == reader->files.count)
				return CHUNK_END;
			if (!open_next(reader, error))
				return CHUNK_FAILED;
		}
		begin_chunk(reader, chunk);
		enum chunk_step step = read_lines(reader, chunk, error);
		if (step != CHUNK_END)
			return step;
	}
}
