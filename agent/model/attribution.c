/*
 * Sources that know deployment times put them on the axis. Otherwise the points' attributes are
 * used: a build was deployed between the last point with another build and the first with it.
 */
#include "agent/model/attribution.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/dict.h"
#include "agent/base/hash.h"
#include "agent/base/order.h"
#include "agent/model/series.h"

/* Between the last certainly good point and the first certainly bad one. */
struct span {
	size_t good, bad;    /* points */
	int64_t from, until; /* ms: start of the good point, end of the bad one */
};

struct list {
	struct deployment items[ATTRIBUTION_LISTED];
	size_t count; /* further ones are counted, and the last one is kept */
};

const char *deployment_name(const struct deployment *deployment)
{
	return deployment->commit ? deployment->commit : deployment->version;
}

bool deployment_same(const struct deployment *a, const struct deployment *b)
{
	return order_same(a->commit, b->commit) && order_same(a->version, b->version);
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

static size_t greatest(size_t a, size_t b)
{
	return a > b ? a : b;
}

static struct span span_of(const struct series *series, const struct change *change)
{
	const struct axis *axis = series->axis;
	size_t first = least(change->index, change->place_from);
	size_t last = greatest(change->index, change->place_to);
	struct span span;

	if (change->cause_to > 0) {
		first = least(first, change->cause_from);
		last = greatest(last, change->cause_to);
	}
	last = least(last, axis->n - 1);
	span.good = first > 0 ? first - 1 : 0;
	while (span.good > 0 && isnan(series->values[span.good]))
		span.good--;
	span.bad = last;
	span.from = axis->times[span.good] - series->window.back;
	span.until = axis->times[span.bad] + (series->window.on > 0 ? series->window.on - 1 : 0);
	return span;
}

static void add(struct list *list, const struct deployment *deployment)
{
	size_t at = list->count < ATTRIBUTION_LISTED ? list->count : ATTRIBUTION_LISTED - 1;

	list->items[at] = *deployment;
	list->count++;
}

/* A build that was running before the first point is not a deployment. */
static void find_timed(const struct axis *axis, const struct span *span, struct list *list,
	struct deployment *last)
{
	const struct deployments *all = axis->deployments;

	for (size_t i = 0; i < all->count; i++) {
		const struct deployment *deployment = &all->items[i];
		int64_t time = deployment->time;
		bool within = deployment->after == INT64_MIN
				      ? time > axis->times[span->good]
				      : time > span->from && (deployment->after < span->until ||
								     time <= span->until);

		if (within)
			add(list, deployment);
		else if (list->count == 0 && time <= span->until)
			*last = *deployment;
	}
}

/* The columns that name builds. */
struct builds_of {
	const struct axis *axis;
	const struct column *commit, *version;
};

static const char *text_at(const struct column *column, size_t row)
{
	const char *text = column ? column->values[row] : NULL;

	return text && *text ? text : NULL;
}

/* The build of a row: by its commit, or by its version where there are no commits. */
static bool build_at(const struct builds_of *builds, size_t row, struct deployment *out)
{
	*out = (struct deployment){.time = builds->axis->times[row],
		.commit = text_at(builds->commit, row),
		.version = text_at(builds->version, row)};
	return builds->commit ? out->commit != NULL : out->version != NULL;
}

static bool same_build(const struct deployment *a, const struct deployment *b)
{
	return order_same(deployment_name(a), deployment_name(b));
}

/* The build that ran before that row, and since when. Returns the row after the last one that
 * names it; 0: none does. */
static size_t find_before(const struct builds_of *builds, size_t row, struct deployment *out)
{
	struct deployment build;
	size_t known;

	while (row > 0 && !build_at(builds, row - 1, out))
		row--;
	known = row;
	if (known == 0)
		*out = (struct deployment){.time = INT64_MIN};
	out->after = INT64_MIN;
	for (; row > 0; row--) {
		if (!build_at(builds, row - 1, &build))
			continue;
		if (!same_build(&build, out)) {
			out->after = build.time;
			break;
		}
		build.after = INT64_MIN;
		*out = build;
	}
	return known;
}

static bool find_in_rows(const struct builds_of *builds, const struct series *series,
	const struct span *span, struct list *list, struct deployment *last)
{
	const struct axis *axis = builds->axis;
	size_t first = span->good + 1, known, row;
	struct deployment now, build;
	bool any, behind = false;

	if (series->window.back > 0)
		first = least(first, axis_lower_bound(axis, span->from + 1));
	known = find_before(builds, first, last);
	any = known > 0;
	now = *last;
	/* A row may lack it: then the next one that has it counts. */
	for (row = first; row < axis->n && !behind; row++) {
		if (!build_at(builds, row, &build))
			continue;
		behind = row >= span->bad;
		if (!any && row <= span->good) {
			*last = build;
			last->after = INT64_MIN;
		} else if (!any || !same_build(&build, &now)) {
			build.after = known > 0 ? axis->times[known - 1] : axis->times[span->good];
			add(list, &build);
		}
		any = true;
		now = build;
		known = row + 1;
	}
	return any;
}

static struct deployment copy_of(struct arena *arena, const struct deployment *deployment)
{
	return (struct deployment){.after = deployment->after,
		.time = deployment->time,
		.commit = arena_strdup(arena, deployment->commit),
		.version = arena_strdup(arena, deployment->version)};
}

struct attribution attribution_copy(struct arena *arena, const struct attribution *attribution)
{
	struct deployment *list = arena_array(arena, attribution->listed, sizeof *list);
	struct attribution copy = *attribution;

	for (size_t i = 0; i < attribution->listed; i++)
		list[i] = copy_of(arena, &attribution->list[i]);
	copy.list = list;
	copy.last = copy_of(arena, &attribution->last);
	return copy;
}

struct attribution attribution_of(
	struct arena *arena, const struct series *series, const struct change *change)
{
	const struct axis *axis = series->axis;
	struct builds_of builds = {axis, axis_column(axis, "commit"), axis_column(axis, "version")};
	struct span span = span_of(series, change);
	struct attribution found = {.last = {.time = INT64_MIN}};
	struct list list = {.count = 0};

	if (axis->deployments && axis->deployments->count > 0) {
		found.known = found.timed = true;
		find_timed(axis, &span, &list, &found.last);
	} else if (builds.commit || builds.version) {
		found.known = find_in_rows(&builds, series, &span, &list, &found.last);
	}
	if (!found.known)
		return found;
	found.since = span.from;
	found.until = span.until;
	found.list = list.items;
	found.count = list.count;
	found.listed = least(list.count, ATTRIBUTION_LISTED);
	return attribution_copy(arena, &found);
}

/* A build that members suspect: as the nearest of them has it, with its place in the list, and by
 * how many members. */
struct elected {
	const struct deployment *deployment;
	size_t member, place, last, members;
};

static int compare_elected(const void *a, const void *b)
{
	const struct deployment *left = ((const struct elected *)a)->deployment;
	const struct deployment *right = ((const struct elected *)b)->deployment;

	if (left->time != right->time)
		return left->time < right->time ? -1 : 1;
	return strcmp(deployment_name(left), deployment_name(right));
}

/* Returns the number of builds; room is for all that are listed. */
static size_t count_votes(
	struct arena *arena, const struct attribution *members, size_t count, struct elected *out)
{
	struct name_index names = {.dict.arena = arena};
	size_t found = 0;

	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < members[i].listed; k++) {
			const struct deployment *deployment = &members[i].list[k];
			const char *name = deployment_name(deployment);
			size_t at = name ? name_index_add(&names, name, strlen(name)) : found;

			if (!name)
				continue;
			if (at == found)
				out[found++] = (struct elected){deployment, i, k, i, 1};
			out[at].members += out[at].last != i;
			out[at].last = i;
		}
	return found;
}

