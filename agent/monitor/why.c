/*
 * The series is examined as the agent does after a start: from its anchor, with its cycles and the
 * effect of its control removed. The agent's decision about a change there is taken from the state,
 * if there is one; otherwise the points from the place on are replayed.
 */
#include "agent/monitor/why.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/analysis/announce.h"
#include "agent/analysis/explain.h"
#include "agent/analysis/hourly.h"
#include "agent/analysis/select.h"
#include "agent/base/when.h"
#include "agent/decide/gate.h"
#include "agent/decide/match.h"
#include "agent/model/record_json.h"
#include "agent/monitor/rhythm.h"
#include "agent/monitor/series_cache.h"
#include "agent/runtime/silence.h"
#include "conf/mute.h"
#include "detectors/describe.h"
#include "detectors/scratch.h"

enum { RECORDS_MOST = 100000 };

enum {
	LEAST_PREFIX = 4,
	NAMED_MOST = 6
}; /* fewest characters of an abbreviated commit; most candidates named */

/* The newest points that a verdict may be about, and the p below which a place is worth it. */
enum { LASTING_MOST = 4 };
static const double UNLIKELY = 0.01;

/* Names under which changes of the test are recorded: its own, then those of its clusters. */
static struct strings topics_of(
	const struct config *config, const struct test *test, struct arena *arena)
{
	const char **names = arena_array(arena, config->group_count + 1, sizeof *names);
	size_t count = 0;

	names[count++] = arena_strdup(arena, test->name);
	for (size_t i = 0; i < config->group_count; i++) {
		const struct group *group = &config->groups[i];
		bool has = false;

		for (size_t k = 0; group->cluster && !has && k < group->count; k++)
			has = group->tests[k] == test;
		if (has)
			names[count++] = arena_strdup(arena, group->name);
	}
	return (struct strings){names, count};
}

static bool may_be(const char *own, const char *name)
{
	size_t length = strlen(name);

	return own && strncmp(own, name, length) == 0 &&
	       (length >= LEAST_PREFIX || own[length] == '\0');
}

/* Names the deployments that begin with the name, each once. */
static bool fail_ambiguous(
	const struct deployments *deployments, const char *name, struct error *error)
{
	const char *names[NAMED_MOST];
	struct buf text = {0};
	size_t count = 0;
	bool more = false;

	for (size_t i = 0; i < deployments->count && !more; i++) {
		const char *own = deployment_name(&deployments->items[i]);
		size_t at = 0;

		if (!may_be(own, name))
			continue;
		while (at < count && strcmp(names[at], own) != 0)
			at++;
		if (at < count)
			continue;
		more = count == NAMED_MOST;
		if (more)
			break;
		buf_printf(&text, "%s\"%.80s\"", count > 0 ? ", " : "", own);
		names[count++] = own;
	}
	error_set(error, ERROR_USAGE, "commit \"%.80s\" is ambiguous: %s%s; give more digits", name,
		text.data, more ? ", ..." : "");
	buf_free(&text);
	return false;
}

/* The time of the first deployment of that commit or version, or of the only one that begins with
 * the name. */
static bool find_deployment(
	const struct deployments *deployments, const char *name, int64_t *time, struct error *error)
{
	const char *found = NULL;

	for (size_t i = 0; deployments && i < deployments->count; i++) {
		const struct deployment *one = &deployments->items[i];
		const char *own = deployment_name(one);

		if (!may_be(own, name) || (found && strcmp(own, found) == 0))
			continue;
		if (found && strcmp(own, name) != 0 && strcmp(found, name) != 0)
			return fail_ambiguous(deployments, name, error);
		if (!found || strcmp(own, name) == 0)
			*time = one->time;
		found = !found || strcmp(own, name) == 0 ? own : found;
	}
	if (found)
		return true;
	return error_set(error, ERROR_USAGE,
		"\"%.100s\" is neither a commit of the series' points nor a time", name);
}

/* The commit's first point, else the first point at or after its deployment, else the first point
 * at or after that time. */
