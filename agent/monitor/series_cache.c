/*
 * Series are kept in order of their identities. Those missing from the answers are dropped after a
 * few runs, except for their checkpoints, by which they are recognised if they come back.
 *
 * A stream of the detector lives as long as the series cache, numbered from the point where it
 * began, while the answers it is fed from begin later and later. It holds no values between runs:
 * the next answer has them.
 *
 * A full run may have to begin elsewhere than the one before: after a restart, when the source has
 * lost the front, when the anchor has fallen too far behind. Its windows are aligned differently
 * then, and what it shows differently in old points is no news. So it first runs up to the last
 * point that was seen before, and what it shows there is passed on as the realignment.
 */
#include "agent/monitor/series_cache.h"

#include <stdlib.h>
#include <string.h>

#include "agent/analysis/hourly.h"
#include "agent/base/arena.h"
#include "agent/base/hash.h"
#include "agent/base/when.h"
#include "agent/decide/hold.h"
#include "agent/decide/match.h"
#include "agent/model/attribution.h"
#include "agent/monitor/point_hashes.h"
#include "detectors/online_eval.h"
#include "detectors/season.h"

enum {
	PRESENT = 3, /* runs that a series may be missing before it is dropped */
	REMEMBERED =
		1000, /* runs for which its checkpoint is kept then, if the source has no range */
	MARK_EVERY = 25, /* points between two stored checkpoints */
	UNDER_WAY = 5, /* a trend that begins within so many points of the first began before it */
};

/* What is kept of one series. */
struct series_state {
	char *series;
	uint64_t run;   /* the last run that it was part of */
	int64_t anchor; /* its points count from then on */
	int64_t since;  /* the start of the points that it needs: those from the anchor, and those
			   that the stream reads again */
	int64_t last;   /* time of its last point */

	struct pace pace;
	bool repaced; /* ... has changed what is judged, since the last look */

	struct point_hashes hashes; /* numbered from where the stream began */
	const struct detector *detector;
	struct stream *stream;
	size_t need, fixed; /* from stream_rest; without a stream 0 */
	struct change *changes;
	size_t count;
	struct realignment realignment;

	struct refit refit; /* the cycles removed from the stream's values */

	/* What another series explains, removed from the values before the cycles; frozen like
	 * these. */
	struct control control;
	bool controlled;
	int64_t controlled_at; /* time of the last point when it was fitted */

	bool seen;             /* recorded in an earlier run or by an earlier process, ... */
	int64_t recorded_last; /* ... with this last point */
	bool stored, due, offered;
	int64_t stored_anchor, stored_last;
	int64_t revision, stored_revision; /* DETECTOR_REVISION, now and as stored */
};

/* The examination of one answer. */
struct exam {
	const struct series_cache *cache;
	struct arena *arena;
	struct scratch *scratch;
	const struct sampling *sampling;
	const struct detection *detection;
	const struct series *series;
	const struct control_rule *rule; /* with the series that it names; or NULL */
	const struct series *other;
	struct series_state *state;
	struct findings judged; /* the series without what its control explains; set by examine */
	bool refitted;          /* the control was fitted again */
	ptrdiff_t shift;        /* number = index on the axis + shift; set by examine */
};

struct series_cache {
	bool restored;
	uint64_t run;
	int64_t range, front;         /* ms; range 0: there is none; front: its start */
	struct series_state **states; /* sorted by series, except those new in this run */
	size_t count, room, sorted;
	bool restless;
	int64_t hold_ends;        /* ms: the earliest end of a hold in this run; WHEN_NEVER: none */
	uint64_t found, recorded; /* hashes of findings; recorded: 0 if none */
};

/* Drops everything except the position of the series. */
static void shed(struct series_state *state)
{
	if (state->stream)
		state->detector->stream_free(state->stream);
	state->stream = NULL;
	point_hashes_clear(&state->hashes);
	free(state->changes);
	state->changes = NULL;
	state->count = state->need = state->fixed = 0;
}

static void free_state(struct series_state *state)
{
	shed(state);
	refit_free(&state->refit);
	free(state->realignment.before);
	free(state->realignment.kept);
	free(state->series);
	free(state);
}

