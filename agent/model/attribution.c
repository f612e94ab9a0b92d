/*
 * Sources that know deployment times put them on the axis. Otherwise the points' attributes are
 * used: a build was deployed between the last point with another build and the first with it.
 */
#include "agent/model/attribution.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
static bool is_within(
	const struct deployment *deployment, const struct span *span, const struct axis *axis)
{
	if (deployment->after == INT64_MIN)
		return deployment->time > axis->times[span->good];
	return deployment->time > span->from &&
	       (deployment->after < span->until || deployment->time <= span->until);
}

static void find_timed(const struct axis *axis, const struct span *span, struct list *list,
	struct deployment *last)
{
	const struct deployments *all = axis->deployments;

	for (size_t i = 0; i < all->count; i++) {
		const struct deployment *deployment = &all->items[i];

		if (is_within(deployment, span, axis))
			add(list, deployment);
		else if (list->count == 0 && deployment->time <= span->until)
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

/* A member's suspect. */
struct vote {
	const struct deployment *deployment;
	size_t member, place; /* in its list */
};

/* By build, the nearest member first. */
static int compare_votes(const void *a, const void *b)
{
	const struct vote *x = a, *y = b;
	int order = strcmp(deployment_name(x->deployment), deployment_name(y->deployment));

	if (order)
		return order;
	if (x->member != y->member)
		return x->member < y->member ? -1 : 1;
	return (x->place > y->place) - (x->place < y->place);
}

static struct vote *list_votes(
	struct arena *arena, const struct attribution *members, size_t count, size_t *n)
{
	struct vote *votes;
	size_t room = 0;

	for (size_t i = 0; i < count; i++)
		room += members[i].listed;
	votes = arena_array(arena, room, sizeof *votes);
	*n = 0;
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < members[i].listed; k++)
			if (deployment_name(&members[i].list[k]))
				votes[(*n)++] = (struct vote){&members[i].list[k], i, k};
	if (*n > 0)
		qsort(votes, *n, sizeof *votes, compare_votes);
	return votes;
}

/* A build and the number of members that suspect it. */
struct elected {
	struct vote vote; /* the nearest member's */
	size_t members;
};

static size_t count_votes(const struct vote *votes, size_t n, struct elected *out)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++) {
		bool first = i == 0 || !same_build(votes[i - 1].deployment, votes[i].deployment);

		if (first)
			out[count++] = (struct elected){votes[i], 0};
		out[count - 1].members += first || votes[i - 1].member != votes[i].member;
	}
	return count;
}

static int compare_elected(const void *a, const void *b)
{
	const struct elected *x = a, *y = b;
	int64_t left = x->vote.deployment->time, right = y->vote.deployment->time;

	return left != right ? (left < right ? -1 : 1) : compare_votes(&x->vote, &y->vote);
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

/* The members that suspect one of these, given that most share those that all do. */
static size_t count_members(const struct attribution *members, size_t count,
	const struct elected *elected, size_t n, size_t known)
{
	size_t least_of_them = known, any = 0;

	for (size_t i = 0; i < n; i++)
		least_of_them = least(least_of_them, elected[i].members);
	if (2 * least_of_them >= known)
		return least_of_them;
	for (size_t i = 0; i < count; i++)
		any += members[i].listed > 0;
	return any;
}

struct attribution attribution_common(
	struct arena *arena, const struct attribution *members, size_t count)
{
	struct attribution common = {.last = {.time = INT64_MIN}};
	size_t n, kept, known = 0;
	struct vote *votes = list_votes(arena, members, count, &n);
	struct elected *elected = arena_array(arena, n, sizeof *elected);
	struct list list = {.count = 0};
	const struct attribution *first, *last;

	for (size_t i = count; i-- > 0;)
		if (members[i].known) {
			common = members[i];
			known++;
		}
	kept = keep_most(elected, count_votes(votes, n, elected), known);
	if (known == 0 || kept == 0) {
		common.list = NULL;
		common.count = common.listed = 0;
		return attribution_copy(arena, &common);
	}
	first = &members[elected[0].vote.member];
	last = &members[elected[kept - 1].vote.member];
	for (size_t i = 0; i < kept; i++) {
		add(&list, elected[i].vote.deployment);
		common.timed = common.timed && members[elected[i].vote.member].timed;
	}
	common.last =
		elected[0].vote.place > 0 ? first->list[elected[0].vote.place - 1] : first->last;
	common.since = first->since;
	common.until = last->until;
	common.share = (double)count_members(members, count, elected, kept, known) / (double)known;
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

static bool is_listed(const struct attribution *attribution, const struct deployment *deployment)
{
	for (size_t i = 0; i < attribution->listed; i++)
		if (same_build(&attribution->list[i], deployment))
			return true;
	return false;
}

/* If there are more than are listed, those in the middle are unknown. */
bool attribution_gained(const struct attribution *now, const struct attribution *before)
{
	for (size_t i = 0; i < now->listed && before->count <= before->listed; i++) {
		const struct deployment *deployment = &now->list[i];

		if (deployment->time > before->since && deployment->time <= before->until &&
			!is_listed(before, deployment))
			return true;
	}
	return false;
}
