/*
 * Memory that held a secret holds it no more when it is given back: free and realloc, of this
 * program's own code, are looked over here. What libyaml, libcurl and libpq keep for themselves is
 * not seen.
 */
#include "unit.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "agent/base/buf.h"
#include "agent/base/secret.h"
#include "tests/unit/conf_schema.h"

static const char secret[] = "xoxb-an-unusual-secret";
static size_t left_behind;

void __real_free(void *memory);
void __wrap_free(void *memory);
void *__wrap_realloc(void *memory, size_t size);

void __wrap_free(void *memory)
{
	if (memory)
		left_behind +=
			memmem(memory, malloc_usable_size(memory), secret, strlen(secret)) != NULL;
	__real_free(memory);
}

/* Always moves, as it may. */
void *__wrap_realloc(void *memory, size_t size)
{
	void *moved = malloc(size);
	size_t old = memory ? malloc_usable_size(memory) : 0;

	assert_non_null(moved);
	if (memory)
		memcpy(moved, memory, old < size ? old : size);
	__wrap_free(memory);
	return moved;
}

static void write_file(char *path, const char *text)
{
	int file = mkstemp(path);

	assert_true(file >= 0);
	assert_int_equal(write(file, text, strlen(text)), (ssize_t)strlen(text));
	close(file);
}

static void test_what_is_not_secret_is_seen(void **state)
{
	struct arena *arena = arena_new();

	(void)state;
	left_behind = 0;
	arena_strdup(arena, secret);
	arena_free(arena);
	assert_int_equal(left_behind, 1);
}

static void test_file_of_a_secret(void **state)
{
	char path[] = "/tmp/test_secret.XXXXXX";
	struct arena *arena = arena_new(), *other = arena_new();
	struct error error;
	const char *read;

	(void)state;
	left_behind = 0;
	write_file(path, secret);
	assert_true(secret_read(arena, "token_file", path, &read, &error));
	assert_string_equal(read, secret);
	arena_join(other, arena);
	arena_free(other);
	assert_int_equal(left_behind, 0);
	unlink(path);
}

static void test_buffer_that_grows(void **state)
{
	struct buf buf = {.secret = true};

	(void)state;
	left_behind = 0;
	buf_text(&buf, secret);
	for (int i = 0; i < 100; i++)
		buf_text(&buf, "and so on and so forth");
	buf_free(&buf);
	buf_text(&buf, secret);
	buf_free(&buf);
	assert_int_equal(left_behind, 0);
}

/* In the file, in the environment's words, and in the options that come of it. */
static void test_configuration(void **state)
{
	char path[] = "/tmp/test_secret.XXXXXX", text[8192], filler[4096];
	struct config_source source = {.schema = &test_schema, .env = test_environment};
	struct problems problems = {.arena = arena_new()};
	struct config *config;

	(void)state;
	left_behind = 0;
	memset(filler, '#', sizeof filler - 1);
	filler[sizeof filler - 1] = '\0';
	snprintf(text, sizeof text,
		"slack: {bot_token: \"%s\", channels: [\"#a\"]}\n"
		"prometheus: {url: \"http://one/\", bearer_token: \"${HUNTER_NO_SUCH:-%s}\"}\n%s\n",
		secret, secret, filler);
	write_file(path, text);
	config = config_load(path, &source, &problems);
	if (!config)
		fail_msg("%s", problems.items[0].text);
	config_free(config);
	arena_free(problems.arena);
	assert_int_equal(left_behind, 0);
	unlink(path);
}

static void test_no_core_dumps(void **state)
{
	struct rlimit limit;

	(void)state;
	assert_int_equal(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), 1);
	secret_forbid_dumps();
	assert_int_equal(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), 0);
	assert_int_equal(getrlimit(RLIMIT_CORE, &limit), 0);
	assert_int_equal(limit.rlim_cur, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_not_secret_is_seen),
		cmocka_unit_test(test_file_of_a_secret),
		cmocka_unit_test(test_buffer_that_grows),
		cmocka_unit_test(test_configuration),
		cmocka_unit_test(test_no_core_dumps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
