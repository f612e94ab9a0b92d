/*
 * See text.h. Text is copied character by character, because the two things that matter, cutting
 * between characters and stopping control characters, both need to know where characters begin.
 */
#include "notifiers/text.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/utf8.h"

enum { ATTRIBUTE_CHARS = 60, MEMBER_CHARS = 1000 };

int announcement_verdict(const struct announcement *item)
{
	double delta = item->change.mean_after - item->change.mean_before;

	if (item->direction == 0 || !(delta > 0 || delta < 0))
		return 0;
	return (delta > 0) == (item->direction < 0) ? 1 : -1;
}

int announcement_compare_weight(const struct announcement *a, const struct announcement *b)
{
	int verdict_a = announcement_verdict(a) > 0, verdict_b = announcement_verdict(b) > 0;

	if (verdict_a != verdict_b)
		return verdict_b - verdict_a;
	return (b->change.magnitude > a->change.magnitude) -
	       (a->change.magnitude > b->change.magnitude);
}

const struct announcement *message_worst(const struct message *message)
{
	const struct announcement *worst = NULL;

	for (size_t i = 0; i < message->count; i++)
		if (!worst || announcement_compare_weight(&message->items[i], worst) < 0)
			worst = &message->items[i];
	return worst;
}

static int compare_weight(const void *a, const void *b)
{
	const struct announcement *left = *(const struct announcement *const *)a;
	const struct announcement *right = *(const struct announcement *const *)b;
	int weight = announcement_compare_weight(left, right);

	return weight != 0 ? weight : (left > right) - (left < right);
}

static int compare_place(const void *a, const void *b)
{
	const struct announcement *left = *(const struct announcement *const *)a;
	const struct announcement *right = *(const struct announcement *const *)b;

	return (left > right) - (left < right);
}

void message_by_weight(const struct message *message, const struct announcement **out)
{
	for (size_t i = 0; i < message->count; i++)
		out[i] = &message->items[i];
	qsort(out, message->count, sizeof *out, compare_weight);
}

void message_in_place(const struct announcement **items, size_t count)
{
	qsort(items, count, sizeof *items, compare_place);
}

void message_select(const struct message *message, size_t count, const struct announcement **out)
{
	message_by_weight(message, out);
	message_in_place(out, count < message->count ? count : message->count);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static size_t count_tests(const struct message *message)
{
	const char **names = memory_new(message->count, sizeof *names);
	size_t count = 0;

	for (size_t i = 0; i < message->count; i++)
		names[i] = message->items[i].test;
	qsort(names, message->count, sizeof *names, compare_names);
	for (size_t i = 0; i < message->count; i++)
		count += i == 0 || strcmp(names[i], names[i - 1]) != 0;
	free(names);
	return count;
}

struct tally message_tally(const struct message *message)
{
	struct tally tally = {.changes = message->count, .tests = count_tests(message)};

	for (size_t i = 0; i < message->count; i++) {
		int verdict = announcement_verdict(&message->items[i]);

		tally.regressions += verdict > 0;
		tally.improvements += verdict < 0;
	}
	return tally;
}

static void count_of(struct buf *out, size_t count, const char *noun)
{
	buf_printf(out, "%zu %s%s", count, noun, count == 1 ? "" : "s");
}

void text_tally(struct buf *out, const struct tally *tally)
{
	count_of(out, tally->changes, "change point");
	buf_text(out, " in ");
	count_of(out, tally->tests, "test");
	if (tally->regressions + tally->improvements == 0)
		return;
	buf_text(out, ": ");
	if (tally->regressions > 0)
		count_of(out, tally->regressions, "regression");
	if (tally->regressions > 0 && tally->improvements > 0)
		buf_text(out, ", ");
	if (tally->improvements > 0)
		count_of(out, tally->improvements, "improvement");
}

void text_clean(struct buf *out, const char *text, size_t limit)
{
	size_t left = strlen(text), last = out->length;

	for (size_t count = 0; left > 0; count++) {
		size_t length = utf8_length(text, left), taken = length == 0 ? 1 : length;

		if (count == limit) {
			out->length = last;
			buf_text(out, "…");
			return;
		}
		last = out->length;
		if (length == 0)
			buf_text(out, "\xef\xbf\xbd");
		else if (utf8_is_control(text, length))
			buf_char(out, ' ');
		else
			buf_append(out, text, length);
		text += taken;
		left -= taken;
	}
}

void text_level(struct buf *out, double value)
{
	double size = fabs(value);

	buf_printf(out, size >= 1e4 && size < 1e6 ? "%.0f" : "%.4g", value);
}

void text_percent(struct buf *out, const struct change *change)
{
	double percent = change_percent(change), size = fabs(percent);

	if (change->mean_before == 0 || !isfinite(percent))
		buf_text(out, "new");
	else
		buf_printf(out,
			size < 10    ? "%+.1f%%"
			: size < 1e5 ? "%+.0f%%"
				     : "%+.2g%%",
			percent);
}

void announcement_range(const struct announcement *item, const char **before, const char **after)
{
	bool commits = item->commit_before || item->commit_after;

	*before = commits ? item->commit_before : item->version_before;
	*after = commits ? item->commit_after : item->version_after;
}

static bool same(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_attributes(const struct announcement *a, const struct announcement *b)
{
	if (a->attribute_count != b->attribute_count)
		return false;
	for (size_t i = 0; i < a->attribute_count; i++) {
		const struct attribute *left = &a->attributes[i], *right = &b->attributes[i];

		if (!same(left->name, right->name) || !same(left->before, right->before) ||
			!same(left->after, right->after))
			return false;
	}
	return true;
}

bool announcement_same_range(const struct announcement *a, const struct announcement *b)
{
	return same(a->commit_before, b->commit_before) && same(a->commit_after, b->commit_after) &&
	       same(a->version_before, b->version_before) &&
	       same(a->version_after, b->version_after) && same_attributes(a, b);
}

static void put_attribute(struct buf *out, const struct attribute *attribute, bool *any)
{
	if (!attribute->before && !attribute->after)
		return;
	buf_text(out, *any ? ", " : "");
	*any = true;
	text_clean(out, attribute->name, ATTRIBUTE_CHARS);
	buf_text(out, ": ");
	if (!same(attribute->before, attribute->after)) {
		text_clean(out, attribute->before ? attribute->before : "?", ATTRIBUTE_CHARS);
		buf_text(out, " .. ");
	}
	text_clean(out, attribute->after ? attribute->after : "?", ATTRIBUTE_CHARS);
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

static void put_member(struct buf *out, const char *name, const char *value, bool *any)
{
	struct buf clean = {0};

	if (!value)
		return;
	buf_text(out, *any ? ", " : "");
	*any = true;
	text_clean(&clean, name, MEMBER_CHARS);
	buf_json_string(out, clean.data, clean.length);
	buf_text(out, ": ");
	buf_clear(&clean);
	text_clean(&clean, value, MEMBER_CHARS);
	buf_json_string(out, clean.data, clean.length);
	buf_free(&clean);
}

void announcement_put_attributes(struct buf *out, const struct announcement *item, bool after)
{
	bool any = false;

	buf_char(out, '{');
	put_member(out, "commit", after ? item->commit_after : item->commit_before, &any);
	put_member(out, "version", after ? item->version_after : item->version_before, &any);
	for (size_t i = 0; i < item->attribute_count; i++) {
		const struct attribute *attribute = &item->attributes[i];

		put_member(
			out, attribute->name, after ? attribute->after : attribute->before, &any);
	}
	buf_char(out, '}');
}
