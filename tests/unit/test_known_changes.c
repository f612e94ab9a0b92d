/*
 * conf/known_changes: entries are added to a document where they belong, everything else in it
 * stays as it is, and the loader reads back what was written.
 */
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/base/buf.h"
#include "agent/base/when.h"
#include "conf/known_changes.h"
#include "tests/unit/conf_schema.h"

static const struct known_change cache = {.test = "db.read",
	.metric = "p99{region=\"eu\"}",
	.commit = "15ce8e36",
	.from = WHEN_ALWAYS,
	.to = WHEN_NEVER,
	.direction = 1,
	.at_most = 21.25,
	.reason = "bigger cache: ${X}, \"PR\" 4411\nand more",
	.until = INT64_C(1796083200000)};
static const struct known_change disk = {.test = "db.write",
	.from = INT64_C(1769860800000),
	.to = INT64_C(1769860800000),
	.reason = "a new disk",
	.until = WHEN_NEVER};

#define CACHE_LINES(indent)                                                                        \
	indent "- test: \"db.read\"\n" indent "  metric: \"p99{region=\\\"eu\\\"}\"\n" indent      \
	       "  commit: \"15ce8e36\"\n" indent "  direction: \"up\"\n" indent                    \
	       "  at_most: 21.25\n" indent                                                         \
	       "  reason: \"bigger cache: $${X}, \\\"PR\\\" 4411\\nand more\"\n" indent            \
	       "  until: \"2026-12-01T00:00:00Z\"\n"
#define DISK_LINES(indent)                                                                         \
	indent "- test: \"db.write\"\n" indent "  time: \"2026-01-31T12:00:00Z\"\n" indent         \
	       "  reason: \"a new disk\"\n"
#define DISK_BRACES "{test: \"db.write\", time: \"2026-01-31T12:00:00Z\", reason: \"a new disk\"}"

static void inserts(const char *text, const struct known_change *entry, const char *expected)
{
	struct buf out = {0};
	struct error error;

	if (!known_changes_insert("x.yaml", text, strlen(text), entry, 1, &out, &error))
		fail_msg("%s\n%s", error.text, text);
	assert_string_equal(out.data, expected);
	buf_free(&out);
}

static void refuses(const char *text, const char *why)
{
	struct buf out = {0};
	struct error error;

	assert_false(known_changes_insert("x.yaml", text, strlen(text), &disk, 1, &out, &error));
	if (!strstr(error.text, why))
		fail_msg("%s\nis refused by: %s", text, error.text);
	buf_free(&out);
}

static void test_blocks(void **state)
{
	(void)state;
	inserts("", &cache, "known_changes:\n" CACHE_LINES("  "));
	inserts("# accepted\n", &disk, "# accepted\n\nknown_changes:\n" DISK_LINES("  "));
	inserts("known_changes:\n", &disk, "known_changes:\n" DISK_LINES("  "));
	inserts("known_changes: # none yet\n# end", &disk,
		"known_changes: # none yet\n" DISK_LINES("  ") "# end");
	inserts("tests:\n  a: {type: csv}", &disk,
		"tests:\n  a: {type: csv}\n\nknown_changes:\n" DISK_LINES("  "));
	inserts("known_changes:\n- test: a # the first\n  reason: >\n    long\n    text\n# end\n",
		&disk,
		"known_changes:\n- test: a # the first\n  reason: >\n    long\n    "
		"text\n" DISK_LINES("") "# end\n");
	inserts("known_changes:\n    - {test: a,\n       reason: b} # one\n\n# two\ntests: {}\n",
		&cache,
		"known_changes:\n    - {test: a,\n       reason: b} # "
		"one\n" CACHE_LINES("    ") "\n# two\ntests: {}\n");
	inserts("known_changes:\n  - test: a\n    list:\n      - x\n      - [y]", &disk,
		"known_changes:\n  - test: a\n    list:\n      - x\n      - "
		"[y]\n" DISK_LINES("  "));
	inserts("known_changes:\n  - reason: ${A}\n    more: {url: ${B}}\n", &disk,
		"known_changes:\n  - reason: ${A}\n    more: {url: ${B}}\n" DISK_LINES("  "));
}

