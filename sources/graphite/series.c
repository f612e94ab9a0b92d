/*
 * Missing points are not stored, and a series with the same times as the one before shares them. At
 * the end the times of all series of a resolution are merged, and series without a value at some of
 * them are padded with NaN. If that would take several times the memory of the points, because they
 * share few times, only neighbouring series share an axis.
 */
#include "sources/graphite/series.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/buf.h"
#include "agent/base/order.h"
#include "agent/base/utf8.h"

enum {
	SERIES_MAX = 10000,
	POINTS_MAX = 20000000,
	GRIDS_MAX = 16,
	NAME_SHOWN = 200,
	TAGS_MAX = 100,
	PADDING_FACTOR = 4, /* an axis may have this many values for each point of its series, */
	PADDING_SPARE = 1 << 20, /* and all axes together this many more */
};

struct found {
	struct found *next;
	const struct target *target;
	const char *text; /* the server's name */
	int64_t step;     /* ms, or 0 */
	size_t n;
	int64_t *times;
	double *values;
	size_t order;
	struct axis *axis;
};

struct graphite_set {
	struct query *query;
	int64_t from, to;
	bool empty, overflow;
	struct target *targets;
	size_t target_count;
	struct found *found, **last;
	const struct found *before; /* the last one with points */
	size_t count, points, malformed;
	size_t spare; /* unused part of PADDING_SPARE */
	const char *first_malformed;
};

struct graphite_set *graphite_set_new(struct query *query, int64_t from, int64_t to, bool empty)
{
	struct graphite_set *set = arena_alloc(query->arena, sizeof *set);
	set->query = query;
	set->from = from;
	set->to = to;
	set->empty = empty;
	set->last = &set->found;
	set->spare = PADDING_SPARE;
	return set;
}

void graphite_set_expect(struct graphite_set *set, struct target *targets, size_t count)
{
	set->targets = targets;
	set->target_count = count;
}

size_t graphite_set_count(const struct graphite_set *set)
{
	return set->count;
}

size_t graphite_set_points(const struct graphite_set *set)
{
	return set->points;
}

bool graphite_set_overflow(const struct graphite_set *set)
{
	return set->overflow;
}

static void keep_points(struct graphite_set *set, struct found *found,
	const struct graphite_series *series, size_t begin, size_t n)
{
	struct arena *arena = set->query->arena;
	const struct found *before = set->before;
	double scale = found->target->metric ? found->target->metric->scale : 1;
	found->n = n;
	set->points += n;
	if (n == 0)
		return;
	const int64_t *times = series->times + begin;
	if (before && before->n == n && memcmp(before->times, times, n * sizeof *times) == 0) {
		found->times = before->times;
	} else {
		found->times = arena_array(arena, n, sizeof *times);
		memcpy(found->times, times, n * sizeof *times);
	}
	found->values = arena_array(arena, n, sizeof *found->values);
	for (size_t i = 0; i < n; i++)
		found->values[i] = series->values[begin + i] * scale;
	set->before = found;
}

static void add(
	struct graphite_set *set, struct target *target, const struct graphite_series *series)
{
	size_t begin = 0, end = series->n;
	while (begin < end && series->times[begin] < set->from)
		begin++;
	while (end > begin && series->times[end - 1] >= set->to)
		end--;
	target->points = target->points || begin < end;
	if (begin == end && !set->empty)
		return;
	if (set->count == SERIES_MAX || end - begin > POINTS_MAX - set->points) {
		set->overflow = true;
		return;
	}
	struct found *found = arena_alloc(set->query->arena, sizeof *found);
	found->target = target;
	found->text = arena_strdup(set->query->arena, series->target);
	found->step = series->step * 1000;
	keep_points(set, found, series, begin, end - begin);
	*set->last = found;
	set->last = &found->next;
	found->order = set->count++;
}