static bool find_place(
	const struct why_request *request, struct why *why, size_t *place, struct error *error)
{
	const struct axis *axis = why->series->axis;
	struct series copy = *why->series;
	struct select_mark mark = {"commit", request->at}, known;
	int64_t time;

	why->chosen = WHY_ASKED;
	if (!mark_resolve(&mark, why->test->name, &(struct dataset){&copy, 1}, &known, error)) {
		error->kind = ERROR_USAGE; /* as for an unknown commit */
		return false;
	}
	if (mark_find(&known, axis, false, place))
		return true;
	if (!when_parse(request->at, request->now, &time, error) &&
		!find_deployment(axis->deployments, request->at, &time, error))
		return false;
	*place = axis_lower_bound(axis, time);
	if (time < axis->times[0]) {
		why->chosen = WHY_BEFORE;
	} else if (*place == axis->n) {
		why->chosen = WHY_AFTER;
		*place = axis->n - 1;
	}
	return true;
}

static bool is_here(const struct why *why, const struct change_record *record)
{
	return strcmp(record->item.test, why->test->name) == 0 &&
	       strcmp(record->series, why->series->identity) == 0;
}

/* The requested place, else the last known change or the newest point. */
static bool choose_place(const struct why_request *request, struct why *why, struct error *error)
{
	const struct axis *axis = why->series->axis;
	int64_t last = WHEN_ALWAYS;

	if (request->at)
		return find_place(request, why, &why->place, error);
	for (size_t i = 0; i < request->records.count; i++) {
		const struct change_record *record = &request->records.items[i];

		if (is_here(why, record) && record->state != CHANGE_WITHDRAWN &&
			record->item.time > last && record->item.time >= axis->times[0] &&
			record->item.time <= axis->times[axis->n - 1])
			last = record->item.time;
	}
	if (last != WHEN_ALWAYS)
		why->place = axis_lower_bound(axis, last);
	else if (why->findings.count > 0)
		why->place = why->findings.changes[why->findings.count - 1].index;
	why->chosen = why->place > 0 && !why->vanished ? WHY_CHANGE : WHY_NEWEST;
	if (why->chosen == WHY_NEWEST)
		why->place = axis->n - 1;
	return true;
}

static size_t distance(size_t a, size_t b)
{
	return a > b ? a - b : b - a;
}

void why_ask(struct store_list *list, const struct config *config, const struct test *test)
{
	list->filter = (struct change_filter){
		.names = topics_of(config, test, list->call.arena), .limit = RECORDS_MOST};
	list->about = list->filter.names.items[0];
}

void why_state(struct why_request *request, const struct store_list *list)
{
	request->has_state = true;
	request->records = list->records;
	request->environments = list->environments;
	request->checkpoints = list->checkpoints;
	request->health = list->health;
	request->silences = list->silences;
	for (size_t i = 0; i < list->health.moment_count; i++) {
		const struct stored_moment *moment = &list->health.moments[i];
		size_t skip = strlen(REPLAYED_SINCE);

		if (strcmp(moment->name, REPLAYED_UNTIL) == 0)
			request->now = request->replayed_until = moment->time;
		else if (strncmp(moment->name, REPLAYED_SINCE, skip) == 0 &&
			 strcmp(moment->name + skip, list->about) == 0)
			request->replayed_since = moment->time;
	}
}

void why_query(const struct why_request *request, struct task *task)
{
	(void)series_cache_query(&request->checkpoints, task);
	if (request->replayed_until != 0)
		task->query.until = request->replayed_until + 1 - task->test->evaluation_delay;
	if (request->replayed_since != 0)
		task->query.since = request->replayed_since;
}

/* An outlier counts only if it is the very point in question. */
static int weight_of(const struct why *why, const struct tried *one)
{
	if (one->fate != TRIED_OUTLIER)
		return tried_kinds[one->fate].weight;
	return one->index == why->place ? tried_kinds[TRIED_EXCURSION].weight
					: tried_kinds[TRIED_WEAK].weight;
}

/* Which of two entries near the place explains it better. */
static bool is_better(const struct why *why, const struct tried *one, const struct tried *best)
{
	int weight = weight_of(why, one), least = best ? weight_of(why, best) : -1;

	if (weight != least || one->fate == TRIED_STANDS)
		return weight > least ||
		       (weight == least && distance(one->index, why->place) <
						   distance(best->index, why->place));
	return tried_nearer(one, best);
}

