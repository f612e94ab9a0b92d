/*
 * Rows of the state file: binding and reading values one after the other. For the store_*.c files.
 */
#ifndef AGENT_STORE_ROWS_H
#define AGENT_STORE_ROWS_H

#include "agent/news/store_file.h"

/* A statement about to be run. */
struct binder {
	struct store_file *file;
	struct sqlite3_stmt *statement;
	int column;
};

struct binder bind_to(struct store_file *file, enum statement statement);
void bind_integer(struct binder *binder, int64_t value);
void bind_text(struct binder *binder, const char *text); /* borrowed until it has been run */
void bind_item(struct binder *binder, const struct announcement *item);

/* Runs a statement that gives no rows. */
bool bind_finish(struct binder *binder, struct error *error) MUST_USE;

/* A statement that gives rows; texts are copied to the arena. */
struct reader {
	struct binder binder;
	struct arena *arena;
	int column;
	bool failed;
	bool strange; /* a number was no choice; the next row is an error */
};

/* True if there is a row; false at the end, or with `failed` and an error. */
bool reader_next(struct reader *reader, struct error *error);
int64_t read_integer(struct reader *reader);
int64_t read_choice(struct reader *reader, int64_t first, int64_t last); /* of an enum */
double read_number(struct reader *reader);                               /* NULL becomes NaN */
const char *read_text(struct reader *reader);
/* As read_text; the text before it, if it is the same. */
const char *read_text_again(struct reader *reader, const char *before);
void read_record(struct reader *reader, struct record *record);

/* Grows an array in the arena by one item of `size` bytes and returns the array. */
void *rows_grow(struct arena *arena, void *items, size_t *count, size_t size);

#endif
