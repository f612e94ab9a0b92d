/*
 * Binds and reads the values of rows in sequence. For the other files of this folder.
 */
#ifndef AGENT_STORE_SQL_ROWS_H
#define AGENT_STORE_SQL_ROWS_H

#include "agent/store/columns.h"
#include "agent/store/sql/driver.h"

/* A statement and the values bound so far. */
struct binder {
	struct store_file *file;
	struct sql_statement *statement;
	int column;
	struct buf attributes, suspects, culprit; /* of the record that is bound */
	bool strange; /* a time or count is out of range; the statement is not run */
};

struct binder bind_to(struct store_file *file, enum statement statement);
void bind_integer(struct binder *binder, int64_t value);
void bind_time(struct binder *binder, int64_t time);
void bind_count(struct binder *binder, int64_t count);
void bind_number(struct binder *binder, double value);   /* NaN becomes NULL */
void bind_null(struct binder *binder);                   /* an integer */
void bind_text(struct binder *binder, const char *text); /* borrowed until the statement has run */
void bind_bytes(struct binder *binder, const void *bytes, size_t length); /* borrowed, too */

/* Binds the columns of this use, or all: 0, of a row. */
void bind_row(
	struct binder *binder, const struct store_column *columns, unsigned uses, const void *row);

/* Runs a statement without result rows. */
bool bind_finish(struct binder *binder, struct error *error) MUST_USE;

/* Runs one that inserts a row and returns its id; 0: there was one in its place. */
bool bind_insert(struct binder *binder, int64_t *id, struct error *error) MUST_USE;

/* A value of a parameter; `strange`: out of range. */
struct value {
	enum sql_type type;
	bool strange;
	int64_t integer;
	double number;
	const char *text;
};

static inline struct value v_id(int64_t value)
{
	return (struct value){.type = SQL_INTEGER, .integer = value};
}

static inline struct value v_time(int64_t value)
{
	return (struct value){
		SQL_INTEGER, .integer = value, .strange = value < -ROWS_MOST || value > ROWS_MOST};
}

static inline struct value v_count(int64_t value)
{
	return (struct value){
		SQL_INTEGER, .integer = value, .strange = value < 0 || value > ROWS_MOST};
}

static inline struct value v_null(void) /* an integer */
{
	return (struct value){.type = SQL_NULL};
}

static inline struct value v_number(double value)
{
	return (struct value){SQL_NUMBER, .number = value};
}

static inline struct value v_text(const char *value)
{
	return (struct value){SQL_TEXT, .text = value};
}

/* Runs a statement without result rows, with these values for ?1, ?2 ... */
bool rows_run(struct store_file *file, enum statement statement, struct error *error,
	const struct value *values, size_t count) MUST_USE;
#define RUN(file, statement, error, ...)                                                           \
	rows_run(file, statement, error, (const struct value[]){__VA_ARGS__},                      \
		sizeof((const struct value[]){__VA_ARGS__}) / sizeof(struct value))

/* Asks for one number of either sign; without a row it stays as it is. */
bool rows_ask(struct store_file *file, enum statement statement, int64_t *number,
	struct error *error, const struct value *values, size_t count) MUST_USE;
#define ASK(file, statement, number, error, ...)                                                   \
	rows_ask(file, statement, number, error, (const struct value[]){__VA_ARGS__},              \
		sizeof((const struct value[]){__VA_ARGS__}) / sizeof(struct value))

/* A statement with result rows; texts are copied to the arena. */
struct reader {
	struct binder binder;
	struct arena *arena;
	int column;
	bool failed;
	bool strange; /* a value was invalid or missing; the next row fails */
};

struct reader open_reader(struct store_file *file, struct arena *arena, enum statement statement);

/* True if there is a row; false at the end, or with `failed` and an error. */
bool reader_next(struct reader *reader, struct error *error);
int64_t read_choice(struct reader *reader, int64_t first, int64_t last);
int64_t read_id(struct reader *reader);
int64_t read_time(struct reader *reader);
int64_t read_count(struct reader *reader);
int64_t read_time_or(struct reader *reader, int64_t otherwise); /* NULL becomes `otherwise` */
double read_number(struct reader *reader);                      /* NULL becomes NaN */
const char *read_text(struct reader *reader);                   /* or NULL */
const char *read_name(struct reader *reader);                   /* required */
/* Like read_name; returns `before` if the text is the same. */
const char *read_name_again(struct reader *reader, const char *before);
/* Bytes that last until the next row. */
const void *read_bytes(struct reader *reader, size_t *length);
/* NULLs become a change that nobody has said anything about. */
void read_triage(struct reader *reader, struct triage *triage);

/* Column `culprit`: NULL if there is none. */
const struct culprit *read_culprit(struct reader *reader);

/* All columns of a row. */
void read_struct(struct reader *reader, const struct store_column *columns, void *row);

/* The rows until there are no more, as structs of that size; sets `failed`. */
void *read_structs(struct reader *reader, const struct store_column *columns, size_t size,
	size_t *count, struct error *error);

void read_record(struct reader *reader, struct change_record *record);

/* Reads full records until there are no more. */
bool read_records(struct reader *reader, struct record_rows *out, struct error *error) MUST_USE;

/* The columns of STATEMENT_KNOWN. */
bool read_all_known(struct reader *reader, struct record_rows *out, struct error *error) MUST_USE;

/* An array of records that grows. It is handed over to the arena, so that a long list is never
 * there twice. Empty at first. */
struct growing {
	struct change_record *rows;
	size_t room;
};

/* Room for one more, zeroed, after so many; valid until the next. */
struct change_record *growing_next(struct growing *growing, size_t count) MUST_USE;
/* The first out->count of them become the arena's, and out's. */
void growing_keep(struct growing *growing, struct arena *arena, struct record_rows *out);

/* Ids, and what each is of: a place in an array of the caller's. */
struct owner {
	int64_t id;
	size_t place;
};

struct owners {
	struct owner *items;
	size_t count;
};

void owners_add(struct owners *owners, struct arena *arena, int64_t id, size_t place);

/* Adds those that a statement with one column returns. */
bool owners_read(struct owners *owners, struct reader *reader, struct error *error) MUST_USE;

/* In ascending order; `once`: without those that are there already. */
void owners_sort(struct owners *owners, bool once);

/* The ids of so many of them from the first on, as a JSON array in the arena. */
const char *owners_json(
	struct arena *arena, const struct owners *owners, size_t first, size_t count);
/* Binds those of all. */
void bind_owners(struct binder *binder, struct arena *arena, const struct owners *owners);

/* The names as a JSON array. */
const char *rows_names(struct arena *arena, const struct strings *names);

/* Rows of several owners, whose id is in the first column, in ascending order. */
struct owned_reader {
	struct reader reader;
	int64_t owner;
	bool waiting, ended;
};

/* Whether there is another row of that owner, to be read from its second column on; owners are
 * asked for in ascending order. */
bool owned_next(struct owned_reader *rows, int64_t owner, struct error *error);

/* Grows an array in the arena by one item of `size` bytes and returns the array. */
void *rows_grow(struct arena *arena, void *items, size_t *count, size_t size);

/* Moves an array from the heap to the arena, without spare capacity. */
void *rows_keep(struct arena *arena, void *items, size_t count, size_t size);

#endif
