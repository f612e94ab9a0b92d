/* Placeholders of SQL, and rows of PostgreSQL, without a server. */
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "agent/base/when.h"
#include "sources/postgres/bind.h"
#include "sources/postgres/rows.h"
#include "sources/postgres/sql.h"

static struct arena *arena;

static int set_up(void **state)
{
	(void)state;
	arena = arena_new();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	arena_free(arena);
	return 0;
}

/* The query as it is sent; "! why" where it is refused. All values must be the branch. */
static const char *query(const char *text)
{
	struct bound bound;
	struct error error;
	if (!bind_query(arena, text, "a'b", &bound, &error)) {
		assert_int_equal(error.kind, ERROR_USAGE);
		return arena_printf(arena, "! %s", error.text);
	}
	for (size_t i = 0; i < bound.count; i++) {
		assert_string_equal(bound.values[i], "a'b");
		assert_int_equal(bound.types[i], 0);
	}
	return bound.text;
}

static void branch_in_code(void **state)
{
	(void)state;
	assert_string_equal(query("SELECT 1"), "SELECT 1");
	assert_string_equal(query(""), "");
	assert_string_equal(query("x = %{BRANCH}"), "x =  $1 ");
	assert_string_equal(query("a=%{BRANCH}and b=%{BRANCH}"), "a= $1 and b= $2 ");
	assert_string_equal(query("a%{BRANCH}'b'"), "a $1 'b'");
	assert_string_equal(query("(%{BRANCH})::text"), "( $1 )::text");
	assert_string_equal(query("%{branch} %{BRANCH"), "%{branch} %{BRANCH");
	/* Otava's driver doubles the percent sign where there are placeholders. */
	assert_string_equal(query("a %% 2 = %{BRANCH}"), "a % 2 =  $1 ");
	assert_string_equal(query("a %% 2"), "a %% 2");
	assert_string_equal(query("a LIKE '%%' AND b = %{BRANCH}"), "a LIKE '%%' AND b =  $1 ");
}

static void branch_in_strings(void **state)
{
	(void)state;
	assert_string_equal(query("x = '%{BRANCH}'"), "x =  $1 ");
	assert_string_equal(query("x LIKE '%{BRANCH}%'"), "x LIKE  ($1::text || '%')");
	assert_string_equal(query("'refs/%{BRANCH}'"), " ('refs/' || $1::text)");
	assert_string_equal(query("'a''%{BRANCH}''b'"), " ('a''' || $1::text || '''b')");
	assert_string_equal(query("'%{BRANCH}%{BRANCH}'"), " ($1::text || $2::text)");
	assert_string_equal(query("e'\\'%{BRANCH}\\n'"), " (E'\\'' || $1::text || E'\\n')");
	assert_string_equal(query("E'%{BRANCH}'"), " $1 ");
	assert_string_equal(query("E'\\%{BRANCH}'"), "E'\\%{BRANCH}'");    /* an escaped % */
	assert_string_equal(query("'\\' || '%{BRANCH}'"), "'\\' ||  $1 "); /* a plain backslash */
	assert_string_equal(query("'' '%{BRANCH}'"), "''  $1 ");
	assert_string_equal(query("namE'%{BRANCH}'"), "namE $1 ");
}

static void branch_elsewhere(void **state)
{
	(void)state;
	assert_string_equal(query("1 -- %{BRANCH} '\n, %{BRANCH}"), "1 -- %{BRANCH} '\n,  $1 ");
	assert_string_equal(
		query("/* ' /* %{BRANCH} */ ' */ %{BRANCH}"), "/* ' /* %{BRANCH} */ ' */  $1 ");
	assert_non_null(strstr(query("\"%{BRANCH}\""), "part of a name"));
	assert_non_null(strstr(query("$$%{BRANCH}$$"), "single quotes"));
	assert_non_null(strstr(query("$a$ $$ ' %{BRANCH} $a$"), "single quotes"));
	assert_non_null(strstr(query("U&'%{BRANCH}'"), "single quotes"));
	assert_non_null(strstr(query("u&\"%{BRANCH}\""), "single quotes"));
	assert_non_null(strstr(query("n'%{BRANCH}'"), "single quotes"));
	assert_non_null(strstr(query("'%{BRANCH}"), "not closed"));
	assert_non_null(strstr(query("x = $1"), "parameters of its own"));
	assert_string_equal(query("$%{BRANCH}$"), "$ $1 $");
	assert_string_equal(query("a$1 $x$ $1 $x$ '$1' \"$1\""), "a$1 $x$ $1 $x$ '$1' \"$1\"");
}

