/*
 * A timeline consists of the sorted samples of its builds, reduced to those where the build
 * changes. The build of each point is found by walking along it.
 */
#include "sources/prometheus/builds.h"

#include <stdlib.h>
#include <string.h>

#include "agent/base/buf.h"
#include "agent/base/dict.h"
#include "agent/base/order.h"
#include "agent/model/attribution.h"
#include "sources/prometheus/promql.h"

enum {
	COMPARED_MAX = 20000000,
	SORTED_MAX = 2 * BUILDS_SAMPLES_MAX,
	EVALUATIONS_MAX = 43200, /* of builds_starts_query in all stretches: minutes of 30 days, */
	STEP_EVALUATIONS_MAX = 60, /* and within one step */
};

/* Prometheus' lookback: how long a sample counts as the current value; ms. */
static const int64_t lookback = 300000, resolution_least = 15000;

static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* When a build was first seen in the step before `point`. */
struct start {
	int64_t point, time; /* ms */
};

struct times {
	int64_t *items; /* ms, in order */
	size_t n;
};

struct build {
	struct pairs match;      /* labels that a series must match */
	const char **attributes; /* one for each point label, or NULL */
	bool labelled;
	struct times points, seen; /* seen: points in whose preceding step the build was seen */
	struct start *starts;
	size_t start_count;
};

/* What a query has added. */
struct taken {
	size_t builds, samples;
};

struct builds {
	struct arena *arena;
	struct pairs point_labels;
	struct build **items;
	size_t count;
	struct taken points, seen, starts;
	struct dict by_labels;    /* -> struct build, by label_key() */
	int64_t step, resolution; /* ms; resolution: of builds_starts_query, 0: no query */
	int64_t begin;            /* start of the grid */
	int64_t covered;          /* length of all stretches */
	int64_t gap;              /* ms without a sample after which a build starts anew */
	int64_t end; /* ms without a sample after which it has stopped if other builds are seen */
	bool annotations;
	struct dict expected;    /* labels of the series */
	struct dict timelines;   /* -> struct timeline, by its members */
	size_t compared, sorted; /* builds and samples processed for timelines */
	bool overflow;
};

struct turn {
	int64_t time;
	size_t build;
	int64_t first; /* when that build was first seen */
};

struct timeline {
	size_t *members; /* indices in builds->items */
	size_t member_count;
	struct turn *turns;
	size_t turn_count;
	struct deployments deployments;
	struct deployment *deployment_items; /* the items of `deployments` */
};

struct builds *builds_new(
	struct arena *arena, struct pairs point_labels, int64_t step, bool annotations)
{
	struct builds *builds = arena_alloc(arena, sizeof *builds);
	builds->arena = arena;
	builds->step = step;
	builds->gap = annotations ? 0 : step > 0 ? step + step / 2 : lookback;
	builds->end = step > 0 ? 0 : lookback;
	builds->annotations = annotations;
	builds->point_labels = point_labels;
	builds->by_labels.arena = builds->timelines.arena = builds->expected.arena = arena;
	return builds;
}

size_t builds_count(const struct builds *builds, bool labelled)
{
	size_t count = 0;
	for (size_t i = 0; i < builds->count; i++)
		count +=
			builds->items[i]->points.n > 0 && (!labelled || builds->items[i]->labelled);
	return count;
}

bool builds_overflow(const struct builds *builds)
{
	return builds->overflow;
}

/* All labels with their values, each preceded by its length. */
static void label_key(struct buf *out, const struct answer_series *series)
{
	buf_reserve(out, 1);
	for (size_t i = 0; i < series->labels.count; i++) {
		const struct pair *label = &series->labels.items[i];

		buf_printf(out, "%zu %s%zu %s", strlen(label->key), label->key,
			strlen(label->value), label->value);
	}
}

static struct build *build_new(const struct builds *builds, const struct answer_series *series)
{
	struct arena *arena = builds->arena;
	struct build *build = arena_alloc(arena, sizeof *build);
	struct pair *match = arena_array(arena, series->labels.count, sizeof *match);
	build->match.items = match;
	for (size_t i = 0; i < series->labels.count; i++) {
		const struct pair *label = &series->labels.items[i];
		if (strcmp(label->key, "__name__") != 0 &&
			!answer_label(builds->point_labels, label->key))
			match[build->match.count++] = *label;
	}
	build->attributes =
		arena_array(arena, builds->point_labels.count, sizeof *build->attributes);
	for (size_t i = 0; i < builds->point_labels.count; i++) {
		const struct pair *label =
			answer_label(series->labels, builds->point_labels.items[i].key);
		build->attributes[i] = label && *label->value ? label->value : NULL;
		build->labelled = build->labelled || build->attributes[i];
	}
	return build;
}

