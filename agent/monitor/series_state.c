/*
 * A stream of the detector lives as long as the series cache, numbered from the point where it
 * began, while the answers it is fed from begin later and later. It holds no values between runs:
 * the next answer has them.
 *
 * A full run may have to begin elsewhere than the one before: after a restart, when the source has
 * lost the front, when the anchor has fallen too far behind. Its windows are aligned differently
 * then, and what it shows differently in old points is no news. So it first runs up to the last
 * point that was seen before, and what it shows there is passed on as the realignment.
 */
#include "agent/monitor/series_state.h"

#include <stdlib.h>
#include <string.h>

#include "agent/base/arena.h"
#include "agent/base/when.h"
#include "agent/decide/match.h"
#include "detectors/online_eval.h"

enum {
	MARK_EVERY = 25, /* points between two stored checkpoints */
	UNDER_WAY = 5, /* a trend that begins within so many points of the first began before it */
};

struct series_state *series_state_new(const char *series)
{
	struct series_state *state = memory_new(1, sizeof *state);

	state->series = memory_strdup(series);
	state->anchor = state->since = WHEN_NEVER;
	state->revision = DETECTOR_REVISION;
	state->realignment.hold_ends = WHEN_NEVER;
	return state;
}

void series_state_shed(struct series_state *state)
{
	if (state->stream)
		state->detector->stream_free(state->stream);
	state->stream = NULL;
	point_hashes_clear(&state->hashes);
	free(state->changes);
	state->changes = NULL;
	state->count = state->need = state->fixed = 0;
}

