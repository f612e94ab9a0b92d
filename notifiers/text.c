/*
 * Text is copied character by character, because the two things that matter, cutting
 * between characters and stopping control characters, both need to know where characters begin.
 */
#include "notifiers/text.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/number.h"
#include "agent/base/order.h"
#include "agent/base/utf8.h"
#include "agent/base/when.h"

enum { ATTRIBUTE_CHARS = 60, OTHER_CHARS = 200, METRIC_CHARS = 200 };
enum {
	TESTS_NAMED = 3,
	TEST_CHARS = 100,
	ENVIRONMENT_CHARS = 100,
	SUMMARY_CHARS = 400
}; /* in the first line */

/* ms: times further apart are given to the day. */
#define FAR INT64_C(259200000)

static void count_of(struct buf *out, size_t count, const char *noun)
{
	buf_printf(out, "%zu %s%s", count, noun, count == 1 ? "" : "s");
}

/* "15 regressions, 1 improvement, 2 other changes" */
static void put_counts(struct buf *out, const struct tally *tally)
{
	size_t others = tally->changes - tally->regressions - tally->improvements;
	bool named = tally->regressions + tally->improvements > 0;

	if (tally->regressions > 0)
		count_of(out, tally->regressions, "regression");
	if (tally->improvements > 0) {
		buf_text(out, tally->regressions > 0 ? ", " : "");
		count_of(out, tally->improvements, "improvement");
	}
	if (others > 0) {
		buf_text(out, named ? ", " : "");
		count_of(out, others, named ? "other change" : "change");
	}
}

void text_tally(struct buf *out, const struct tally *tally)
{
	struct tally named = *tally;

	count_of(out, tally->changes, "change point");
	buf_text(out, " in ");
	count_of(out, tally->tests, "test");
	named.changes = tally->regressions + tally->improvements;
	if (named.changes > 0)
		buf_text(out, ": ");
	put_counts(out, &named);
}

/* Names the first tests by weight, each once. */
void text_what(struct buf *out, const struct message *message, const struct text_style *style)
{
	const struct announcement **items = message_by_weight(message);
	struct tally tally = message_tally(message);
	const char *tests[TESTS_NAMED];
	size_t named = 0;

	buf_text(out, message->first_look ? "first look: " : "");
	put_counts(out, &tally);
	for (size_t i = 0; i < message->count && named < TESTS_NAMED; i++) {
		size_t at = 0;

		while (at < named && strcmp(tests[at], items[i]->test) != 0)
			at++;
		if (at < named)
			continue;
		tests[named] = items[i]->test;
		buf_text(out, named++ == 0 ? " in " : ", ");
		style->name(out, items[i]->test, TEST_CHARS);
	}
	if (tally.tests > named) {
		buf_text(out, " and ");
		count_of(out, tally.tests - named, "more test");
	}
	free(items);
}

/* The size where all have the same direction; else the common part. */
void text_environment(
	struct buf *out, const struct environment_event *event, const struct text_style *style)
{
	const struct change change = {.size = event->size};

	style->name(out, event->value, ENVIRONMENT_CHARS);
	buf_printf(out, ": %zu of %zu series ", event->hit, event->total);
	if ((event->up == 0 || event->down == 0) && isfinite(event->size))
		text_percent(out, &change);
	else if (event->worse == event->hit || event->better == event->hit)
		buf_text(out, event->worse > 0 ? "worse" : "better");
	else if (event->worse + event->better == event->hit)
		buf_printf(out, "changed (%zu worse, %zu better)", event->worse, event->better);
	else
		buf_printf(out, "changed (%zu up, %zu down)", event->up, event->down);
}

void text_early(struct buf *out, const struct message *message)
{
	if (message->early > 0)
		buf_printf(out, "; %zu of them %s reported already", message->early,
			message->early == 1 ? "was" : "were");
}

void text_headline(struct buf *out, const struct message *message, const struct text_style *style,
	const char *mark)
{
	const struct environment_event *event = message->environment;
	long long incident = message_incident(message);

	buf_text(out, mark);
	if (event)
		text_environment(out, event, style);
	else
		text_what(out, message, style);
	buf_printf(out, "%s since ", mark);
	style->time(out, event ? event->time : message_since(message), TEXT_FULL);
	if (event) {
		buf_text(out, ", ");
		text_elsewhere(out, event);
		text_early(out, message);
	}
	if (incident != 0)
		buf_printf(out, ", incident i%lld", incident);
}