/* The build with these labels, from an earlier series or part of the range, or a new one; NULL if
 * the series is empty, or its query has too many. */
static struct build *find_build(
	struct builds *builds, const struct answer_series *series, struct taken *taken)
{
	struct buf key = {0};
	if (series->n == 0 || builds->overflow || series->n > BUILDS_SAMPLES_MAX - taken->samples)
		return NULL;
	label_key(&key, series);
	struct build *build = (struct build *)(uintptr_t)dict_get(&builds->by_labels, key.data);
	if (!build && taken->builds < BUILDS_MAX) {
		taken->builds++;
		build = build_new(builds, series);
		builds->items = arena_grow(
			builds->arena, builds->items, builds->count, sizeof *builds->items);
		builds->items[builds->count++] = build;
		*dict_place(&builds->by_labels,
			arena_strndup(builds->arena, key.data, key.length)) = build;
	}
	buf_free(&key);
	return build;
}

static void append(struct arena *arena, struct times *to, const int64_t *times, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		to->items = arena_grow(arena, to->items, to->n, sizeof *to->items);
		to->items[to->n++] = times[i];
	}
}

/* The time that a value represents, in ms; INT64_MIN: none. */
static int64_t time_of(double value)
{
	const double least = 1e8, milliseconds = 1e11, most = 1e14;
	if (!(value >= least && value < most))
		return INT64_MIN;
	return (int64_t)(value < milliseconds ? value * 1000 : value);
}

void builds_take(void *context, const struct answer_series *series)
{
	struct builds *builds = context;
	struct build *build = find_build(builds, series, &builds->points);
	builds->overflow |= !build && series->n > 0;
	if (!build)
		return;
	struct times *points = &build->points;
	size_t before = points->n;
	if (!builds->annotations)
		append(builds->arena, points, series->times, series->n);
	/* The times that the values represent, without adjacent duplicates. */
	for (size_t i = 0; builds->annotations && i < series->n; i++) {
		int64_t time = time_of(series->values[i]);
		bool again = points->n > 0 && points->items[points->n - 1] == time;
		if (time != INT64_MIN && !again)
			append(builds->arena, points, &time, 1);
	}
	builds->points.samples += points->n - before;
}

void builds_take_starts(void *context, const struct answer_series *series)
{
	struct builds *builds = context;
	struct build *build = find_build(builds, series, &builds->starts);
	for (size_t i = 0; build && i < series->n; i++) {
		int64_t time = time_of(series->values[i]);
		if (time == INT64_MIN)
			continue;
		build->starts = arena_grow(
			builds->arena, build->starts, build->start_count, sizeof *build->starts);
		build->starts[build->start_count++] = (struct start){series->times[i], time};
		builds->starts.samples++;
	}
}

void builds_take_seen(void *context, const struct answer_series *series)
{
	struct builds *builds = context;
	struct build *build = find_build(builds, series, &builds->seen);
	if (!build)
		return;
	append(builds->arena, &build->seen, series->times, series->n);
	builds->seen.samples += series->n;
}

void builds_expect(struct builds *builds, struct pairs labels)
{
	for (size_t i = 0; i < labels.count; i++)
		*dict_place(&builds->expected, labels.items[i].key) = builds;
}

const char *builds_seen_query(struct builds *builds, const char *query)
{
	if (builds->step < 2 * resolution_least || !promql_is_selector(query))
		return NULL;
	return arena_printf(
		builds->arena, "count_over_time(%s\n[%lldms])", query, (long long)builds->step);
}

/* The next matching label from `at` on that distinguishes builds, or NULL. */
static const struct pair *next_expected(
	const struct builds *builds, const struct build *build, size_t *at)
{
	while (*at < build->match.count) {
		const struct pair *pair = &build->match.items[(*at)++];
		if (dict_get(&builds->expected, pair->key))
			return pair;
	}
	return NULL;
}

