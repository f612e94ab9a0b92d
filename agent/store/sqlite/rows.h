/*
 * Rows of the state file: binding and reading values one after the other. For the store_*.c files.
 */
#ifndef AGENT_STORE_SQLITE_ROWS_H
#define AGENT_STORE_SQLITE_ROWS_H

#include "agent/store/sqlite/file.h"

/* What a time (ms, either way) and a count can be: less would do for both, and sums and differences
 * of them do not overflow. What is beyond is neither written nor believed when it is read. */
#define ROWS_MOST (INT64_C(1) << 53)

/* A statement about to be run. */
struct binder {
	struct store_file *file;
	struct sqlite3_stmt *statement;
	int column;
	bool strange; /* a time or count is out of range; the statement is not run */
};

struct binder bind_to(struct store_file *file, enum statement statement);
void bind_integer(struct binder *binder, int64_t value);
void bind_time(struct binder *binder, int64_t time);
void bind_count(struct binder *binder, int64_t count);
void bind_number(struct binder *binder, double value);   /* NaN becomes NULL */
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
	bool strange; /* a value was out of range or missing; the next row is an error */
};

/* True if there is a row; false at the end, or with `failed` and an error. */
bool reader_next(struct reader *reader, struct error *error);
int64_t read_choice(struct reader *reader, int64_t first, int64_t last);
int64_t read_id(struct reader *reader);
int64_t read_time(struct reader *reader);
int64_t read_count(struct reader *reader);
int64_t read_time_or(struct reader *reader, int64_t otherwise); /* in the place of NULL */
enum change_kind read_kind(struct reader *reader);              /* NULL: a step */
double read_number(struct reader *reader);                      /* NULL becomes NaN */
const char *read_text(struct reader *reader);                   /* or NULL */
const char *read_name(struct reader *reader);                   /* a text that must be there */
/* As read_name; the text before it, if it is the same. */
const char *read_name_again(struct reader *reader, const char *before);
void read_suspects(struct reader *reader, struct attribution *suspects);
void read_record(struct reader *reader, struct change_record *record);

/* Grows an array in the arena by one item of `size` bytes and returns the array. */
void *rows_grow(struct arena *arena, void *items, size_t *count, size_t size);

/* Moves an array from the heap to the arena, without what it has left over. */
void *rows_keep(struct arena *arena, void *items, size_t count, size_t size);

#endif