void graphite_set_take(void *context, const struct graphite_series *series)
{
	struct graphite_set *set = context;
	bool only = set->target_count == 1;
	if (series->unusable) {
		query_leave_out(
			set->query, "series", series->text, series->length, series->unusable);
		set->targets[0].answered |= only;
		set->targets[0].points |= only;
		return;
	}
	if (series->malformed > 0 && !set->first_malformed)
		set->first_malformed = arena_strdup(set->query->arena, series->target);
	set->malformed += series->malformed;
	for (size_t i = 0; i < set->target_count; i++) {
		struct target *target = &set->targets[i];
		bool its = (only && !target->plain) || (only && !target->answered) ||
			   (!target->answered && strcmp(target->text, series->target) == 0);
		if (!its)
			continue;
		target->answered = true;
		add(set, target, series);
	}
}

static int64_t phase_of(const struct found *found)
{
	return found->step > 0 && found->n > 0 ? found->times[0] % found->step : 0;
}

static int compare_found(const void *a, const void *b)
{
	const struct found *one = *(struct found *const *)a, *two = *(struct found *const *)b;
	int64_t phases[] = {phase_of(one), phase_of(two)};
	int order = order_times(&one->step, &two->step);
	return order ? order : order_times(&phases[0], &phases[1]);
}

/* Equal series keep their order. */
static int compare_order(const void *a, const void *b)
{
	const struct found *one = *(struct found *const *)a, *two = *(struct found *const *)b;
	int order = compare_found(a, b);
	return order ? order : order_sizes(&one->order, &two->order);
}

static bool fits(const struct found *found, const struct found *grid)
{
	for (size_t i = 0; i < found->n; i++)
		if ((found->times[i] - grid->times[0]) % grid->step != 0)
			return false;
	return true;
}

/* Series read as JSON, which have no resolution, adopt that of another series if they fit. */
static void adopt_steps(struct found *const *sorted, size_t count)
{
	const struct found *grids[GRIDS_MAX];
	size_t grid_count = 0;
	for (size_t i = 0; i < count && grid_count < GRIDS_MAX; i++) {
		bool known =
			grid_count > 0 && compare_found(&grids[grid_count - 1], &sorted[i]) == 0;
		if (sorted[i]->step > 0 && sorted[i]->n > 0 && !known)
			grids[grid_count++] = sorted[i];
	}
	for (size_t i = 0; i < count && sorted[i]->step == 0; i++)
		for (size_t k = 0; k < grid_count && sorted[i]->step == 0; k++)
			if (fits(sorted[i], grids[k]))
				sorted[i]->step = grids[k]->step;
}

struct times {
	int64_t *items;
	size_t n;
	bool own; /* to be freed */
};

static void times_free(struct times times)
{
	if (times.own)
		free(times.items);
}

/* Merges the times of both, without duplicates. Takes over what they own. */
static struct times merge(struct times a, struct times b)
{
	if (a.n == 0)
		return b;
	if (b.n == 0)
		return a;
	if (a.n == b.n && memcmp(a.items, b.items, a.n * sizeof *a.items) == 0) {
		times_free(b);
		return a;
	}
	struct times out = {memory_new(a.n + b.n, sizeof *out.items), 0, true};
	for (size_t i = 0, k = 0; i < a.n || k < b.n; out.n++) {
		bool first = k == b.n || (i < a.n && a.items[i] <= b.items[k]);
		int64_t time = first ? a.items[i] : b.items[k];
		out.items[out.n] = time;
		i += i < a.n && a.items[i] == time;
		k += k < b.n && b.items[k] == time;
	}
	times_free(a);
	times_free(b);
	return out;
}

/* Merged pairwise: each time is looked at log2(count) times. */
static struct times merge_all(struct found *const *members, size_t count)
{
	if (count == 1)
		return (struct times){members[0]->times, members[0]->n, false};
	struct times a = merge_all(members, count / 2);
	return merge(a, merge_all(members + count / 2, count - count / 2));
}

/* Graphite returns each time once; of other servers no point must be lost. */
static bool ascends(const struct found *found)
{
	for (size_t i = 1; i < found->n; i++)
		if (found->times[i] == found->times[i - 1])
			return false;
	return true;
}

