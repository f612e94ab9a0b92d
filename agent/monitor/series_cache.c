/*
 * Series are kept in order of their identities. Those missing from the answers are dropped after a
 * few runs, except for their checkpoints, by which they are recognised if they come back.
 */
#include "agent/monitor/series_cache.h"

#include <stdlib.h>
#include <string.h>

#include "agent/core/attribution.h"
#include "agent/core/hash.h"
#include "agent/core/when.h"
#include "agent/monitor/hold.h"
#include "agent/monitor/series_state.h"

enum {
	PRESENT = 3, /* runs that a series may be missing before it is dropped */
	REMEMBERED =
		1000, /* runs for which its checkpoint is kept then, if the source has no range */
};

struct series_cache {
	bool restored;
	uint64_t pass;
	int64_t range, front;        /* start of the range; WHEN_ALWAYS if there is none */
	struct series_state **pasts; /* sorted by series, except those new in this run */
	size_t count, room, sorted;
	bool restless;
	int64_t held;             /* ms: end of the latest hold among the series of this run */
	uint64_t found, recorded; /* hashes of findings; recorded: 0 if none */
};

struct series_cache *series_cache_make(void)
{
	return memory_new(1, sizeof(struct series_cache));
}

void series_cache_free(struct series_cache *memory)
{
	if (!memory)
		return;
	for (size_t i = 0; i < memory->count; i++)
		series_state_free(memory->pasts[i]);
	free(memory->pasts);
	free(memory);
}

static struct series_state *add_past(struct series_cache *memory, const char *series)
{
	struct series_state *past = series_state_new(series);

	memory->pasts =
		memory_grow(memory->pasts, &memory->room, memory->count + 1, sizeof *memory->pasts);
	memory->pasts[memory->count++] = past;
	return past;
}

static int compare_pasts(const void *a, const void *b)
{
	const struct series_state *const *left = a, *const *right = b;

	return strcmp((*left)->series, (*right)->series);
}

static void sort_pasts(struct series_cache *memory)
{
	if (memory->sorted < memory->count)
		qsort(memory->pasts, memory->count, sizeof *memory->pasts, compare_pasts);
	memory->sorted = memory->count;
}

static struct series_state *find_past(const struct series_cache *memory, const char *series)
{
	size_t low = 0, high = memory->sorted;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(memory->pasts[middle]->series, series);

		if (order == 0)
			return memory->pasts[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

void series_cache_restore(
	struct series_cache *memory, const struct series_checkpoint *marks, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct series_state *past;

		if (*marks[i].branch)
			continue;
		past = add_past(memory, marks[i].series);
		past->anchor = past->since = past->marked_anchor = marks[i].anchor;
		past->last = past->recorded_last = past->marked_last = marks[i].last_point;
		past->revision = past->marked_revision = marks[i].revision;
		past->realignment.revised = marks[i].revised;
		past->seen = past->marked = true;
	}
	sort_pasts(memory);
	memory->restored = true;
}

bool series_cache_restored(const struct series_cache *memory)
{
	return memory->restored;
}

static bool is_present(const struct series_cache *memory, const struct series_state *past)
{
	return memory->pass - past->pass < PRESENT;
}

int64_t series_cache_begin(struct series_cache *memory, int64_t now, int64_t range)
{
	int64_t since;

	memory->range = range;
	memory->front = since = range > 0 ? now - range : WHEN_ALWAYS;
	if (range <= 0)
		return WHEN_ALWAYS;
	for (size_t i = 0; i < memory->count; i++)
		if (is_present(memory, memory->pasts[i]) && memory->pasts[i]->since < since)
			since = memory->pasts[i]->since;
	return since < now - 2 * range ? now - 2 * range : since;
}

/* Hashes what was found and what it is attributed to, since a deployment may be recorded without a
 * new point. */
static void hash_findings(
	struct series_cache *memory, struct arena *arena, const struct findings *findings)
{
	const char *series = findings->series->identity;

	memory->found = hash_add(memory->found, series, strlen(series) + 1);
	for (size_t i = 0; i < findings->count; i++) {
		struct change_key sighting = {
			.time = findings->series->axis->times[findings->changes[i].index],
			.sign = change_sign(&findings->changes[i])};
		struct attribution suspects =
			attribution_of(arena, findings->series, &findings->changes[i]);

		memory->found = hash_add(memory->found, &sighting.time, sizeof sighting.time);
		memory->found = hash_add(memory->found, &sighting.sign, sizeof sighting.sign);
		memory->found = attribution_hash(&suspects, memory->found);
	}
}

static bool look_at(struct series_cache *memory, struct look *look, struct findings *out,
	struct realignment **realignment, struct error *error)
{
	const struct series *series = look->series;
	struct series_state *past = find_past(memory, series->identity);