/* Shows the nearest entries, at most WHY_MOST: `reach` is how far from the place they may be. */
static void pick_tried(struct arena *arena, const struct tried_list *tried, struct why *why)
{
	struct tried *shown = arena_array(arena, WHY_MOST, sizeof *shown);
	size_t counts[WHY_SHOWN + 1] = {0}, sum = 0, reach = 0;

	for (size_t i = 0; i < tried->count; i++) {
		size_t far = distance(tried->items[i].index + why->front, why->place);

		if (far <= WHY_SHOWN)
			counts[far]++;
	}
	while (reach <= WHY_SHOWN && sum + counts[reach] <= WHY_MOST)
		sum += counts[reach++];
	why->tried = shown;
	for (size_t i = 0; i < tried->count; i++) {
		size_t far = distance(tried->items[i].index + why->front, why->place);

		if (far > WHY_SHOWN)
			continue;
		if ((far > 0 && far >= reach) || why->tried_count == WHY_MOST) {
			why->tried_more++;
			continue;
		}
		shown[why->tried_count] = tried->items[i];
		shown[why->tried_count].index += why->front;
		if (far <= WHY_NEAR && is_better(why, &shown[why->tried_count], why->culprit))
			why->culprit = &shown[why->tried_count];
		why->tried_count++;
	}
}

static void pick_change(struct arena *arena, struct why *why)
{
	const struct change *best = NULL;
	struct change_record *told = arena_alloc(arena, sizeof *told);
	struct announcement *item = &told->item;

	for (size_t i = 0; i < why->findings.count; i++) {
		const struct change *change = &why->findings.changes[i];

		if (distance(change->index, why->place) <= WHY_NEAR &&
			(!best || distance(change->index, why->place) <
					  distance(best->index, why->place)))
			best = change;
	}
	if (!best)
		return;
	*item = announce_change(arena, why->test->name, why->test->environment, why->series, best);
	findings_basis(arena, &why->findings, best, item);
	told->series = why->series->identity;
	announce_links_by(arena, why->test, told);
	why->change = item;
	why->arrival_at = best->index;
}

/* The record at the place, else the one nearest to the change found there, or to the place. */
static void pick_record(const struct why_request *request, struct why *why)
{
	const struct axis *axis = why->series->axis;
	size_t at = why->change ? why->change->change.index : why->place, least = WHY_NEAR + 1;
	bool exact = false, told = false;

	for (size_t i = 0; i < request->records.count; i++) {
		const struct change_record *record = &request->records.items[i];
		size_t index = axis_lower_bound(axis, record->item.time);

		if (!is_here(why, record) || index == 0)
			continue;
		if (index == why->place ? exact && told : exact || distance(index, at) >= least)
			continue;
		exact = index == why->place;
		told = record_announced(record) != 0;
		least = distance(index, at);
		why->record = record;
	}
}

static int64_t spacing_of(const struct why *why)
{
	const struct axis *axis = why->series->axis;

	if (why->record)
		return why->record->item.spacing;
	return axis->n > 1 ? (axis->times[axis->n - 1] - axis->times[0]) / (int64_t)(axis->n - 1)
			   : 0;
}

/* The change that a cluster of the test has there, as near as two times of the same change may be
 * if both come from points. */
static void pick_cluster(const struct why_request *request, struct why *why)
{
	const struct announcement *item = why->record ? &why->record->item : why->change;
	int64_t spacing = spacing_of(why), least = INT64_MAX;

	for (size_t i = 0; item && i < request->records.count; i++) {
		const struct change_record *other = &request->records.items[i];
		int64_t far = llabs(other->item.time - item->time);
		int sign = why->record ? why->record->sign : change_sign(&item->change);

		if (strcmp(other->item.test, why->test->name) == 0 || other->sign != sign ||
			far > CHANGE_TOLERANCE * (other->item.spacing > spacing
								 ? other->item.spacing
								 : spacing) ||
			far >= least)
			continue;
		least = far;
		why->cluster = other;
	}
}

/* The triage of the change; for one that is not in the state, the entry of known_changes. */
static void find_said(const struct why_request *request, struct why *why)
{
	const struct change_record *record = why->record, *cluster = why->cluster;
	const struct known_change *expired;

	if (!record && why->change && request->config) {
		struct change_record found = {.item = *why->change,
			.series = why->series->identity,
			.sign = change_sign(&why->change->change)};

		found.item.spacing = spacing_of(why);
		why->known = gate_known(request->config->known_changes,
			request->config->known_change_count, &found, request->now, &expired);
	}
	if (!record)
		return;
	if (record->triage.state > TRIAGE_OPEN)
		why->said = &record->triage;
	else if (cluster && record->news == NOTIFY_QUEUED && record_announced(cluster) == 0 &&
		 triage_is_accepted(triage_at(&cluster->triage, request->now)))
		why->said = &cluster->triage;
	why->lapsed = why->said && triage_at(why->said, request->now) == TRIAGE_OPEN;
}

