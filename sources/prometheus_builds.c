/*
 * A timeline is the sorted samples of its builds, of which only those are kept where the build
 * changes; a point finds its build by walking along.
 */
#include "sources/prometheus_builds.h"

#include <stdlib.h>
#include <string.h>

#include "agent/core/buf.h"
#include "agent/core/hash.h"

enum { TABLE_SIZE = 16384, COMPARED_MAX = 20000000, SORTED_MAX = 2 * BUILDS_SAMPLES_MAX };

struct build {
	const struct pair *labels;
	size_t label_count;
	struct pair *fitting; /* those that have to fit */
	size_t fitting_count;
	const char **attributes; /* one for each said label, or NULL */
	bool says;
	int64_t *times;
	size_t n, capacity;
	struct build *same_hash;
};

struct builds {
	struct arena *arena;
	struct pairs said;
	struct build **items;
	size_t count, samples;
	struct build **table; /* by the labels' hash */
	struct hash_key key;
	struct timeline **timelines; /* by the members' hash */
	size_t compared, sorted;     /* builds and samples, for timelines */
	bool overflow;
};

struct turn {
	int64_t time;
	size_t build;
	int64_t first; /* when that build was first seen */
};

struct timeline {
	struct timeline *same_hash;
	size_t *members; /* of builds->items */
	size_t member_count;
	struct turn *turns;
	size_t turn_count;
};

struct builds *builds_new(struct arena *arena, struct pairs said)
{
	struct builds *builds = arena_alloc(arena, sizeof *builds);
	builds->arena = arena;
	builds->said = said;
	builds->key = hash_key_new();
	builds->table = arena_array(arena, TABLE_SIZE, sizeof(struct build *));
	builds->timelines = arena_array(arena, TABLE_SIZE, sizeof(struct timeline *));
	return builds;
}

size_t builds_count(const struct builds *builds, bool saying)
{
	size_t count = 0;
	for (size_t i = 0; i < builds->count; i++)
		count += !saying || builds->items[i]->says;
	return count;
}

bool builds_overflow(const struct builds *builds)
{
	return builds->overflow;
}

static bool is_power_of_two(size_t n)
{
	return (n & (n - 1)) == 0;
}

static const struct pair *find_label(const struct pair *labels, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(labels[i].key, name) == 0)
			return &labels[i];
	return NULL;
}

static bool is_said(const struct builds *builds, const char *name)
{
	return find_label(builds->said.items, builds->said.count, name);
}

static bool same_labels(const struct pair *a, size_t a_count, const struct pair *b, size_t b_count)
{
	if (a_count != b_count)
		return false;
	for (size_t i = 0; i < a_count; i++)
		if (strcmp(a[i].key, b[i].key) != 0 || strcmp(a[i].value, b[i].value) != 0)
			return false;
	return true;
}

static size_t hash_labels(const struct builds *builds, const struct pair *labels, size_t count)
{
	struct buf text = {0};
	for (size_t i = 0; i < count; i++) {
		buf_append(&text, labels[i].key, strlen(labels[i].key) + 1);
		buf_append(&text, labels[i].value, strlen(labels[i].value) + 1);
	}
	uint64_t hash = hash_keyed(builds->key, text.data, text.length);
	buf_free(&text);
	return (size_t)hash & (TABLE_SIZE - 1);
}

static struct build *build_new(const struct builds *builds, const struct answer_series *series)
{
	struct arena *arena = builds->arena;
	struct build *build = arena_alloc(arena, sizeof *build);
	struct pair *labels = arena_array(arena, series->label_count, sizeof *labels);
	if (series->label_count > 0)
		memcpy(labels, series->labels, series->label_count * sizeof *labels);
	build->labels = labels;
	build->label_count = series->label_count;
	build->fitting = arena_array(arena, series->label_count, sizeof *labels);
	for (size_t i = 0; i < series->label_count; i++)
		if (strcmp(labels[i].key, "__name__") != 0 && !is_said(builds, labels[i].key))
			build->fitting[build->fitting_count++] = labels[i];
	build->attributes = arena_array(arena, builds->said.count, sizeof *build->attributes);
	for (size_t i = 0; i < builds->said.count; i++) {
		const struct pair *label =
			find_label(labels, build->label_count, builds->said.items[i].key);
		build->attributes[i] = label && *label->value ? label->value : NULL;
		build->says = build->says || build->attributes[i];
	}
	return build;
}

/* The build of the labels, of an earlier series or piece of the range, or a new one; NULL if there
 * are too many. */
static struct build *find_build(struct builds *builds, const struct answer_series *series)
{
	struct build **place =
		&builds->table[hash_labels(builds, series->labels, series->label_count)];
	for (struct build *build = *place; build; build = build->same_hash)
		if (same_labels(
			    build->labels, build->label_count, series->labels, series->label_count))
			return build;
	if (builds->count == BUILDS_MAX)
		return NULL;
	if (is_power_of_two(builds->count)) {
		size_t capacity = builds->count ? 2 * builds->count : 1;
		struct build **more = arena_array(builds->arena, capacity, sizeof *more);
		if (builds->count > 0)
			memcpy(more, builds->items, builds->count * sizeof *more);
		builds->items = more;
	}
	struct build *build = build_new(builds, series);
	build->same_hash = *place;
	*place = build;
	builds->items[builds->count++] = build;
	return build;
}

