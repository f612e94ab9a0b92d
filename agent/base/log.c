/*
 * A line is built in a buffer and written under a lock, so that lines of several threads do not
 * mix. With log_patience it is written in pieces that fit into the pipe when poll() reports room.
 * Once a reader has stalled for too long, or while a full disk or a closed pipe rejects lines, the
 * latest lines are held and written with the first one that succeeds; older ones are counted and
 * dropped. Writing bypasses stdio, which neither reports how much was written nor drops the rest.
 * Values with blanks, quotes or control characters are quoted with JSON's escapes in both formats.
 */
#include "agent/base/log.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/base/buf.h"
#include "agent/base/clock.h"
#include "agent/base/hash.h"
#include "agent/base/rate_limit.h"

const char *const log_level_names[] = {"error", "warn", "info", "debug", NULL};
const char *const log_format_names[] = {"text", "json", NULL};

enum { MOST_HELD = 32768 };

static atomic_int current_level = LEVEL_INFO;
static atomic_int current_format = LOG_FORMAT_TEXT;
static FILE *_Atomic current_stream;
static _Atomic int64_t period;    /* ms; 0: no limit */
static struct rate_limit repeats; /* guarded by the lock */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int64_t patience; /* ms; 0: wait without limit */
static struct {
	pthread_mutex_t lock;
	struct buf held;  /* whole lines that could not be written */
	uint64_t dropped; /* lines before them */
	bool cut;         /* the last write ended within a line */
} outlet = {.lock = PTHREAD_MUTEX_INITIALIZER};

void log_setup(enum log_level level, enum log_format format, FILE *stream)
{
	current_level = (int)level;
	current_format = (int)format;
	current_stream = stream;
}

void log_limit(int64_t every)
{
	period = every;
}

void log_patience(int64_t longest)
{
	patience = longest;
}

bool log_enabled(enum log_level level)
{
	return (int)level <= current_level;
}

static bool is_plain(const char *text)
{
	for (const char *c = text; *c; c++)
		if (*c <= ' ' || *c > '~' || *c == '"' || *c == '=' || *c == '\\')
			return false;
	return *text != '\0';
}

static void put_value(struct buf *line, const struct log_pair *pair, bool json)
{
	switch (pair->type) {
	case LOG_PAIR_INT: buf_printf(line, "%lld", (long long)pair->integer); break;
	case LOG_PAIR_TEXT:
		if (!json && pair->text && is_plain(pair->text))
			buf_text(line, pair->text);
		else
			buf_json_text(line, pair->text);
		break;
	}
}

static void put_pair(struct buf *line, const struct log_pair *pair, bool json)
{
	if (json) {
		buf_char(line, ',');
		buf_json_text(line, pair->key);
		buf_char(line, ':');
	} else {
		buf_printf(line, " %s=", pair->key);
	}
	put_value(line, pair, json);
}

/* Starts a line: time, level and message. */
static void put_head(struct buf *line, enum log_level level, const char *message, bool json)
{
	struct timespec now;
	struct tm date;
	char stamp[40];

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &date);
	size_t length = strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", &date);
	snprintf(stamp + length, sizeof stamp - length, ".%03ldZ", now.tv_nsec / 1000000);
	if (json) {
		buf_printf(line, "{\"time\":\"%s\",\"level\":\"%s\",\"msg\":", stamp,
			log_level_names[level]);
		buf_json_text(line, message);
	} else {
		buf_printf(line, "%s %s msg=", stamp, log_level_names[level]);
		put_value(line, &(struct log_pair){.type = LOG_PAIR_TEXT, .text = message}, false);
	}
}

static void put_line(struct buf *line, enum log_level level, const char *message,
	const struct log_pair *pairs, size_t count, uint64_t repeated)
{
	static const char *const marks[] = {[LEVEL_ERROR] = "",
		[LEVEL_WARN] = "warning: ",
		[LEVEL_INFO] = "",
		[LEVEL_DEBUG] = "debug: "};
	bool json = current_format == LOG_FORMAT_JSON;

	if (current_format == LOG_FORMAT_COMMAND) {
		buf_printf(line, "hunter-c: %s", marks[level]);
		buf_clean(line, message, MOST_HELD);
		buf_text(line, count > 0 ? ":" : "");
	} else {
		put_head(line, level, message, json);
	}
	for (size_t i = 0; i < count; i++)
		put_pair(line, &pairs[i], json);
	if (repeated > 0)
		put_pair(line, &LOG_INT("repeated", repeated), json);
	buf_text(line, json ? "}\n" : "\n");
}

/* Waits until the stream accepts more, without limit or until `until` (ms). A pipe that is
 * writable has room for PIPE_BUF bytes. */
