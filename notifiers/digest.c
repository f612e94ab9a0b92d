/*
 * Sorts changes by test, then by crowd key, then by time; crowds are found in one sweep.
 */
#include "notifiers/digest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/order.h"
#include "agent/model/labels.h"

/* A crowd lists labels that at least this share of its series have, at most this many. */
#define LEAST_SHARE 0.9
enum { LABELS_SHOWN = 3 };

/* Share of sizes outside of a crowd's interval, on each side. */
#define TAIL 0.025

/* Bounds for outlying sizes: in robust standard deviations, and as a share of the median. */
#define APART 4
#define APART_LEAST 0.25

/* Compares two names without their labels. */
static int compare_bases(const char *a, const char *b)
{
	size_t length_a = strcspn(a, "{"), length_b = strcspn(b, "{");
	int order = memcmp(a, b, length_a < length_b ? length_a : length_b);

	return order ? order : order_sizes(&length_a, &length_b);
}

/* Compares everything that a crowd has in common except time. */
static int compare_kinds(const struct announcement *a, const struct announcement *b)
{
	const int pairs[][2] = {{a->direction, b->direction},
		{change_sign(&a->change), change_sign(&b->change)},
		{(int)a->change.kind, (int)b->change.kind}, {(int)a->basis, (int)b->basis},
		{a->over.time != 0, b->over.time != 0}, {a->members > 0, b->members > 0}};
	int order = order_maybe(a->test, b->test);

	order = order ? order : compare_bases(a->metric, b->metric);
	order = order ? order : order_maybe(a->unit, b->unit);
	order = order ? order : order_maybe(a->other, b->other);
	for (size_t i = 0; i < sizeof pairs / sizeof *pairs && !order; i++)
		order = pairs[i][0] - pairs[i][1];
	return order;
}

static int compare_sweep(const void *a, const void *b)
{
	const struct announcement *left = *(const struct announcement *const *)a;
	const struct announcement *right = *(const struct announcement *const *)b;
	int order = compare_kinds(left, right);

	order = order ? order : order_times(&left->time, &right->time);
	return order ? order : (left > right) - (left < right);
}

/* Number of items from the first on that can be one crowd. */
static size_t alike(const struct announcement *const *items, size_t count)
{
	const struct announcement *first = items[0];
	size_t next = 1;

	for (; next < count && first->members == 0; next++) {
		const struct announcement *other = items[next];
		int64_t spacing = first->spacing < other->spacing ? first->spacing : other->spacing;

		if (compare_kinds(first, other) != 0 ||
			other->time - first->time > CROWD_TOLERANCE * spacing)
			break;
	}
	return next;
}

/* Interpolates linearly. */
static double quantile(const double *sorted, size_t count, double part)
{
	double at = part * (double)(count - 1);
	size_t low = (size_t)at, high = low + 1 < count ? low + 1 : low;

	return sorted[low] + (at - (double)low) * (sorted[high] - sorted[low]);
}

/* The median size, and the allowed distance from it. A change without a size fits any crowd. */
struct spread {
	double middle, reach;
};

/* The known sizes, sorted; the caller frees them. */
static double *sizes_of(const struct announcement *const *items, size_t count, size_t *known)
{
	double *sizes = memory_new(count, sizeof *sizes);

	*known = 0;
	for (size_t i = 0; i < count; i++)
		if (isfinite(items[i]->change.size))
			sizes[(*known)++] = items[i]->change.size;
	qsort(sizes, *known, sizeof *sizes, order_numbers);
	return sizes;
}

static struct spread spread_of(const struct announcement *const *items, size_t count)
{
	struct spread spread = {(double)NAN, (double)NAN};
	size_t known;
	double *sizes = sizes_of(items, count, &known);

	if (known > 0) {
		spread.middle = quantile(sizes, known, 0.5);
		for (size_t i = 0; i < known; i++)
			sizes[i] = fabs(sizes[i] - spread.middle);
		qsort(sizes, known, sizeof *sizes, order_numbers);
		spread.reach = fmax(APART * 1.4826 * quantile(sizes, known, 0.5),
			APART_LEAST * fabs(spread.middle));
	}
	free(sizes);
	return spread;
}

static bool is_apart(const struct announcement *item, const struct spread *spread)
{
	return fabs(item->change.size - spread->middle) > spread->reach;
}

