/*
 * Series are kept in order of their identities. Those missing from the answers are dropped after a
 * few runs, except for their checkpoints, by which they are recognised if they come back.
 */
#include "agent/monitor/series_cache.h"

#include <stdlib.h>
#include <string.h>

#include "agent/base/hash.h"
#include "agent/base/when.h"
#include "agent/decide/hold.h"
#include "agent/model/attribution.h"
#include "agent/monitor/series_state.h"

enum {
	PRESENT = 3, /* runs that a series may be missing before it is dropped */
	REMEMBERED =
		1000, /* runs for which its checkpoint is kept then, if the source has no range */
};

struct series_cache {
	bool restored;
	uint64_t run;
	int64_t range, front;         /* start of the range; WHEN_ALWAYS if there is none */
	struct series_state **states; /* sorted by series, except those new in this run */
	size_t count, room, sorted;
	bool restless;
	int64_t hold_ends;        /* ms: the earliest end of a hold in this run; WHEN_NEVER: none */
	uint64_t found, recorded; /* hashes of findings; recorded: 0 if none */
};

struct series_cache *series_cache_make(void)
{
	return memory_new(1, sizeof(struct series_cache));
}

void series_cache_free(struct series_cache *cache)
{
	if (!cache)
		return;
	for (size_t i = 0; i < cache->count; i++)
		series_state_free(cache->states[i]);
	free(cache->states);
	free(cache);
}

static struct series_state *add_state(struct series_cache *cache, const char *series)
{
	struct series_state *state = series_state_new(series);

	cache->states =
		memory_grow(cache->states, &cache->room, cache->count + 1, sizeof *cache->states);
	cache->states[cache->count++] = state;
	return state;
}

static int compare_states(const void *a, const void *b)
{
	const struct series_state *const *left = a, *const *right = b;

	return strcmp((*left)->series, (*right)->series);
}

static void sort_states(struct series_cache *cache)
{
	if (cache->sorted < cache->count)
		qsort(cache->states, cache->count, sizeof *cache->states, compare_states);
	cache->sorted = cache->count;
}

static struct series_state *find_state(const struct series_cache *cache, const char *series)
{
	const struct series_state key = {.series = (char *)(uintptr_t)series}, *sought = &key;
	struct series_state **found = NULL;

	if (cache->sorted > 0)
		found = bsearch(&sought, cache->states, cache->sorted, sizeof *cache->states,
			compare_states);
	return found ? *found : NULL;
}

void series_cache_restore(
	struct series_cache *cache, const struct series_checkpoint *checkpoints, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct series_state *state;

		if (*checkpoints[i].branch)
			continue;
		state = add_state(cache, checkpoints[i].series);
		state->anchor = state->since = state->stored_anchor = checkpoints[i].anchor;
		state->last = state->recorded_last = state->stored_last = checkpoints[i].last_point;
		state->revision = state->stored_revision = checkpoints[i].revision;
		state->realignment.revised = checkpoints[i].revised;
		state->seen = state->stored = true;
	}
	sort_states(cache);
	cache->restored = true;
}

bool series_cache_restored(const struct series_cache *cache)
{
	return cache->restored;
}

static bool is_present(const struct series_cache *cache, const struct series_state *state)
{
	return cache->run - state->run < PRESENT;
}

int64_t series_cache_begin(struct series_cache *cache, int64_t now, int64_t range)
{
	int64_t since;

	cache->range = range;
	cache->front = since = range > 0 ? now - range : WHEN_ALWAYS;
	if (range <= 0)
		return WHEN_ALWAYS;
	for (size_t i = 0; i < cache->count; i++)
		if (is_present(cache, cache->states[i]) && cache->states[i]->since < since)
			since = cache->states[i]->since;
	return since < now - 2 * range ? now - 2 * range : since;
}

/* Hashes what was found and what it is attributed to, since a deployment may be recorded without a
 * new point. */
static void hash_findings(
	struct series_cache *cache, struct arena *arena, const struct findings *findings)
{
	const char *series = findings->series->identity;

	cache->found = hash_add(cache->found, series, strlen(series) + 1);
	for (size_t i = 0; i < findings->count; i++) {
		struct change_key key = {
			.time = findings->series->axis->times[findings->changes[i].index],
			.sign = change_sign(&findings->changes[i])};
		struct attribution suspects =
			attribution_of(arena, findings->series, &findings->changes[i]);

		cache->found = hash_add(cache->found, &key.time, sizeof key.time);
		cache->found = hash_add(cache->found, &key.sign, sizeof key.sign);
		cache->found = attribution_hash(&suspects, cache->found);
	}
}

/* Takes what the series is judged by; *sampling is that of the axis before. */
static bool prepare(struct look *look, const struct test *test, const struct dataset *data,
	const struct companions *companions, struct sampling *sampling, struct error *error)
{
	struct series_state *state = look->state;

	if (state && look->series->axis->n > 0) {
		int64_t first = look->series->axis->times[0], step = state->pace.step;
		bool known = state->pace.settled;

		pace_settle(&state->pace, look->detection, look->series,
			state->anchor == WHEN_NEVER || state->anchor < first ? first
									     : state->anchor,
			look->scratch);
		state->repaced |= known && (step > 0) != (state->pace.step > 0);
		look->series = pace_apply(look->arena, &state->pace, look->series);
	}
	look->sampling = sampling;
	return (sampling->axis == look->series->axis ||
		       sampling_read(look->arena, test, look->series->axis, sampling, error)) &&
	       analysis_other(look->arena, test, data, companions, look->series, look->detection,
		       &look->rule, &look->other, error);
}