static bool is_accepted(const struct why *why)
{
	return why->said && !why->lapsed && triage_is_accepted(why->said->state);
}

/* To be announced: also if that was settled as it was accepted, and that has lapsed. */
static bool is_pending(const struct why *why)
{
	const struct change_record *record = why->record;

	return record->news == NOTIFY_PENDING ||
	       (record->news == NOTIFY_QUEUED && why->lapsed &&
		       triage_is_accepted(why->said->state) && record_announced(record) == 0);
}

static enum why_end end_of_record(const struct why *why)
{
	const struct change_record *record = why->record;

	/* A change that outgrew its accepted size is announced again. */
	if (record_announced(record) != 0 &&
		!(record->news == NOTIFY_PENDING && record->triage.renewals > 0))
		return WHY_TOLD;
	if (record->state == CHANGE_WITHDRAWN)
		return WHY_WITHDRAWN;
	if (record->state == CHANGE_CANDIDATE)
		return WHY_CANDIDATE;
	if (is_pending(why) && !is_accepted(why))
		return why->silence ? WHY_SILENCE : why->mute ? WHY_MUTE : WHY_WAITS;
	switch (record->news) {
	case NOTIFY_PENDING: return WHY_ACCEPTED;
	case NOTIFY_QUEUED:
		if (is_accepted(why) && (!why->cluster || record_announced(why->cluster) == 0))
			return WHY_ACCEPTED;
		return why->cluster       ? WHY_CLUSTER
		       : why->environment ? WHY_ENVIRONMENT
		       : record->reason   ? WHY_NOBODY
					  : WHY_DELIVERY;
	case NOTIFY_HELD: return WHY_RECOVERED;
	case NOTIFY_SILENT:
	case NOTIFY_COUNT: break;
	}
	return WHY_SILENT;
}

/* Whether the place is one of the newest points, which differ but are too few to be a change. */
static bool may_last(struct arena *arena, struct why *why)
{
	const struct tried *tried = why->culprit;
	struct prepared points;
	size_t start, at;

	if (!tried || (tried->fate == TRIED_WEAK && !(tried->pvalue < UNLIKELY)))
		return false;
	points = findings_prepared(arena, &why->findings);
	start = points.positions[why->front];
	at = points.positions[tried->index];
	for (size_t i = 0; i < why->findings.count; i++)
		if (points.positions[why->findings.changes[i].index] < at)
			start = points.positions[why->findings.changes[i].index];
	if (at <= start || points.n - at > LASTING_MOST)
		return false;
	describe_step(&why->onset, points.values, NULL, start, at, points.n, 0);
	why->onset.count_after = points.n - at;
	return why->onset.size_low > 0 || why->onset.size_high < 0;
}

static enum why_end end_of(struct arena *arena, const struct why_request *request, struct why *why)
{
	const struct arrival *arrival = &why->arrival;

	if (why->record)
		return end_of_record(why);
	if (why->change && arrival->found > 0 && arrival->told == 0)
		return arrival->lost > 0 ? WHY_WITHDRAWN
		       : arrival->waits  ? WHY_CANDIDATE
					 : WHY_SILENT;
	if (why->change && request->max_age != WHEN_NEVER &&
		why->change->time < request->now - request->max_age)
		return WHY_TOO_OLD;
	if (why->change)
		return why->known ? WHY_ACCEPTED : WHY_WOULD_TELL;
	if (why->vanished && why->chosen != WHY_ASKED && why->chosen != WHY_BEFORE)
		return WHY_ENDED;
	if (may_last(arena, why))
		return WHY_ONSET;
	return why->culprit && why->culprit->fate != TRIED_WEAK ? WHY_DETECTOR : WHY_NOTHING;
}

static void judge(struct arena *arena, const struct why_request *request, struct why *why)
{
	const struct change_record *record = why->record;

	pick_cluster(request, why);
	for (size_t i = 0; record && i < request->records.count; i++)
		if (record->news == NOTIFY_SILENT &&
			request->records.items[i].item.id == record->ends)
			why->undone = &request->records.items[i];
	for (size_t i = 0; record && i < request->environments.count; i++)
		if (request->environments.items[i].id == record->environment_event)
			why->environment = &request->environments.items[i];
	why->reason = record ? record->reason : why->arrival.reason;
	why->held_until = record ? record->held_until : why->arrival.held_until;
	find_said(request, why);
	if (record && is_pending(why) && request->config) {
		why->mute = mute_find(&why->test->mute, request->now, &why->quiet_until);
		why->silence = silence_of(request->config, &request->silences, record,
			request->now); /* of several the one that ends last */
		if (why->silence)
			why->quiet_until = silence_end(why->silence);
	}
	why->end = end_of(arena, request, why);
}