/* Moves outlying changes to the end, in a stable order. Returns how many remain. */
static size_t set_apart(const struct announcement **items, size_t count)
{
	struct spread spread = spread_of(items, count);
	const struct announcement **apart = memory_new(count, sizeof *apart);
	size_t kept = 0, gone = 0;

	for (size_t i = 0; i < count; i++)
		if (is_apart(items[i], &spread))
			apart[gone++] = items[i];
		else
			items[kept++] = items[i];
	for (size_t i = 0; i < gone; i++)
		items[kept + i] = apart[i];
	free(apart);
	return kept;
}

/* "new" only if all are. */
static void set_sizes(struct change *change, const struct announcement *const *items, size_t count)
{
	size_t known;
	double *sizes = sizes_of(items, count, &known);

	change->size = known > 0 ? quantile(sizes, known, 0.5) : (double)NAN;
	change->size_low = known > 0 ? quantile(sizes, known, TAIL) : (double)NAN;
	change->size_high = known > 0 ? quantile(sizes, known, 1 - TAIL) : (double)NAN;
	free(sizes);
}

/* The earliest of the most frequent times; the items are sorted by time. */
static int64_t time_of_most(const struct announcement *const *items, size_t count)
{
	size_t most = 0, run = 0;
	int64_t time = items[0]->time;

	for (size_t i = 0; i < count; i++) {
		run = i > 0 && items[i]->time == items[i - 1]->time ? run + 1 : 1;
		if (run > most) {
			most = run;
			time = items[i]->time;
		}
	}
	return time;
}

static int64_t width(const struct announcement *item)
{
	return item->place_to - item->place_from;
}

/* The change at that time with the narrowest place, of several the worst. */
static const struct announcement *clearest(
	const struct announcement *const *items, size_t count, int64_t time)
{
	const struct announcement *best = NULL;

	for (size_t i = 0; i < count; i++) {
		const struct announcement *item = items[i];

		if (item->time != time)
			continue;
		if (!best || width(item) < width(best) ||
			(width(item) == width(best) && announcement_compare_weight(item, best) < 0))
			best = item;
	}
	return best;
}

const char *const page_names[PAGES] = {"details", "dashboard", "runbook", "owner"};

static const char *page(const struct announcement *item, enum page which)
{
	const char *const pages[PAGES] = {item->page, item->dashboard, item->runbook, item->owner};

	return pages[which];
}

/* The page of one change of the crowd, with a range from the earliest to the last time. */
static const char *page_between(struct arena *arena, const struct announcement *item,
	enum page which, const char *from, const char *to)
{
	const struct url_templates *links = item->templates;
	struct url_values values;

	if (!links || !item->values)
		return page(item, which);
	values = *item->values;
	values.from = from;
	values.to = to;
	if (which == PAGE_OWNER)
		return url_template_expand(arena, links->owner, &values, false);
	return url_template_expand(
		arena, which == PAGE_RUNBOOK ? links->runbook : links->dashboard, &values, true);
}

/* The earliest or latest of these times. */
static const char *outermost(const struct announcement *const *items, size_t count, bool last)
{
	const char *best = NULL;
	long long ms = 0;

	for (size_t i = 0; i < count; i++) {
		const struct url_values *values = items[i]->values;
		const char *text = !values ? NULL : last ? values->to : values->from;
		long long time = text ? strtoll(text, NULL, 10) : 0;

		if (!text || (best && (last ? time <= ms : time >= ms)))
			continue;
		best = text;
		ms = time;
	}
	return best;
}

static void set_pages(struct arena *arena, struct announcement *crowd,
	const struct announcement *const *items, size_t count)
{
	const char *from = outermost(items, count, false), *to = outermost(items, count, true);
	const char **pages[PAGES] = {NULL, &crowd->dashboard, &crowd->runbook, &crowd->owner};

	crowd->page = NULL; /* each has its own */
	for (enum page which = PAGE_DASHBOARD; which < PAGES; which++) {
		const char *first = page_between(arena, items[0], which, from, to);

		for (size_t i = 1; i < count && first; i++)
			if (order_maybe(first, page_between(arena, items[i], which, from, to)) != 0)
				first = NULL;
		*pages[which] = first;
	}
}