/* The series' state; NULL for the second of two series with one identity. */
static struct series_state *state_of(struct series_cache *cache, const struct series *series)
{
	struct series_state *state = find_state(cache, series->identity);

	if (state && state->run == cache->run)
		return NULL;
	if (!state)
		state = add_state(cache, series->identity);
	state->run = cache->run;
	return state;
}

static bool look_at(struct series_cache *cache, struct look *look, struct findings *out,
	struct realignment **realignment, struct error *error)
{
	const struct series *series = look->series;
	struct series_state *state = look->state;

	*out = (struct findings){.series = series};
	if (series->axis->n == 0)
		return true;
	if (!state) {
		*out = analysis_adjust(look->arena, series, look->detection, look->rule,
			look->other, look->scratch);
		return analysis_detect(look->arena, look->sampling, look->detection, 0,
			series->axis->n, look->scratch, out, error);
	}
	if (!series_state_look(look, error))
		return false;
	cache->restless |= state->realignment.restarted ||
			   (state->realignment.grown && (state->realignment.candidates > 0 ||
								state->realignment.waiting ||
								state->realignment.triaged));
	if (state->realignment.hold_ends < cache->hold_ends)
		cache->hold_ends = state->realignment.hold_ends;
	*realignment = &state->realignment;
	*out = series_state_findings(look);
	return true;
}

/* Drops series that are missing from the answers, but keeps their checkpoints as long as these may
 * be of use. */
static void let_go(struct series_cache *cache)
{
	size_t kept = 0;

	for (size_t i = 0; i < cache->count; i++) {
		struct series_state *state = cache->states[i];
		uint64_t missing = cache->run - state->run;
		bool useful = cache->range > 0 ? state->last >= cache->front : missing < REMEMBERED;

		if (!is_present(cache, state) && !(state->seen && useful)) {
			series_state_free(state);
			continue;
		}
		if (!is_present(cache, state))
			series_state_shed(state);
		cache->states[kept++] = state;
	}
	cache->count = cache->sorted = kept;
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
	const struct series_cache *cache, struct arena *arena, struct dataset *data, size_t most)
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
			all[i].known = find_state(cache, all[i].series->identity) != NULL;
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

bool series_cache_detect(struct series_cache *cache, struct arena *arena, const struct test *test,
	const struct dataset *data, const struct companions *companions, struct scratch *scratch,
	struct analysis *out, struct realignment ***realignments, struct error *error)
{
	struct findings *findings = arena_array(arena, data->count, sizeof *findings);
	struct sampling sampling = {0};
	bool done = true;

	*realignments = arena_array(arena, data->count, sizeof **realignments);
	cache->run++;
	cache->restless = false;
	cache->hold_ends = WHEN_NEVER;
	cache->found = HASH_START;
	for (size_t i = 0; i < data->count; i++) {
		const struct series *series = &data->series[i];
		struct look look = {.range = cache->range,
			.front = cache->front,
			.arena = arena,
			.scratch = scratch,
			.detection = analysis_configured(test, series->metric),
			.series = series};

		if (series->axis->n > 0)
			look.state = state_of(cache, series);
		done = prepare(&look, test, data, companions, &sampling, error) &&
		       look_at(cache, &look, &findings[i], &(*realignments)[i], error);
		if (!done)
			break;
		hash_findings(cache, arena, &findings[i]);
	}
	sort_states(cache);
	let_go(cache);
	*out = (struct analysis){test, data, findings};
	return done;
}

bool series_cache_settled(const struct series_cache *cache, int64_t now)
{
	return !cache->restless && cache->found == cache->recorded &&
	       now - HOLD_GRACE < cache->hold_ends;
}

bool series_cache_done(const struct series_cache *cache)
{
	return cache->recorded != 0;
}

size_t series_cache_candidates(const struct series_cache *cache)
{
	size_t count = 0;

	for (size_t i = 0; i < cache->count; i++)
		if (cache->states[i]->run == cache->run)
			count += cache->states[i]->realignment.candidates;
	return count;
}

size_t series_cache_checkpoints(struct series_cache *cache, struct store_record *request, bool all)
{
	size_t count = 0;

	request->checkpoints.items =
		arena_array(request->call.arena, cache->count, sizeof *request->checkpoints.items);
	for (size_t i = 0; i < cache->count; i++) {
		struct series_state *state = cache->states[i];

		state->offered = state->run == cache->run &&
				 (state->due || (all && state->last != state->stored_last));
		if (state->offered)
			request->checkpoints.items[count++] = (struct series_checkpoint){
				.series = arena_strdup(request->call.arena, state->series),
				.branch = "",
				.anchor = state->anchor,
				.last_point = state->last,
				.revision = DETECTOR_REVISION,
				.revised = state->realignment.revised};
	}
	request->checkpoints.count = count;
	return count;
}

void series_cache_recorded(struct series_cache *cache, bool settled)
{
	cache->recorded = settled ? cache->found : 0;
	for (size_t i = 0; i < cache->count; i++) {
		struct series_state *state = cache->states[i];

		if (state->run != cache->run)
			continue;
		state->seen = true;
		state->recorded_last = state->last;
		state->realignment.restarted = state->realignment.grown = false;
		state->realignment.newer = state->realignment.revising = false;
		free(state->realignment.before);
		state->realignment.before = NULL;
		state->realignment.before_count = 0;
		if (state->offered) {
			state->stored = true;
			state->stored_anchor = state->anchor;
			state->stored_last = state->last;
			state->stored_revision = DETECTOR_REVISION;
		}
		state->offered = false;
	}
}