static void keep_changes(
	struct series_state *state, const struct change *changes, size_t count, ptrdiff_t shift)
{
	free(state->changes);
	state->changes = memory_new(count, sizeof *changes);
	state->count = count;
	for (size_t i = 0; i < count; i++) {
		state->changes[i] = changes[i];
		change_shift(&state->changes[i], shift);
	}
}

/* The values from index `from` on, without their cycles. */
static const double *adjusted(const struct exam *exam, size_t from, size_t end)
{
	const struct series *series = exam->series;
	double *values;

	if (!exam->state->refit.season.cycles)
		return series->values + from;
	values = arena_array(exam->arena, end - from, sizeof *values);
	season_remove(&exam->state->refit.season, series->axis->times + from, series->values + from,
		end - from, values);
	return values;
}

/* Finds the changes among the points up to the index `end`. */
static bool detect_to(const struct exam *exam, size_t end, struct error *error)
{
	struct series_state *state = exam->state;
	const struct detector *detector = state->detector;
	size_t from = (size_t)((ptrdiff_t)state->need - exam->shift), count;

	if (!detector->stream_rest) {
		struct findings found = {.series = exam->series, .season = state->refit.season};

		if (!analysis_detect(exam->arena, exam->sampling, exam->detection, from, end,
			    exam->scratch, &found, error))
			return false;
		keep_changes(state, found.changes, found.count, exam->shift);
		return true;
	}
	if (!state->stream)
		state->stream = detector->stream_new(
			exam->detection->options, state->refit.season.excursion);
	const struct change *changes = detector_append(detector, state->stream,
		adjusted(exam, from, end), end - from, exam->scratch, &count, error);
	if (!changes)
		return error_prefix(error, "series \"%.200s\": ", exam->series->name);
	keep_changes(state, changes, count, 0);
	state->need = detector->stream_rest(state->stream, &state->fixed);
	return true;
}

/* What the windows show in the points that existed when the series was last recorded. */
static bool detect_before(const struct exam *exam, size_t start, struct error *error)
{
	struct series_state *state = exam->state;
	struct realignment *realignment = &state->realignment;
	const int64_t *times = exam->series->axis->times;
	size_t end = axis_lower_bound(exam->series->axis, state->recorded_last + 1);

	if (!state->seen || end <= start)
		return true;
	if (!detect_to(exam, end, error))
		return false;
	free(realignment->before);
	realignment->before = memory_new(state->count, sizeof *realignment->before);
	realignment->before_count = state->count;
	realignment->until =
		end - start > ONLINE_SETTLED ? times[end - ONLINE_SETTLED] : WHEN_ALWAYS;
	realignment->settled =
		end - start > CHANGE_TOLERANCE ? times[end - CHANGE_TOLERANCE] : WHEN_ALWAYS;
	if (state->revision != DETECTOR_REVISION) {
		realignment->revising = true;
		realignment->revised = state->recorded_last;
	}
	/* What another detector revision shows in older points is no news. */
	if (realignment->revised != 0 && realignment->until <= realignment->revised)
		realignment->until = realignment->revised + 1;
	for (size_t i = 0; i < state->count; i++) {
		const struct change *change = &state->changes[i];

		realignment->before[i] =
			(struct change_key){.time = times[(ptrdiff_t)change->index - exam->shift],
				.sign = change_sign(change),
				.under_way = change->kind == CHANGE_TREND &&
					     change->place_from < UNDER_WAY};
	}
	realignment->restarted = true;
	return true;
}

/* Moves the anchor to the last window start that does not lie within the range. */
static void move_anchor(const struct exam *exam)
{
	struct series_state *state = exam->state;
	const struct axis *axis = exam->series->axis;
	size_t chunk, need = state->need;

	if (state->stream && exam->cache->range > 0) {
		size_t front = axis_lower_bound(axis, exam->cache->front);

		chunk = state->detector->stream_chunk(
			state->stream, (size_t)((ptrdiff_t)front + exam->shift));
		if ((ptrdiff_t)chunk >= exam->shift &&
			axis->times[(ptrdiff_t)chunk - exam->shift] > state->anchor)
			state->anchor = axis->times[(ptrdiff_t)chunk - exam->shift];
	}
	state->since = state->anchor;
	if (need < state->hashes.n && axis->times[(ptrdiff_t)need - exam->shift] < state->since)
		state->since = axis->times[(ptrdiff_t)need - exam->shift];
}