void text_elsewhere(struct buf *out, const struct environment_event *event)
{
	if (event->followed)
		buf_text(out, "seen elsewhere later: not specific to this environment");
	else if (event->elsewhere_changed == 0)
		buf_text(out, "the same tests elsewhere unchanged: probably the environment");
	else
		buf_printf(out,
			"%zu of %zu of the same tests elsewhere changed: probably the environment",
			event->elsewhere_changed, event->elsewhere);
}

void text_followed(struct buf *out, const char *values)
{
	buf_text(out, "the same tests have changed on ");
	buf_clean(out, values, OTHER_CHARS);
	buf_text(out, ", too: a rollout rather than the environment");
}

void text_level(struct buf *out, double value)
{
	char text[NUMBER_TEXT];

	buf_append(out, text, number_display(value, text));
}

/* Whole percents where they are many, and never 0 for what is not; `sign`: also of those above 0.
 */
static void put_percent(struct buf *out, double percent, bool fine, bool sign)
{
	if (fabs(percent) >= 1e5 || (percent != 0 && fabs(percent) < 0.05))
		buf_printf(out, sign ? "%+.2g" : "%.2g", percent);
	else
		buf_printf(out, sign ? "%+.*f" : "%.*f", fine ? 1 : 0, percent);
}

/* An interval that rounds to the size is left out. */
static bool has_interval(const struct change *change)
{
	double width = change->size_high - change->size_low;

	return isfinite(change->size) && isfinite(width) && width >= 0.05;
}

/* Sizes from 10% have a decimal only if their interval is narrow enough and would not hold them
 * without: as 10.4 in [10.1, 10.7]. */
void text_percent(struct buf *out, const struct change *change)
{
	double low = change->size_low, high = change->size_high, rounded = round(change->size);
	bool held = rounded > low - 0.05 && rounded < high + 0.05;

	if (!isfinite(change->size)) {
		buf_text(out, "new");
		return;
	}
	put_percent(out, change->size,
		fabs(change->size) < 9.95 || (has_interval(change) && high - low < 2 && !held),
		true);
	buf_char(out, '%');
}

void text_size(struct buf *out, const struct change *change)
{
	bool fine = fabs(change->size) < 9.95 || change->size_high - change->size_low < 2;

	text_percent(out, change);
	if (!has_interval(change))
		return;
	buf_text(out, " [");
	put_percent(out, change->size_low, fine, false);
	buf_text(out, ", ");
	put_percent(out, change->size_high, fine, false);
	buf_char(out, ']');
}

/* Of many: the median, and between which sizes 95% of them are: "+8.1%, from +5.0% to +9.2%". */
static void put_spread(struct buf *out, const struct change *change)
{
	bool fine = fabs(change->size) < 9.95;
	struct buf low = {0}, high = {0};

	text_percent(out, change);
	if (!has_interval(change))
		return;
	put_percent(&low, change->size_low, fine, true);
	put_percent(&high, change->size_high, fine, true);
	if (strcmp(low.data, high.data) != 0)
		buf_printf(out, ", from %s%% to %s%%", low.data, high.data);
	buf_free(&low);
	buf_free(&high);
}

void text_levels(struct buf *out, const struct change *change, const char *arrow)
{
	bool trend = change->kind == CHANGE_TREND;

	buf_text(out, trend ? "trend from " : "");
	text_level(out, change->level_before);
	buf_printf(out, " %s ", trend ? "to" : arrow);
	text_level(out, change->level_after);
}

static const struct {
	int64_t ms;
	const char *sign, *name;
} units[] = {{86400000, "d", "day"}, {3600000, "h", "hour"}, {60000, "min", "minute"},
	{1000, "s", "second"}};

/* The largest unit of which there is one. */
static size_t unit_of(int64_t ms)
{
	size_t unit = 0;

	while (unit + 1 < sizeof units / sizeof *units && ms < units[unit].ms)
		unit++;
	return unit;
}

/* "3 days", "1 hour", rounded down. */
static void put_age(struct buf *out, int64_t age)
{
	size_t unit = unit_of(age);

	count_of(out, (size_t)(age / units[unit].ms), units[unit].name);
}

/* "3 h", "2 d 4 h", "1 h 30 min", "40 s": the two largest units, of which the second may be 0. */
static void put_duration(struct buf *out, int64_t ms)
{
	size_t unit = unit_of(ms);
	int64_t rest = ms % units[unit].ms;

	buf_printf(out, "%lld %s", (long long)(ms / units[unit].ms), units[unit].sign);
	if (unit + 1 < sizeof units / sizeof *units && rest >= units[unit + 1].ms)
		buf_printf(out, " %lld %s", (long long)(rest / units[unit + 1].ms),
			units[unit + 1].sign);
}

