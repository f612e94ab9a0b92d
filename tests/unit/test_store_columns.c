/*
 * A field is added to a change by one line in the table of its columns: it is in SQL, in what is
 * read, in JSON, in CSV and in a copy.
 */
#include "unit.h"

#define change_columns columns_as_they_are
#include "agent/model/columns.c"
#undef change_columns

#include <fcntl.h>

#include "agent/commands/commands.h"
#include "agent/model/record_json.h"
#include "tests/unit/store_talk.h"

enum { OWN = sizeof columns_as_they_are / sizeof *columns_as_they_are };

extern struct stored_column change_columns[OWN + 1];
struct stored_column change_columns[OWN + 1]; /* those of all files */

static const struct stored_column added = {
	"summary", COLUMN_TEXT, FOUND | OPTIONAL, COLUMN_OF(summary)};

static struct store_list *listed(const char *path)
{
	struct store_list *list = store_list_new(NULL, NULL);
	struct error error = {0};

	list->filter.limit = 9;
	if (!store_tx(path, STORE_READ, &list->call, &error))
		fail_msg("%s", error.text);
	assert_int_equal(list->records.count, 1);
	return list;
}

static void expect_csv(struct fixture *fixture, const char *path)
{
	char name[224], text[4096] = "";
	char words[6][256] = {"hunter-c", "changes", "--output", "csv", "--state-file"};
	char *arguments[] = {words[0], words[1], words[2], words[3], words[4], words[5]};
	int out = dup(1), file;

	snprintf(words[5], sizeof words[5], "%s", path);
	snprintf(name, sizeof name, "%s/out", fixture->folder);
	fflush(stdout);
	file = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(file >= 0 && dup2(file, 1) == 1);
	assert_int_equal(cli_main(6, arguments, commands), 0);
	fflush(stdout);
	assert_true(dup2(out, 1) == 1 && pread(file, text, sizeof text - 1, 0) > 0);
	close(file);
	close(out);
	assert_non_null(strstr(text, ",summary,"));
	assert_non_null(strstr(text, ",what held it,"));
}

static void test_a_field_is_added_by_one_line(void **state)
{
	struct fixture *fixture = *state;
	struct change_record record = example;
	struct store_copied copied;
	struct store_list *list;
	struct error error = {0};
	struct buf json = {0};
	char to[224];

	open_fixture(fixture);
	record.summary = "what held it";
	record_one(fixture, &record);
	assert_int_equal(count_rows(fixture, "changes WHERE summary = 'what held it'"), 1);
	store_close(fixture->store);
	fixture->store = NULL;
	snprintf(to, sizeof to, "%s/copy.db", fixture->folder);
	if (!store_copy(fixture->path, to, &copied, &error))
		fail_msg("%s", error.text);
	list = listed(to);
	assert_string_equal(list->records.items[0].summary, "what held it");
	record_put_json(&json, &list->records.items[0]);
	assert_non_null(strstr(json.data, ", \"summary\": \"what held it\""));
	expect_csv(fixture, to);
	buf_free(&json);
	store_call_free(&list->call);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(
		test_a_field_is_added_by_one_line, setup, teardown)};

	for (size_t i = 0; columns_as_they_are[i].name; i++)
		change_columns[i] = columns_as_they_are[i];
	change_columns[OWN - 1] = added;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