static void pad(struct arena *arena, const struct axis *axis, struct found *found)
{
	if (found->n == axis->n)
		return;
	double *values = arena_array(arena, axis->n, sizeof *values);
	for (size_t i = 0, k = 0; i < axis->n; i++)
		values[i] = k < found->n && found->times[k] == axis->times[i] ? found->values[k++]
									      : (double)NAN;
	found->values = values;
}

static void use_axis(struct graphite_set *set, struct found **found, size_t members,
	struct times times, const struct graphite_events *events)
{
	struct arena *arena = set->query->arena;
	struct axis *axis = arena_alloc(arena, sizeof *axis);
	axis->n = times.n;
	axis->times = arena_array(arena, times.n, sizeof *axis->times);
	if (times.n > 0)
		memcpy(axis->times, times.items, times.n * sizeof *axis->times);
	if (events)
		graphite_events_match(events, axis, found[0]->step, arena);
	for (size_t i = 0; i < members; i++) {
		pad(arena, axis, found[i]);
		found[i]->axis = axis;
	}
}

/* Gives the series an axis, or several if one would be too large. */
static void share_axis(struct graphite_set *set, struct found **found, size_t members,
	const struct graphite_events *events)
{
	struct times times = merge_all(found, members);
	size_t cells = members * times.n, allowed = 0, part = members;
	for (size_t i = 0; i < members; i++)
		allowed += PADDING_FACTOR * found[i]->n;
	if (members == 1 || cells <= allowed + set->spare) {
		set->spare -= cells > allowed ? cells - allowed : 0;
		use_axis(set, found, members, times, events);
	} else {
		part = (allowed + set->spare) / times.n;
		part = part < members / 2 ? part : members / 2;
	}
	times_free(times);
	for (size_t i = 0; part < members && i < members; i += part)
		share_axis(set, found + i, members - i < part ? members - i : part, events);
}

static void make_axes(struct graphite_set *set, struct found *const *in_order,
	const struct graphite_events *events)
{
	size_t count = set->count;
	struct found **sorted = arena_copy(set->query->arena, in_order, count, sizeof *sorted);
	qsort(sorted, count, sizeof *sorted, compare_order);
	adopt_steps(sorted, count);
	qsort(sorted, count, sizeof *sorted, compare_order);
	for (size_t i = 0, members; i < count; i += members) {
		/* How many from this one on may share an axis. */
		bool alike = ascends(sorted[i]);
		for (members = 1; alike && i + members < count; members += alike)
			alike = compare_found(&sorted[i], &sorted[i + members]) == 0 &&
				ascends(sorted[i + members]);
		share_axis(set, sorted + i, members, events);
	}
}

/* Names are made from sorted texts: the first and the last one show the common prefix, and equal
 * ones are neighbours. A difference is extended to whole words: `web1` and `web2`, not `1` and `2`.
 */
static bool is_border(char c)
{
	return strchr(".(),;=|'\" ", c) != NULL;
}

/* Lengths of the common prefix and suffix, in bytes. */
struct common {
	size_t prefix, suffix;
};

static struct common find_common(const char *const *texts, size_t count)
{
	const char *first = texts[0], *last = texts[count - 1];
	struct common common = {0};
	while (first[common.prefix] && first[common.prefix] == last[common.prefix])
		common.prefix++;
	while (common.prefix > 0 && !is_border(first[common.prefix - 1]))
		common.prefix--;
	size_t length = strlen(first);
	common.suffix = length - common.prefix;
	for (size_t i = 1; i < count; i++) {
		size_t other = strlen(texts[i]), same = 0;
		while (same < common.suffix && same < other - common.prefix &&
			first[length - same - 1] == texts[i][other - same - 1])
			same++;
		common.suffix = same;
	}
	while (common.suffix > 0 && !is_border(first[length - common.suffix]))
		common.suffix--;
	for (size_t i = 0; i < count; i++)
		if (strlen(texts[i]) == common.prefix + common.suffix)
			return (struct common){0};
	return common;
}

/* disk.used;datacenter=dc1;host=a */
struct tagged {
	const char *name;
	const struct pair *tags;
	size_t count;
};