static void too_much(void **state)
{
	(void)state;
	struct bound bound;
	struct error error;
	char *text = arena_alloc(arena, 2 << 20);
	for (size_t i = 0; i < BIND_PARAMETERS_MAX + 1; i++)
		strcat(text + i * 9, "%{BRANCH}");
	assert_false(bind_query(arena, text, "x", &bound, &error));
	assert_non_null(strstr(error.text, "more than 1000"));
	text[BIND_PARAMETERS_MAX * 9] = '\0';
	assert_true(bind_query(arena, text, "x", &bound, &error));
	assert_int_equal(bound.count, BIND_PARAMETERS_MAX);
	memset(text, ' ', (1 << 20) + 1);
	assert_false(bind_query(arena, text, "x", &bound, &error));
}

/* An update as it is sent, and behind it the values of its parameters. */
static const char *update(const char *text)
{
	static const struct pair named[] = {{"commit", "c'1\""}, {"id", "42"}, {"none", NULL},
		{"at", "2024-01-01 00:00:00.123456+00"}};
	struct bind_values values = {
		.metric = "p99", .named = {named, 4}, .numbers = {25, -20, 0.0001}};
	struct bound bound;
	struct error error;
	if (!bind_update(arena, text, &values, &bound, &error))
		return arena_printf(arena, "! %s", error.text);
	const char *out = bound.text;
	for (size_t i = 0; i < bound.count; i++) {
		out = arena_printf(
			arena, "%s [%s]", out, bound.values[i] ? bound.values[i] : "NULL");
		assert_true(bound.types[i] == 0 || bound.types[i] == BIND_TYPE_FLOAT8);
	}
	return out;
}

static void updates(void **state)
{
	(void)state;
	/* The statement of Otava's example. */
	assert_string_equal(
		update("UPDATE r SET {metric}_fwd=%s, {metric}_bwd=%s, {metric}_p=%s WHERE "
		       "e = '{commit}' AND c = {id}"),
		"UPDATE r SET p99_fwd= $1 , p99_bwd= $2 , p99_p= $3  WHERE e =  $4  AND c =  $5  "
		"[25] [-20] [0.0001] [c'1\"] [42]");
	assert_string_equal(update("'{metric}' {none} '{at}'"),
		" $1   $2   $3  [p99] [NULL] [2024-01-01 00:00:00.123456+00]");
	assert_string_equal(update("'{metric}/{commit}%d'"),
		" ($1::text || '/' || $2::text || '%d') [p99] [c'1\"]");
	assert_string_equal(update("\"{metric} {commit}\" = 1"), "\"p99 c'1\"\"\" = 1");
	assert_string_equal(update("'{{\"a\": {id}}}' {{}} %% '%%'"),
		" ('{\"a\": ' || $1::text || '}') {} % '%%' [42]");
	assert_string_equal(update("'{{}}' -- {{ {x}\n"), "'{}' -- { {x}\n");
	assert_string_equal(update("t_{id}.{metric} s.{id}"), "t_42.p99 s.42");
	assert_string_equal(update("{metric}"), "p99");
}

static void wrong_updates(void **state)
{
	(void)state;
	assert_non_null(strstr(update("t_{commit}"), "double quotes"));
	assert_non_null(strstr(update("{commit}_t"), "double quotes"));
	assert_non_null(strstr(update("{id}{commit}"), "double quotes"));
	assert_non_null(strstr(update("{other}"), "\"{other}\""));
	assert_non_null(strstr(update("'{commit!r}'"), "\"{commit!r}\""));
	assert_non_null(strstr(update("{}"), "not {metric}"));
	assert_non_null(strstr(update("a } b"), "not {metric}"));
	assert_non_null(strstr(update("a { b"), "not {metric}"));
	assert_non_null(strstr(update("%s %s %s %s"), "a fourth"));
	assert_non_null(strstr(update("$x${commit}$x$"), "single quotes"));
	assert_non_null(strstr(update("${id}$ x ${id}$"), "with a $"));
	assert_non_null(strstr(update("$a{id}b$ x $a{id}b$"), "with a $"));
	assert_non_null(strstr(update("a = '{metric}/%s'"), "outside of quotes only"));
	assert_non_null(strstr(update("\"a%s\" = 1"), "outside of quotes only"));
	assert_string_equal(update("a LIKE '%%s' /* '%s' */"), "a LIKE '%%s' /* '%s' */");
	assert_non_null(strstr(update("{metric}'x'"), "next to a quote"));
	assert_non_null(strstr(update("a_{none}"), "double quotes"));
	assert_non_null(strstr(update("%s = $1"), "parameters of its own"));
}

