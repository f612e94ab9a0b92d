/*
 * A line is made in a buffer and written with one call, so that lines of several threads do not
 * mix. Values that hold blanks, quotes or control characters are quoted with JSON's escapes in both
 * formats.
 */
#include "agent/core/log.h"

#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/core/buf.h"

const char *const log_level_names[] = {"error", "warn", "info", "debug", NULL};
const char *const log_format_names[] = {"text", "json", NULL};

static atomic_int current_level = LEVEL_INFO;
static atomic_int current_format = LOG_FORMAT_TEXT;
static FILE *_Atomic current_stream;

void log_setup(enum log_level level, enum log_format format, FILE *stream)
{
	current_level = (int)level;
	current_format = (int)format;
	current_stream = stream;
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
	case LOG_PAIR_DOUBLE:
		if (json)
			buf_json_number(line, pair->number);
		else
			buf_printf(line, "%.6g", pair->number);
		break;
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

void log_pairs(
	enum log_level level, const char *message, const struct log_pair *pairs, size_t count)
{
	if (!log_enabled(level))
		return;
	bool json = current_format == LOG_FORMAT_JSON;
	struct timespec now;
	struct tm date;
	char stamp[40];
	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &date);
	size_t length = strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", &date);
	snprintf(stamp + length, sizeof stamp - length, ".%03ldZ", now.tv_nsec / 1000000);
	struct buf line = {0};
	if (json) {
		buf_printf(&line, "{\"time\":\"%s\",\"level\":\"%s\",\"msg\":", stamp,
			log_level_names[level]);
		buf_json_text(&line, message);
	} else {
		buf_printf(&line, "%s %s msg=", stamp, log_level_names[level]);
		put_value(&line, &(struct log_pair){.type = LOG_PAIR_TEXT, .text = message}, false);
	}
	for (size_t i = 0; i < count; i++)
		put_pair(&line, &pairs[i], json);
	buf_text(&line, json ? "}\n" : "\n");
	FILE *stream = current_stream;
	fwrite(line.data, 1, line.length, stream ? stream : stderr);
	fflush(stream ? stream : stderr);
	buf_free(&line);
}