void series_state_free(struct series_state *state)
{
	series_state_shed(state);
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
static const double *adjusted(const struct look *look, size_t from, size_t end)
{
	const struct series *series = look->series;
	double *values;

	if (!look->state->refit.season.cycles)
		return series->values + from;
	values = arena_array(look->arena, end - from, sizeof *values);
	season_remove(&look->state->refit.season, series->axis->times + from, series->values + from,
		end - from, values);
	return values;
}

/* Finds the changes among the points up to the index `end`. */
static bool detect_to(const struct look *look, size_t end, struct error *error)
{
	struct series_state *state = look->state;
	const struct detector *detector = state->detector;
	size_t from = (size_t)((ptrdiff_t)state->need - look->shift), count;

	if (!detector->stream_rest) {
		struct findings found = {.series = look->series, .season = state->refit.season};

		if (!analysis_detect(look->arena, look->sampling, look->detection, from, end,
			    look->scratch, &found, error))
			return false;
		keep_changes(state, found.changes, found.count, look->shift);
		return true;
	}
	if (!state->stream)
		state->stream = detector->stream_new(
			look->detection->options, state->refit.season.excursion);
	const struct change *changes = detector_append(detector, state->stream,
		adjusted(look, from, end), end - from, look->scratch, &count, error);
	if (!changes)
		return error_prefix(error, "series \"%.200s\": ", look->series->name);
	keep_changes(state, changes, count, 0);
	state->need = detector->stream_rest(state->stream, &state->fixed);
	return true;
}

/* What another detector revision shows in older points is no news. */
static void note_revision(struct series_state *state)
{
	struct realignment *realignment = &state->realignment;

	if (state->revision != DETECTOR_REVISION) {
		realignment->revising = true;
		realignment->revised = state->recorded_last;
	}
	if (realignment->revised != 0 && realignment->until <= realignment->revised)
		realignment->until = realignment->revised + 1;
}

/* What the windows show in the points that existed when the series was last recorded. */
static bool detect_before(const struct look *look, size_t start, struct error *error)
{
	struct series_state *state = look->state;
	struct realignment *realignment = &state->realignment;
	const int64_t *times = look->series->axis->times;
	size_t end = axis_lower_bound(look->series->axis, state->recorded_last + 1);

	if (!state->seen || end <= start)
		return true;
	if (!detect_to(look, end, error))
		return false;
	free(realignment->before);
	realignment->before = memory_new(state->count, sizeof *realignment->before);
	realignment->before_count = state->count;
	realignment->until =
		end - start > ONLINE_SETTLED ? times[end - ONLINE_SETTLED] : WHEN_ALWAYS;
	realignment->settled =
		end - start > CHANGE_TOLERANCE ? times[end - CHANGE_TOLERANCE] : WHEN_ALWAYS;
	note_revision(state);
	for (size_t i = 0; i < state->count; i++) {
		const struct change *change = &state->changes[i];

		realignment->before[i] =
			(struct change_key){.time = times[(ptrdiff_t)change->index - look->shift],
				.sign = change_sign(change),
				.under_way = change->kind == CHANGE_TREND &&
					     change->place_from < UNDER_WAY};
	}
	realignment->restarted = true;
	return true;
}

static bool is_too_old(const struct look *look)
{
	return look->range > 0 && look->state->anchor < look->front - look->range;
}

/* The first point that counts. A series that began within the range has no front to leave out. */
static size_t start_of(const struct look *look)
{
	int64_t anchor = look->state->anchor;

	if (look->range <= 0 || anchor >= look->front)
		return 0;
	return axis_lower_bound(look->series->axis, is_too_old(look) ? look->front : anchor);
}

/* A full run. `elsewhere`: its windows are aligned differently than before, for the same points. */
static bool run_anew(struct look *look, size_t start, bool elsewhere, struct error *error)
{
	struct series_state *state = look->state;
	const struct axis *axis = look->series->axis;

	series_state_shed(state);
	state->detector = detector_find(look->detection->detector->name);
	look->shift = -(ptrdiff_t)start;
	if (start == axis->n)
		return true;
	state->anchor = axis->times[start];
	if (elsewhere && !detect_before(look, start, error))
		return false;
	if (!detect_to(look, axis->n, error))
		return false;
	point_hashes_note(&state->hashes, look->series, look->shift, 0);
	return true;
}

/* Moves the anchor to the last window start that does not lie within the range. */
static void move_anchor(const struct look *look)
{
	struct series_state *state = look->state;
	const struct axis *axis = look->series->axis;
	size_t chunk, need = state->need;

	if (state->stream && look->range > 0) {
		size_t front = axis_lower_bound(axis, look->front);

		chunk = state->detector->stream_chunk(
			state->stream, (size_t)((ptrdiff_t)front + look->shift));
		if ((ptrdiff_t)chunk >= look->shift &&
			axis->times[(ptrdiff_t)chunk - look->shift] > state->anchor)
			state->anchor = axis->times[(ptrdiff_t)chunk - look->shift];
	}
	state->since = state->anchor;
	if (need < state->hashes.n && axis->times[(ptrdiff_t)need - look->shift] < state->since)
		state->since = axis->times[(ptrdiff_t)need - look->shift];
}

static bool is_control_due(const struct look *look)
{
	const struct series_state *state = look->state;
	const struct axis *axis = look->series->axis;
	const struct findings *judged = &look->judged;
	int64_t last = axis->times[axis->n - 1];

	if (!state->controlled ||
		(state->control.joined < CONTROL_LEAST && last > state->controlled_at))
		return true;
	if (state->control.mode == CONTROL_RATIO)
		return false;
	return last >= state->controlled_at + REFIT_EVERY ||
	       !control_takes(&state->control, look->series->values, judged->joined, axis->n);
}

/*
 * From here on the series is what the control leaves of it, so its hashes cover both. A ratio is
 * fitted once there are enough points, a load as often as cycles are.
 */
static void apply_control(struct look *look)
{
	struct series_state *state = look->state;
	const struct series *series = look->series;
	struct series *rest;

	look->judged = (struct findings){.series = series};
	if (!look->rule)
		return;
	if (state->controlled)
		analysis_control(
			look->arena, look->rule, &state->control, look->other, &look->judged);
	if (is_control_due(look)) {
		bool used = state->control.used;

		state->control = control_fit(look->rule->mode, analysis_points(series),
			analysis_points(look->other), used, look->scratch);
		look->refitted = state->controlled && (used || state->control.used);
		state->controlled = true;
		state->controlled_at = series->axis->times[series->axis->n - 1];
		analysis_control(
			look->arena, look->rule, &state->control, look->other, &look->judged);
	}
	rest = arena_alloc(look->arena, sizeof *rest);
	*rest = *series;
	rest->values = arena_array(look->arena, series->axis->n, sizeof *rest->values);
	memcpy(rest->values, look->judged.rest, series->axis->n * sizeof *rest->values);
	look->series = rest;
}

/* True if the cycles to be removed have changed. */
static bool fit_season(struct look *look)
{
	const struct series *series = look->series;

	return refit_season(&look->state->refit, analysis_season(look->detection),
		analysis_clock(look->detection), series->values, series->axis->times,
		series->axis->n, look->scratch);
}

/* Detects in what has changed; *anew: there was something. */
static bool look_at_new(struct look *look, bool first, bool *anew, struct error *error)
{
	struct series_state *state = look->state;
	const struct axis *axis = look->series->axis;
	size_t same = point_hashes_compare(&state->hashes, look->series, &look->shift);
	size_t start = start_of(look);
	bool lost = first || state->repaced || axis->times[0] > state->since || is_too_old(look);
	bool grown = same < state->hashes.n || (ptrdiff_t)axis->n + look->shift > (ptrdiff_t)same;
	bool other = (first || grown) && fit_season(look);

	other |= look->refitted || state->repaced;
	state->repaced = false;

	*anew = true;
	if (other || same == 0 || same < state->fixed || is_too_old(look) ||
		(ptrdiff_t)state->need < look->shift || (ptrdiff_t)start < -look->shift) {
		state->realignment.refitted = other && !lost;
		return run_anew(look, start, lost || other, error);
	}
	*anew = grown;
	if (!*anew)
		return true;
	if (!detect_to(look, axis->n, error))
		return false;
	point_hashes_note(&state->hashes, look->series, look->shift, same);
	return true;
}

bool series_state_look(struct look *look, struct error *error)
{
	struct series_state *state = look->state;
	const struct axis *axis = look->series->axis;
	bool first = state->hashes.n == 0, newer = axis->times[axis->n - 1] > state->recorded_last;
	bool anew;

	state->realignment.range = look->range;
	apply_control(look);
	if (!look_at_new(look, first, &anew, error)) {
		series_state_shed(state);
		return false;
	}
	state->revision = DETECTOR_REVISION;
	state->realignment.newer |= state->seen && newer;
	state->realignment.grown |= anew && (!first || !state->seen || newer);
	if (state->hashes.n > 0)
		move_anchor(look);
	state->last = axis->times[axis->n - 1];
	state->due = !state->stored || state->anchor != state->stored_anchor ||
		     state->stored_revision != DETECTOR_REVISION ||
		     axis->n - axis_lower_bound(axis, state->stored_last + 1) >= MARK_EVERY;
	return true;
}

struct findings series_state_findings(const struct look *look)
{
	const struct series_state *state = look->state;
	struct change *changes = arena_array(look->arena, state->count, sizeof *changes);
	size_t count = 0;

	for (size_t i = 0; i < state->count; i++) {
		ptrdiff_t index = (ptrdiff_t)state->changes[i].index - look->shift;

		if (index <= 0)
			continue;
		changes[count] = state->changes[i];
		change_shift(&changes[count++], -look->shift);
	}
	struct findings out = look->judged;

	out.changes = changes;
	out.count = count;
	out.season = state->refit.season;
	return out;
}
