/*
 * agent/commands/: every flag of every command with values that it may not take. Each command line
 * runs in a process of its own and ends with one of the documented exit codes, and no message
 * repeats itself.
 */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/commands/commands.h"
#include "tests/unit/repeats.h"

static const char *const values[] = {"", "no=such", "bad.csv"};

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

/* The child: its streams are files, and no variable names another configuration. */
static void run(const char *command, const char *flag, const char *value)
{
	char *once = strcmp(command, "run") == 0 ? strdup("--once") : NULL;
	char *arguments[] = {strdup("hunter-c"), strdup(command), strdup(flag), strdup(value),
		strdup("--config"), strdup("hunter.yaml"), once, NULL};

	if (!freopen("/dev/null", "r", stdin) || !freopen("out", "w", stdout) ||
		!freopen("err", "w", stderr))
		_exit(100);
	exit(cli_main(once ? 7 : 6, arguments, commands));
}

static void check(const char *command, const char *flag, const char *value)
{
	char text[16384];
	pid_t child = fork();
	FILE *err;
	int status;

	assert_true(child >= 0);
	if (child == 0)
		run(command, flag, value);
	assert_int_equal(waitpid(child, &status, 0), child);
	err = fopen("err", "r");
	assert_non_null(err);
	text[fread(text, 1, sizeof text - 1, err)] = '\0';
	fclose(err);
	if (!WIFEXITED(status) || WEXITSTATUS(status) > EXIT_STATE)
		fail_msg("%s %s '%s': status %d: %s", command, flag, value, status, text);
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		if (repeats(line))
			fail_msg("%s %s '%s' repeats itself: %s", command, flag, value, line);
}

static void check_flags(const struct command *command, const struct field *fields, size_t *count)
{
	for (; fields->name; fields++, (*count)++) {
		char flag[80];

		snprintf(flag, sizeof flag, "--%s", fields->name);
		for (char *at = strchr(flag, '_'); at; at = strchr(at, '_'))
			*at = '-';
		for (size_t i = 0; i < sizeof values / sizeof *values; i++)
			check(command->name, flag, values[i]);
	}
}

static void test_wrong_values(void **state)
{
	char folder[] = "/tmp/hunter-flags-XXXXXX", remove[64];
	size_t count = 0;

	(void)state;
	assert_non_null(mkdtemp(folder));
	assert_int_equal(chdir(folder), 0);
	unsetenv("HUNTER_CONFIG"), unsetenv("OTAVA_CONFIG"), unsetenv("BRANCH");
	write_file("bad.csv", "time,v\n1,2\nx,y\n");
	write_file("x.csv", "time,v\n1700000000,1\n");
	write_file("hunter.yaml",
		"agent: {state: s.db, listen: '127.0.0.1:0'}\n"
		"prometheus: {url: 'http://127.0.0.1:1'}\n"
		"tests: {a: {type: csv, file: x.csv}, b: {type: csv, file: bad.csv},\n"
		"  c: {type: csv, file: none.csv}, d: {type: prometheus, query: x}}\n");
	for (const struct command *const *each = commands; *each; each++)
		for (const struct option_part *part = (*each)->parts; part && part->fields; part++)
			check_flags(*each, part->fields, &count);
	assert_true(count > 200);
	snprintf(remove, sizeof remove, "rm -rf %s", folder);
	assert_int_equal(system(remove), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_wrong_values)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