	*out = (struct findings){.series = series};
	if (series->axis->n == 0)
		return true;
	if (past &&
		past->pass ==
			memory->pass) { /* two series with one identity: the second has no state */
		*out = analysis_adjust(look->arena, series, look->detection, look->rule,
			look->other, look->scratch);
		return analysis_detect(look->arena, look->sampling, look->detection, 0,
			series->axis->n, look->scratch, out, error);
	}
	if (!past)
		past = add_past(memory, series->identity);
	past->pass = memory->pass;
	look->past = past;
	if (!series_state_look(look, error))
		return false;
	memory->restless |= past->realignment.restarted ||
			    (past->realignment.grown && (past->realignment.candidates > 0 ||
								past->realignment.waiting));
	if (past->realignment.held < memory->held)
		memory->held = past->realignment.held;
	*realignment = &past->realignment;
	*out = series_state_findings(look);
	return true;
}

/* Drops series that are missing from the answers, but keeps their checkpoints as long as these may
 * be of use. */
static void let_go(struct series_cache *memory)
{
	size_t kept = 0;

	for (size_t i = 0; i < memory->count; i++) {
		struct series_state *past = memory->pasts[i];
		uint64_t missing = memory->pass - past->pass;
		bool useful =
			memory->range > 0 ? past->last >= memory->front : missing < REMEMBERED;

		if (!is_present(memory, past) && !(past->seen && useful)) {
			series_state_free(past);
			continue;
		}
		if (!is_present(memory, past))
			series_state_shed(past);
		memory->pasts[kept++] = past;
	}
	memory->count = memory->sorted = kept;
}

struct candidate {
	const struct series *series;
	bool known;
};

static int compare_candidates(const void *a, const void *b)
{
	const struct candidate *left = a, *right = b;

	if (left->known != right->known)
		return left->known ? -1 : 1;
	return strcmp(left->series->identity, right->series->identity);
}

/* By position in the answer. */
static int compare_places(const void *a, const void *b)
{
	const struct candidate *left = a, *right = b;

	return (left->series > right->series) - (left->series < right->series);
}

struct series_cache_cut series_cache_cut(
	const struct series_cache *memory, struct arena *arena, struct dataset *data, size_t most)
{
	struct candidate *all = arena_array(arena, data->count, sizeof *all);
	struct series_cache_cut cut = {0};
	struct series *kept;
	size_t count = 0;

	for (size_t i = 0; i < data->count; i++)
		if (strlen(data->series[i].identity) <= SERIES_CACHE_IDENTITY_MAX)
			all[count++].series = &data->series[i];
	cut.too_long = data->count - count;
	if (count > most) {
		for (size_t i = 0; i < count; i++)
			all[i].known = find_past(memory, all[i].series->identity) != NULL;
		qsort(all, count, sizeof *all, compare_candidates);
		cut.too_many = count - most;
		count = most;
		qsort(all, count, sizeof *all, compare_places);
	}
	if (count == data->count)
		return cut;
	kept = arena_array(arena, count, sizeof *kept);
	for (size_t i = 0; i < count; i++)
		kept[i] = *all[i].series;
	*data = (struct dataset){kept, count};
	return cut;
}

bool series_cache_detect(struct series_cache *memory, struct arena *arena, const struct test *test,
	const struct dataset *data, const struct companions *companions, struct scratch *scratch,
	struct analysis *out, struct realignment ***realignments, struct error *error)
{
	struct findings *findings = arena_array(arena, data->count, sizeof *findings);
	struct sampling sampling = {0};
	bool done = true;

	*realignments = arena_array(arena, data->count, sizeof **realignments);
	memory->pass++;
	memory->restless = false;
	memory->held = WHEN_NEVER;
	memory->found = HASH_START;
	for (size_t i = 0; i < data->count; i++) {
		const struct series *series = &data->series[i];
		struct look look = {.range = memory->range,
			.front = memory->front,
			.arena = arena,
			.scratch = scratch,
			.sampling = &sampling,
			.detection = analysis_configured(test, series->metric),
			.series = series};

		if (sampling.axis != series->axis)
			done = sampling_read(arena, test, series->axis, &sampling, error);
		done = done && analysis_other(test, data, companions, series, look.detection,
				       &look.rule, &look.other, error);
		done = done && look_at(memory, &look, &findings[i], &(*realignments)[i], error);
		if (!done)
			break;
		hash_findings(memory, arena, &findings[i]);
	}
	sort_pasts(memory);
	let_go(memory);
	*out = (struct analysis){test, data, findings};
	return done;
}

bool series_cache_settled(const struct series_cache *memory, int64_t now)
{
	return !memory->restless && memory->found == memory->recorded &&
	       now - HOLD_GRACE < memory->held;
}

bool series_cache_done(const struct series_cache *memory)
{
	return memory->recorded != 0;
}

size_t series_cache_candidates(const struct series_cache *memory)
{
	size_t count = 0;

	for (size_t i = 0; i < memory->count; i++)
		if (memory->pasts[i]->pass == memory->pass)
			count += memory->pasts[i]->realignment.candidates;
	return count;
}

size_t series_cache_checkpoints(
	struct series_cache *memory, struct store_request *request, bool all)
{
	size_t count = 0;

	request->marks = arena_array(request->arena, memory->count, sizeof *request->marks);
	for (size_t i = 0; i < memory->count; i++) {
		struct series_state *past = memory->pasts[i];

		past->offered = past->pass == memory->pass &&
				(past->due || (all && past->last != past->marked_last));
		if (past->offered)
			request->marks[count++] = (struct series_checkpoint){
				.series = arena_strdup(request->arena, past->series),
				.branch = "",
				.anchor = past->anchor,
				.last_point = past->last,
				.revision = DETECTOR_REVISION,
				.revised = past->realignment.revised};
	}
	request->mark_count = count;
	return count;
}

void series_cache_recorded(struct series_cache *memory, bool settled)
{
	memory->recorded = settled ? memory->found : 0;
	for (size_t i = 0; i < memory->count; i++) {
		struct series_state *past = memory->pasts[i];

		if (past->pass != memory->pass)
			continue;
		past->seen = true;
		past->recorded_last = past->last;
		past->realignment.restarted = past->realignment.grown = false;
		past->realignment.newer = past->realignment.revising = false;
		free(past->realignment.before);
		past->realignment.before = NULL;
		if (past->offered) {
			past->marked = true;
			past->marked_anchor = past->anchor;
			past->marked_last = past->last;
			past->marked_revision = DETECTOR_REVISION;
		}
		past->offered = false;
	}
}