/* 0: no series distinguishes them. */
static int compare_builds(const void *a, const void *b, void *context)
{
	const struct builds *builds = context;
	const struct build *x = *(const struct build *const *)a;
	const struct build *y = *(const struct build *const *)b;
	for (size_t i = 0; i < builds->point_labels.count; i++) {
		int order = order_maybe(x->attributes[i], y->attributes[i]);
		if (order)
			return order;
	}
	for (size_t i = 0, k = 0;;) {
		const struct pair *one = next_expected(builds, x, &i);
		const struct pair *other = next_expected(builds, y, &k);
		if (!one || !other)
			return (one != NULL) - (other != NULL);
		int order = strcmp(one->key, other->key);
		order = order ? order : strcmp(one->value, other->value);
		if (order)
			return order;
	}
}

/* The points of the grid with their state. */
struct grid {
	int64_t begin, step;
	size_t n;
	bool *present, *selected;
};

/* Index of the grid point at that time; `n`: none. */
static size_t point_of(const struct grid *grid, int64_t time)
{
	int64_t at = time - grid->begin;
	return at >= 0 && at % grid->step == 0 && at / grid->step < (int64_t)grid->n
		       ? (size_t)(at / grid->step)
		       : grid->n;
}

static void set_present(struct build *const *members, size_t count, struct grid *grid, bool present)
{
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < members[i]->points.n; k++) {
			size_t at = point_of(grid, members[i]->points.items[k]);
			if (at < grid->n)
				grid->present[at] = present;
		}
}

static void select_steps(struct grid *grid, const struct times *points)
{
	for (size_t i = 0; i < points->n; i++) {
		size_t at = point_of(grid, points->items[i]);
		if (at > 0 && at < grid->n && !grid->present[at - 1])
			grid->selected[at] = true;
	}
}

/* Selects the steps in which one of these builds, which belong together, was seen but not at the
 * beginning. */
static void select_starts(struct build *const *members, size_t count, struct grid *grid)
{
	set_present(members, count, grid, true);
	for (size_t i = 0; i < count; i++) {
		select_steps(grid, &members[i]->points);
		select_steps(grid, &members[i]->seen);
	}
	set_present(members, count, grid, false);
}

static void select_all(const struct builds *builds, struct grid *grid)
{
	struct build **all = memory_new(builds->count, sizeof *all);
	memcpy(all, builds->items, builds->count * sizeof *all);
	qsort_r(all, builds->count, sizeof *all, compare_builds, (void *)(uintptr_t)builds);
	for (size_t first = 0, last = 1; first < builds->count; first = last++) {
		while (last < builds->count &&
			compare_builds(&all[first], &all[last], (void *)(uintptr_t)builds) == 0)
			last++;
		select_starts(all + first, last - first, grid);
	}
	free(all);
}

/* Joins selected steps with at most `between` unselected steps between them. Returns the number of
 * stretches; writes only as many as there is room for. */
static size_t join_steps(const struct grid *grid, size_t between, struct stretch *out)
{
	size_t count = 0, last = 0;
	for (size_t i = 0; i < grid->n; i++) {
		int64_t time = grid->begin + (int64_t)i * grid->step;
		if (!grid->selected[i])
			continue;
		bool joined = count > 0 && i - last <= between + 1;
		count += !joined;
		last = i;
		if (count > BUILDS_STRETCHES_MAX)
			return count;
		if (!joined)
			out[count - 1].from = time;
		out[count - 1].to = time + grid->step;
	}
	return count;
}

struct stretch *builds_stretches(
	struct builds *builds, int64_t begin, int64_t end, bool narrow, size_t *count)
{
	size_t n = (size_t)((end - begin + builds->step - 1) / builds->step);
	struct stretch *out = arena_array(builds->arena, BUILDS_STRETCHES_MAX, sizeof *out);
	struct grid grid = {
		begin, builds->step, n, memory_new(n, sizeof(bool)), memory_new(n, sizeof(bool))};
	memset(grid.present, 0, n);
	memset(grid.selected, !narrow, n);
	if (narrow && builds->count > 0)
		select_all(builds, &grid);
	*count = BUILDS_STRETCHES_MAX + 1;
	for (size_t between = 0; *count > BUILDS_STRETCHES_MAX; between = 2 * between + 1)
		*count = join_steps(&grid, between, out);
	free(grid.present);
	free(grid.selected);
	builds->begin = begin;
	builds->covered = 0;
	for (size_t i = 0; i < *count; i++)
		builds->covered += out[i].to - out[i].from;
	return out;
}

