/*
 * The incomplete last line of a block is carried over to the next batch. A block is one read() and
 * need not fill the buffer.
 */
#include "agent/analysis/line_batch.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/base/arena.h"
#include "agent/base/buf.h"
#include "sources/files/input.h"

enum {
	BLOCK = 256 * 1024,
	KEPT_OF_CUT = 4096,        /* bytes kept of a line that is too long: enough for its id */
	KEPT_CAPACITY = 4 * BLOCK, /* memory beyond this is freed after use */
};

struct batch_reader {
	struct strings files;
	size_t next; /* next file to open */
	size_t max_line;
	struct input input; /* fd -1: none is open */
	uint64_t line;
	bool fresh;    /* nothing has been read from the file yet */
	bool skipping; /* skipping the rest of a line that was cut */
	struct buf carry;
};

void batch_free(struct batch *batch)
{
	free(batch->data);
	*batch = (struct batch){0};
}

bool batch_line(const struct batch *batch, size_t *offset, struct batch_line *out)
{
	if (*offset >= batch->length)
		return false;
	const char *from = batch->data + *offset;
	const char *end = memchr(from, '\n', batch->length - *offset);
	size_t size = end ? (size_t)(end - from) : batch->length - *offset;
	*offset += size + 1;
	if (size > 0 && from[size - 1] == '\r')
		size--;
	bool cut = batch->cut || size > batch->max_line;
	size_t kept = batch->max_line < KEPT_OF_CUT ? batch->max_line : KEPT_OF_CUT;
	*out = (struct batch_line){from, cut ? kept : size, cut};
	return true;
}

bool batch_line_is_blank(const struct batch_line *line)
{
	size_t i = 0;
	while (i < line->length && (line->text[i] == ' ' || line->text[i] == '\t'))
		i++;
	return i == line->length;
}

struct batch_reader *batch_reader_new(const struct strings *files, size_t max_line)
{
	struct batch_reader *reader = memory_new(1, sizeof *reader);
	*reader = (struct batch_reader){.files = *files, .max_line = max_line, .input = {.fd = -1}};
	return reader;
}

static void close_file(struct batch_reader *reader)
{
	if (reader->input.fd != STDIN_FILENO)
		input_close(&reader->input);
	reader->input.fd = -1;
	reader->skipping = false;
	buf_clear(&reader->carry);
}

void batch_reader_free(struct batch_reader *reader)
{
	if (!reader)
		return;
	close_file(reader);
	buf_free(&reader->carry);
	free(reader);
}

static bool open_next(struct batch_reader *reader, struct error *error)
{
	const char *name = reader->files.items[reader->next++];
	reader->line = 1;
	reader->fresh = true;
	if (strcmp(name, "-") != 0)
		return input_open(&reader->input, name, 0, error);
	reader->input = input_descriptor("standard input", STDIN_FILENO);
	return true;
}

/* Reads at most a block and appends it to the batch; *got is 0 at the end. */
static bool read_block(
	struct batch_reader *reader, struct batch *batch, size_t *got, struct error *error)
{
	size_t need = batch->length + BLOCK;
	batch->data = memory_grow(batch->data, &batch->capacity, need, 1);
	return input_read_some(&reader->input, batch->data + batch->length, BLOCK, got, error);
}

/* Drops a byte order mark at the start of a file. */
static void drop_mark(struct batch_reader *reader, struct batch *batch)
{
	if (!reader->fresh)
		return;
	reader->fresh = false;
	if (batch->length < 3 || memcmp(batch->data, "\xEF\xBB\xBF", 3) != 0)
		return;
	batch->length -= 3;
	memmove(batch->data, batch->data + 3, batch->length);
}

/* Keeps the whole lines in the batch, if any, and carries over the rest. */
static bool keep_lines(struct batch_reader *reader, struct batch *batch, size_t searched)
{
	const char *last = memrchr(batch->data + searched, '\n', batch->length - searched);
	if (!last)
		return false;
	size_t kept = (size_t)(last - batch->data) + 1;
	buf_append(&reader->carry, last + 1, batch->length - kept);
	batch->length = kept;
	for (const char *at = batch->data; (at = memchr(at, '\n', (size_t)(last + 1 - at))); at++)
		reader->line++;
	return true;
}

/* Reads until there is a whole line, or the file ends. */
static enum batch_step read_lines(
	struct batch_reader *reader, struct batch *batch, struct error *error)
{
	if (batch->length > 0 && keep_lines(reader, batch, 0)) /* read by batch_peek */
		return BATCH_LINES;
	for (;;) {
		size_t searched = batch->length, got;
		bool read = read_block(reader, batch, &got, error);
		if (!read || got == 0) {
			close_file(reader);
			return !read ? BATCH_FAILED : batch->length ? BATCH_LINES : BATCH_END;
		}
		batch->length += got;
		drop_mark(reader, batch);
		if (reader->skipping) { /* the rest of a cut line */
			const char *end = memchr(batch->data, '\n', batch->length);
			size_t used = end ? (size_t)(end - batch->data) + 1 : batch->length;
			batch->length -= used;
			memmove(batch->data, batch->data + used, batch->length);
			reader->skipping = end == NULL;
		}
		if (searched > batch->length)
			searched = 0;
		if (keep_lines(reader, batch, searched))
			return BATCH_LINES;
		if (batch->length > reader->max_line + 1) {
			/* The batch holds only the start of a line that is too long. */
			batch->cut = reader->skipping = true;
			reader->line++;
			return BATCH_LINES;
		}
	}
}

static void begin_batch(struct batch_reader *reader, struct batch *batch)
{
	if (batch->capacity > KEPT_CAPACITY)
		batch_free(batch);
	batch->length = 0;
	batch->cut = false;
	batch->max_line = reader->max_line;
	batch->file = reader->input.name;
	batch->line = reader->line;
	batch->data = memory_grow(batch->data, &batch->capacity, reader->carry.length, 1);
	if (reader->carry.length > 0)
		memcpy(batch->data, reader->carry.data, reader->carry.length);
	batch->length = reader->carry.length;
	if (reader->carry.capacity > KEPT_CAPACITY)
		buf_free(&reader->carry);
	buf_clear(&reader->carry);
}

enum batch_step batch_read(struct batch_reader *reader, struct batch *batch, struct error *error)
{
	for (;;) {
		if (reader->input.fd < 0) {
			if (reader->next == reader->files.count)
				return BATCH_END;
			if (!open_next(reader, error))
				return BATCH_FAILED;
		}
		begin_batch(reader, batch);
		enum batch_step step = read_lines(reader, batch, error);
		if (step != BATCH_END)
			return step;
	}
}

int batch_peek(struct batch_reader *reader)
{
	struct batch batch = {0};
	struct error error;
	size_t at = 0, got = 1;
	if (!open_next(reader, &error)) {
		reader->next--;
		return -1;
	}
	while (at == batch.length && got > 0 && batch.length < BLOCK) {
		if (!read_block(reader, &batch, &got, &error))
			break;
		batch.length += got;
		drop_mark(reader, &batch);
		while (at < batch.length && memchr(" \t\r\n", batch.data[at], 4))
			at++;
	}
	int first = at < batch.length ? (unsigned char)batch.data[at] : -1;
	if (batch.length > 0)
		buf_append(&reader->carry, batch.data, batch.length);
	batch_free(&batch);
	return first;
}
