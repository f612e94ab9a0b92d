/*
 * agent/evaluate/proposal: what the diff says, and that only the detections that are meant become
 * others.
 */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/evaluate/proposal.h"
#include "tests/unit/conf_schema.h"

struct world {
	char folder[64], *before;
	struct proposal *proposal;
	struct arena *arena;
};

static struct world begin(const char *text)
{
	struct world world = {.folder = "/tmp/test_proposal.XXXXXX", .arena = arena_new()};
	const struct config_source source = {.schema = &test_schema, .env = test_environment};
	struct error error;

	assert_non_null(mkdtemp(world.folder));
	world.before = getcwd(NULL, 0);
	assert_int_equal(chdir(world.folder), 0);
	FILE *file = fopen("h.yaml", "w");
	assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
	fclose(file);
	world.proposal = proposal_new("h.yaml", &source, &error);
	if (!world.proposal)
		fail_msg("%s", error.text);
	return world;
}

static void end(struct world *world)
{
	proposal_free(world->proposal);
	unlink("h.yaml");
	assert_int_equal(chdir(world->before), 0);
	rmdir(world->folder);
	free(world->before);
	arena_free(world->arena);
}

/* Those with this text, of tests whose names begin like this. */
struct choice {
	const char *begin, *text;
	struct arena *arena;
};

static bool is_chosen(void *context, const struct test *test, const struct detection *detection)
{
	const struct choice *choice = context;

	return strncmp(test->name, choice->begin, strlen(choice->begin)) == 0 &&
	       strcmp(detection_text(&test_schema, detection, choice->arena), choice->text) == 0;
}

static bool set(struct world *world, const char *begin, const char *text, const char *name,
	const char *value, struct error *error)
{
	const struct setting setting = {name, value};
	struct choice choice = {begin, text, world->arena};

	return proposal_set(world->proposal, &setting, 1, is_chosen, &choice, error);
}

static void check_diff(const struct world *world, const char *wanted)
{
	struct buf diff = {0};

	proposal_put_diff(world->proposal, &diff);
	assert_string_equal(diff.data ? diff.data : "", wanted);
	buf_free(&diff);
}

static void check(const char *config, const char *begins, const char *text, const char *name,
	const char *value, const char *wanted)
{
	struct world world = begin(config);
	struct error error;

	if (!set(&world, begins, text, name, value, &error))
		fail_msg("%s", error.text);
	check_diff(&world, wanted);
	end(&world);
}

static void test_the_file_s_own_detection(void **state)
{
	(void)state;
	check("# what we watch\n"
	      "detection:\n"
	      "  p_value: 0.001   # strict\n"
	      "\n"
	      "tests:\n"
	      "  a: {type: csv, file: a.csv}\n"
	      "  b: {type: csv, file: b.csv}\n",
		"", "edivisive", "p_value", "1e-05",
		"--- h.yaml\n+++ h.yaml\n"
		"@@ -1,6 +1,6 @@\n"
		" # what we watch\n"
		" detection:\n"
		"-  p_value: 0.001   # strict\n"
		"+  p_value: 1e-05   # strict\n"
		" \n"
		" tests:\n"
		"   a: {type: csv, file: a.csv}\n");
	check("detection: {window: 30}\ntests:\n  a: {type: csv, file: a.csv}\n", "",
		"edivisive(window=30)", "magnitude", "0.05",
		"--- h.yaml\n+++ h.yaml\n"
		"@@ -1,3 +1,3 @@\n"
		"-detection: {window: 30}\n"
		"+detection: {magnitude: 0.05, window: 30}\n"
		" tests:\n"
		"   a: {type: csv, file: a.csv}\n");
	check("detection:\ntests:\n  a: {type: csv, file: a.csv}\n", "", "edivisive", "confirm",
		"8 points",
		"--- h.yaml\n+++ h.yaml\n"
		"@@ -1,3 +1,3 @@\n"
		"-detection:\n"
		"+detection: {confirm: 8 points}\n"
		" tests:\n"
		"   a: {type: csv, file: a.csv}\n");
}