/* What a scanner says of a text: a letter for each piece. */
static const char *kinds(const char *text)
{
	const char *at = text, *end = text + strlen(text), *out = "";
	for (;;) {
		struct sql_piece piece = sql_next(at, end);
		if (piece.kind == SQL_END)
			return out;
		out = arena_printf(
			arena, "%s%c%s", out, ".cwsenokp"[piece.kind], piece.closed ? "" : "!");
		at += piece.length;
	}
}

static void pieces(void **state)
{
	(void)state;
	assert_string_equal(kinds("a'b'\"c\"$1"), "wsnp");
	assert_string_equal(kinds("E'\\''y'a"), "ews!");
	assert_string_equal(kinds("1E'x'"), "ws");
	assert_string_equal(kinds("a$b$c'"), "ws!");
	assert_string_equal(kinds("$a$x$b$y$a$z"), "ow");
	assert_string_equal(kinds("$a$x"), "o!");
	assert_string_equal(kinds("$+$"), "ccc");
	assert_string_equal(kinds("--x\ny/*/**/"), "kcwk!");
	assert_string_equal(kinds("U&'\\''"), "o!");
	assert_string_equal(kinds("\xc3\xa9'"), "ws!");
}

/* Results as libpq would give them. */
static PGresult *result_new(int columns, const char *const *names, const Oid *types)
{
	PGresult *result = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
	PGresAttDesc attributes[8] = {{0}};
	for (int i = 0; i < columns; i++) {
		attributes[i].name = arena_strdup(arena, names[i]);
		attributes[i].typid = types[i];
	}
	assert_true(PQsetResultAttrs(result, columns, attributes));
	return result;
}

static void put_row(PGresult *result, int row, const char *const *values)
{
	for (int i = 0; i < PQnfields(result); i++) {
		char *value = arena_strdup(arena, values[i]);
		assert_true(PQsetvalue(result, row, i, value, value ? (int)strlen(value) : -1));
	}
}

static void rows(void **state)
{
	(void)state;
	static const char *const names[] = {"time", "a", "b", "commit"};
	static const Oid types[] = {1184, TYPE_FLOAT8, TYPE_NUMERIC, 25};
	static const char *const attributes[] = {"commit"};
	static const char *const values[][4] = {
		{"2024-01-02 00:00:00.123456+00", "0.1", "12345678901234567890.5", "x"},
		{"2024-01-01 00:00:00.5+00", "-Infinity", NULL, NULL},
		{"2024-01-03 00:00:00+00", "NaN", "4e-320", ""}, {NULL, "1", "1", "x"},
		{"infinity", "1", "1", "x"}, {"2023-12-31 23:59:59.999+00", "1", "1", "x"}};
	struct postgres_options options = {.query = "q",
		.time_column = "time",
		.attributes = {attributes, 1},
		.update_statement = "x '{time}'"};
	struct query query = {.arena = arena,
		.options = &options,
		.since = INT64_C(1704067200000),
		.until = WHEN_NEVER};
	struct postgres_rows rows = {
		.query = &query, .place = "db", .max_rows = 3, .max_body = 1000};
	struct error error;
	PGresult *result = result_new(4, names, types);
	for (int i = 0; i < 6; i++)
		put_row(result, i, values[i]);
	assert_true(postgres_rows_take(&rows, result, &error));
	PQclear(result);
	postgres_rows_finish(&rows);

	assert_int_equal(query.data.count, 2);
	const struct series *a = &query.data.series[0], *b = &query.data.series[1];
	assert_string_equal(a->name, "a");
	assert_int_equal(a->axis->n, 3);
	assert_int_equal(a->axis->times[0], INT64_C(1704067200500));
	assert_int_equal(a->axis->times[1], INT64_C(1704153600123));
	assert_true(isinf(a->values[0]) && a->values[1] == 0.1 && isnan(a->values[2]));
	assert_true(isnan(b->values[0]) && b->values[1] == 12345678901234567890.5 &&
		    b->values[2] == 4e-320);
	assert_int_equal(a->axis->column_count, 1); /* the time's own text is not an attribute */
	assert_null(a->axis->columns[0].values[0]);
	assert_string_equal(a->axis->columns[0].values[1], "x");
	const struct postgres_stamps *stamps = query.state;
	assert_string_equal(stamps->texts[1], "2024-01-02 00:00:00.123456+00");
	assert_int_equal(query.notices.count, 2); /* two without a time; not in order */
	rows_free(&rows.table.rows);
}

