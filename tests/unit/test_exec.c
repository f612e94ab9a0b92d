/*
 * The receiver exec with real commands, by the engine: what a command gets, what its end means, and
 * that nothing of it is left.
 */
#include "unit.h"
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/base/clock.h"
#include "agent/io/engine.h"
#include "agent/io/execution.h"
#include "delivery_talk.h"
#include "tests/unit/waiting.h"

struct outcome {
	bool done, sent;
	struct error error;
};

struct world {
	struct fixture *talk;
	struct engine *engine;
	char folder[32];
	struct outcome outcome;
};

static int setup(void **state)
{
	struct world *world = calloc(1, sizeof *world);
	struct error error;

	world->talk = talk_new(&exec_notifier, "", "{\"version\":1}");
	strcpy(world->folder, "/tmp/hunter-exec-XXXXXX");
	assert_non_null(mkdtemp(world->folder));
	world->engine = engine_new(&(struct engine_options){.jobs = 1}, &error);
	assert_non_null(world->engine);
	*state = world;
	return 0;
}

/* Nothing is left: no child, not even a dead one. */
static int clear(void **state)
{
	struct world *world = *state;
	void *talk = world->talk;
	char command[64];

	assert_true(engine_free(world->engine));
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	snprintf(command, sizeof command, "rm -r %s", world->folder);
	assert_int_equal(system(command), 0);
	free(world);
	return teardown(&talk);
}

static void keep_outcome(
	struct attempt *attempt, bool sent, const struct error *error, void *context)
{
	struct outcome *outcome = context;

	(void)attempt;
	*outcome = (struct outcome){.done = true, .sent = sent};
	if (!sent)
		outcome->error = *error;
}

static void set_command(struct world *world, const char *const *words, size_t count)
{
	const struct field *field = field_find(exec_notifier.plugin.fields, "command");
	char *options = world->talk->options;

	*(struct strings *)(void *)(options + field->offset) = (struct strings){words, count};
}

/* Has a shell run the script, in which $1 is the folder. */
static void set_script(struct world *world, const char *script)
{
	const char **words = arena_array(world->talk->arena, 5, sizeof *words);

	words[0] = "sh";
	words[1] = "-c";
	words[2] = script;
	words[3] = "script";
	words[4] = world->folder;
	set_command(world, words, 5);
}

static void deliver(struct world *world)
{
	world->outcome.done = false;
	engine_deliver(world->engine, &exec_notifier, &world->talk->attempt, keep_outcome,
		&world->outcome);
	assert_true(engine_run(world->engine));
	assert_true(world->outcome.done);
}

static void deliver_by(struct world *world, const char *script)
{
	set_script(world, script);
	deliver(world);
}

static char *content(struct world *world, const char *name)
{
	char path[64];
	char *text = arena_alloc(world->talk->arena, 4 << 20);
	FILE *file;

	snprintf(path, sizeof path, "%s/%s", world->folder, name);
	file = fopen(path, "r");
	if (!file)
		return NULL;
	text[fread(text, 1, (4 << 20) - 1, file)] = '\0';
	fclose(file);
	return text;
}

static void assert_failed(struct world *world, const char *text, bool retry, enum error_kind kind)
{
	assert_false(world->outcome.sent);
	assert_string_equal(world->outcome.error.text, text);
	assert_int_equal(world->talk->attempt.retry, retry);
	assert_int_equal(world->outcome.error.kind, kind);
}

static void test_input(void **state)
{
	struct world *world = *state;
	enum { LENGTH = 3 << 20 };
	char *payload = arena_alloc(world->talk->arena, LENGTH + 1);

	memset(payload, 'x', LENGTH);
	payload[0] = '{';
	payload[LENGTH] = '\0';
	world->talk->attempt.payload = payload;
	deliver_by(world, "cat >$1/got");
	assert_true(world->outcome.sent);
	assert_string_equal(content(world, "got"), payload);
	deliver_by(world, "exit 0"); /* without reading it */
	assert_true(world->outcome.sent);
}

static void test_ends(void **state)
{
	struct world *world = *state;
	static const char *const missing[] = {"/nonexistent/bisect", "--all"};
	static const char *const refused[] = {"/etc/passwd"};

	deliver_by(world, "echo told; echo no error >&2");
	assert_true(world->outcome.sent);
	deliver_by(world, "echo; echo not now >&2; echo later >&2; exit 75");
	assert_failed(world, "exec: sh: exit status 75: not now", true, ERROR_DATA);
	deliver_by(world, "echo 'no such commit'; exit 3");
	assert_failed(world, "exec: sh: exit status 3: no such commit", false, ERROR_DATA);
	deliver_by(world, "exit 1");
	assert_failed(world, "exec: sh: exit status 1", false, ERROR_DATA);
	deliver_by(world, "kill -SEGV $$");
	assert_failed(world,
		"exec: sh: exit status 139: killed by signal 11 (Segmentation "
		"fault)",
		false, ERROR_DATA);
	set_command(world, missing, 2);
	deliver(world);
	assert_failed(world, "exec: /nonexistent/bisect: cannot start: No such file or directory",
		false, ERROR_USAGE);
	set_command(world, refused, 1);
	deliver(world);
	assert_failed(
		world, "exec: /etc/passwd: cannot start: Permission denied", false, ERROR_USAGE);
}