/* How long the changes of a crowd lasted. */
static void put_ends(struct buf *out, const struct announcement *item)
{
	int64_t least = INT64_MAX, most = 0;

	for (size_t i = 0; i < item->members; i++) {
		int64_t lasted = item->folded[i]->over.time - item->folded[i]->time;

		least = lasted < least ? lasted : least;
		most = lasted > most ? lasted : most;
	}
	buf_text(out, "recovered after ");
	put_duration(out, least);
	if (most == least)
		return;
	buf_text(out, " to ");
	put_duration(out, most);
}

void text_unit(struct buf *out, const struct announcement *item, const struct text_style *style)
{
	if (!item->unit)
		return;
	buf_char(out, ' ');
	style->name(out, item->unit, OTHER_CHARS);
}

void text_recovery(struct buf *out, const struct announcement *item, const struct text_style *style)
{
	if (item->folded) {
		put_ends(out, item);
		return;
	}
	buf_text(out, "back to ");
	text_level(out, item->over.level);
	text_unit(out, item, style);
	buf_text(out, " after ");
	put_duration(out, item->over.time - item->time);
}

void text_summary(struct buf *out, const struct message *message, const struct text_style *style)
{
	if (message->summary)
		style->name(out, message->summary, SUMMARY_CHARS);
}

/* Of an environment: by their median; once the last has recovered, counts series that were never
 * announced, too. */
void text_recoveries(struct buf *out, const struct message *message)
{
	const struct announcement *item = &message->items[0];
	const struct environment_event *event = message->environment;
	int64_t *ends;

	if (event) {
		ends = memory_new(message->count, sizeof *ends);
		for (size_t i = 0; i < message->count; i++)
			ends[i] = message->items[i].over.time;
		qsort(ends, message->count, sizeof *ends, order_times);
		buf_clean(out, event->value, ENVIRONMENT_CHARS);
		if (event->hit <= message->count)
			buf_printf(out, ": %zu series back after ", message->count);
		else if (event->standing == 0)
			buf_printf(out, ": all %zu series back after ", event->hit);
		else
			buf_printf(
				out, ": %zu of %zu series back after ", message->count, event->hit);
		put_duration(out, ends[message->count / 2] - event->time);
		free(ends);
	} else if (message->count > 1) {
		buf_printf(out, "%zu changes have recovered", message->count);
	} else {
		buf_clean(out, item->metric, OTHER_CHARS);
		buf_text(out, " of ");
		buf_clean(out, item->test, OTHER_CHARS);
		buf_text(out, " is ");
		text_recovery(out, item, &text_plain);
	}
}

static void plain_time(struct buf *out, int64_t time, enum text_time exact)
{
	static const int lengths[] = {
		[TEXT_DAY] = 10, [TEXT_MINUTE] = 16, [TEXT_FULL] = WHEN_TEXT}; /* characters */
	char when[WHEN_TEXT];

	buf_printf(out, "%.*s", lengths[exact], when_format(time, when));
}

const struct text_style text_plain = {buf_clean, plain_time, "-->", METRIC_CHARS};

void text_utc_time(struct buf *out, int64_t time, enum text_time exact)
{
	plain_time(out, time, exact == TEXT_DAY ? TEXT_DAY : TEXT_MINUTE);
	buf_text(out, exact == TEXT_DAY ? "" : " UTC");
}

const struct text_style text_utc = {buf_clean, text_utc_time, "→", METRIC_CHARS};

void text_crowd(struct buf *out, const struct announcement *item, const struct text_style *style)
{
	buf_printf(out, "%zu series", item->members);
	if (item->folded && *item->metric) {
		buf_text(out, " of ");
		style->name(out, item->metric, OTHER_CHARS);
	}
	buf_text(out, item->folded ? ": " : " ");
}

/* ", 96% renderer=gpu", or a name where nothing else says who it is: ", such as p99". */
static void put_shared(
	struct buf *out, const struct announcement *item, const struct text_style *style)
{
	if (item->shared) {
		buf_text(out, ", ");
		style->name(out, item->shared, OTHER_CHARS);
	} else if (!item->folded) {
		buf_text(out, ", such as ");
		style->name(out, item->metric, OTHER_CHARS);
	}
}

/* Times that read alike. */
static bool same_minute(int64_t a, int64_t b)
{
	return a / 60000 == b / 60000;
}