static const char *refused(const char *time, const char *value, int64_t max_rows)
{
	static const char *const names[] = {"at", "a"};
	static const Oid types[] = {1114, 25};
	static const struct metric metric = {.name = "m", .column = "a", .scale = 2};
	struct postgres_options options = {.query = "q", .time_column = "at"};
	struct query query = {.arena = arena,
		.options = &options,
		.metrics = &metric,
		.metric_count = 1,
		.since = WHEN_ALWAYS,
		.until = WHEN_NEVER};
	struct postgres_rows rows = {
		.query = &query, .place = "db", .max_rows = max_rows, .max_body = 40};
	struct error error = {0};
	PGresult *result = result_new(2, names, types);
	const char *const good[] = {"2024-01-01", " 1.5 "}, *const bad[] = {time, value};
	put_row(result, 0, good);
	put_row(result, 1, bad);
	bool taken = postgres_rows_take(&rows, result, &error);
	PQclear(result);
	assert_true(rows.table.rows.numbers[0].values[0] == 1.5);
	rows_free(&rows.table.rows);
	return taken ? "" : arena_strdup(arena, error.text);
}

static void values(void **state)
{
	(void)state;
	assert_string_equal(refused("2024-01-02", "7", 2), "");
	assert_string_equal(refused("2024-01-02", "null", 2), "");
	assert_string_equal(refused("2024-01-02", NULL, 2), "");
	assert_string_equal(refused(NULL, "7", 1), "");
	assert_string_equal(refused("2024-01-02", "t", 2),
		"db: row 2, column \"a\": \"t\" is not a number (the query can cast it)");
	assert_string_equal(refused("0044-03-15 BC", "1", 2),
		"db: row 2, column \"at\": \"0044-03-15 BC\" is not a date");
	assert_non_null(strstr(refused("2024-01-02", "7", 1), "more than 1 rows"));
	/* 15 bytes the first row; all values count, whether the row does or not */
	assert_string_equal(refused("2024-01-02", "123456789012345", 2), "");
	assert_non_null(strstr(refused("2024-01-02", "1234567890123456", 2),
		"larger than 40 bytes: narrow the query down, or raise max_body"));
	assert_non_null(strstr(refused(NULL, "12345678901234567890123456", 2), "max_body"));
}

/* Texts that repeat are kept once. */
static void too_much_text(void **state)
{
	static const char *const names[] = {"at", "a", "commit"};
	static const Oid types[] = {1114, TYPE_FLOAT8, 25};
	static const char *const attributes[] = {"commit"};
	static const char *const values[][3] = {{"2024-01-01", "1", "x"}, {"2024-01-02", "1", "y"}};
	struct postgres_options options = {
		.query = "q", .time_column = "at", .attributes = {attributes, 1}};
	struct query query = {
		.arena = arena, .options = &options, .since = WHEN_ALWAYS, .until = WHEN_NEVER};
	struct postgres_rows rows = {
		.query = &query, .place = "db", .max_rows = 9, .max_body = 1000};
	struct error error = {0};

	(void)state;
	for (int i = 0; i < 3; i++) {
		PGresult *result = result_new(3, names, types);

		put_row(result, 0, values[i == 2]);
		assert_int_equal(postgres_rows_take(&rows, result, &error), i < 2);
		PQclear(result);
		rows.table.rows.text_bytes = 256 << 20;
	}
	assert_string_equal(error.text, "db: the attributes exceed 256 MB in total");
	rows_free(&rows.table.rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(branch_in_code, set_up, tear_down),
		cmocka_unit_test_setup_teardown(branch_in_strings, set_up, tear_down),
		cmocka_unit_test_setup_teardown(branch_elsewhere, set_up, tear_down),
		cmocka_unit_test_setup_teardown(too_much, set_up, tear_down),
		cmocka_unit_test_setup_teardown(updates, set_up, tear_down),
		cmocka_unit_test_setup_teardown(wrong_updates, set_up, tear_down),
		cmocka_unit_test_setup_teardown(pieces, set_up, tear_down),
		cmocka_unit_test_setup_teardown(rows, set_up, tear_down),
		cmocka_unit_test_setup_teardown(values, set_up, tear_down),
		cmocka_unit_test_setup_teardown(too_much_text, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