/* Keeps the builds that nearly as many members suspect as the most suspected one; all builds if
 * that has less than half of the members. Returns how many remain, by time. */
static size_t keep_most(struct elected *all, size_t count, size_t known)
{
	size_t most = 0, kept = 0;

	for (size_t i = 0; i < count; i++)
		most = greatest(most, all[i].members);
	for (size_t i = 0; i < count; i++)
		if (2 * most < known || 10 * all[i].members >= 9 * most)
			all[kept++] = all[i];
	if (kept > 0)
		qsort(all, kept, sizeof *all, compare_elected);
	return kept;
}

/* The share is of the members that suspect one of the common builds, given that most share those
 * that all do. */
struct attribution attribution_common(
	struct arena *arena, const struct attribution *members, size_t count)
{
	struct attribution common = {.last = {.time = INT64_MIN}};
	size_t room = 0, kept, known = 0, any = 0, fewest;
	struct elected *elected;
	struct list list = {.count = 0};
	const struct attribution *first;

	for (size_t i = count; i-- > 0;) {
		room += members[i].listed;
		any += members[i].listed > 0;
		if (members[i].known) {
			common = members[i];
			known++;
		}
	}
	elected = arena_array(arena, room, sizeof *elected);
	kept = keep_most(elected, count_votes(arena, members, count, elected), known);
	if (known == 0 || kept == 0) {
		common.list = NULL;
		common.count = common.listed = 0;
		return attribution_copy(arena, &common);
	}
	first = &members[elected[0].member];
	fewest = known;
	for (size_t i = 0; i < kept; i++) {
		add(&list, elected[i].deployment);
		common.timed = common.timed && members[elected[i].member].timed;
		fewest = least(fewest, elected[i].members);
	}
	common.last = elected[0].place > 0 ? first->list[elected[0].place - 1] : first->last;
	common.since = first->since;
	common.until = members[elected[kept - 1].member].until;
	common.share = (double)(2 * fewest >= known ? fewest : any) / (double)known;
	common.list = list.items;
	common.count = list.count;
	common.listed = least(list.count, ATTRIBUTION_LISTED);
	return attribution_copy(arena, &common);
}

