/*
 * agent/base/repeats, and the log that uses it.
 */
#include "unit.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "agent/base/log.h"
#include "agent/base/rate_limit.h"

static void test_first_then_once_a_period(void **state)
{
	(void)state;
	struct rate_limit *repeats = calloc(1, sizeof *repeats);
	uint64_t meanwhile = 99;

	assert_true(rate_limit_pass(repeats, 7, 1000, 600, &meanwhile));
	assert_int_equal(meanwhile, 0);
	for (int64_t now = 1001; now < 1600; now += 100)
		assert_false(rate_limit_pass(repeats, 7, now, 600, &meanwhile));
	assert_true(rate_limit_pass(repeats, 8, 1550, 600, &meanwhile));
	assert_int_equal(meanwhile, 0);
	assert_true(rate_limit_pass(repeats, 7, 1600, 600, &meanwhile));
	assert_int_equal(meanwhile, 6);
	assert_false(rate_limit_pass(repeats, 7, 1601, 600, &meanwhile));
	assert_true(
		rate_limit_pass(repeats, 7, 100000, 600, &meanwhile)); /* after a long silence */
	assert_int_equal(meanwhile, 1);
	free(repeats);
}

/* Whatever happens in whatever order: each cause is told first, and never twice in a period. */
static void test_never_twice_in_a_period(void **state)
{
	(void)state;
	struct rate_limit *repeats = calloc(1, sizeof *repeats);
	int64_t told[40];
	uint64_t counted = 0, untold[40] = {0}, meanwhile;

	srand(5);
	for (int i = 0; i < 40; i++)
		told[i] = -1;
	for (int64_t now = 0; now < 200000; now += rand() % 20) {
		int cause = rand() % 40;
		bool tell = rate_limit_pass(repeats, (uint64_t)cause, now, 5000, &meanwhile);

		assert_int_equal(tell, told[cause] < 0 || now - told[cause] >= 5000);
		if (!tell) {
			untold[cause]++;
			continue;
		}
		assert_int_equal(meanwhile, untold[cause]);
		told[cause] = now;
		untold[cause] = 0;
		counted++;
	}
	assert_true(counted > 40);
	free(repeats);
}

/* Those told longest ago make room. */
static void test_full(void **state)
{
	(void)state;
	struct rate_limit *repeats = calloc(1, sizeof *repeats);
	uint64_t meanwhile;

	for (uint64_t i = 0; i < REPEATS_CAUSES + 10; i++)
		assert_true(rate_limit_pass(repeats, i, (int64_t)i, 1000000, &meanwhile));
	assert_int_equal(repeats->count, REPEATS_CAUSES);
	assert_false(rate_limit_pass(repeats, REPEATS_CAUSES, 2000, 1000000, &meanwhile));
	assert_false(rate_limit_pass(repeats, 10, 2000, 1000000, &meanwhile));
	assert_true(rate_limit_pass(repeats, 9, 2000, 1000000, &meanwhile)); /* was forgotten */
	free(repeats);
}

static int lines_with(const char *log, const char *words)
{
	int count = 0;

	for (const char *at = log; (at = strstr(at, words)); at++)
		count++;
	return count;
}

static void test_log(void **state)
{
	(void)state;
	char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);

	log_setup(LEVEL_INFO, LOG_FORMAT_TEXT, stream);
	for (int i = 0; i < 3; i++)
		log_event(LEVEL_WARN, "before", LOG_INT("i", i));
	log_limit(3600000);
	for (int i = 0; i < 5; i++) {
		log_event(LEVEL_WARN, "failed", LOG_TEXT("who", "a"), LOG_INT("i", i));
		log_event(LEVEL_ERROR, "failed", LOG_TEXT("who", "b"), LOG_INT("i", i));
		log_event(LEVEL_INFO, "went well", LOG_INT("i", i));
		log_answer(LEVEL_ERROR, "not loaded", LOG_TEXT("problem", "x"));
		log_message(LEVEL_WARN, "nothing more");
		log_event(LEVEL_DEBUG, "never", LOG_INT("i", i));
	}
	log_limit(1);
	for (int64_t i = 0; !lines_with(text, "repeated="); i++) { /* until a ms is over */
		log_event(LEVEL_WARN, "failed", LOG_TEXT("who", "a"), LOG_INT("i", i));
		fflush(stream);
	}
	log_limit(0);
	log_setup(LEVEL_INFO, LOG_FORMAT_TEXT, stderr);
	fclose(stream);
	assert_int_equal(lines_with(text, "msg=before"), 3);
	assert_int_equal(lines_with(text, "who=b"), 1);
	assert_int_equal(lines_with(text, "went well"), 5);
	assert_int_equal(lines_with(text, "not loaded"), 5);
	assert_int_equal(lines_with(text, "nothing more"), 1);
	assert_int_equal(lines_with(text, "never"), 0);
	assert_int_equal(lines_with(text, "repeated="), 1);
	assert_true(lines_with(text, "who=a i=0\n") >= 1);
	free(text);
}

/* Reads what is in the pipe. */
static char *drain(int from)
{
	char *text = calloc(1, 1 << 17);
	ssize_t got;

	for (size_t length = 0; (got = read(from, text + length, (1 << 17) - 1 - length)) > 0;)
		length += (size_t)got;
	return text;
}