static bool is_control_due(const struct exam *exam)
{
	const struct series_state *state = exam->state;
	const struct axis *axis = exam->series->axis;
	const struct findings *judged = &exam->judged;
	int64_t last = axis->times[axis->n - 1];

	if (!state->controlled ||
		(state->control.joined < CONTROL_LEAST && last > state->controlled_at))
		return true;
	if (state->control.mode == CONTROL_RATIO)
		return false;
	return last >= state->controlled_at + REFIT_EVERY ||
	       !control_takes(&state->control, exam->series->values, judged->joined, axis->n);
}

/*
 * From here on the series is what the control leaves of it, so its hashes cover both. A ratio is
 * fitted once there are enough points, a load as often as cycles are.
 */
static void apply_control(struct exam *exam)
{
	struct series_state *state = exam->state;
	const struct series *series = exam->series;
	struct series *rest;

	exam->judged = (struct findings){.series = series};
	if (!exam->rule)
		return;
	if (state->controlled)
		analysis_control(
			exam->arena, exam->rule, &state->control, exam->other, &exam->judged);
	if (is_control_due(exam)) {
		bool used = state->control.used;

		state->control = control_fit(exam->rule->mode, analysis_points(series),
			analysis_points(exam->other), used, exam->scratch);
		exam->refitted = state->controlled && (used || state->control.used);
		state->controlled = true;
		state->controlled_at = series->axis->times[series->axis->n - 1];
		analysis_control(
			exam->arena, exam->rule, &state->control, exam->other, &exam->judged);
	}
	rest = arena_alloc(exam->arena, sizeof *rest);
	*rest = *series;
	rest->values = arena_array(exam->arena, series->axis->n, sizeof *rest->values);
	memcpy(rest->values, exam->judged.rest, series->axis->n * sizeof *rest->values);
	exam->series = rest;
}

/* Detects in what has changed; *anew: there was something. A full run begins at the first point
 * that counts; a series that began within the range has no front to leave out. */
static bool examine_new(struct exam *exam, bool first, bool *anew, struct error *error)
{
	struct series_state *state = exam->state;
	const struct axis *axis = exam->series->axis;
	size_t same = point_hashes_compare(&state->hashes, exam->series, &exam->shift);
	int64_t range = exam->cache->range, front = exam->cache->front;
	bool too_old = range > 0 && state->anchor < front - range;
	size_t start = range <= 0 || state->anchor >= front
			       ? 0
			       : axis_lower_bound(axis, too_old ? front : state->anchor);
	bool lost = first || state->repaced || axis->times[0] > state->since || too_old;
	bool grown = same < state->hashes.n || (ptrdiff_t)axis->n + exam->shift > (ptrdiff_t)same;
	/* Whether its windows are aligned differently than before, for the same points. */
	bool other =
		(first || grown) && refit_season(&state->refit, analysis_season(exam->detection),
					    analysis_clock(exam->detection), exam->series->values,
					    axis->times, axis->n, exam->scratch);

	other |= exam->refitted || state->repaced;
	state->repaced = false;
	*anew = other || same == 0 || same < state->fixed || too_old ||
		(ptrdiff_t)state->need < exam->shift || (ptrdiff_t)start < -exam->shift;
	if (*anew) {
		state->realignment.refitted = other && !lost;
		shed(state);
		state->detector = detector_find(exam->detection->detector->name);
		exam->shift = -(ptrdiff_t)start;
		same = 0;
		if (start == axis->n)
			return true;
		state->anchor = axis->times[start];
		if ((lost || other) && !detect_before(exam, start, error))
			return false;
	} else if (!grown) {
		return true;
	}
	*anew = true;
	if (!detect_to(exam, axis->n, error))
		return false;
	point_hashes_note(&state->hashes, exam->series, exam->shift, same);
	return true;
}

