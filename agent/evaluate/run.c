/*
 * A team evaluates the series in parallel; results are added up in the order of the series, so
 * that the sums do not depend on the number of threads.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/clock.h"
#include "agent/base/order.h"
#include "agent/evaluate/evaluate.h"
#include "agent/io/parallel.h"

enum { RERUNS_MOST = 200, SPARSE = 10, PROGRESS_EVERY = 250 }; /* the last: ms */

const size_t evaluate_margins[MARGINS] = {0, 2, SCORE_NEAR};

/* The result of one series; `group` is not used. */
struct shift {
	struct evaluation *evaluation;
	const struct contender *contender;
	struct standing *standings;
	pthread_mutex_t lock; /* guards the following, and evaluation->done */
	int64_t next_word;
	int64_t busy; /* ns in the detector, of all threads */
	bool failed;
	struct error error; /* the first */
};

static void score_whole(const struct labelled_series *series, const struct change *changes,
	size_t count, struct arena *work, struct standing *out)
{
	const struct labels *labels = &series->labels;
	size_t *places = arena_array(work, count + 1, sizeof *places),
	       *room = arena_array(work, count + 1, sizeof *room);
	struct places found = {places, count}, counted = found;
	for (size_t i = 0; i < count; i++)
		places[i] = changes[i].index;
	out->series = 1;
	out->points = labels->n;
	out->found = count;
	for (size_t m = 0; m < MARGINS; m++) { /* ends with the main one */
		counted = score_counted(labels, found, evaluate_margins[m], room);
		if (labels->all.count > 0)
			score_add(&out->margins[m], labels, counted, evaluate_margins[m]);
	}
	score_add(&out->all, labels, counted, evaluate_margins[MARGIN_MAIN]);
	if (labels->all.count > 0) {
		out->changed = 1;
	} else {
		out->flat_points = labels->n;
		out->flat_found = counted.count;
	}
	out->f1 = score_f1_annotated(labels, counted, evaluate_margins[MARGIN_MAIN]);
	out->cover = score_cover(labels, counted);
	out->rand = score_rand(labels, counted);
}

/* Whether a judged change could be announced about this many points. */
static bool is_near_judged(const struct labelled_series *series, size_t seen)
{
	for (size_t i = 0; i < series->judgement_count; i++) {
		const struct judgement *judgement = &series->judgements[i];
		bool counts = judged_real(judgement->state) || judgement->state == TRIAGE_FALSE;
		if (counts && seen + ONLINE_SAME >= judgement->at &&
			seen <= judgement->at + ONLINE_SETTLED)
			return true;
	}
	return false;
}

/* How many more points are added before the next look. Detectors without a stream start over
 * each time, so they look at most RERUNS_MOST times. */
static size_t next_look(const struct evaluation *evaluation, const struct detector *detector,
	const struct labelled_series *series, size_t seen)
{
	size_t n = series->labels.n;
	size_t step = detector->stream_new ? 1 : 1 + n / RERUNS_MOST,
	       more = seen > 0 ? step : ONLINE_FIRST;
	while (evaluation->sparse && more < SPARSE && !is_near_judged(series, seen + more))
		more++;
	return more < n - seen ? more : n - seen;
}

/* A series that arrives point by point. */
struct arrival {
	const struct contender *contender;
	const struct labelled_series *series;
	struct scratch *scratch;
	struct refit refit;
	double *adjusted; /* the points seen, without their cycles */
	struct stream *stream;
	struct change *room;
	const struct change *changes; /* found at the last look */
	size_t count;
};