const char *builds_starts_query(struct builds *builds, const char *query)
{
	int64_t resolution =
		later(builds->covered / EVALUATIONS_MAX, builds->step / STEP_EVALUATIONS_MAX);
	builds->resolution = later(resolution + resolution_least - 1, resolution_least) /
			     resolution_least * resolution_least;
	if (builds->covered > 0 && builds->step >= 2 * builds->resolution)
		return arena_printf(builds->arena,
			"min_over_time(timestamp((%s\n))[%lldms:%lldms])", query,
			(long long)builds->step, (long long)builds->resolution);
	builds->resolution = 0;
	return NULL;
}

static bool matches(const struct build *build, struct pairs labels)
{
	for (size_t i = 0; i < build->match.count; i++) {
		const struct pair *own = &build->match.items[i];
		const struct pair *other = answer_label(labels, own->key);
		if (other && strcmp(other->value, own->value) != 0)
			return false;
	}
	return true;
}

static int compare_turns(const void *a, const void *b)
{
	const struct turn *x = a, *y = b;
	int order = order_times(&x->time, &y->time);
	order = order ? order : order_times(&x->first, &y->first);
	return order ? order : order_sizes(&x->build, &y->build);
}

static size_t count_samples(const struct builds *builds, const size_t *members, size_t count)
{
	size_t samples = 0;
	for (size_t i = 0; i < count; i++)
		samples += builds->items[members[i]]->points.n;
	return samples;
}

/* Builds of one commit and version, for example those of several instances. */
struct release {
	struct deployment deployment; /* without times */
	int64_t appeared, seen;       /* ms; INT64_MIN: never */
};

struct releases {
	struct release *items;
	size_t count;
	size_t *of; /* the release of each of builds->items */
};

static struct deployment release_name(const struct builds *builds, const struct build *build)
{
	struct deployment names = {0};
	for (size_t i = 0; i < builds->point_labels.count; i++) {
		const char *name = builds->point_labels.items[i].value;
		if (strcmp(name, "commit") == 0)
			names.commit = build->attributes[i];
		else if (strcmp(name, "version") == 0)
			names.version = build->attributes[i];
	}
	return names;
}

static struct releases releases_of(
	const struct builds *builds, const struct timeline *timeline, struct arena *scratch)
{
	size_t count = timeline->member_count;
	struct dict known = {.arena = scratch};
	struct releases releases = {arena_array(scratch, count, sizeof *releases.items), 0,
		arena_array(scratch, builds->count, sizeof *releases.of)};
	for (size_t i = 0; i < count; i++) {
		struct deployment names = release_name(builds, builds->items[timeline->members[i]]);
		const void **place = dict_place(
			&known, arena_printf(scratch, "%s\n%s", names.commit ? names.commit : "",
					names.version ? names.version : ""));
		const struct release *release = *place;
		if (!release) {
			*place = release = &releases.items[releases.count];
			releases.items[releases.count++] =
				(struct release){names, INT64_MIN, INT64_MIN};
		}
		releases.of[timeline->members[i]] = (size_t)(release - releases.items);
	}
	return releases;
}

static bool has_name(const struct release *release)
{
	return release->deployment.commit || release->deployment.version;
}

/* The running release that started last. */
static const struct release *newest_running(
	const struct releases *releases, int64_t time, int64_t gap, const struct release *otherwise)
{
	const struct release *found = otherwise;
	for (size_t i = 0; i < releases->count; i++) {
		const struct release *release = &releases->items[i];
		bool runs = has_name(release) && release->seen != INT64_MIN &&
			    time - release->seen <= gap;
		if (runs && (found == otherwise || release->appeared > found->appeared))
			found = release;
	}
	return found;
}

static void add_deployment(struct builds *builds, struct timeline *timeline,
	const struct release *release, int64_t after, int64_t time)
{
	size_t count = timeline->deployments.count++;
	timeline->deployments.items = timeline->deployment_items = arena_grow(builds->arena,
		timeline->deployment_items, count, sizeof *timeline->deployment_items);
	timeline->deployment_items[count] = release->deployment;
	timeline->deployment_items[count].after = after;
	timeline->deployment_items[count].time = time;
}