static bool read_tagged(struct arena *arena, const char *text, struct tagged *out)
{
	struct pair tags[TAGS_MAX];
	char *rest = arena_strdup(arena, text);
	out->name = strsep(&rest, ";");
	out->count = 0;
	if (!rest || !*out->name || strpbrk(out->name, "( "))
		return false;
	while (rest) {
		char *value = strsep(&rest, ";");
		const char *key = strsep(&value, "=");
		if (!*key || !value || out->count == TAGS_MAX || strpbrk(key, "( "))
			return false;
		tags[out->count++] = (struct pair){key, value};
	}
	struct pair *copy = arena_array(arena, out->count, sizeof *copy);
	memcpy(copy, tags, out->count * sizeof *copy);
	out->tags = copy;
	return true;
}

/* All texts as tagged names, or NULL. */
static struct tagged *read_all_tagged(struct arena *arena, const char *const *texts, size_t count)
{
	struct tagged *all = arena_array(arena, count, sizeof *all);
	for (size_t i = 0; i < count; i++)
		if (!read_tagged(arena, texts[i], &all[i]))
			return NULL;
	return all;
}

static bool has_tag(const struct tagged *tagged, const struct pair *tag)
{
	for (size_t i = 0; i < tagged->count; i++)
		if (strcmp(tagged->tags[i].key, tag->key) == 0 &&
			strcmp(tagged->tags[i].value, tag->value) == 0)
			return true;
	return false;
}

/* The name of series `i`: the metric's name or its own, with the tags that are not common to
 * all. */
static void write_tagged(struct buf *out, const struct metric *metric, const struct tagged *all,
	const bool *common, bool same, size_t i)
{
	const struct tagged *tagged = &all[i];
	const char *between = "{";
	buf_text(out, metric ? metric->name : tagged->name);
	if (metric && !same) {
		buf_printf(out, "{%s", tagged->name);
		between = ",";
	}
	for (size_t k = 0; k < tagged->count; k++) {
		size_t first = 0; /* index of the tag in the first series, for `common` */
		while (first < all[0].count &&
			strcmp(all[0].tags[first].key, tagged->tags[k].key) != 0)
			first++;
		if (first < all[0].count && common[first])
			continue;
		buf_printf(out, "%s%s=\"%s\"", between, tagged->tags[k].key, tagged->tags[k].value);
		between = ",";
	}
	if (*between == ',')
		buf_char(out, '}');
}

static void name_tagged(struct arena *arena, const struct metric *metric, const struct tagged *all,
	size_t count, struct series *series)
{
	bool *common = arena_array(arena, all[0].count, sizeof *common);
	bool same = true;
	for (size_t i = 0; i < count; i++)
		same &= strcmp(all[0].name, all[i].name) == 0;
	for (size_t k = 0; k < all[0].count; k++) {
		common[k] = true;
		for (size_t i = 0; i < count && common[k]; i++)
			common[k] = has_tag(&all[i], &all[0].tags[k]);
	}
	for (size_t i = 0; i < count; i++) {
		struct buf name = {0};
		write_tagged(&name, metric, all, common, same, i);
		series[i].name = buf_keep(&name, arena);
	}
}

static void name_paths(struct arena *arena, const struct metric *metric, const char *const *texts,
	size_t count, struct series *series)
{
	struct common common = find_common(texts, count);
	for (size_t i = 0; i < count; i++) {
		const char *from = texts[i] + common.prefix;
		int length = (int)(strlen(from) - common.suffix);
		series[i].name =
			metric ? arena_printf(arena, "%s{%.*s}", metric->name, length, from)
			       : arena_printf(arena, "%.*s", length, from);
	}
}

/* Numbers series with the same name, by numbers that do not give the name of another series. */
static size_t number_equals(
	struct arena *arena, const char *const *texts, size_t count, struct series *series)
{
	size_t twice = 0;
	for (size_t i = 1, number = 1; i < count; i++) {
		const char *numbered;
		if (strcmp(texts[i], texts[i - 1]) != 0) {
			number = 1;
			continue;
		}
		do
			numbered = arena_printf(arena, "%s#%zu", texts[i], ++number);
		while (bsearch(&numbered, texts, count, sizeof *texts, order_texts));
		series[i].name = arena_printf(arena, "%s#%zu", series[i].name, number);
		series[i].identity = arena_printf(arena, "%s#%zu", series[i].identity, number);
		twice++;
	}
	return twice;
}