void text_crowd_rest(struct buf *out, const struct announcement *item, size_t shown,
	const struct text_style *style)
{
	int64_t from = item->time, to = item->time;

	for (size_t i = 0; i < item->members; i++) {
		int64_t time = item->folded[i]->time;

		from = time < from ? time : from;
		to = time > to ? time : to;
	}
	buf_printf(out, "%zu more", item->members - shown);
	if (same_minute(from, to))
		return;
	buf_text(out, " between ");
	style->time(out, from, TEXT_MINUTE);
	buf_text(out, " and ");
	style->time(out, to, TEXT_MINUTE);
}

/* Names that a shell reads as they are; others are quoted, or left out. */
void text_command(struct buf *out, const struct announcement *item)
{
	static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				   "._-/:@+,=";
	bool plain = item->test[strspn(item->test, safe)] == '\0';

	buf_text(out, "hunter-c changes");
	if (!*item->test || strpbrk(item->test, "'`*?[\\") || strlen(item->test) > TEST_CHARS)
		return;
	buf_text(out, plain ? " --test " : " --test '");
	buf_clean(out, item->test, TEST_CHARS);
	buf_text(out, plain ? "" : "'");
}

static void put_span(struct buf *out, const struct announcement *item, const char *between,
	const struct text_style *style)
{
	enum text_time exact = item->place_to - item->place_from > FAR ? TEXT_DAY : TEXT_MINUTE;

	style->time(out, item->place_from, exact);
	buf_text(out, between);
	style->time(out, item->place_to, exact);
}

/* Of a trend " over 2026-03-01 .. 2026-03-09, +1.0 a point": two significant digits, "+1.0" and
 * "+0.050"; integers from ten on. */
static void put_course(
	struct buf *out, const struct announcement *item, const struct text_style *style)
{
	double size = fabs(item->slope);

	buf_text(out, " over ");
	put_span(out, item, " .. ", style);
	buf_text(out, ", ");
	buf_printf(out,
		size >= 9.95 && size < 1e6 ? "%+.0f"
		: size >= 1e6              ? "%+.2g"
					   : "%+#.2g",
		item->slope);
	buf_text(out, " a point");
}

void text_place(struct buf *out, const struct announcement *item, const struct text_style *style)
{
	if (item->change.kind == CHANGE_TREND || item->place_from >= item->place_to)
		return;
	if (same_minute(item->place_from, item->place_to)) {
		buf_text(out, "at ");
		style->time(out, item->place_from, TEXT_MINUTE);
		return;
	}
	buf_text(out, "between ");
	put_span(out, item, " and ", style);
}

void text_basis(struct buf *out, const struct announcement *item, const struct text_style *style)
{
	const struct change change = {.size = item->other_size};
	const char *slash = item->other ? strrchr(item->other, '/') : NULL;

	if (!item->other)
		return;
	if (item->basis == BASIS_LOAD) {
		buf_text(out, " at equal ");
		style->name(out, slash ? slash + 1 : item->other, OTHER_CHARS);
	} else if (item->basis == BASIS_RATIO) {
		buf_text(out, " relative to ");
		style->name(out, item->other, OTHER_CHARS);
	}
	if (!item->other_changed)
		return;
	buf_text(out, " (");
	style->name(out, item->other, OTHER_CHARS);
	buf_char(out, ' ');
	text_percent(out, &change);
	buf_text(out, " at the same time)");
}

/* "p99: " */
static void put_subject(
	struct buf *out, const struct announcement *item, const struct text_style *style)
{
	if (item->members > 0) {
		text_crowd(out, item, style);
		return;
	}
	style->name(out, item->metric, style->metric_limit);
	buf_text(out, ": ");
}

/* Crowds have no levels. */
void text_change(struct buf *out, const struct announcement *item, const struct text_style *style,
	const char *begin, const char *end)
{
	const struct change accepted = {.size = item->accepted};
	bool crowd = item->members > 0;

	put_subject(out, item, style);
	buf_text(out, begin);
	if (item->folded)
		put_spread(out, &item->change);
	else if (crowd)
		text_percent(out, &item->change);
	else
		text_size(out, &item->change);
	text_basis(out, item, style);
	if (!crowd && accepted.size != 0 && isfinite(accepted.size)) { /* it has outgrown that */
		buf_text(out, ", accepted at ");
		text_percent(out, &accepted);
	}
	buf_text(out, end);
	if (crowd) {
		put_shared(out, item, style);
		return;
	}
	buf_text(out, "  ");
	text_levels(out, &item->change, style->arrow);
	text_unit(out, item, style);
	if (item->change.kind == CHANGE_TREND)
		put_course(out, item, style);
}

