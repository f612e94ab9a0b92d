/*
 * Missing points are not stored. Series with the same times share them, and their axis, if they are
 * neighbours in the answer or by name: in most answers all series are.
 *
 * If the resolution is coarser than the step it is found as in Hunter, from the times of all series
 * of that step: those of a nightly run alone do not show that others are hourly.
 */
#include "sources/graphite/series.h"

#include <stdlib.h>
#include <string.h>

#include "agent/base/buf.h"
#include "agent/base/order.h"
#include "agent/base/utf8.h"

enum {
	SERIES_MAX = 10000,
	POINTS_MAX = 20000000,
	NAME_SHOWN = 200,
	TAGS_MAX = 100,
	RECENT_AXES = 8,
};

static const int64_t day = 86400000;

struct found {
	struct found *next;
	const struct target *target;
	const char *text; /* the server's name */
	int64_t step;     /* ms, or 0 */
	int64_t width;    /* of a point's bucket, ms */
	size_t n;
	int64_t *times;
	double *values;
	size_t order;
};

struct recent_axes {
	struct axis *axis[RECENT_AXES];
	int64_t step[RECENT_AXES];
	size_t used;
};

static void add(
	struct graphite_set *set, struct target *target, const struct graphite_series *series)
{
	struct arena *arena = set->query->arena;
	double scale = target->metric ? target->metric->scale : 1;
	const struct found *before = set->found;
	size_t begin = 0, end = series->n;
	while (begin < end && series->times[begin] < set->from)
		begin++;
	while (end > begin && series->times[end - 1] >= set->to)
		end--;
	size_t n = end - begin;
	target->points = target->points || n > 0;
	if (n == 0 && !set->empty)
		return;
	if (set->count == SERIES_MAX || n > POINTS_MAX - set->points) {
		set->overflow = true;
		return;
	}
	struct found *found = arena_alloc(arena, sizeof *found);
	*found = (struct found){.next = set->found,
		.target = target,
		.text = arena_strdup(arena, series->target),
		.step = series->step * 1000,
		.n = n,
		.values = arena_array(arena, n, sizeof *found->values),
		.order = set->count++};
	if (n == 0)
		found->times = arena_array(arena, 0, sizeof *found->times);
	else if (before && before->n == n &&
		 memcmp(before->times, series->times + begin, n * sizeof *before->times) == 0)
		found->times = before->times;
	else
		found->times = arena_copy(arena, series->times + begin, n, sizeof *found->times);
	for (size_t i = 0; i < n; i++)
		found->values[i] = series->values[begin + i] * scale;
	set->points += n;
	set->found = found;
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

/* A recent axis of the same times and resolution; otherwise a new one. */
static struct axis *axis_of(struct graphite_set *set, const struct found *found,
	const struct graphite_events *events, struct recent_axes *recent)
{
	size_t n = found->n, place;

	for (size_t i = 0; i < RECENT_AXES && recent->axis[i]; i++)
		if (recent->step[i] == found->step && recent->axis[i]->n == n &&
			memcmp(recent->axis[i]->times, found->times, n * sizeof *found->times) == 0)
			return recent->axis[i];
	struct axis *axis = arena_alloc(set->query->arena, sizeof *axis);
	place = recent->used++ % RECENT_AXES;
	recent->axis[place] = axis;
	recent->step[place] = found->step;
	axis->n = n;
	axis->times = found->times;
	if (events)
		graphite_events_match(events, axis, found->width, set->query->arena);
	return axis;
}

static int64_t phase_of(const struct found *found)
{
	return found->step > 0 && found->n > 0 ? found->times[0] % found->step : 0;
}

/* By step and phase. */
static int compare_grids(const void *a, const void *b)
{
	const struct found *one = *(struct found *const *)a, *two = *(struct found *const *)b;
	int64_t phases[] = {phase_of(one), phase_of(two)};
	int order = order_times(&one->step, &two->step);
	return order ? order : order_times(&phases[0], &phases[1]);
}

static int64_t common_divisor(int64_t a, int64_t b)
{
	while (b != 0) {
		int64_t rest = a % b;
		a = b;
		b = rest;
	}
	return a < 0 ? -a : a;
}

/* The step, or more if all points of these series, of one grid, are farther apart at round times:
 * the greatest common divisor of their times and a day. */
static int64_t resolution(struct found *const *found, size_t count)
{
	int64_t step = found[0]->step, apart = 0, divisor = day;
	const int64_t *first = NULL, *before = NULL;
	for (size_t i = 0; i < count; before = found[i++]->times)
		for (size_t k = 0; k < found[i]->n && found[i]->times != before; k++) {
			first = first ? first : &found[i]->times[k];
			apart = common_divisor(found[i]->times[k] - *first, apart);
			divisor = common_divisor(found[i]->times[k], divisor);
		}
	if (apart == 0)
		return step > 0 ? step : day;
	return divisor > step ? divisor : step;
}

static void set_widths(struct found *const *in_order, size_t count)
{
	struct found **found = memory_new(count, sizeof *found);
	memcpy(found, in_order, count * sizeof *found);
	qsort(found, count, sizeof *found, compare_grids);
	for (size_t i = 0, members; i < count; i += members) {
		for (members = 1;
			i + members < count && compare_grids(&found[i], &found[i + members]) == 0;)
			members++;
		int64_t width = resolution(found + i, members);
		for (size_t k = 0; k < members; k++)
			found[i + k]->width = width;
	}
	free(found);
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
	if (!found->target->plain)
		reach = target_read(arena, found->target->text).reach;
	return (struct window){.back = reach.ms + reach.steps * found->width,
		.on = found->width > reach.bucket ? found->width : reach.bucket};
}

void graphite_set_finish(struct graphite_set *set, const struct graphite_events *events)
{
	struct query *query = set->query;
	struct found **found = arena_array(query->arena, set->count, sizeof *found);
	struct series *series = arena_array(query->arena, set->count, sizeof *series);
	struct recent_axes recent = {0};
	for (struct found *each = set->found; each; each = each->next)
		found[each->order] = each;
	name_all(set, found, series);
	set_widths(found, set->count);
	for (size_t i = 0; i < set->count; i++) {
		series[i].axis = axis_of(set, found[i], events, &recent);
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