size_t graphite_name_series(struct arena *arena, const struct target *target,
	const char *const *texts, size_t count, struct series *series)
{
	const struct metric *metric = target->metric;
	const struct tagged *all = NULL;
	bool alike =
		strcmp(texts[0], texts[count - 1]) == 0; /* all are equal, since they are sorted */
	for (size_t i = 0; i < count; i++) {
		series[i].name = metric ? metric->name : texts[i];
		series[i].identity =
			metric ? arena_printf(arena, "%s{target=\"%s\"}", metric->name, texts[i])
			       : texts[i];
	}
	if (!alike) {
		all = read_all_tagged(arena, texts, count);
		if (all)
			name_tagged(arena, metric, all, count, series);
		else
			name_paths(arena, metric, texts, count, series);
	}
	size_t twice = number_equals(arena, texts, count, series);
	for (size_t i = 0; i < count; i++) {
		series[i].metric = metric;
		if (metric)
			continue;
		struct metric *own = arena_alloc(arena, sizeof *own);
		*own = (struct metric){.name = series[i].name, .scale = 1};
		series[i].metric = own;
	}
	return twice;
}

/* By target, then by name, since servers may return them in any order. */
static int compare_names(const void *a, const void *b)
{
	const struct found *one = *(struct found *const *)a, *two = *(struct found *const *)b;
	if (one->target != two->target)
		return one->target < two->target ? -1 : 1;
	int order = strcmp(one->text, two->text);
	return order ? order : order_sizes(&one->order, &two->order);
}

static void name_all(struct graphite_set *set, struct found **found, struct series *series)
{
	struct query *query = set->query;
	qsort(found, set->count, sizeof *found, compare_names);
	const char **texts = arena_array(query->arena, set->count, sizeof *texts);
	for (size_t i = 0; i < set->count; i++)
		texts[i] = found[i]->text;
	for (size_t i = 0, behind; i < set->count; i = behind) {
		const struct target *target = found[i]->target;
		for (behind = i; behind < set->count && found[behind]->target == target;)
			behind++;
		size_t twice = graphite_name_series(
			query->arena, target, texts + i, behind - i, series + i);
		if (twice > 0)
			query_notice(query,
				"target \"%.*s\" returns %zu series with duplicate names, numbered "
				"in the server's order, which may change: distinguish them with "
				"aliasByNode() or aliasByTags()",
				NAME_SHOWN, target->text, twice);
	}
}

/* From the reach of the target's functions to the end of the bucket. */
static struct window window_of(struct arena *arena, const struct found *found)
{
	struct target_reach reach = {0};
	int64_t step = graphite_resolution(found->axis, found->step);
	if (!found->target->plain)
		reach = target_read(arena, found->target->text).reach;
	return (struct window){.back = reach.ms + reach.steps * step,
		.on = step > reach.bucket ? step : reach.bucket};
}

void graphite_set_finish(struct graphite_set *set, const struct graphite_events *events)
{
	struct query *query = set->query;
	size_t at = 0;
	struct found **found = arena_array(query->arena, set->count, sizeof *found);
	struct series *series = arena_array(query->arena, set->count, sizeof *series);
	for (struct found *each = set->found; each; each = each->next)
		found[at++] = each;
	name_all(set, found, series);
	make_axes(set, found, events);
	for (size_t i = 0; i < set->count; i++) {
		series[i].axis = found[i]->axis;
		series[i].values = found[i]->values;
		if (!events || !events->per_run)
			series[i].window = window_of(query->arena, found[i]);
	}
	query->data = (struct dataset){series, set->count};
	if (set->malformed > 0)
		query_notice(query,
			"dropped %zu values that are not numbers, the first of \"%.*s\"",
			set->malformed, (int)utf8_cut(set->first_malformed, NAME_SHOWN),
			set->first_malformed);
}