/* Records the releases seen at the time of the first of these turns; returns the number of turns at
 * that time. *appeared is a release that started then, or NULL. */
static size_t observe(const struct builds *builds, const struct releases *releases,
	const struct turn *all, size_t count, struct release **appeared)
{
	size_t i = 0;
	*appeared = NULL;
	for (; i < count && all[i].time == all[0].time; i++) {
		struct release *release = &releases->items[releases->of[all[i].build]];
		bool present =
			release->seen != INT64_MIN && all[i].time - release->seen <= builds->gap;
		release->seen = all[i].time;
		if (present || !has_name(release))
			continue;
		release->appeared = all[i].time;
		*appeared = release;
	}
	return i;
}

struct appearance {
	struct release *release;
	struct start start;
};

static int compare_appearances(const void *a, const void *b)
{
	const struct appearance *x = a, *y = b;
	int order = order_times(&x->start.time, &y->start.time);
	return order ? order : (x->release > y->release) - (x->release < y->release);
}

/* By release and step. */
static int compare_starts(const void *a, const void *b)
{
	const struct appearance *x = a, *y = b;
	int order = (x->release > y->release) - (x->release < y->release);
	order = order ? order : order_times(&x->start.point, &y->start.point);
	return order ? order : compare_appearances(a, b);
}

/* Whether the release started after the beginning of the step. At the first evaluation within the
 * step only the grid point there can tell. */
static bool is_new(const struct builds *builds, const struct timeline *timeline,
	const struct releases *releases, const struct appearance *appearance)
{
	int64_t begin = appearance->start.point - builds->step;
	if (appearance->start.time <= begin || !has_name(appearance->release))
		return false;
	if (appearance->start.time > begin + builds->resolution || begin < builds->begin)
		return appearance->start.time > begin + builds->resolution;
	for (size_t i = 0; i < timeline->member_count; i++) {
		size_t member = timeline->members[i];
		const struct times *points = &builds->items[member]->points;
		size_t at = times_lower_bound(points->items, points->n, begin);
		if (&releases->items[releases->of[member]] == appearance->release &&
			at < points->n && points->items[at] == begin)
			return false;
	}
	return true;
}

/* Releases that started within a step, in order of time. */
static struct appearance *find_appearances(const struct builds *builds,
	const struct timeline *timeline, const struct releases *releases, struct arena *scratch,
	size_t *kept)
{
	size_t count = 0, n = 0;
	for (size_t i = 0; i < timeline->member_count; i++)
		count += builds->items[timeline->members[i]]->start_count;
	struct appearance *all = arena_array(scratch, count, sizeof *all);
	for (size_t i = 0; i < timeline->member_count; i++) {
		const struct build *build = builds->items[timeline->members[i]];
		struct release *release = &releases->items[releases->of[timeline->members[i]]];
		for (size_t k = 0; k < build->start_count; k++)
			all[n++] = (struct appearance){release, build->starts[k]};
	}
	if (count > 0)
		qsort(all, count, sizeof *all, compare_starts);
	*kept = 0;
	for (size_t i = 0; i < count; i++) {
		bool first = i == 0 || all[i - 1].release != all[i].release ||
			     all[i - 1].start.point != all[i].start.point;
		if (first && is_new(builds, timeline, releases, &all[i]))
			all[(*kept)++] = all[i];
	}
	if (*kept > 0)
		qsort(all, *kept, sizeof *all, compare_appearances);
	return all;
}

/* The search for the deployments of a timeline, in order of time. */
struct sweep {
	struct builds *builds;
	struct timeline *timeline;
	struct releases releases;
	const struct appearance *appearances;
	size_t appearance_count;
	const struct release *now;
	int64_t before; /* time of the last grid point with a sample */
};

/* Adds the appearances up to a time, which the samples on the grid may not show. */
static void sweep_appearances(struct sweep *sweep, int64_t time)
{
	const struct builds *builds = sweep->builds;
	for (; sweep->appearance_count > 0 && sweep->appearances->start.time <= time;
		sweep->appearances++, sweep->appearance_count--) {
		struct release *release = sweep->appearances->release;
		int64_t at = sweep->appearances->start.time;
		int64_t last = sweep->appearances->start.point - builds->step;
		release->appeared = release->seen = at;
		if (release == sweep->now)
			continue;
		add_deployment(sweep->builds, sweep->timeline, release,
			sweep->before >= last ? later(sweep->before, at - builds->resolution)
					      : sweep->before,
			at);
		sweep->now = release;
	}
}