/* A pipe that nobody reads holds up nobody; what is lost is said. */
static void test_log_that_nobody_reads(void **state)
{
	(void)state;
	enum { PIPE = 65536 };
	int ends[2];
	char *text, large[PIPE + 10000];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(fcntl(ends[1], F_SETPIPE_SZ, PIPE), PIPE);
	FILE *stream = fdopen(ends[1], "w");
	log_setup(LEVEL_INFO, LOG_FORMAT_TEXT, stream);
	log_patience(1);
	for (int i = 0; i < 5000; i++)
		log_event(LEVEL_INFO, "something", LOG_INT("i", i));
	text = drain(ends[0]);
	assert_non_null(strstr(text, "msg=something i=0\n"));
	assert_null(strstr(text, "i=4999\n"));
	free(text);
	log_event(LEVEL_INFO, "after", LOG_INT("i", 1));
	text = drain(ends[0]);
	assert_non_null(
		strstr(text, "dropped, as nobody read them or they could not be written\" lines="));
	for (int i = 4500; i < 5000; i++) {
		snprintf(large, sizeof large, "msg=something i=%d\n", i);
		assert_int_equal(lines_with(text, large), 1);
	}
	assert_int_equal(lines_with(text, "msg=after i=1\n"), 1);
	free(text);
	log_event(LEVEL_INFO, "after", LOG_INT("i", 2));
	text = drain(ends[0]);
	assert_null(strstr(text, "dropped"));
	assert_non_null(strstr(text, "msg=after i=2\n"));
	free(text);
	memset(large, 'x', sizeof large - 1);
	large[sizeof large - 1] = '\0';
	log_event(LEVEL_INFO, "large", LOG_TEXT("text", large));
	text = drain(ends[0]);
	assert_true(strlen(text) <= PIPE);
	free(text);
	log_event(LEVEL_INFO, "after", LOG_INT("i", 3));
	log_event(LEVEL_INFO, "after", LOG_INT("i", 4));
	text = drain(ends[0]);
	assert_int_equal(lines_with(text, "lines=1\n"), 1);
	free(text);
	log_patience(0);
	log_setup(LEVEL_INFO, LOG_FORMAT_TEXT, stderr);
	fclose(stream);
	close(ends[0]);
}

static void on_alarm(int number)
{
	(void)number;
}

static FILE *full_pipe(int ends[2])
{
	static const char bytes[4096];

	assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	while (write(ends[1], bytes, sizeof bytes) > 0)
		continue;
	assert_int_equal(fcntl(ends[1], F_SETFL, 0), 0);
	return fdopen(ends[1], "w");
}

/* A signal that comes while a line waits does not make room for it. */
static void test_log_interrupted(void **state)
{
	(void)state;
	const struct sigaction action = {.sa_handler = on_alarm};
	const struct itimerval often = {{0, 2000}, {0, 2000}}, never = {0};
	int ends[2];
	FILE *stream = full_pipe(ends);

	assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
	log_setup(LEVEL_INFO, LOG_FORMAT_TEXT, stream);
	log_patience(50);
	assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
	log_event(LEVEL_INFO, "late", LOG_INT("i", 1));
	log_event(LEVEL_INFO, "late", LOG_INT("i", 2));
	assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
	free(drain(ends[0]));
	log_event(LEVEL_INFO, "after", LOG_INT("i", 3));
	char *text = drain(ends[0]);
	assert_int_equal(lines_with(text, "msg=late"), 2);
	assert_int_equal(lines_with(text, "dropped"), 0);
	free(text);
	log_patience(0);
	log_setup(LEVEL_INFO, LOG_FORMAT_TEXT, stderr);
	fclose(stream);
	close(ends[0]);
}

/* A disk that is full takes no line; once it does, it gets the latest ones in their order, and how
 * many came before them. */
static void log_to_a_full_disk(int64_t longest, int lines)
{
	char *text = NULL;
	int ends[2], full = open("/dev/full", O_WRONLY | O_CLOEXEC);

	assert_true(full >= 0);
	assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	FILE *stream = fdopen(full, "w");
	log_setup(LEVEL_INFO, LOG_FORMAT_TEXT, stream);
	log_patience(longest);
	for (int i = 0; i < lines; i++)
		log_event(LEVEL_INFO, "late", LOG_INT("i", i));
	assert_int_equal(dup2(ends[1], fileno(stream)), fileno(stream));
	log_event(LEVEL_INFO, "after", LOG_INT("i", lines));
	text = drain(ends[0]);
	int kept = (int)lines_with(text, "msg=late"), missing = 0;
	const char *at = strstr(text, "lines=");
	if (at)
		missing = atoi(at + strlen("lines="));
	assert_int_equal(kept + missing, lines);
	assert_true(kept >= (lines < 500 ? lines : 500));
	for (int i = missing; i <= lines; i++) {
		char line[40];

		snprintf(line, sizeof line, "msg=%s i=%d\n", i < lines ? "late" : "after", i);
		at = strstr(at ? at : text, line);
		assert_non_null(at);
	}
	free(text);
	log_patience(0);
	log_setup(LEVEL_INFO, LOG_FORMAT_TEXT, stderr);
	fclose(stream);
	close(ends[0]);
	close(ends[1]);
}

static void test_log_to_a_full_disk(void **state)
{
	(void)state;
	log_to_a_full_disk(0, 3);
	log_to_a_full_disk(1, 3);
	log_to_a_full_disk(0, 2000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_then_once_a_period),
		cmocka_unit_test(test_never_twice_in_a_period),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_log),
		cmocka_unit_test(test_log_that_nobody_reads),
		cmocka_unit_test(test_log_interrupted),
		cmocka_unit_test(test_log_to_a_full_disk),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
