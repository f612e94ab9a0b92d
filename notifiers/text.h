/*
 * Words that all notifiers share: how a change reads, and text from outside made harmless.
 *
 * Names, commits and units come from data. They may hold line breaks, terminal escapes, broken
 * UTF-8 or a megabyte of anything; buf_clean lets none of that through.
 */
#ifndef NOTIFIERS_TEXT_H
#define NOTIFIERS_TEXT_H

#include "agent/model/message.h"

/* "3 change points in 2 tests: 2 regressions, 1 improvement" */
void text_tally(struct buf *out, const struct tally *tally);

/* How exact a time is: of a place, or of the change. */
enum text_time { TEXT_MINUTE, TEXT_DAY, TEXT_FULL };

/* How a notifier writes names from outside, and times. */
struct text_style {
	void (*name)(struct buf *out, const char *name, size_t limit);
	void (*time)(struct buf *out, int64_t time, enum text_time exact);
	const char *arrow;   /* between two levels */
	size_t metric_limit; /* of the name of a metric */
};

/* buf_clean, and times in UTC: "2026-03-01 06:00", "2026-03-01 06:00:00 +0000". */
extern const struct text_style text_plain;

/* The same, for sentences that stand alone: "2021-07-02 00:00 UTC". */
extern const struct text_style text_utc;
void text_utc_time(struct buf *out, int64_t time, enum text_time exact);

/* "runner-7: 41 of 43 series +8.1%": what changed in the environment. */
void text_environment(
	struct buf *out, const struct environment_event *event, const struct text_style *style);

/* "; 2 of them were reported already", if any were. */
void text_early(struct buf *out, const struct message *message);

/* "the same tests elsewhere unchanged: probably the environment" */
void text_elsewhere(struct buf *out, const struct environment_event *event);

/* "the same tests have changed on runner-8, runner-9, too: ..." */
void text_followed(struct buf *out, const char *values);

/* "15 regressions, 1 improvement in checkout, pay and 3 more tests": the tests that matter most
 * first; after "first look: " of one. */
void text_what(struct buf *out, const struct message *message, const struct text_style *style);

/* What has changed, between marks, since when, and in which incident: "15 regressions in checkout
 * since 2021-07-02 00:00, incident i12"; of an environment with what the same tests do elsewhere.
 */
void text_headline(struct buf *out, const struct message *message, const struct text_style *style,
	const char *mark);

/* "silence 7 of ann is over: migration", of a message about what it held back; else nothing. */
void text_summary(struct buf *out, const struct message *message, const struct text_style *style);

/* " ms", if it has a unit. */
void text_unit(struct buf *out, const struct announcement *item, const struct text_style *style);

/* "31,700,000", "61,020", "0.4012": number_display. */
void text_level(struct buf *out, double value);

/* "+24%", "-1.3%", of the levels; "new" where the old one is 0. */
void text_percent(struct buf *out, const struct change *change);

/* A change in a line: "p99: +24% [21, 27]  100 → 124 ns", with what it is judged by, and of a trend
 * its course; of many series "250 series of p99: +8.1%, from +5.0% to +9.2%, 100% role=render".
 * `begin` and `end` stand around the size. */
void text_change(struct buf *out, const struct announcement *item, const struct text_style *style,
	const char *begin, const char *end);

/* One that has recovered: "p99: back to 100 ms after 3 h  (+24%  100 → 124)". `begin` stands before
 * what it is now, `was` before what it was. */
void text_end(struct buf *out, const struct announcement *item, const struct text_style *style,
	const char *begin, const char *was);

/* " at equal traffic", " relative to eu/p99 (which changed by +40% at the same time)"; nothing of
 * one that is judged by itself. */
void text_basis(struct buf *out, const struct announcement *item, const struct text_style *style);

/* The same with its 95% interval, where there is one: "+6.3% [5.1, 7.4]". */
void text_size(struct buf *out, const struct change *change);

/* "100 --> 120" with that arrow; of a trend "trend from 100 to 200". */
void text_levels(struct buf *out, const struct change *change, const char *arrow);

/* Of many series that moved alike, what stands before their size: "250 series of p99: "; of a
 * cluster "1336 series ". */
void text_crowd(struct buf *out, const struct announcement *item, const struct text_style *style);

/* Of a crowd of which `shown` are listed: "247 more between 2026-03-01 06:00 and 2026-03-01 08:00"
 * or, where all have one time, "247 more". */
void text_crowd_rest(struct buf *out, const struct announcement *item, size_t shown,
	const struct text_style *style);

/* "hunter-c changes --test checkout.latency": what lists all changes of the test. */
void text_command(struct buf *out, const struct announcement *item);

/* "back to 100 ms after 3 h" of one that has recovered. */
void text_recovery(
	struct buf *out, const struct announcement *item, const struct text_style *style);

/* "p99 of checkout is back to 100 ms after 3 h", "3 changes have recovered", "runner-7: 38 of 41
 * series back after 3 h" */
void text_recoveries(struct buf *out, const struct message *message);

/* "between 2026-03-01 06:00 and 2026-03-01 18:00": where a step can lie, if that is not one point;
 * else nothing. */
void text_place(struct buf *out, const struct announcement *item, const struct text_style *style);

/* "a1 .. b2": its commits or versions; false if they are unknown. */
bool text_range(struct buf *out, const struct announcement *item, const struct text_style *style);

/* What there is to say of the suspects besides the range: "3 suspects, deployed 2026-07-02 06:10 ..
 * 07:48", "deployed 2026-07-02 07:48, 12 minutes before", "no deployment in between; last one 3
 * days before (a60027ff)"; nothing where the range says it all. */
void text_suspects(
	struct buf *out, const struct announcement *item, const struct text_style *style);

/* "a1 .. b2, 3 suspects, most likely b2": both of these. */
void text_commits(struct buf *out, const struct announcement *item, const struct text_style *style);

/* "build: 17 .. 18, machine: perf7": what the range does not say, nothing where there is no more.
 */
void text_attributes(struct buf *out, const struct announcement *item);

#endif