/* Detects in the first `seen` points, `more` of which have arrived since the last look. */
static bool detect_first(struct arrival *arrival, size_t seen, size_t more, struct error *error)
{
	const struct contender *contender = arrival->contender;
	const struct labelled_series *series = arrival->series;
	const struct samples samples = {.values = arrival->adjusted,
		.n = seen,
		.excursion = arrival->refit.season.excursion,
		.runs = series->runs,
		.hashes = series->hashes};
	if (arrival->stream)
		arrival->changes = detector_append(contender->detector, arrival->stream,
			arrival->adjusted + seen - more, more, arrival->scratch, &arrival->count,
			error);
	else
		arrival->changes = detector_run(contender->detector, &samples, contender->options,
					   arrival->scratch, arrival->room, &arrival->count, error)
					   ? arrival->room
					   : NULL;
	return arrival->changes != NULL;
}

static void renew_stream(struct arrival *arrival)
{
	const struct contender *contender = arrival->contender;
	if (arrival->stream)
		contender->detector->stream_free(arrival->stream);
	arrival->stream = contender->detector->stream_new
				  ? contender->detector->stream_new(
					    contender->options, arrival->refit.season.excursion)
				  : NULL;
}

/* Looks at the first `seen` points; the last look was at the first `before`. As in the agent, a
 * different choice of cycles does not change points already seen. */
static bool look(struct arrival *arrival, size_t before, size_t seen,
	struct follower *const *followers, size_t follower_count, struct error *error)
{
	const struct contender *contender = arrival->contender;
	const struct labelled_series *series = arrival->series;
	bool other =
		series->times && refit_season(&arrival->refit, contender->season, contender->clock,
					 series->values, series->times, seen, arrival->scratch);
	size_t more = seen - before, from = other ? 0 : before;
	if (series->times)
		season_remove(&arrival->refit.season, series->times + from, series->values + from,
			seen - from, arrival->adjusted + from);
	else
		memcpy(arrival->adjusted + from, series->values + from,
			(seen - from) * sizeof(double));
	if (other) {
		renew_stream(arrival);
		if (before > 0 && !detect_first(arrival, before, before, error))
			return false;
		for (size_t i = 0; i < follower_count && before > 0; i++)
			follower_accept(followers[i], before, arrival->changes, arrival->count);
	}
	return detect_first(arrival, seen, more, error);
}

static void judge_live(const struct follower *follower, const struct labelled_series *series,
	const struct change *changes, size_t count, struct arena *arena, struct live *out)
{
	const struct labels *labels = &series->labels;
	out->points = labels->n < ONLINE_FIRST ? 1 : labels->n - ONLINE_FIRST + 1;
	out->alarms = follower_judge(follower, labels, changes, count);
	out->truth = labels->all.count;
	out->delays = arena_array(arena, out->truth + 1, sizeof *out->delays);
	for (size_t k = 0; k < out->truth; k++)
		out->seen += follower_delay(follower, labels->all.at[k], &out->delays[out->seen]);
	out->outcomes = arena_array(arena, series->judgement_count, sizeof *out->outcomes);
	for (size_t k = 0; k < series->judgement_count; k++) {
		struct judged_outcome *outcome = &out->outcomes[out->outcome_count++];
		*outcome = (struct judged_outcome){.judgement = &series->judgements[k]};
		outcome->announced =
			follower_delay(follower, outcome->judgement->at, &outcome->delay);
	}
}

static bool score_live(const struct shift *shift, const struct labelled_series *series,
	struct scratch *scratch, struct change *room, struct arena *work, struct standing *out,
	struct error *error)
{
	const struct evaluation *evaluation = shift->evaluation;
	struct follower *followers[LIVES_MOST];
	size_t n = series->labels.n;
	struct arrival arrival = {.contender = shift->contender,
		.series = series,
		.scratch = scratch,
		.adjusted = arena_array(work, n, sizeof *arrival.adjusted),
		.room = room};
	bool good = true;
	for (size_t i = 0; i < evaluation->rule_count; i++)
		followers[i] =
			follower_new(&evaluation->rules[i].rule, evaluation->rules[i].tracked);
	renew_stream(&arrival);
	for (size_t seen = 0; seen < n && good;) {
		size_t before = seen;
		seen += next_look(evaluation, shift->contender->detector, series, seen);
		good = look(&arrival, before, seen, followers, evaluation->rule_count, error);
		for (size_t i = 0; i < evaluation->rule_count && good; i++)
			follower_take(followers[i], arrival.adjusted, seen, arrival.changes,
				arrival.count);
	}
	for (size_t i = 0; i < evaluation->rule_count; i++) {
		judge_live(followers[i], series, arrival.changes, good ? arrival.count : 0,
			out->arena, &out->live[i]);
		follower_free(followers[i]);
	}
	if (arrival.stream)
		shift->contender->detector->stream_free(arrival.stream);
	refit_free(&arrival.refit);
	return good;
}