/* The worst change that the item represents. */
static const struct announcement *worst_of(const struct announcement *item)
{
	return item->folded ? item->folded[0] : item;
}

struct digest_pages digest_pages(const struct announcement *const *items, size_t count)
{
	struct digest_pages pages = {.worst = worst_of(items[0])};

	for (size_t i = 1; i < count; i++)
		if (announcement_compare_weight(worst_of(items[i]), pages.worst) < 0)
			pages.worst = worst_of(items[i]);
	for (enum page which = 0; which < PAGES; which++) {
		const char *first = page(items[0], which);
		bool same = first || !page(worst_of(items[0]), which);

		for (size_t i = 1; i < count && same; i++)
			same = order_maybe(first, page(items[i], which)) == 0 &&
			       (first || !page(worst_of(items[i]), which));
		if (same)
			pages.common[which] = first;
		else
			pages.own[which] = page(pages.worst, which);
	}
	return pages;
}

/* Labels that all series of a test share; shown with the test's name. */
struct common {
	const struct label_share *labels;
	size_t count;
	const char *text;
};

static struct labels *labels_of(
	struct arena *arena, const struct announcement *const *items, size_t count)
{
	struct labels *labels = labels_new(arena);

	for (size_t i = 0; i < count; i++)
		labels_add_name(labels, items[i]->metric);
	return labels;
}

/* "100% role=render, 92% region=eu", without labels shown with the test; or NULL. */
static const char *shares(struct arena *arena, const struct label_share *labels, size_t count,
	const struct common *common)
{
	struct buf text = {0};

	for (size_t i = 0, shown = 0, k; i < count && shown < LABELS_SHOWN; i++) {
		for (k = 0; k < common->count; k++)
			if (strcmp(common->labels[k].text, labels[i].text) == 0)
				break;
		if (k == common->count)
			buf_printf(&text, "%s%.0f%% %s", shown++ > 0 ? ", " : "",
				floor(100 * labels[i].share), labels[i].text);
	}
	return text.length > 0 ? buf_keep(&text, arena) : NULL;
}

/* `base`: also cuts the text before the labels. */
static const char *cut(struct arena *arena, const char *name, const struct label_share *labels,
	size_t count, bool base)
{
	struct buf text = {0};
	const char *copy, *brace;

	labels_cut(&text, name, labels, count);
	copy = buf_keep(&text, arena);
	brace = base ? NULL : strchr(copy, '{');
	return brace ? brace : copy;
}

static struct announcement crowd_of(struct arena *arena, const struct announcement *const *items,
	size_t count, const struct common *common)
{
	const struct announcement **folded = arena_array(arena, count, sizeof *folded);
	struct announcement *copies = arena_array(arena, count, sizeof *copies);
	struct labels *labels = labels_of(arena, items, count);
	struct announcement crowd = *clearest(items, count, time_of_most(items, count));
	const struct announcement *worst;
	const struct label_share *shared;
	size_t found;

	shared = labels_common(labels, arena, LEAST_SHARE, &found);
	memcpy(folded, items, count * sizeof *folded);
	message_rank(folded, count);
	worst = folded[0];
	crowd.id = worst->id;
	crowd.incident = worst->incident;
	crowd.metric = arena_strndup(arena, worst->metric, strcspn(worst->metric, "{"));
	crowd.change = worst->change;
	crowd.culprit = worst->culprit;
	crowd.environment = worst->environment;
	crowd.over = worst->over;
	crowd.status = worst->status;
	crowd.excerpt = worst->excerpt;
	crowd.members = count;
	crowd.shared = shares(arena, shared, found, common);
	crowd.other_changed = false;
	set_sizes(&crowd.change, items, count);
	set_pages(arena, &crowd, items, count);
	for (size_t i = 0; i < count; i++) {
		copies[i] = *folded[i];
		copies[i].metric = cut(arena, copies[i].metric, shared, found, false);
		folded[i] = &copies[i];
	}
	crowd.folded = folded;
	crowd.common = common->text;
	labels_free(labels);
	return crowd;
}

/* The text to show with the test's name: nothing for a single series, which keeps its name, and
 * where the first has no labels, as then none is common. */
static struct common common_of(
	struct arena *arena, const struct announcement *const *items, size_t count)
{
	struct common common = {0};
	bool differ = false;
	struct buf text = {0};
	struct labels *labels;

