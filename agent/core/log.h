/*
 * The log: one line an event on stderr, as key=value pairs or JSON.
 *
 *     log_event(LEVEL_WARN, "source failed", LOG_TEXT("test", name), LOG_INT("status", 503));
 *     2026-01-02T03:04:05Z warn msg="source failed" test=checkout status=503
 *
 * The only module with mutable state of its own (level, format, stream, rate limit), set once at
 * start. Lines are written whole, from any thread, without the stream's buffer. Nobody logs a
 * secret: values that may hold one are not given to it.
 */
#ifndef CORE_LOG_H
#define CORE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum log_level { LEVEL_ERROR, LEVEL_WARN, LEVEL_INFO, LEVEL_DEBUG };
enum log_format { LOG_FORMAT_TEXT, LOG_FORMAT_JSON };

extern const char *const log_level_names[];  /* "error", "warn", "info", "debug", NULL */
extern const char *const log_format_names[]; /* "text", "json", NULL */

struct log_pair {
	const char *key;
	enum { LOG_PAIR_TEXT, LOG_PAIR_INT, LOG_PAIR_DOUBLE } type;
	const char *text;
	int64_t integer;
	double number;
};

#define LOG_TEXT(k, v) ((struct log_pair){.key = (k), .type = LOG_PAIR_TEXT, .text = (v)})
#define LOG_INT(k, v) ((struct log_pair){.key = (k), .type = LOG_PAIR_INT, .integer = (int64_t)(v)})
#define LOG_DOUBLE(k, v) ((struct log_pair){.key = (k), .type = LOG_PAIR_DOUBLE, .number = (v)})

void log_setup(enum log_level level, enum log_format format, FILE *stream);

/*
 * From now on a warning or error that has been told is told again after `period` ms at the soonest,
 * with how often it was not ("repeated=12"). The same are those of one message whose texts are the
 * same, whatever their numbers.
 */
void log_limit(int64_t period);

/* From now on a line is waited with for `longest` ms if it cannot be written (a pipe that nobody
 * reads), then dropped. 0, as at first: without end. Lines that were dropped, for that or because
 * writing failed, are counted and reported with the next line that can be written. */
void log_patience(int64_t longest);

bool log_enabled(enum log_level level);
void log_pairs(
	enum log_level level, const char *message, const struct log_pair *pairs, size_t count);

/* Told every time: the answer to what somebody did. */
void log_answer_pairs(
	enum log_level level, const char *message, const struct log_pair *pairs, size_t count);

/* At least one pair is needed; log_message is for an event that has none. */
#define log_event(level, message, ...)                                                             \
	log_pairs((level), (message), (const struct log_pair[]){__VA_ARGS__},                      \
		sizeof((const struct log_pair[]){__VA_ARGS__}) / sizeof(struct log_pair))
#define log_answer(level, message, ...)                                                            \
	log_answer_pairs((level), (message), (const struct log_pair[]){__VA_ARGS__},               \
		sizeof((const struct log_pair[]){__VA_ARGS__}) / sizeof(struct log_pair))
#define log_message(level, message) log_pairs((level), (message), NULL, 0)

#endif