bool evaluate_find(const struct contender *contender, const struct labelled_series *series,
	struct scratch *scratch, struct change *room, size_t *count, bool *seasonal,
	struct error *error)
{
	size_t n = series->labels.n;
	double *adjusted = memory_new(n, sizeof *adjusted);
	struct samples samples = {
		.values = series->values, .n = n, .runs = series->runs, .hashes = series->hashes};
	*seasonal = false;
	if (series->times) {
		struct season season = season_fit(contender->season, contender->clock, 0,
			series->values, series->times, n, scratch);
		*seasonal = season.cycles != 0;
		season_remove(&season, series->times, series->values, n, adjusted);
		samples.values = adjusted;
		samples.excursion = season.excursion;
		season_free(&season);
	}
	bool good = detector_run(
		contender->detector, &samples, contender->options, scratch, room, count, error);
	free(adjusted);
	return good;
}

/* Prints progress at intervals. */
static void note_done(struct shift *shift, int64_t took, const struct error *error)
{
	struct evaluation *evaluation = shift->evaluation;
	pthread_mutex_lock(&shift->lock);
	if (error && !shift->failed)
		shift->error = *error;
	shift->failed |= error != NULL;
	evaluation->done++;
	shift->busy += took;
	if (evaluation->progress && clock_monotonic() >= shift->next_word) {
		shift->next_word = clock_monotonic() + PROGRESS_EVERY;
		fprintf(stderr, "\r\033[K%s: %zu of %zu done", shift->contender->name,
			evaluation->done, evaluation->total);
		fflush(stderr);
	}
	pthread_mutex_unlock(&shift->lock);
}

static void do_series(void *argument, size_t index)
{
	struct shift *shift = argument;
	const struct contender *contender = shift->contender;
	const struct labelled_series *series = shift->evaluation->series[index];
	struct scratch *scratch = scratch_new();
	struct arena *work = arena_new(); /* as long as the series takes */
	struct change *room = arena_array(work, series->labels.n, sizeof *room);
	int64_t start = clock_monotonic_ns();
	struct standing *standing = &shift->standings[index];
	struct error error;
	size_t count;
	bool seasonal;
	*standing = (struct standing){.arena = arena_new()};
	bool good = evaluate_find(contender, series, scratch, room, &count, &seasonal, &error);
	standing->seasonal = seasonal;
	if (good)
		score_whole(series, room, count, work, standing);
	if (good && shift->evaluation->live)
		good = score_live(shift, series, scratch, room, work, standing, &error);
	if (!good)
		error_prefix(&error, "series \"%.200s\": ", series->id);
	arena_free(work);
	scratch_free(scratch);
	note_done(shift, clock_monotonic_ns() - start, good ? NULL : &error);
}

static void add_tally(struct score_tally *sum, const struct score_tally *one)
{
	sum->right += one->right;
	sum->found += one->found;
	sum->seen += one->seen;
	sum->truth += one->truth;
}