/* Takes in an answer with at least one point, and detects in what is new. If that exceeds the work
 * limit it fails and starts over the next time; the error names the series. */
static bool examine(struct exam *exam, struct error *error)
{
	struct series_state *state = exam->state;
	const struct axis *axis = exam->series->axis;
	bool first = state->hashes.n == 0, newer = axis->times[axis->n - 1] > state->recorded_last;
	bool anew;

	state->realignment.range = exam->cache->range;
	apply_control(exam);
	if (!examine_new(exam, first, &anew, error)) {
		shed(state);
		return false;
	}
	state->revision = DETECTOR_REVISION;
	state->realignment.newer |= state->seen && newer;
	state->realignment.grown |= anew && (!first || !state->seen || newer);
	if (state->hashes.n > 0)
		move_anchor(exam);
	state->last = axis->times[axis->n - 1];
	state->due = !state->stored || state->anchor != state->stored_anchor ||
		     state->stored_revision != DETECTOR_REVISION ||
		     axis->n - axis_lower_bound(axis, state->stored_last + 1) >= MARK_EVERY;
	return true;
}

/* The changes that lie within the answer, with its indices, in the arena. */
static struct findings findings_of(const struct exam *exam)
{
	const struct series_state *state = exam->state;
	struct change *changes = arena_array(exam->arena, state->count, sizeof *changes);
	size_t count = 0;

	for (size_t i = 0; i < state->count; i++) {
		ptrdiff_t index = (ptrdiff_t)state->changes[i].index - exam->shift;

		if (index <= 0)
			continue;
		changes[count] = state->changes[i];
		change_shift(&changes[count++], -exam->shift);
	}
	struct findings out = exam->judged;

	out.changes = changes;
	out.count = count;
	out.season = state->refit.season;
	return out;
}

struct series_cache *series_cache_make(void)
{
	return memory_new(1, sizeof(struct series_cache));
}

void series_cache_free(struct series_cache *cache)
{
	if (!cache)
		return;
	for (size_t i = 0; i < cache->count; i++)
		free_state(cache->states[i]);
	free(cache->states);
	free(cache);
}

static struct series_state *add_state(struct series_cache *cache, const char *series)
{
	struct series_state *state = memory_new(1, sizeof *state);

	state->series = memory_strdup(series);
	state->anchor = state->since = WHEN_NEVER;
	state->revision = DETECTOR_REVISION;
	state->realignment.hold_ends = WHEN_NEVER;
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

int64_t series_cache_query(const struct checkpoint_rows *checkpoints, struct task *task)
{
	const struct test *test = task->test;
	int64_t range = source_range(source_find(test->source->name), test->options), since;
	struct series_cache *cache = series_cache_make();

	series_cache_restore(cache, checkpoints->items, checkpoints->count);
	since = series_cache_begin(cache, task->query.now, range);
	series_cache_free(cache);
	if (range > 0)
		task->query.since = since;
	if (test->evaluation_delay > 0)
		task->query.until = task->query.now - test->evaluation_delay;
	return since;
}

int64_t checkpoint_anchor(const struct checkpoint_rows *checkpoints, const char *series)
{
	for (size_t i = 0; i < checkpoints->count; i++)
		if (strcmp(checkpoints->items[i].series, series) == 0)
			return checkpoints->items[i].anchor;
	return WHEN_ALWAYS;
}

bool series_cache_examine(struct arena *arena, const struct test *test, const struct dataset *data,
	const struct companions *companions, const struct series *series, size_t front,
	struct scratch *scratch, struct findings *out, struct error *error)
{
	const struct detection *detection = analysis_configured(test, series->metric);
	const struct control_rule *rule;
	const struct series *other;
	struct sampling sampling;

