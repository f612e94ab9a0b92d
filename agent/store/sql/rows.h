/*
 * Binds and reads the values of rows in sequence. For the other files of this folder.
 */
#ifndef AGENT_STORE_SQL_ROWS_H
#define AGENT_STORE_SQL_ROWS_H

#include "agent/model/columns.h"
#include "agent/store/backend.h"
#include "agent/store/sql/words.h"

/* A statement of a transaction, the values bound so far, and the columns read of its row. Values
 * read lie in the transaction's arena. */
struct sql_query {
	struct tx *tx;
	struct sql_statement *statement;
	int parameter, column;
	bool damaged; /* a value was invalid or missing: the next row fails */
};

struct sql_query sql_query_of(struct tx *tx, const char *statement);
/* Binds the next parameter. */
void query_bind(struct sql_query *query, struct value value);

/* Binds the columns of this use, or all: 0, of a row. */
void bind_row(struct sql_query *query, const struct stored_column *columns, unsigned uses,
	const void *row);

/* Runs a statement without result rows. */
void query_run(struct sql_query *query);

/* Binds all columns of a row, and runs it. */
void row_run(struct sql_query query, const struct stored_column *columns, const void *row);

/* Between them only rows of that insert are written, which takes all columns of a table: how a
 * database loads many at once. */
void rows_load_begin(struct tx *tx, const char *insert);
void rows_load_end(struct tx *tx);

/* Runs one that inserts a row and returns its id; 0: there was one in its place. */
int64_t query_insert(struct sql_query *query);

/* Values for ?1, ?2 ... and how many they are; a statement is a literal (see words.h). */
#define VALUES(...)                                                                                \
	(const struct value[]){__VA_ARGS__},                                                       \
		sizeof((const struct value[]){__VA_ARGS__}) / sizeof(struct value)

/* A statement with these values bound. */
struct sql_query rows_query(
	struct tx *tx, const char *statement, const struct value *values, size_t count);
#define QUERY(tx, statement, ...) rows_query(tx, statement, VALUES(__VA_ARGS__))

/* Runs a statement without result rows. */
void rows_run(struct tx *tx, const char *statement, const struct value *values, size_t count);
#define RUN(tx, statement, ...) rows_run(tx, statement, VALUES(__VA_ARGS__))

/* The same; how many rows it inserted, updated or deleted. */
#define CHANGED(tx, ...) (RUN(tx, __VA_ARGS__), tx_changed(tx))
int64_t tx_changed(struct tx *tx);

/* One number of either sign; 0: there is no row. */
int64_t query_ask(struct sql_query query);

/* True if there is a row. */
bool query_next(struct sql_query *query);
int64_t read_integer(struct sql_query *query);
int64_t read_choice(struct sql_query *query, int64_t first, int64_t last);
bool read_flag(struct sql_query *query);
int64_t read_id(struct sql_query *query);
int64_t read_time(struct sql_query *query);
int64_t read_count(struct sql_query *query);
int64_t read_time_or(struct sql_query *query, int64_t otherwise); /* NULL becomes `otherwise` */
double read_number(struct sql_query *query);                      /* NULL becomes NaN */
const char *read_text(struct sql_query *query);                   /* or NULL */
const char *read_name(struct sql_query *query);                   /* required */
/* Bytes that last until the next row. */
const void *read_bytes(struct sql_query *query, size_t *length);

/* Column `culprit`: NULL if there is none. */
const struct culprit *read_culprit(struct sql_query *query);

/* All columns of a row. */
void read_struct(struct sql_query *query, const struct stored_column *columns, void *row);

/* The rows until there are no more, as structs of that size. */
void *read_structs(
	struct sql_query *query, const struct stored_column *columns, size_t size, size_t *count);

void read_record(struct sql_query *query, struct change_record *record);

/* Reads full records until there are no more. */
void read_records(struct sql_query *query, struct record_rows *out);

/* The known changes of a test: @compared and TRIAGE_COLUMNS. */
void read_all_known(struct sql_query *query, struct record_rows *out);

/* An array of records that grows. It is handed over to the arena, so that a long list is never
 * there twice. Empty at first. */
struct growing {
	struct change_record *rows;
	size_t room;
};

/* Room for one more, zeroed, after so many; valid until the next. */
struct change_record *growing_next(struct growing *growing, size_t count) MUST_USE;
/* The first out->count of them become the arena's, and out's. */
void growing_keep(struct growing *growing, struct tx *tx, struct record_rows *out);

/* Ids, each with an index of an array of the caller's. */
struct owner {
	int64_t id;
	size_t place;
};

struct owners {
	struct owner *items;
	size_t count;
};

void owners_add(struct owners *owners, struct tx *tx, int64_t id, size_t place);

/* Adds those that a statement with one column returns. */
void owners_read(struct owners *owners, struct sql_query query);

/* In ascending order; `once`: without those that are there already. */
void owners_sort(struct owners *owners, bool once);

/* Their ids as a JSON array; one id; names. */
struct value v_owners(struct tx *tx, const struct owners *owners);
struct value v_one(struct tx *tx, int64_t id);
struct value v_names(struct tx *tx, const struct strings *names);

/* A shell pattern of tests; of one that is just the name of a test with changes, a pattern that
 * only this matches. In the transaction's arena, or NULL. */
const char *rows_pattern(struct tx *tx, const char *pattern);

/* Rows of several owners, whose id is in the first column, in ascending order. */
struct owned_query {
	struct sql_query query;
	int64_t owner;
	bool waiting, ended;
};

/* Whether there is another row of that owner, to be read from its second column on; owners are
 * passed in ascending order. */
bool owned_next(struct owned_query *rows, int64_t owner);

/* Adds an item, which is zeroed, to an array that begins with NULL, and returns it. */
#define ADD_ROW(tx, items, count)                                                                  \
	((items) = rows_grow(tx, items, &(count), sizeof *(items)), &(items)[(count)-1])

/* The same for items of `size` bytes, and returns the array. */
void *rows_grow(struct tx *tx, void *items, size_t *count, size_t size);

#endif
