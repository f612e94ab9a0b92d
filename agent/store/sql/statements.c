/*
 * Prepares the statements of this folder, each once, by the address of its text; replaces the marks
 * in it (words.h). A mark that means nothing is a bug.
 */
#include "agent/store/sql/statements.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "agent/model/event.h"
#include "agent/store/backend.h"

enum { SLOTS = 512, ARGUMENTS = 2 }; /* SLOTS: many more than there are texts */

struct statement_slot {
	const char *text; /* NULL: it is free */
	struct sql_statement *statement;
};

static bool is_named(const char *name, const char *mark, size_t length)
{
	return strncmp(name, mark, length) == 0 && !name[length];
}

/* The same for all databases. */
static const struct sql_word common[] = {
	{"standing", "IN (@state{confirmed}, @state{moved})"},
	{"to_amend", "amend = coalesce(amend, 0) + 1"},
	{"waiting", "coalesce(triage, @triage{open}) < @triage{expected}"},
	{"ids", "(SELECT CAST(value AS BIGINT) FROM @texts{$1})"},
	{"message",
		"id, key, receiver, destination, thread, state, receipt, attempts, $1, CASE"
		" WHEN attempt_started IS NULL THEN 0 ELSE 1 END, coalesce(not_before, 0), kind"},
	{0},
};

static const struct sql_word *word_of(const struct sql_word *words, const char *name, size_t length)
{
	while (words->name && !is_named(words->name, name, length))
		words++;
	return words->name ? words : NULL;
}

/* The names of a table's columns, or a statement of that kind. */
static void put_table(struct buf *out, char kind, const struct sql_table *table)
{
	const struct stored_column *columns = table->columns;
	const char *comma = "";

	if (kind ==
		'<') { /* a page of rows after a key, ?1 ...; the next parameter is its length */
		buf_text(out, "SELECT ");
		schema_put_columns(out, columns, 0, "", 0);
		buf_printf(out, " FROM %s WHERE (", table->name);
		schema_put_columns(out, columns, COLUMN_KEY, "", 0);
		buf_text(out, ") > (");
		schema_put_columns(out, columns, COLUMN_KEY, "", 1);
		buf_text(out, ") ORDER BY ");
		schema_put_columns(out, columns, COLUMN_KEY, "", 0);
		buf_printf(out, " LIMIT ?%d", schema_keys(table) + 1);
		return;
	}
	if (kind)
		buf_printf(out, "INSERT INTO %s (", table->name);
	schema_put_columns(out, columns, 0, "", 0);
	if (!kind)
		return;
	buf_text(out, ") VALUES (");
	schema_put_columns(out, columns, 0, "", 1);
	buf_char(out, ')');
	if (kind == '+')
		return;
	buf_text(out, " ON CONFLICT (");
	schema_put_columns(out, columns, COLUMN_KEY, "", 0);
	buf_text(out, ") DO UPDATE SET ");
	for (columns += schema_keys(table); columns->name; columns++) {
		buf_printf(out, "%s%s = excluded.%s", comma, columns->name, columns->name);
		comma = ", ";
	}
}

/* The text of a word, with its arguments from between the braces. */
static void put_word(struct buf *out, const struct sql_words *words, const char *text,
	const char *arguments, size_t length)
{
	size_t first = 0;
	struct buf whole = {0};

	while (first < length && arguments[first] != ',')
		first++;
	for (; *text; text++)
		if (*text != '$' || (text[1] != '1' && text[1] != '2'))
			buf_char(&whole, *text);
		else if (*++text == '1')
			buf_append(&whole, arguments, first);
		else
			buf_append(&whole, arguments + first + 1, length - first - 1);
	if (whole.data)
		statement_put(out, words, whole.data);
	buf_free(&whole);
}