	for (size_t i = 1; i < count && strchr(items[0]->metric, '{'); i++)
		differ |= strcmp(items[0]->metric, items[i]->metric) != 0;
	if (!differ)
		return common;
	labels = labels_of(arena, items, count);
	common.labels = labels_common(labels, arena, 1, &common.count);
	labels_free(labels);
	for (size_t i = 0; i < common.count; i++)
		buf_printf(&text, "%s%s", i > 0 ? ", " : "", common.labels[i].text);
	if (text.length > 0)
		common.text = buf_keep(&text, arena);
	return common;
}

/* A line: a change or a crowd, and the position of its first change in the message. */
struct line {
	const struct announcement *first;
	struct announcement item;
};

struct lines {
	struct arena *arena;
	struct line *items;
	size_t count;
};

static const struct announcement *first_of(const struct announcement *const *items, size_t count)
{
	const struct announcement *first = items[0];

	for (size_t i = 1; i < count; i++)
		first = items[i] < first ? items[i] : first;
	return first;
}

/* Adds all changes of one test. Recoveries have no line for their test, nor has a single crowd,
 * which lists its labels. */
static void add_test(struct lines *lines, const struct announcement **items, size_t count,
	enum message_kind kind)
{
	size_t *crowds = memory_new(count, sizeof *crowds); /* that begin there */
	struct common common = {0};

	for (size_t at = 0, next; at < count; at = next) {
		next = at + alike(items + at, count - at);
		if (next - at >= CROWD_LEAST)
			crowds[at] = set_apart(items + at, next - at);
	}
	if (kind != MESSAGE_RECOVERED && crowds[0] < count)
		common = common_of(lines->arena, items, count);
	for (size_t at = 0; at < count;) {
		struct line *line = &lines->items[lines->count++];

		if (crowds[at] >= CROWD_LEAST) {
			*line = (struct line){first_of(items + at, crowds[at]),
				crowd_of(lines->arena, items + at, crowds[at], &common)};
			at += crowds[at];
			continue;
		}
		*line = (struct line){items[at], *items[at]};
		at++;
		if (common.count == 0)
			continue;
		line->item.common = common.text;
		line->item.metric =
			cut(lines->arena, line->item.metric, common.labels, common.count, true);
	}
	free(crowds);
}

static int compare_lines(const void *a, const void *b)
{
	const struct line *left = a, *right = b;

	return (left->first > right->first) - (left->first < right->first);
}

static const struct announcement *items_of(struct lines *lines)
{
	struct announcement *items = arena_array(lines->arena, lines->count, sizeof *items);

	qsort(lines->items, lines->count, sizeof *lines->items, compare_lines);
	for (size_t i = 0; i < lines->count; i++)
		items[i] = lines->items[i].item;
	return items;
}

/* Names without labels are not cut or folded. */
static bool has_labels(const struct message *message)
{
	for (size_t i = 0; i < message->count; i++)
		if (strchr(message->items[i].metric, '{'))
			return true;
	return false;
}

struct digest digest_of(const struct message *message)
{
	if (!has_labels(message))
		return (struct digest){.message = *message};

	struct digest digest = {.arena = arena_new(), .message = *message};
	const struct announcement **sorted = memory_new(message->count, sizeof *sorted);
	struct lines lines = {
		.arena = digest.arena, .items = memory_new(message->count, sizeof *lines.items)};

	for (size_t i = 0; i < message->count; i++)
		sorted[i] = &message->items[i];
	qsort(sorted, message->count, sizeof *sorted, compare_sweep);
	for (size_t at = 0, next; at < message->count; at = next) {
		for (next = at + 1;
			next < message->count && strcmp(sorted[at]->test, sorted[next]->test) == 0;
			next++)
			;
		add_test(&lines, sorted + at, next - at, message->kind);
	}
	digest.message.items = items_of(&lines);
	digest.message.count = lines.count;
	free(lines.items);
	free(sorted);
	return digest;
}

void digest_free(struct digest *digest)
{
	arena_free(digest->arena);
	*digest = (struct digest){0};
}

size_t digest_changes(const struct announcement *const *items, size_t count)
{
	size_t changes = 0;

	for (size_t i = 0; i < count; i++)
		changes += items[i]->folded ? items[i]->members : 1;
	return changes;
}
