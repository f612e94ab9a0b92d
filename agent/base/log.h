/*
 * The log: one line per event on stderr, as key=value pairs or JSON.
 *
 *     log_event(LEVEL_WARN, "source failed", LOG_TEXT("test", name), LOG_INT("status", 503));
 *     2026-01-02T03:04:05Z warn msg="source failed" test=checkout status=503
 *     hunter-c: warning: source failed: test=checkout status=503        (LOG_FORMAT_COMMAND)
 *
 * The only module with mutable state of its own (level, format, stream, rate limit), set once at
 * start. Lines are written whole, from any thread, bypassing the stream's buffer. Secrets
 * are never logged: callers do not pass values that may contain one.
 */
#ifndef AGENT_BASE_LOG_H
#define AGENT_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum log_level { LEVEL_ERROR, LEVEL_WARN, LEVEL_INFO, LEVEL_DEBUG };
/* LOG_FORMAT_COMMAND, which has no name: of a command at a terminal, whose lines have no time. */
enum log_format { LOG_FORMAT_TEXT, LOG_FORMAT_JSON, LOG_FORMAT_COMMAND };

extern const char *const log_level_names[];  /* "error", "warn", "info", "debug", NULL */
extern const char *const log_format_names[]; /* "text", "json", NULL */

struct log_pair {
	const char *key;
	enum { LOG_PAIR_TEXT, LOG_PAIR_INT } type;
	const char *text;
	int64_t integer;
};

#define LOG_TEXT(k, v) ((struct log_pair){.key = (k), .type = LOG_PAIR_TEXT, .text = (v)})
#define LOG_INT(k, v) ((struct log_pair){.key = (k), .type = LOG_PAIR_INT, .integer = (int64_t)(v)})

void log_setup(enum log_level level, enum log_format format, FILE *stream);

/*
 * Limits repetition: an equal warning or error is logged after `period` ms at the soonest, with the
 * number of repetitions left out ("repeated=12"). Two are the same if message and texts are the
 * same, whatever their numbers.
 */
void log_limit(int64_t period);

/* Limits how long a line that cannot be written (a stalled pipe) blocks to `longest` ms. 0, the
 * default: without limit. The latest lines that could not be written, also because a disk is full,
 * follow with the next one that can, after a line that counts those that were dropped. */
void log_patience(int64_t longest);

bool log_enabled(enum log_level level);
void log_pairs(
	enum log_level level, const char *message, const struct log_pair *pairs, size_t count);

/* Logged every time: the response to a user's action. */
void log_answer_pairs(
	enum log_level level, const char *message, const struct log_pair *pairs, size_t count);

/* At least one pair is needed; log_message is for an event without any. */
#define log_event(level, message, ...)                                                             \
	log_pairs((level), (message), (const struct log_pair[]){__VA_ARGS__},                      \
		sizeof((const struct log_pair[]){__VA_ARGS__}) / sizeof(struct log_pair))
#define log_answer(level, message, ...)                                                            \
	log_answer_pairs((level), (message), (const struct log_pair[]){__VA_ARGS__},               \
		sizeof((const struct log_pair[]){__VA_ARGS__}) / sizeof(struct log_pair))
#define log_message(level, message) log_pairs((level), (message), NULL, 0)

#endif