/* The number that something of these kinds has in its column. */
static bool put_number(struct buf *out, const char *mark, const char *name, size_t length)
{
	static const char *const lines[BISECTION_LINES] = {[BISECTION_BEGIN] = "begin",
		[BISECTION_RESULT] = "result",
		[BISECTION_ANSWER] = "answer"};
	static const char *const deliveries[] = {[DELIVERY_QUEUED] = "queued",
		[DELIVERY_SENT] = "sent",
		[DELIVERY_ABANDONED] = "abandoned"};
	static const struct {
		const char *mark, *const *names;
		int count;
	} kinds[] = {{"state", change_state_names, CHANGE_STATES},
		{"news", notify_state_names, NOTIFY_COUNT},
		{"triage", triage_state_names, TRIAGE_STATES}, {"event", event_names, EVENT_KINDS},
		{"delivery", deliveries, DELIVERY_ABANDONED + 1},
		{"bisection", bisection_state_names, BISECTION_STATES},
		{"line", lines, BISECTION_LINES}};
	size_t kind = 0;
	int number = 0;

	while (kind < sizeof kinds / sizeof *kinds &&
		!is_named(kinds[kind].mark, mark, strcspn(mark, "{")))
		kind++;
	if (kind == sizeof kinds / sizeof *kinds)
		return false;
	while (number < kinds[kind].count &&
		(!kinds[kind].names[number] || !is_named(kinds[kind].names[number], name, length)))
		number++;
	assert(number < kinds[kind].count);
	buf_printf(out, "%d", number);
	return true;
}

/* Returns the position after the mark. */
static const char *put_mark(struct buf *out, const struct sql_words *words, const char *mark)
{
	char kind = *mark && strchr("<+=", *mark) ? *mark : '\0';
	const char *name = mark + (kind != '\0');
	size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz_");
	const char *end = name + length, *arguments = end + (*end == '{');
	size_t inside = *end == '{' ? strcspn(arguments, "}") : 0;
	const struct sql_word *word;
	unsigned columns = 0;
	int first = 0;

	if (*end == '{' && put_number(out, name, arguments, inside))
		return arguments + inside + 1;
	for (size_t i = 0; i < STORE_TABLES; i++)
		if (is_named(schema_tables[i].name, name, length)) {
			put_table(out, kind, &schema_tables[i]);
			return end;
		}
	word = word_of(common, name, length);
	word = word ? word : word_of(words->words, name, length);
	if (word) {
		put_word(out, words, word->text, arguments, inside);
		return *end == '{' ? arguments + inside + 1 : end;
	}
	if (*end == '?') {
		first = atoi(end + 1);
		end += 1 + strspn(end + 1, "0123456789");
	}
	/* Columns of a change. */
	if (is_named("found", name, length))
		columns = COLUMN_FOUND;
	else if (is_named("compared", name, length))
		columns = COLUMN_COMPARED;
	else
		assert(is_named("record", name, length));
	schema_put_columns(
		out, change_columns, columns, columns == COLUMN_FOUND ? "" : "changes.", first);
	return end;
}

void statement_put(struct buf *out, const struct sql_words *words, const char *text)
{
	for (const char *mark; (mark = strchr(text, '@')); text = put_mark(out, words, mark + 1))
		buf_append(out, text, (size_t)(mark - text));
	buf_text(out, text);
}

struct sql_statement *statement_of(struct tx *tx, const char *text)
{
	size_t at = (uintptr_t)text / 8 % SLOTS, tries = 0;
	struct statement_slot *slot;

	if (!tx->slots)
		tx->slots = memory_new(SLOTS, sizeof *tx->slots);
	for (; tx->slots[at].text && tx->slots[at].text != text; at = (at + 1) % SLOTS)
		if (tries++ == SLOTS)
			abort();
	slot = &tx->slots[at];
	if (!slot->statement) {
		struct buf whole = {0};

		slot->text = text;
		statement_put(&whole, tx->backend->words, text);
		slot->statement = tx->backend->prepare(tx, whole.data);
		buf_free(&whole);
	}
	if (slot->statement)
		tx->backend->reset(slot->statement);
	return slot->statement;
}

void statements_free(struct tx *tx)
{
	for (size_t i = 0; tx->slots && i < SLOTS; i++)
		if (tx->slots[i].statement)
			tx->backend->finish(tx->slots[i].statement);
	free(tx->slots);
	tx->slots = NULL;
}