static void test_added_where_there_is_none(void **state)
{
	(void)state;
	check("tests:\n  a: {type: csv, file: a.csv}", "", "edivisive", "magnitude", "0.05",
		"--- h.yaml\n+++ h.yaml\n"
		"@@ -1,2 +1,5 @@\n"
		" tests:\n"
		"-  a: {type: csv, file: a.csv}\n"
		"\\ No newline at end of file\n"
		"+  a: {type: csv, file: a.csv}\n"
		"+\n"
		"+detection:\n"
		"+  magnitude: 0.05\n");
}

static void test_only_one_test(void **state)
{
	static const char config[] = "tests:\n"
				     "  one:\n"
				     "    type: csv\n"
				     "    # where it is\n"
				     "    file: a.csv\n"
				     "  \"k\xc3\xa4se\": {type: csv, file: b.csv}\n";

	(void)state;
	check(config, "one", "edivisive", "magnitude", "0.05",
		"--- h.yaml\n+++ h.yaml\n"
		"@@ -1,6 +1,7 @@\n"
		" tests:\n"
		"   one:\n"
		"     type: csv\n"
		"+    detection: {magnitude: 0.05}\n"
		"     # where it is\n"
		"     file: a.csv\n"
		"   \"k\xc3\xa4se\": {type: csv, file: b.csv}\n");
	check(config, "k", "edivisive", "magnitude", "0.05",
		"--- h.yaml\n+++ h.yaml\n"
		"@@ -3,4 +3,4 @@\n"
		"     type: csv\n"
		"     # where it is\n"
		"     file: a.csv\n"
		"-  \"k\xc3\xa4se\": {type: csv, file: b.csv}\n"
		"+  \"k\xc3\xa4se\": {detection: {magnitude: 0.05}, type: csv, file: b.csv}\n");
}

/* A test with settings of its own keeps what it gets from the file. */
static void test_others_stay(void **state)
{
	static const char config[] = "tests:\n"
				     "  a: {type: csv, file: a.csv}\n"
				     "  b:\n"
				     "    type: csv\n"
				     "    file: b.csv\n"
				     "    detection:\n"
				     "      window: 30\n"
				     "    metrics: {x: {}, y: {detection: {p_value: 0.01}}}\n";

	(void)state;
	check(config, "", "edivisive", "magnitude", "0.05",
		"--- h.yaml\n+++ h.yaml\n"
		"@@ -1,5 +1,5 @@\n"
		" tests:\n"
		"-  a: {type: csv, file: a.csv}\n"
		"+  a: {detection: {magnitude: 0.05}, type: csv, file: a.csv}\n"
		"   b:\n"
		"     type: csv\n"
		"     file: b.csv\n");
	check(config, "", "edivisive(window=30)", "p_value", "0.0001",
		"--- h.yaml\n+++ h.yaml\n"
		"@@ -5,4 +5,5 @@\n"
		"     file: b.csv\n"
		"     detection:\n"
		"       window: 30\n"
		"+      p_value: 0.0001\n"
		"     metrics: {x: {}, y: {detection: {p_value: 0.01}}}\n");
	check(config, "", "edivisive(window=30, p_value=0.01)", "p_value", "0.0001",
		"--- h.yaml\n+++ h.yaml\n"
		"@@ -5,4 +5,4 @@\n"
		"     file: b.csv\n"
		"     detection:\n"
		"       window: 30\n"
		"-    metrics: {x: {}, y: {detection: {p_value: 0.01}}}\n"
		"+    metrics: {x: {}, y: {detection: {p_value: 0.0001}}}\n");
	check(config, "", "edivisive(window=30)", "magnitude", "0.05",
		"--- h.yaml\n+++ h.yaml\n"
		"@@ -5,4 +5,4 @@\n"
		"     file: b.csv\n"
		"     detection:\n"
		"       window: 30\n"
		"-    metrics: {x: {}, y: {detection: {p_value: 0.01}}}\n"
		"+    metrics: {x: {detection: {magnitude: 0.05}}, y: {detection: {p_value: "
		"0.01}}}\n");
}