/* Both streams at once, far more than a pipe holds. */
static void test_much_output(void **state)
{
	struct world *world = *state;

	deliver_by(world, "head -c 3000000 /dev/zero & head -c 3000000 /dev/zero >&2; wait; "
			  "echo >&2; echo late >&2; exit 1");
	assert_false(world->outcome.sent);
	assert_in_range(strlen(world->outcome.error.text), 20, 30 + EXECUTION_LINE);
}

static void test_surroundings(void **state)
{
	struct world *world = *state;
	static const struct pair given[] = {{"TOKEN", "tok-canary-1"}, {"HOME", "/elsewhere"}};
	const struct field *field = field_find(exec_notifier.plugin.fields, "environment");
	int open[2], high = 200;
	char *text;

	*(struct pairs *)(void *)((char *)world->talk->options + field->offset) =
		(struct pairs){given, 2};
	setenv("HUNTER_SECRET", "canary", 1);
	assert_int_equal(pipe(open), 0); /* without O_CLOEXEC, as libraries may open them */
	assert_int_equal(dup2(open[0], high), high);
	deliver_by(world, "env | cut -d= -f1 | sort | tr '\\n' ' ' >$1/names; "
			  "echo \"$HOME\" >$1/home; ls /proc/self/fd | tr '\\n' ' ' >$1/fds; "
			  "ps -o pid= -o pgid= $$ >$1/group; "
			  "grep -E '^Sig(Blk|Ign)' /proc/self/status >$1/signals; "
			  "echo \"$TOKEN\" >$1/token; echo \"bad $TOKEN\" >&2; exit 1");
	unsetenv("HUNTER_SECRET");
	close(open[0]);
	close(open[1]);
	close(high);
	assert_failed(world, "exec: sh: exit status 1: bad ************", false, ERROR_DATA);
	assert_string_equal(content(world, "token"), "tok-canary-1\n");
	assert_string_equal(content(world, "home"), "/elsewhere\n");
	text = content(world, "names");
	assert_non_null(strstr(text, "PATH"));
	assert_null(strstr(text, "SECRET"));
	assert_string_equal(content(world, "fds"), "0 1 2 3 "); /* 3 is ls's own */
	text = content(world, "group");
	assert_true(strtol(text, &text, 10) == strtol(text, NULL, 10));
	text = content(world, "signals"); /* libc's own, from 32 on, do not count */
	assert_int_equal(strtoull(strstr(text, "SigBlk:") + 7, NULL, 16), 0);
	assert_int_equal(strtoull(strstr(text, "SigIgn:") + 7, NULL, 16) & 0x7fffffff, 0);
}

static bool lives(struct world *world, const char *name)
{
	pid_t pid = (pid_t)atol(content(world, name));
	char path[32], state = 'Z';
	FILE *file;

	assert_true(pid > 1);
	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	file = fopen(path, "r");
	if (!file)
		return false;
	if (fscanf(file, "%*d %*s %c", &state) != 1)
		state = 'Z';
	fclose(file);
	return state != 'Z';
}

/* A script that does not end, and notes in "begun" that it has got as far as it should before it is
 * ended: the limit is as long as that takes on a busy machine. */
static void deliver_for_too_long(struct world *world, const char *script)
{
	static const char *const limits[] = {"200ms", "2s", "20s", "200s"};
	size_t i = 0;
	char text[80];

	do {
		set_option(world->talk, "timeout", limits[i]);
		deliver_by(world, script);
		snprintf(text, sizeof text, "exec: sh: timed out after %s", limits[i]);
		assert_failed(world, text, false, ERROR_DATA);
	} while (!content(world, "begun") && ++i < sizeof limits / sizeof *limits);
	assert_non_null(content(world, "begun"));
}

/* It ends at SIGTERM; its child, which does not, is ended with it. */
static void test_timeout(void **state)
{
	struct world *world = *state;

	deliver_for_too_long(world,
		"rm -f $1/child; (trap '' TERM; sh -c 'echo $PPID' >$1/child; "
		"while :; do sleep 100; done) & "
		"while ! [ -s $1/child ]; do :; done; trap 'echo told >$1/term; exit' TERM; "
		"touch $1/begun; echo going; wait");
	assert_string_equal(content(world, "term"), "told\n");
	wait_until(!lives(world, "child"));
}