static bool is_writable(int fd, int64_t until)
{
	struct pollfd poller = {.fd = fd, .events = POLLOUT};
	int ready;

	do {
		int64_t left = until - clock_monotonic();

		ready = poll(&poller, 1, until < 0 ? -1 : left > 0 ? (int)left : 0);
	} while (ready < 0 && errno == EINTR);
	return ready > 0;
}

/* Returns how much was written: less than all if the reader stalls for `longest` ms, or writing
 * fails. */
static size_t put_text(FILE *stream, const char *text, size_t length, int64_t longest)
{
	int64_t until = patience > 0 ? clock_monotonic() + longest : -1;
	int fd = fileno(stream);
	size_t done = 0;

	if (fd < 0) { /* memory */
		bool whole = fwrite(text, 1, length, stream) == length;
		return fflush(stream) == 0 && whole ? length : 0;
	}
	while (done < length) {
		size_t left = length - done, size = until >= 0 && left > PIPE_BUF ? PIPE_BUF : left;
		ssize_t put =
			until < 0 || is_writable(fd, until) ? write(fd, text + done, size) : 0;

		if (put < 0 && errno == EAGAIN)
			put = is_writable(fd, until) ? -1 : 0;
		else if (put < 0 && errno != EINTR)
			break;
		if (put == 0)
			break;
		done += put > 0 ? (size_t)put : 0;
	}
	return done;
}

static void drop_held(size_t length)
{
	memmove(outlet.held.data, outlet.held.data + length, outlet.held.length - length);
	outlet.held.length -= length;
}

/* The bytes still to be written, given the bytes written and `head` bytes before the held lines. */
static void note_written(const struct buf *text, size_t head, size_t written)
{
	size_t whole = written > head ? written - head : 0, surplus = 0;
	const char *held = outlet.held.data;

	if (written > 0)
		outlet.cut = text->data[written - 1] != '\n';
	if (written >= head)
		outlet.dropped = 0;
	while (whole > 0 && held[whole - 1] != '\n')
		whole--;
	drop_held(whole);
	while (outlet.held.length - surplus > MOST_HELD) {
		surplus += strcspn(held + surplus, "\n") + 1;
		outlet.dropped++;
	}
	drop_held(surplus);
}

/* With the lines that are held; reports dropped ones first. */
static void emit(FILE *stream, const struct buf *line)
{
	struct buf text = {0};
	size_t head;

	pthread_mutex_lock(&outlet.lock);
	if (outlet.cut)
		buf_char(&text, '\n');
	if (outlet.dropped > 0)
		put_line(&text, LEVEL_WARN,
			"lines of the log were dropped, as nobody read them or they could not be "
			"written",
			&LOG_INT("lines", outlet.dropped), 1, 0);
	head = text.length;
	buf_append(&outlet.held, line->data, line->length);
	buf_append(&text, outlet.held.data, outlet.held.length);
	note_written(&text, head,
		put_text(stream, text.data, text.length,
			outlet.held.length > line->length ? 0 : patience));
	pthread_mutex_unlock(&outlet.lock);
	buf_free(&text);
}

static void write_line(enum log_level level, const char *message, const struct log_pair *pairs,
	size_t count, uint64_t repeated)
{
	FILE *stream = current_stream;
	struct buf line = {0};

	put_line(&line, level, message, pairs, count, repeated);
	emit(stream ? stream : stderr, &line);
	buf_free(&line);
}

static uint64_t cause_of(const char *message, const struct log_pair *pairs, size_t count)
{
	uint64_t hash = hash_add(HASH_START, message, strlen(message) + 1);

	for (size_t i = 0; i < count; i++)
		if (pairs[i].type == LOG_PAIR_TEXT && pairs[i].text)
			hash = hash_add(hash, pairs[i].text, strlen(pairs[i].text) + 1);
	return hash;
}

void log_answer_pairs(
	enum log_level level, const char *message, const struct log_pair *pairs, size_t count)
{
	if (log_enabled(level))
		write_line(level, message, pairs, count, 0);
}

void log_pairs(
	enum log_level level, const char *message, const struct log_pair *pairs, size_t count)
{
	uint64_t repeated = 0;
	bool passed = true;

	if (!log_enabled(level))
		return;
	if (level <= LEVEL_WARN && period > 0) {
		pthread_mutex_lock(&lock);
		passed = rate_limit_pass(&repeats, cause_of(message, pairs, count),
			clock_monotonic(), period, &repeated);
		pthread_mutex_unlock(&lock);
	}
	if (passed)
		write_line(level, message, pairs, count, repeated);
}