static void test_a_template(void **state)
{
	(void)state;
	check("templates:\n"
	      "  t:\n"
	      "    detection: {window: 30}\n"
	      "tests:\n"
	      "  a: {type: csv, file: a.csv, inherit: t}\n"
	      "  b: {type: csv, file: b.csv, inherit: [t]}\n"
	      "  c: {type: csv, file: b.csv}\n",
		"", "edivisive(window=30)", "magnitude", "0.05",
		"--- h.yaml\n+++ h.yaml\n"
		"@@ -1,6 +1,6 @@\n"
		" templates:\n"
		"   t:\n"
		"-    detection: {window: 30}\n"
		"+    detection: {magnitude: 0.05, window: 30}\n"
		" tests:\n"
		"   a: {type: csv, file: a.csv, inherit: t}\n"
		"   b: {type: csv, file: b.csv, inherit: [t]}\n");
}

/* Two in turn, and a third that finds no place: an alias means both tests. */
static void test_several(void **state)
{
	struct world world = begin("x-d: &d {window: 30}\n"
				   "tests:\n"
				   "  a: {type: csv, file: a.csv, detection: *d}\n"
				   "  b: {type: csv, file: b.csv, detection: *d}\n"
				   "  c: {type: csv, file: b.csv}\n");
	struct error error;

	(void)state;
	assert_true(set(&world, "c", "edivisive", "window", "20", &error));
	assert_true(set(&world, "c", "edivisive(window=20)", "magnitude", "0.1", &error));
	assert_false(set(&world, "a", "edivisive(window=30)", "magnitude", "0.05", &error));
	assert_string_equal(error.text, "h.yaml cannot set this for these metrics only");
	check_diff(&world,
		"--- h.yaml\n+++ h.yaml\n"
		"@@ -2,4 +2,4 @@\n"
		" tests:\n"
		"   a: {type: csv, file: a.csv, detection: *d}\n"
		"   b: {type: csv, file: b.csv, detection: *d}\n"
		"-  c: {type: csv, file: b.csv}\n"
		"+  c: {detection: {magnitude: 0.1, window: 20}, type: csv, file: b.csv}\n");
	end(&world);
}

/* What the detector refuses is not proposed. */
static void test_a_value_that_is_refused(void **state)
{
	struct world world = begin("tests:\n  a: {type: csv, file: a.csv}\n");
	struct error error;

	(void)state;
	assert_false(set(&world, "", "edivisive", "p_value", "7", &error));
	check_diff(&world, "");
	end(&world);
}

static void test_secrets_are_not_shown(void **state)
{
	(void)state;
	check("slack:\n"
	      "  bot_token: gamma\n"
	      "detection:\r\n"
	      "  window: 30\r\n"
	      "slack2:\n"
	      "  bot_token: gamma\n"
	      "tests:\n"
	      "  a: {type: csv, file: a.csv}\n",
		"", "edivisive(window=30)", "p_value", "0.01",
		"--- h.yaml\n+++ h.yaml\n"
		"@@ -3,2 +3,3 @@\n"
		" detection:\r\n"
		"   window: 30\r\n"
		"+  p_value: 0.01\r\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_file_s_own_detection),
		cmocka_unit_test(test_added_where_there_is_none),
		cmocka_unit_test(test_only_one_test),
		cmocka_unit_test(test_others_stay),
		cmocka_unit_test(test_a_template),
		cmocka_unit_test(test_several),
		cmocka_unit_test(test_a_value_that_is_refused),
		cmocka_unit_test(test_secrets_are_not_shown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