/* The room doubles, as a build may come in as many series as there are samples. */
static void add_times(struct builds *builds, struct build *build, const int64_t *times, size_t n)
{
	if (n > build->capacity - build->n) {
		size_t need = build->n + n, twice = 2 * build->capacity;
		build->capacity = need > twice ? need : twice;
		int64_t *more = arena_array(builds->arena, build->capacity, sizeof *more);
		if (build->n > 0)
			memcpy(more, build->times, build->n * sizeof *more);
		build->times = more;
	}
	memcpy(build->times + build->n, times, n * sizeof *times);
	build->n += n;
	builds->samples += n;
}

void builds_take(void *context, const struct answer_series *series)
{
	struct builds *builds = context;
	if (series->n == 0 || builds->overflow)
		return;
	struct build *build = series->n <= BUILDS_SAMPLES_MAX - builds->samples
				      ? find_build(builds, series)
				      : NULL;
	if (build)
		add_times(builds, build, series->times, series->n);
	else
		builds->overflow = true;
}

static bool fits(const struct build *build, const struct pair *labels, size_t count)
{
	for (size_t i = 0; i < build->fitting_count; i++) {
		const struct pair *own = &build->fitting[i];
		const struct pair *other = find_label(labels, count, own->key);
		if (other && strcmp(other->value, own->value) != 0)
			return false;
	}
	return true;
}

static int compare_turns(const void *a, const void *b)
{
	const struct turn *x = a, *y = b;
	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	if (x->first != y->first)
		return x->first < y->first ? -1 : 1;
	return (x->build > y->build) - (x->build < y->build);
}

static size_t count_samples(const struct builds *builds, const size_t *members, size_t count)
{
	size_t samples = 0;
	for (size_t i = 0; i < count; i++)
		samples += builds->items[members[i]]->n;
	return samples;
}

/* The times at which the build becomes another one. */
static void find_turns(const struct builds *builds, struct timeline *timeline)
{
	size_t count = count_samples(builds, timeline->members, timeline->member_count), n = 0;
	struct turn *all = memory_new(count, sizeof *all);
	for (size_t i = 0; i < timeline->member_count; i++) {
		const struct build *build = builds->items[timeline->members[i]];
		for (size_t k = 0; k < build->n; k++)
			all[n++] = (struct turn){
				build->times[k], timeline->members[i], build->times[0]};
	}
	qsort(all, count, sizeof *all, compare_turns);
	size_t kept = 0;
	for (size_t i = 0; i < count; i++) {
		bool last = i + 1 == count || all[i + 1].time != all[i].time;
		if (last && (kept == 0 || all[kept - 1].build != all[i].build))
			all[kept++] = all[i];
	}
	timeline->turns = arena_array(builds->arena, kept, sizeof *all);
	timeline->turn_count = kept;
	memcpy(timeline->turns, all, kept * sizeof *all);
	free(all);
}

/* The timeline of these builds, made if there is none; NULL if that is too much. */
static struct timeline *find_timeline(struct builds *builds, const size_t *members, size_t count)
{
	uint64_t hash = hash_keyed(builds->key, members, count * sizeof *members);
	struct timeline **place = &builds->timelines[hash & (TABLE_SIZE - 1)];
	for (struct timeline *timeline = *place; timeline; timeline = timeline->same_hash)
		if (timeline->member_count == count &&
			memcmp(timeline->members, members, count * sizeof *members) == 0)
			return timeline;
	size_t samples = count_samples(builds, members, count);
	if (samples > SORTED_MAX - builds->sorted)
		return NULL;
	builds->sorted += samples;
	struct timeline *timeline = arena_alloc(builds->arena, sizeof *timeline);
	timeline->members = arena_array(builds->arena, count, sizeof *members);
	memcpy(timeline->members, members, count * sizeof *members);
	timeline->member_count = count;
	find_turns(builds, timeline);
	timeline->same_hash = *place;
	*place = timeline;
	return timeline;
}

const struct timeline *builds_timeline(
	struct builds *builds, const struct pair *labels, size_t count)
{
	static const struct timeline none = {0};
	if (builds->count > COMPARED_MAX - builds->compared) {
		builds->overflow = true;
		return &none;
	}
	builds->compared += builds->count;
	size_t *members = memory_new(builds->count, sizeof *members);
	size_t member_count = 0;
	for (size_t i = 0; i < builds->count; i++)
		if (fits(builds->items[i], labels, count))
			members[member_count++] = i;
	const struct timeline *timeline = find_timeline(builds, members, member_count);
	free(members);
	if (timeline)
		return timeline;
	builds->overflow = true;
	return &none;
}

/* Writes the attribute at each point; whether it is known at one. */
static bool fill(const struct builds *builds, const struct timeline *timeline, size_t attribute,
	const struct axis *axis, const char **values)
{
	size_t next = 0;
	bool known = false;
	for (size_t i = 0; i < axis->n; i++) {
		while (next < timeline->turn_count && timeline->turns[next].time <= axis->times[i])
			next++;
		if (next > 0)
			values[i] = builds->items[timeline->turns[next - 1].build]
					    ->attributes[attribute];
		known = known || values[i];
	}
	return known;
}

void builds_apply(const struct builds *builds, const struct timeline *timeline, struct axis *axis)
{
	axis->columns = arena_array(builds->arena, builds->said.count, sizeof *axis->columns);
	for (size_t i = 0; i < builds->said.count && timeline->turn_count > 0; i++) {
		const char **values = arena_array(builds->arena, axis->n, sizeof *values);
		if (fill(builds, timeline, i, axis, values))
			axis->columns[axis->column_count++] =
				(struct column){builds->said.items[i].value, values};
	}
}