void text_end(struct buf *out, const struct announcement *item, const struct text_style *style,
	const char *begin, const char *was)
{
	put_subject(out, item, style);
	buf_text(out, begin);
	text_recovery(out, item, style);
	buf_text(out, was);
	if (item->folded) {
		put_spread(out, &item->change);
		put_shared(out, item, style);
	} else {
		text_percent(out, &item->change);
		buf_text(out, "  ");
		text_levels(out, &item->change, style->arrow);
	}
	buf_char(out, ')');
}

/* When the suspects were deployed, to the minute. */
static void put_deployed(
	struct buf *out, const struct announcement *item, const struct text_style *style)
{
	const struct attribution *suspects = &item->suspects;
	int64_t first = suspects->list[0].time, last = suspects->list[suspects->listed - 1].time;

	buf_text(out, "deployed ");
	style->time(out, first, TEXT_MINUTE);
	if (suspects->count > 1 && !same_minute(first, last)) {
		buf_text(out, " .. ");
		style->time(out, last, TEXT_MINUTE);
	}
	if (last < item->time) {
		buf_text(out, ", ");
		put_age(out, item->time - last);
		buf_text(out, " before");
	}
}

static void put_no_suspect(
	struct buf *out, const struct announcement *item, const struct text_style *style)
{
	const struct deployment *last = &item->suspects.last;

	buf_text(out, "no deployment in between");
	if (last->time == INT64_MIN)
		return;
	if (last->after == INT64_MIN || last->time >= item->time) {
		buf_text(out, " (");
		style->name(out, deployment_name(last), ATTRIBUTE_CHARS);
		buf_text(out, " throughout)");
		return;
	}
	buf_text(out, "; last one ");
	put_age(out, item->time - last->time);
	buf_text(out, " before");
	if (deployment_name(last)) {
		buf_text(out, " (");
		style->name(out, deployment_name(last), ATTRIBUTE_CHARS);
		buf_char(out, ')');
	}
}

bool text_range(struct buf *out, const struct announcement *item, const struct text_style *style)
{
	const char *before, *after;

	announcement_range(item, &before, &after);
	if (!before && !after)
		return false;
	if (before || !item->suspects.known) {
		style->name(out, before ? before : "?", OTHER_CHARS);
		buf_text(out, " .. ");
	}
	style->name(out, after ? after : "?", OTHER_CHARS);
	return true;
}

void text_suspects(struct buf *out, const struct announcement *item, const struct text_style *style)
{
	const struct attribution *suspects = &item->suspects;
	size_t before = out->length;

	if (!suspects->known)
		return;
	if (suspects->count == 0) {
		put_no_suspect(out, item, style);
		return;
	}
	if (suspects->count > 1)
		buf_printf(out, "%zu suspects", suspects->count);
	if (suspects->share > 0 && suspects->share < 1)
		buf_printf(out, "%sin %.0f%% of the members", suspects->count > 1 ? " " : "",
			fmax(1, floor(100 * suspects->share)));
	if (!suspects->timed)
		return;
	buf_text(out, out->length > before ? ", " : "");
	put_deployed(out, item, style);
}

void text_commits(struct buf *out, const struct announcement *item, const struct text_style *style)
{
	const char *likely = announcement_likely(item);
	bool range = text_range(out, item, style);
	struct buf more = {0};

	text_suspects(&more, item, style);
	if (more.length > 0)
		buf_printf(out, "%s%s", range ? ", " : "", more.data);
	buf_free(&more);
	if (!likely || !range)
		return;
	buf_text(out, ", most likely ");
	style->name(out, likely, OTHER_CHARS);
}

static void put_attribute(struct buf *out, const struct attribute *attribute, bool *any)
{
	if (!attribute->before && !attribute->after)
		return;
	buf_text(out, *any ? ", " : "");
	*any = true;
	buf_clean(out, attribute->name, ATTRIBUTE_CHARS);
	buf_text(out, ": ");
	if (!order_same(attribute->before, attribute->after)) {
		buf_clean(out, attribute->before ? attribute->before : "?", ATTRIBUTE_CHARS);
		buf_text(out, " .. ");
	}
	buf_clean(out, attribute->after ? attribute->after : "?", ATTRIBUTE_CHARS);
}

void text_attributes(struct buf *out, const struct announcement *item)
{
	bool any = false;

	if (item->commit_before || item->commit_after)
		put_attribute(out,
			&(struct attribute){"version", item->version_before, item->version_after},
			&any);
	for (size_t i = 0; i < item->attribute_count; i++)
		put_attribute(out, &item->attributes[i], &any);
}