static void add_live(struct arena *arena, struct live *sum, const struct live *one)
{
	sum->points += one->points;
	sum->truth += one->truth;
	sum->alarms.alarms += one->alarms.alarms;
	sum->alarms.wrong += one->alarms.wrong;
	sum->alarms.withdrawn += one->alarms.withdrawn;
	sum->alarms.true_withdrawn += one->alarms.true_withdrawn;
	for (size_t i = 0; i < one->seen; i++) {
		sum->delays = arena_grow(arena, sum->delays, sum->seen, sizeof *sum->delays);
		sum->delays[sum->seen++] = one->delays[i];
	}
	for (size_t i = 0; i < one->outcome_count; i++) {
		sum->outcomes =
			arena_grow(arena, sum->outcomes, sum->outcome_count, sizeof *sum->outcomes);
		sum->outcomes[sum->outcome_count++] = one->outcomes[i];
	}
}

static void add_standing(struct standing *sum, const struct standing *one)
{
	sum->series += one->series;
	sum->changed += one->changed;
	sum->points += one->points;
	sum->found += one->found;
	sum->seasonal += one->seasonal;
	sum->flat_points += one->flat_points;
	sum->flat_found += one->flat_found;
	for (size_t m = 0; m < MARGINS; m++)
		add_tally(&sum->margins[m], &one->margins[m]);
	add_tally(&sum->all, &one->all);
	sum->f1 += one->f1;
	sum->cover += one->cover;
	sum->rand += one->rand;
	for (size_t i = 0; i < LIVES_MOST; i++)
		add_live(sum->arena, &sum->live[i], &one->live[i]);
}

/* The sums of the class; classes in a file are usually contiguous, so the last one is tried
 * first. */
static struct standing *find_group(struct result *result, const char *group)
{
	for (size_t i = result->group_count; i > 0; i--)
		if (strcmp(result->groups[i - 1].group, group) == 0)
			return &result->groups[i - 1];
	result->groups = arena_grow(
		result->whole.arena, result->groups, result->group_count, sizeof *result->groups);
	struct standing *added = &result->groups[result->group_count++];
	*added = (struct standing){.arena = result->whole.arena, .group = group};
	return added;
}

bool evaluate_contender(struct evaluation *evaluation, const struct contender *contender,
	struct result *out, struct error *error)
{
	struct team team = {.threads = evaluation->jobs};
	struct parallel parallel = team_parallel(&team);
	struct shift shift = {.evaluation = evaluation,
		.contender = contender,
		.standings = memory_new(evaluation->count, sizeof *shift.standings),
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.next_word = clock_monotonic() + PROGRESS_EVERY};
	*out = (struct result){
		.contender = contender, .whole = {.arena = arena_new(), .group = ""}};
	parallel.run(parallel.context, do_series, &shift, evaluation->count);
	for (size_t i = 0; i < evaluation->count; i++) {
		add_standing(&out->whole, &shift.standings[i]);
		add_standing(find_group(out, evaluation->series[i]->group), &shift.standings[i]);
		arena_free(shift.standings[i].arena);
	}
	out->seconds = (double)shift.busy / 1e9;
	if (evaluation->progress) {
		fputs("\r\033[K", stderr);
		fflush(stderr);
	}
	free(shift.standings);
	if (shift.failed)
		*error = shift.error;
	return !shift.failed;
}

void result_add(struct result *sum, const struct result *one)
{
	add_standing(&sum->whole, &one->whole);
	for (size_t i = 0; i < one->group_count; i++)
		add_standing(find_group(sum, one->groups[i].group), &one->groups[i]);
	sum->seconds += one->seconds;
}

void result_free(struct result *result)
{
	arena_free(result->whole.arena);
}

double per_thousand(double part, size_t whole)
{
	return whole > 0 ? 1000 * part / (double)whole : 0;
}

size_t live_delay(struct live *live, size_t tenths)
{
	size_t rank = live->seen * tenths / 10;
	if (live->seen == 0)
		return 0;
	qsort(live->delays, live->seen, sizeof *live->delays, order_sizes);
	return live->delays[rank < live->seen ? rank : live->seen - 1];
}