/*
 * A release is deployed when it starts, and when a newer one stops while it still runs. While both
 * run the newer one counts, whichever is seen last. Each annotation is a deployment.
 */
static void find_deployments(
	struct builds *builds, struct timeline *timeline, const struct turn *all, size_t count)
{
	struct arena *scratch = arena_new();
	struct sweep sweep = {.builds = builds,
		.timeline = timeline,
		.releases = releases_of(builds, timeline, scratch),
		.before = INT64_MIN};
	sweep.appearances = find_appearances(
		builds, timeline, &sweep.releases, scratch, &sweep.appearance_count);
	for (size_t i = 0; i < count;) {
		int64_t time = all[i].time;
		struct release *appeared;
		sweep_appearances(&sweep, time);
		const struct release *now = sweep.now, *next = now;
		i += observe(builds, &sweep.releases, all + i, count - i, &appeared);
		if (appeared)
			next = appeared;
		else if (now && time - now->seen > builds->end)
			next = newest_running(&sweep.releases, time, builds->end, now);
		if (next && (next != now || builds->annotations))
			add_deployment(builds, timeline, next,
				builds->annotations ? time : sweep.before, time);
		sweep.now = next;
		sweep.before = time;
	}
	arena_free(scratch);
}

/* Finds the times at which the build changes. */
static void find_turns(struct builds *builds, struct timeline *timeline)
{
	size_t count = count_samples(builds, timeline->members, timeline->member_count), n = 0;
	struct turn *all = memory_new(count, sizeof *all);
	for (size_t i = 0; i < timeline->member_count; i++) {
		const struct build *build = builds->items[timeline->members[i]];
		for (size_t k = 0; k < build->points.n; k++)
			all[n++] = (struct turn){build->points.items[k], timeline->members[i],
				build->points.items[0]};
	}
	qsort(all, count, sizeof *all, compare_turns);
	find_deployments(builds, timeline, all, count);
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

/* The timeline of these builds, created if necessary; NULL at a limit. */
static const struct timeline *find_timeline(
	struct builds *builds, const size_t *members, size_t count)
{
	struct arena *arena = builds->arena;
	struct buf key = {0};
	buf_reserve(&key, 0);
	for (size_t i = 0; i < count; i++)
		buf_printf(&key, "%zu ", members[i]);
	const struct timeline *known = dict_get(&builds->timelines, key.data);
	size_t samples = known ? 0 : count_samples(builds, members, count);
	if (!known && samples <= SORTED_MAX - builds->sorted) {
		struct timeline *timeline = arena_alloc(arena, sizeof *timeline);
		builds->sorted += samples;
		timeline->members = arena_array(arena, count, sizeof *members);
		memcpy(timeline->members, members, count * sizeof *members);
		timeline->member_count = count;
		find_turns(builds, timeline);
		*dict_place(&builds->timelines, arena_strndup(arena, key.data, key.length)) =
			timeline;
		known = timeline;
	}
	buf_free(&key);
	return known;
}

const struct timeline *builds_timeline(struct builds *builds, struct pairs labels)
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
		if (matches(builds->items[i], labels))
			members[member_count++] = i;
	const struct timeline *timeline = find_timeline(builds, members, member_count);
	free(members);
	if (timeline)
		return timeline;
	builds->overflow = true;
	return &none;
}

void builds_apply(const struct builds *builds, const struct timeline *timeline, struct axis *axis)
{
	axis->deployments = &timeline->deployments;
	axis->columns =
		arena_array(builds->arena, builds->point_labels.count, sizeof *axis->columns);
	for (size_t i = 0; i < builds->point_labels.count && timeline->turn_count > 0; i++) {
		const char **values = arena_array(builds->arena, axis->n, sizeof *values);
		bool known = false;
		for (size_t k = 0, next = 0; k < axis->n; k++) {
			while (next < timeline->turn_count &&
				timeline->turns[next].time <= axis->times[k])
				next++;
			if (next > 0)
				values[k] = builds->items[timeline->turns[next - 1].build]
						    ->attributes[i];
			known = known || values[k];
		}
		if (known)
			axis->columns[axis->column_count++] =
				(struct column){builds->point_labels.items[i].value, values};
	}
}