	if (!sampling_read(arena, test, series->axis, &sampling, error) ||
		!analysis_other(
			arena, test, data, companions, series, detection, &rule, &other, error))
		return false;
	*out = analysis_adjust(arena, series, detection, rule, other, scratch);
	return analysis_detect(
		arena, &sampling, detection, front, series->axis->n, scratch, out, error);
}

/* Hashes the changes and their suspects, since a deployment may be recorded without a new point. */
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

static bool examine_series(struct series_cache *cache, struct exam *exam, struct findings *out,
	struct realignment **realignment, struct error *error)
{
	const struct series *series = exam->series;
	struct series_state *state = exam->state;

	*out = (struct findings){.series = series};
	if (series->axis->n == 0)
		return true;
	if (!state) {
		*out = analysis_adjust(exam->arena, series, exam->detection, exam->rule,
			exam->other, exam->scratch);
		return analysis_detect(exam->arena, exam->sampling, exam->detection, 0,
			series->axis->n, exam->scratch, out, error);
	}
	if (!examine(exam, error))
		return false;
	cache->restless |= state->realignment.restarted ||
			   (state->realignment.grown && (state->realignment.candidates > 0 ||
								state->realignment.waiting ||
								state->realignment.triaged));
	if (state->realignment.hold_ends < cache->hold_ends)
		cache->hold_ends = state->realignment.hold_ends;
	*realignment = &state->realignment;
	*out = findings_of(exam);
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
			free_state(state);
			continue;
		}
		if (!is_present(cache, state))
			shed(state);
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

struct series_cache_cut series_cache_cut(
	const struct series_cache *cache, struct arena *arena, struct dataset *data, size_t most)
{
	struct candidate *all = arena_array(arena, data->count, sizeof *all);
	bool *kept = arena_array(arena, data->count, sizeof *kept);
	struct series_cache_cut cut = {0};
	struct series *items;
	size_t count = 0, n = 0;

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
	}
	if (count == data->count)
		return cut;
	for (size_t i = 0; i < count; i++)
		kept[all[i].series - data->series] = true;
	items = arena_array(arena, count, sizeof *items);
	for (size_t i = 0; i < data->count; i++)
		if (kept[i])
			items[n++] = data->series[i];
	*data = (struct dataset){items, count};
	return cut;
}

bool series_cache_detect(struct series_cache *cache, struct arena *arena, const struct test *test,
	const struct dataset *data, const struct companions *companions, struct scratch *scratch,
	struct analysis *out, struct realignment ***realignments, struct error *error)
{
	struct findings *findings = arena_array(arena, data->count, sizeof *findings);
	struct sampling sampling = {0}; /* of the previous axis */
	bool done = true;

	*realignments = arena_array(arena, data->count, sizeof **realignments);
	cache->run++;
	cache->restless = false;
	cache->hold_ends = WHEN_NEVER;
	cache->found = HASH_START;
	for (size_t i = 0; i < data->count; i++) {
		const struct series *series = &data->series[i];
		struct exam exam = {.cache = cache,
			.arena = arena,
			.scratch = scratch,
			.sampling = &sampling,
			.detection = analysis_configured(test, series->metric),
			.series = series};

		if (series->axis->n > 0) {
			exam.state = find_state(cache, series->identity);
			if (!exam.state)
				exam.state = add_state(cache, series->identity);
			else if (exam.state->run == cache->run)
				exam.state = NULL; /* the second of one identity */
		}
		if (exam.state) {
			struct series_state *state = exam.state;
			int64_t first = series->axis->times[0], step = state->pace.step;
			bool known = state->pace.settled;

			state->run = cache->run;
			pace_settle(&state->pace, exam.detection, series,
				state->anchor == WHEN_NEVER || state->anchor < first
					? first
					: state->anchor,
				scratch);
			state->repaced |= known && (step > 0) != (state->pace.step > 0);
			exam.series = pace_apply(arena, &state->pace, series);
		}
		done = (sampling.axis == exam.series->axis ||
			       sampling_read(arena, test, exam.series->axis, &sampling, error)) &&
		       analysis_other(arena, test, data, companions, exam.series, exam.detection,
			       &exam.rule, &exam.other, error) &&
		       examine_series(cache, &exam, &findings[i], &(*realignments)[i], error);
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