/* Whether another series of the test, one without a direction, explains this one. */
static void find_explanation(
	struct arena *arena, const struct dataset *data, struct scratch *scratch, struct why *why)
{
	struct explain *explain = explain_new();
	struct buf json = {0};

	explain_keep(explain, why->test, why->series, findings_values(arena, &why->findings),
		why->findings.rule != NULL);
	for (size_t i = 0; !why->findings.rule && i < data->count; i++) {
		const struct series *series = &data->series[i];
		const struct detection *detection = analysis_configured(why->test, series->metric);
		struct findings findings;

		if (series_direction(series) != 0 || series->metric == why->series->metric ||
			!companions_same_labels(&series->labels, &why->series->labels))
			continue;
		series = hourly_series(arena, detection, series, WHEN_ALWAYS, scratch);
		findings = analysis_adjust(arena, series, detection, NULL, NULL, scratch);
		explain_keep(explain, why->test, series, findings_values(arena, &findings), false);
	}
	explain_put(explain, scratch, &json);
	why->proposals = buf_keep(&json, arena);
	explain_free(explain);
}

/* Takes the series as it is judged. The windows of a replay that kept its state begin where they
 * began then. */
static void find_front(struct arena *arena, const struct why_request *request, struct why *why,
	struct scratch *scratch)
{
	int64_t anchor = request->replayed_since != 0
				 ? request->replayed_since
				 : checkpoint_anchor(&request->checkpoints, why->series->identity);
	size_t n;

	why->last = rhythm_of(why->series).last;
	why->series = hourly_series(arena, why->detection, why->series, anchor, scratch);
	n = why->series->axis->n;
	why->front = axis_lower_bound(why->series->axis, anchor);
	if (why->front >= n)
		why->front = 0;
	for (size_t i = why->front; i < n; i++)
		why->points += (size_t)!isnan(why->series->values[i]);
}

bool why_explain(struct arena *arena, const struct test *test, const struct query *query,
	const struct companions *companions, const struct why_request *request,
	struct scratch *scratch, struct why *out, struct error *error)
{
	const struct dataset *data = &query->data;
	struct tried_list tried = {0};
	bool good;

	*out = (struct why){.test = test,
		.has_state = request->has_state,
		.clusters = topics_of(request->config, test, arena),
		.arrival.pvalue = (double)NAN,
		.newest = rhythm_newest(data)};
	out->clusters = (struct strings){out->clusters.items + 1, out->clusters.count - 1};
	if (!why_find(arena, query, request, out, error))
		return false;
	if (!out->series)
		return true;
	out->detection = analysis_configured(test, out->series->metric);
	find_front(arena, request, out, scratch);
	scratch_trace(scratch, &tried);
	good = series_cache_examine(arena, test, data, companions, out->series, out->front, scratch,
		&out->findings, error);
	scratch_trace(scratch, NULL);
	good = good && choose_place(request, out, error);
	if (good) {
		find_explanation(arena, data, scratch, out);
		tried_sort(&tried);
		pick_tried(arena, &tried, out);
		out->arrival_at = out->place;
		pick_change(arena, out);
		pick_record(request, out);
		const struct power_request power = {.arena = arena,
			.test = test,
			.data = data,
			.companions = companions,
			.series = out->series,
			.front = out->front,
			.max_age = request->max_age,
			.scratch = scratch,
			.limit = scratch_done(scratch) + POWER_STEPS};

		/* Replays the points, unless the state says what happened, and measures which
		 * change would have been announced. */
		good = out->record || power_arrive(&power, out->series->values, out->arrival_at,
					      2 * POWER_POINTS, 0, &out->arrival, error);
		out->has_power = good && power_measure(&power, out->place, out->findings.changes,
						 out->findings.count, &out->power, error);
		good = good && (out->has_power || error->kind == ERROR_NONE);
	}
	tried_free(&tried);
	if (good)
		judge(arena, request, out);
	return good;
}
