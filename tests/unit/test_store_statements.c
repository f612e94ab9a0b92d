/*
 * Each statement of the state is one that the database understands, and of one that is for both
 * each of them does, whether a test runs it or not. HUNTER_STATEMENTS is a file with all of them
 * (tests/statements.py).
 */
#include "unit.h"

#include "agent/store/backend.h"
#include "agent/store/postgresql/connection.h"
#include "agent/store/postgresql/statements.h"
#include "agent/store/sql/statements.h"
#include "tests/unit/store_talk.h"

enum { STATEMENTS_LEAST = 200 };

/* What the server is sent has $1 for ?1. */
static bool prepare_with(
	struct tx *tx, const char *const *types, const char *text, struct error *error)
{
	struct buf translated = {0}, whole = {0};
	int count = 0;
	bool done;

	statement_put(&translated, &postgresql_words, text);
	for (char *at = translated.data; *at; at++)
		if (*at == '?' && at[1] >= '0' && at[1] <= '9') {
			*at = '$';
			count = atoi(at + 1) > count ? atoi(at + 1) : count;
		}
	buf_text(&whole, "PREPARE statement ");
	for (int i = 0; i < count; i++)
		buf_printf(
			&whole, "%s%s%s", i == 0 ? "(" : ", ", types[i], i + 1 == count ? ")" : "");
	buf_printf(&whole, " AS %s", translated.data);
	done = connection_run(connection_of(tx), whole.data, NULL) &&
	       connection_run(connection_of(tx), "DEALLOCATE statement", NULL);
	buf_free(&translated);
	buf_free(&whole);
	return done || connection_fail(connection_of(tx), error);
}

/* A type that is not known beside the text, and that the server asks for, is one of two. */
static bool prepare_on_server(
	struct tx *tx, const char *known, const char *text, struct error *error)
{
	const char *types[PARAMETERS_MOST], *asked, **guess = NULL;
	char *rest = strdup(known), *next = rest;
	bool done;

	for (int i = 0; i < PARAMETERS_MOST; i++)
		types[i] = next && *next ? strsep(&next, ",") : "unknown";
	while (!(done = prepare_with(tx, types, text, error))) {
		asked = strstr(error->text, "parameter $");
		if (asked && strstr(error->text, "(SQLSTATE 42P"))
			guess = &types[atoi(asked + strlen("parameter $")) - 1];
		if (!guess || strcmp(*guess, "bigint") == 0)
			break;
		*guess = strcmp(*guess, "text") == 0 ? "bigint" : "text";
	}
	free(rest);
	return done;
}

static bool prepare(struct tx *tx, const char *types, const char *text, struct error *error)
{
	tx->error = error;
	tx->failed = false;
	return state_is_database()
		       ? prepare_on_server(tx, types, text, error)
		       : statement_of(tx, text) || (tx->backend->fail)(tx, "prepare it");
}

static void test_each_statement_is_understood(void **state)
{
	struct fixture *fixture = *state;
	const struct store_backend *backend =
		state_is_database() ? &postgresql_backend : &sqlite_backend;
	struct error error;
	struct tx *tx = backend->open(fixture->path, STORE_OWN, &error);
	struct arena *arena = arena_new(); /* a statement is known by where its text is */
	size_t count = 0, wrong = 0, room = 0;
	char *line = NULL;
	FILE *file = fopen(HUNTER_STATEMENTS, "re");

	assert_non_null(tx);
	assert_non_null(file);
	for (; getline(&line, &room, file) > 0; count++) {
		char *rest = arena_strdup(arena, line);
		const char *name = strsep(&rest, "\t"), *types = strsep(&rest, "\t");
		const char *text = strsep(&rest, "\n");

		if (!state_is_database() && strncmp(name, "postgresql/", 11) == 0)
			continue;
		if (!prepare(tx, types, text, &error)) {
			print_error("%s: %s\n  %s\n", name, error.text, text);
			wrong++;
		}
	}
	assert_int_equal(wrong, 0);
	assert_true(count >= STATEMENTS_LEAST);
	free(line);
	fclose(file);
	backend->close(tx);
	arena_free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {CASE(test_each_statement_is_understood)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