const char *attribution_to(const struct attribution *attribution)
{
	if (attribution->listed == 0)
		return NULL;
	return deployment_name(&attribution->list[attribution->listed - 1]);
}

const char *attribution_from(const struct attribution *attribution)
{
	const char *to = attribution_to(attribution);
	const char *from = NULL;

	if (to && attribution->last.time != INT64_MIN)
		from = deployment_name(&attribution->last);
	return from && strcmp(from, to) == 0 ? NULL : from;
}

bool attribution_same(const struct attribution *a, const struct attribution *b)
{
	if (a->known != b->known || a->count != b->count || a->listed != b->listed ||
		!order_same(deployment_name(&a->last), deployment_name(&b->last)))
		return false;
	for (size_t i = 0; i < a->listed; i++)
		if (a->list[i].time != b->list[i].time ||
			!deployment_same(&a->list[i], &b->list[i]))
			return false;
	return true;
}

static uint64_t hash_text(uint64_t hash, const char *text)
{
	bool there = text != NULL;

	hash = hash_add(hash, &there, sizeof there);
	return text ? hash_add(hash, text, strlen(text) + 1) : hash;
}

uint64_t attribution_hash(const struct attribution *attribution, uint64_t hash)
{
	hash = hash_add(hash, &attribution->known, sizeof attribution->known);
	hash = hash_add(hash, &attribution->count, sizeof attribution->count);
	for (size_t i = 0; i < attribution->listed; i++) {
		const struct deployment *deployment = &attribution->list[i];

		hash = hash_add(hash, &deployment->time, sizeof deployment->time);
		hash = hash_text(hash_text(hash, deployment->commit), deployment->version);
	}
	return hash_text(hash, deployment_name(&attribution->last));
}

/* If there are more than are listed, those in the middle are unknown. */
bool attribution_gained(const struct attribution *now, const struct attribution *before)
{
	for (size_t i = 0; i < now->listed && before->count <= before->listed; i++) {
		const struct deployment *deployment = &now->list[i];
		size_t at = 0;

		while (at < before->listed && !same_build(&before->list[at], deployment))
			at++;
		if (deployment->time > before->since && deployment->time <= before->until &&
			at == before->listed)
			return true;
	}
	return false;
}
