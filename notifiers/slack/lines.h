/*
 * The lines of a Slack message, in mrkdwn.
 *
 * All external text passes through slack_escaped, which leaves no way to write a mention, a link,
 * an emoji or other markup. Limits are in bytes as sent, never fewer than the characters that Slack
 * counts; a test, a metric and its commits always fit one field.
 */
#ifndef NOTIFIERS_SLACK_LINES_H
#define NOTIFIERS_SLACK_LINES_H

#include "notifiers/digest.h"
#include "notifiers/text.h"

/* In bytes; SLACK_DATE: maximum size of a date. */
enum { SLACK_NAME = 300, SLACK_COMMON = 200, SLACK_SENTENCE = 2000, SLACK_DATE = 100 };

/* Appends the text, cleaned and escaped, at most `most` bytes; "…" marks a cut. Characters that
 * would be markup (*bold*, but not snake_case) are replaced by similar ones. */
void slack_escaped(struct buf *out, const char *text, size_t most);

/* A date that Slack shows in the reader's time zone, to the day or the minute. The fallback is
 * "2021-07-02 00:00:00 +0000". */
void slack_date(struct buf *out, int64_t time, enum text_time exact);

/* Names by slack_escaped, times by slack_date. */
extern const struct text_style slack_style;

/* An escaped sentence of at most SLACK_SENTENCE bytes; times in it, as written by when_format or as
 * "2021-07-02 00:00 UTC", become slack_date. */
void slack_sentence(struct buf *out, const char *text);

/* "*test*", with the common labels of its series "*test* region=eu" */
void slack_test_line(struct buf *out, const struct announcement *item);

/* "\n:red_circle: p99: +24%  3.17e+07 → 3.94e+07 ns", or of many
 * series "\n:red_circle: 1336 series +8.1%, 96% renderer=gpu", of those that a digest folded with
 * the worst of them behind it. */
void slack_item_line(struct buf *out, const struct announcement *item);

/* "\n:large_green_circle: *test* p99: back to 100 ms after 3 h (was +24%  100 → 124)", with
 * "  <...|details>" if there is a page */
void slack_recovery_line(struct buf *out, const struct announcement *item);

/* "\na60027ff .. 15ce8e36 (compare)", with links where there are pages; nothing where no commit is
 * known. */
void slack_range_line(struct buf *out, const struct announcement *item);

/* "\n<https://hunter.example/change/7|details>, <...|dashboard>, <...|runbook>, owner: team-pay" of
 * items of a digest, and "\nof p99: <...|dashboard>" where it is only the worst's; nothing where
 * there is none. Only the pages before `last`. */
void slack_help_lines(
	struct buf *out, const struct announcement *const *items, size_t count, enum page last);

/* "test p99 +24%", without markup. */
void slack_short_line(struct buf *out, const struct announcement *item);

#endif