/* A command that does not end at SIGTERM is killed. */
static void test_stubborn(void **state)
{
	struct world *world = *state;
	int64_t start = clock_monotonic();

	deliver_for_too_long(world, "trap '' TERM; touch $1/begun; while :; do sleep 0.1; done");
	assert_in_range(clock_monotonic() - start, 200 + EXECUTION_GRACE, LONGEST);
}

/* What a command leaves behind does not hold it up, though it holds its pipes. */
static void test_background(void **state)
{
	struct world *world = *state;

	deliver_by(world, "sleep 600 & echo $! >$1/job; exit 0");
	assert_true(world->outcome.sent);
	assert_true(lives(world, "job"));
	kill((pid_t)atol(content(world, "job")), SIGKILL);
}

static void stop_when_begun(void *context)
{
	struct world *world = context;
	const char *text = content(world, "begun");

	if (text && *text)
		engine_stop(world->engine);
	else
		engine_after(world->engine, 5, stop_when_begun, world);
}

/* The engine is freed while it runs. */
static void test_shutdown(void **state)
{
	struct world *world = *state;
	struct error error;

	set_script(world, "trap '' TERM; echo $$ >$1/begun; while :; do sleep 0.1; done");
	engine_deliver(world->engine, &exec_notifier, &world->talk->attempt, keep_outcome,
		&world->outcome);
	engine_after(world->engine, 1, stop_when_begun, world);
	engine_run(world->engine);
	assert_true(engine_free(world->engine));
	assert_false(world->outcome.done);
	assert_false(lives(world, "begun"));
	world->engine = engine_new(&(struct engine_options){.jobs = 1}, &error);
}

/* Many at once; none waits for another. */
static void test_many(void **state)
{
	enum { MANY = 20 };
	struct world *world = *state;
	struct outcome outcomes[MANY] = {0};
	struct attempt attempts[MANY];

	/* Each ends once all have begun. */
	set_script(world, "touch $1/$$; while [ $(ls $1 | wc -l) -lt 20 ]; do sleep 0.02; done");
	for (int i = 0; i < MANY; i++) {
		attempts[i] = world->talk->attempt;
		attempts[i].arena = arena_new();
		engine_deliver(
			world->engine, &exec_notifier, &attempts[i], keep_outcome, &outcomes[i]);
	}
	assert_true(engine_run(world->engine));
	for (int i = 0; i < MANY; i++) {
		assert_true(outcomes[i].sent);
		arena_free(attempts[i].arena);
	}
}

static void assert_refused(
	struct world *world, const char *const *words, size_t count, const char *problem)
{
	struct error error;

	set_command(world, words, count);
	assert_false(exec_notifier.plugin.check(world->talk->options, &error));
	assert_string_equal(error.text, problem);
	assert_int_equal(error.kind, ERROR_USAGE);
}

static void test_check(void **state)
{
	struct world *world = *state;
	struct error error;
	static const char *const two[] = {"bisect now", "x"};
	static const char *const relative[] = {"./bisect"};
	static const char *const empty[] = {""};

	assert_refused(world, empty, 0, "command: it is empty");
	assert_refused(world, empty, 1, "command: it is empty");
	assert_refused(world, relative, 1,
		"command: \"./bisect\" is neither an absolute path nor the name of a program in "
		"PATH");
	assert_refused(world, two, 1,
		"command: \"bisect now\" is a string: use a list, [PROGRAM, ARGUMENT], or add "
		"shell: true");
	assert_true((set_command(world, two, 2),
		exec_notifier.plugin.check(world->talk->options, &error)));
	set_option(world->talk, "shell", "true");
	assert_refused(world, two, 2, "command: expected a string with shell: true");
	set_command(world, two, 1);
	assert_true(exec_notifier.plugin.check(world->talk->options, &error));
}

static void test_shell(void **state)
{
	struct world *world = *state;
	const char *const word =
		arena_printf(world->talk->arena, "cat | tr v V >%s/got && exit 75", world->folder);

	set_option(world->talk, "shell", "true");
	set_command(world, &word, 1);
	deliver(world);
	assert_failed(world, "exec: sh: exit status 75", true, ERROR_DATA);
	assert_string_equal(content(world, "got"), "{\"Version\":1}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_input, setup, clear),
		cmocka_unit_test_setup_teardown(test_ends, setup, clear),
		cmocka_unit_test_setup_teardown(test_much_output, setup, clear),
		cmocka_unit_test_setup_teardown(test_surroundings, setup, clear),
		cmocka_unit_test_setup_teardown(test_timeout, setup, clear),
		cmocka_unit_test_setup_teardown(test_stubborn, setup, clear),
		cmocka_unit_test_setup_teardown(test_background, setup, clear),
		cmocka_unit_test_setup_teardown(test_shutdown, setup, clear),
		cmocka_unit_test_setup_teardown(test_many, setup, clear),
		cmocka_unit_test_setup_teardown(test_check, setup, clear),
		cmocka_unit_test_setup_teardown(test_shell, setup, clear),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