static void test_brackets(void **state)
{
	(void)state;
	inserts("known_changes: []\n", &disk, "known_changes: [" DISK_BRACES "]\n");
	inserts("known_changes: [{test: \"\u00e4\"}] # x\n", &disk,
		"known_changes: [{test: \"\u00e4\"}, " DISK_BRACES "] # x\n");
	inserts("{known_changes: [a,\n b\n], tests: {}}", &disk,
		"{known_changes: [a,\n b\n, " DISK_BRACES "], tests: {}}");
}

static void test_what_cannot_be_added_to(void **state)
{
	(void)state;
	refuses("known_changes: null\n", "cannot add to its known_changes");
	refuses("x-list: &a [b]\nknown_changes: *a\n", "cannot add to its known_changes");
	refuses("{tests: {}}\n", "cannot add to its known_changes");
	refuses("known_changes: {test: a}\n", "expected known_changes: and a list");
	refuses("- a\n", "expected known_changes: and a list");
	refuses("known_changes: [\n", "x.yaml:");
	refuses("a: 1\n---\nb: 2\n", "second document");
}

static void folder_of(char path[100])
{
	strcpy(path, "/tmp/hunter-known-XXXXXX");
	assert_non_null(mkdtemp(path));
}

static struct config *load(const char *path, struct problems *problems)
{
	static const struct config_source source = {
		.schema = &test_schema, .env = test_environment};
	struct config *config = config_load(path, &source, problems);

	for (size_t i = 0; i < problems->count; i++)
		print_error("%s\n", problems->items[i].text);
	assert_non_null(config);
	return config;
}

static void same(const struct known_change *is, const struct known_change *wanted)
{
	assert_string_equal(is->test, wanted->test);
	assert_int_equal(is->metric != NULL, wanted->metric != NULL);
	if (is->metric)
		assert_string_equal(is->metric, wanted->metric);
	assert_int_equal(is->commit != NULL, wanted->commit != NULL);
	if (is->commit)
		assert_string_equal(is->commit, wanted->commit);
	assert_int_equal(is->from, wanted->from);
	assert_int_equal(is->to, wanted->to);
	assert_int_equal(is->direction, wanted->direction);
	assert_true(is->at_most == wanted->at_most);
	assert_string_equal(is->reason, wanted->reason);
	assert_int_equal(is->until, wanted->until);
}

/* A file is created, added to, keeps its rights, and is read back; a link stays a link. */
static void test_files(void **state)
{
	char folder[100], path[150], link[150], made[200];
	struct problems problems = {.arena = arena_new()};
	const struct known_change both[] = {cache, disk, disk};
	struct config *config;
	struct error error;
	struct stat info;
	size_t added;

	(void)state;
	folder_of(folder);
	snprintf(path, sizeof path, "%s/expected.yaml", folder);
	snprintf(link, sizeof link, "%s/link.yaml", folder);
	assert_true(known_changes_write(path, NULL, 0, &added, &error));
	assert_int_equal(access(path, F_OK), -1);
	assert_true(known_changes_write(path, &cache, 1, &added, &error));
	assert_int_equal(added, 1);
	assert_int_equal(chmod(path, 0640), 0);
	assert_int_equal(symlink("expected.yaml", link), 0);
	assert_true(known_changes_write(link, both, 3, &added, &error));
	assert_int_equal(added, 1); /* one is there, one comes twice */
	assert_int_equal(lstat(link, &info), 0);
	assert_true(S_ISLNK(info.st_mode));
	assert_int_equal(stat(path, &info), 0);
	assert_int_equal(info.st_mode & 07777, 0640);
	config = load(path, &problems);
	assert_int_equal(config->known_change_count, 2);
	same(&config->known_changes[0], &cache);
	same(&config->known_changes[1], &disk);
	config_free(config);

	snprintf(made, sizeof made, "%s/no/such/folder.yaml", folder);
	assert_false(known_changes_write(made, &disk, 1, &added, &error));
	assert_non_null(strstr(error.text, made));
	assert_false(known_changes_write("/proc/new.yaml", NULL, 0, &added, &error));
	assert_non_null(strstr(error.text, "/proc/new.yaml: cannot write the file: "));
	assert_false(known_changes_write("/proc/.hunter/new.yaml", NULL, 0, &added, &error));
	assert_false(known_changes_write(folder, &disk, 1, &added, &error));
	assert_non_null(strstr(error.text, folder));
	assert_int_equal(unlink(path) | unlink(link) | rmdir(folder), 0);
	arena_free(problems.arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_blocks),
		cmocka_unit_test(test_brackets), cmocka_unit_test(test_what_cannot_be_added_to),
		cmocka_unit_test(test_files)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
