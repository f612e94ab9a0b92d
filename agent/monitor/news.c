/*
 * Each series with known or found changes is matched; that takes scratch memory in proportion
 * to its length, which is released after each series. Only existing points count: a row of a file
 * in which this series has no value is not a point of it.
 *
 * A found change that is unknown, or known as a candidate, is a candidate until all series of the
 * run have been judged.
 */
#include "agent/monitor/news.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/analysis/announce.h"
#include "agent/base/order.h"
#include "agent/base/when.h"
#include "agent/decide/hold.h"
#include "agent/decide/match.h"
#include "agent/decide/recover.h"
#include "agent/monitor/confirmation.h"
#include "detectors/precedent.h"
#include "detectors/retraction.h"
#include "detectors/stats.h"

enum {
	CORRECTIONS_MOST = 3,
	YOUNG_POINTS = 100, /* as many of the newest points are never too old */
	FRONT_POINTS = 3,   /* as many may be missing where the range begins */
};

/* Relative to the rise of a trend: by how much its levels may move without being written again.
 * They move with each point that follows it. */
static const double LEVEL_MOVED = 0.02;

/* One series on its way from findings to records. */
struct pass {
	struct store_record *request;
	struct findings *findings;
	const struct detection *detection;
	struct candidates *candidates;
	struct realignment *realignment; /* one of its own where there is none */
	const char *test, *series;       /* in the request's arena */
	const char *environment;         /* the test's option, or NULL */
	const struct news_clock *clock;
	int64_t oldest, clock_now; /* clock_now: by the series' own clock */
	struct prepared existing;
	struct closing closing;
	struct news_tally *tally;
};

/* The surroundings of the existing points first..last. */
static struct packed_excerpt excerpt_around(const struct pass *pass, size_t first, size_t last)
{
	return excerpt_pack(pass->request->call.arena, pass->existing.times, pass->existing.points,
		pass->existing.n, first, last);
}

/* A trend is shown from its beginning to its end. */
static struct packed_excerpt excerpt_of(const struct pass *pass, const struct change *change)
{
	const size_t *positions = pass->existing.positions;

	if (change->kind == CHANGE_TREND)
		return excerpt_around(
			pass, positions[change->place_from], positions[change->place_to]);
	return excerpt_around(pass, positions[change->index], positions[change->index]);
}

int64_t news_spacing(const int64_t *times, size_t n, size_t position)
{
	size_t first = position > CHANGE_TOLERANCE ? position - CHANGE_TOLERANCE : 0;
	size_t last = position + CHANGE_TOLERANCE < n ? position + CHANGE_TOLERANCE : n - 1;

	if (n == 0 || last <= first)
		return 0;
	return (times[last] - times[first]) / (int64_t)(last - first);
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Where points are rare, max_age has too few of them to find a change in. A first look keeps to it,
 * as its findings are history. */
int64_t news_oldest(const struct news_clock *clock, const int64_t *times, size_t n, bool newer)
{
	int64_t now = clock->now, newest = n > 0 ? times[n - 1] : now, oldest;

	if (clock->oldest == WHEN_ALWAYS || clock->oldest == WHEN_NEVER)
		return clock->oldest;
	if (newer)
		now = least(now, newest);
	else if (clock->ahead > 0)
		now = least(now, newest > now - clock->ahead ? newest : now - clock->ahead);
	oldest = now - (clock->now - clock->oldest);
	return newer && n > 0 ? least(oldest, times[n > YOUNG_POINTS ? n - YOUNG_POINTS : 0])
			      : oldest;
}

/* Whether changes wait for what the series' own record says (detectors/precedent.h): those of
 * services, unless the configuration says when changes are confirmed. */
static bool is_patient(const struct detection *detection, const struct findings *findings)
{
	return detection->confirm.mode == CONFIRM_AUTO && analysis_is_service(detection, findings);
}

/* Sets when the candidate was first seen, which follows from `time` and the number of points that
 * followed it then, and until when it is held. */
static void set_hold(
	const struct pass *pass, struct candidate *candidate, int64_t time, size_t followed)
{
	const struct realignment *realignment = pass->realignment;
	const int64_t *times = pass->existing.times;
	size_t now = times_lower_bound(times, pass->existing.n, candidate->record->item.time);
	size_t last = hold_seen(times, pass->existing.n, time, followed);
	struct confirm_case *at = candidate->at;

	at->seen = times[last];
	at->until = hold_until(&pass->findings->season, realignment->range,
		at->service ? times[0] : 0, time, at->seen);
	at->off = hold_is_off(&pass->findings->season, time, at->seen);
	candidate->first_count = last >= now ? last - now + 1 : 1;
}

/*
 * How many points followed a new change when it was first seen. The first look at a series comes
 * late: what is confirmed by now was seen when so many points followed that it would have been, by
 * Welch's test of the nearest values.
 */
static size_t first_followed(const struct pass *pass, const struct confirm_case *at)
{
	const struct prepared *points = &pass->existing;
	struct change then = *at->change;
	size_t place = times_lower_bound(points->times, points->n, at->time);
	size_t before = then.count_before, count = at->change->count_after;

	if (pass->realignment->newer || !confirm_holds(at->rule, &then, count, at->service))
		return count;
	before = before < RETRACTION_REACH ? before : RETRACTION_REACH;
	before = before < place ? before : place;
	struct moments earlier = moments_of(points->values + place - before, before);
	for (then.count_after = 2; then.count_after < count && place + then.count_after < points->n;
		then.count_after++) {
		then.pvalue =
			ttest_welch(earlier, moments_of(points->values + place, then.count_after))
				.p;
		if (confirm_holds(at->rule, &then, then.count_after, at->service))
			return then.count_after;
	}
	return count;
}

/* `silent`: why it is no news; or NULL. */
static struct candidate *add_candidate(
	struct pass *pass, const struct change *change, const char *silent)
{
	struct store_record *request = pass->request;
	struct candidates *candidates = pass->candidates;
	struct candidate *candidate = &candidates->items[candidates->count];
	struct confirm_case *at = &candidates->cases[candidates->count];
	struct change_record *record = &request->records.items[candidates->count++];

	candidate->record = record;
	candidate->at = at;
	candidate->realignment = pass->realignment;
	record->item = announce_change(
		request->call.arena, pass->test, pass->environment, pass->findings->series, change);
	findings_basis(request->call.arena, pass->findings, change, &record->item);
	record->series = pass->series;
	record->branch = "";
	record->sign = change_sign(change);
	record->state = CHANGE_CONFIRMED;
	record->first_seen = pass->clock->now;
	record->item.excerpt = excerpt_of(pass, change);
	record->item.spacing = news_spacing(
		pass->existing.times, pass->existing.n, pass->existing.positions[change->index]);
	if (!silent && record->item.time < pass->oldest)
		silent = confirm_reasons[CONFIRM_AGE];
	*at = (struct confirm_case){.rule = &pass->detection->confirm,
		.change = &record->item.change,
		.time = record->item.time,
		.first_count = change->count_after,
		.service = is_patient(pass->detection, pass->findings),
		.silent = silent,
		.share = pass->detection->fdr,
		.of = pass->findings,
		.clock = pass->clock_now};
	set_hold(pass, candidate, record->item.time, first_followed(pass, at));
	return candidate;
}

/* The verdict of the series' own history about the found change, a step. */
static enum precedent_verdict precedent_at(const struct pass *pass, size_t which)
{
	const struct closing *closing = &pass->closing;
	const struct prepared *points = &pass->existing;
	size_t begin = which > 0 ? closing->changes[which - 1].index : 0;
	size_t n = points->n, place = closing->changes[which].index;
	size_t count = n - place < PRECEDENT_LONG ? n - place : 0;
	double *sunday = arena_array(closing->arena, count, sizeof *sunday);
	bool morning =
		count > 0 && season_remove_sundays(&pass->findings->season, points->times + place,
				     points->points + place, count, sunday);
	/* The series may have begun before what was queried of it. */
	int64_t range = pass->realignment->range;
	bool is_cut = range > 0 &&
		      points->times[0] <= pass->clock->now - range +
						  FRONT_POINTS * news_spacing(points->times, n, 0);

	return precedent_of(
		points->values, points->times, n, begin, place, morning ? sunday : NULL, is_cut);
}

/* A change that is over already is recorded with its end; one that may be the end of another
 * waits. */
static void add_end(
	const struct pass *pass, struct candidate *candidate, const struct change *change)
{
	const struct closing *closing = &pass->closing;
	size_t which = (size_t)(change - pass->findings->changes);
	const struct recovery *end = &closing->ends[which];
	struct confirm_case *at = candidate->at;

	if (!at->silent && closing->passed[which]) {
		at->silent = confirm_reasons[CONFIRM_OVER];
		at->at_once = true;
	}
	at->doubt = closing->doubts[which];
	if (closing->service && !at->silent && at->doubt == DOUBT_NONE)
		at->precedent = precedent_at(pass, which);
	at->covered = closing->covered[which];
	if (end->verdict != RECOVERY_OVER)
		return;
	candidate->record->state = CHANGE_RECOVERED;
	candidate->record->item.over = (struct recovered){closing->times[end->from], end->level};
}

/*
 * Whether the points are the same as before a restart. Refitted cycles may make them look
 * different, so a change that shows only now waits for the next point; without cycles it shows
 * because values were corrected.
 */
static bool is_old(const struct pass *pass)
{
	return pass->realignment->restarted && !pass->realignment->grown;
}

/*
 * A known candidate is found again. Without new points it is confirmed no more than it was, except
 * that its hold may have ended. Whether it is too old to be announced was decided when it was
 * first seen. A lost one starts over, with its age, too; if it is too old by now, there is nothing
 * to wait for.
 */
static void add_known_candidate(
	struct pass *pass, const struct change *change, const struct change_record *known)
{
	bool silent = known->news == NOTIFY_SILENT;
	const char *reason = known->reason ? arena_strdup(pass->request->call.arena, known->reason)
					   : confirm_reasons[CONFIRM_AGE];
	struct candidate *candidate = add_candidate(pass, change, silent ? reason : NULL);
	struct change_record *record = candidate->record;
	struct confirm_case *at = candidate->at;

	candidate->known = known;
	record->item.id = known->item.id;
	record->confirmed = true;
	record->first_seen = known->first_seen;
	record->updated = pass->clock->now;
	record->runs = 1;
	if (known->state == CHANGE_CANDIDATE) {
		at->first_count = known->item.change.count_after;
		set_hold(pass, candidate, known->item.time, at->first_count);
		if (!silent)
			at->silent = NULL;
		record->runs = known->runs + pass->realignment->grown;
		if (is_old(pass) && at->until == at->seen)
			at->again = known->reason ? reason : confirm_reasons[CONFIRM_AGAIN];
	} else {
		at->at_once = at->silent;
		if (is_old(pass) && pass->findings->season.cycles) /* see is_old */
			at->again = confirm_reasons[CONFIRM_AGAIN];
	}
	add_end(pass, candidate, change);
}

static struct change_record_update *add_update(
	struct pass *pass, const struct change_record *known, enum change_state state, int64_t time)
{
	struct store_record *request = pass->request;
	struct change_record_update *update = &request->updates[request->update_count++];

	*update = (struct change_record_update){
		.id = known->item.id, .state = state, .time = time, .now = pass->clock->now};
	return update;
}

/* Updates the record to the present findings, except how many points followed the change when it
 * was announced, on which its standing is judged. */
static void follow(struct pass *pass, const struct change_record *known, enum change_state state,
	const struct change *change)
{
	struct arena *arena = pass->request->call.arena;
	const struct series *series = pass->findings->series;
	struct announcement *item = arena_alloc(arena, sizeof *item);
	const struct attribution *before = &known->item.suspects;
	struct change_record_update *update;

	*item = announce_change(arena, pass->test, pass->environment, series, change);
	item->change.count_after = known->item.change.count_after;
	update = add_update(pass, known, state, item->time);
	update->item = item;
	update->excerpt = excerpt_of(pass, change);
	/* Other suspects are announced if a deployment was recorded late, but only for a limited
	 * time. Records of earlier versions have nothing to compare with. */
	item->suspects.corrections = before->corrections;
	update->corrected = before->known && item->suspects.known &&
			    before->corrections < CORRECTIONS_MOST &&
			    known->state != CHANGE_WITHDRAWN && known->news == NOTIFY_QUEUED &&
			    attribution_gained(&item->suspects, before);
	item->suspects.corrections += update->corrected;
	pass->tally->corrected += update->corrected;
}

/* A trend has gone further, or its levels have moved by more than LEVEL_MOVED. */
static bool has_grown(
	const struct pass *pass, const struct change_record *known, const struct change *change)
{
	const struct change *before = &known->item.change;
	const int64_t *times = pass->findings->series->axis->times;
	double rise = fabs(change->level_after - change->level_before);
	double moved = fmax(fabs(change->level_before - before->level_before),
		fabs(change->level_after - before->level_after));

	if (change->kind != CHANGE_TREND && before->kind != CHANGE_TREND)
		return false;
	return change->kind != before->kind ||
	       times[change->place_from] != known->item.place_from ||
	       times[change->place_to] != known->item.place_to || moved > LEVEL_MOVED * rise;
}

/* The step is larger than at its triage. */
static bool has_outgrown(const struct change_record *known, const struct change *change)
{
	return triage_passes_gates(known->triage.state) && triage_outgrown(&known->triage, change);
}

/* Updates a change that stays where it was announced: for a trend, how far it has gone. */
static void keep_up(
	struct pass *pass, const struct change_record *known, const struct change *change)
{
	bool trend = known->item.change.kind == CHANGE_TREND && change->kind == CHANGE_TREND;

	if (known->state == CHANGE_WITHDRAWN || !pass->realignment->grown ||
		!((trend && has_grown(pass, known, change)) || has_outgrown(known, change)))
		return;
	follow(pass, known, known->state, change);
	pass->request->updates[pass->request->update_count - 1].time = known->item.time;
}

static void end_change(
	struct pass *pass, const struct change_record *known, const struct closure *closure)
{
	struct change_record_update *update =
		add_update(pass, known, CHANGE_RECOVERED, known->item.time);

	update->over = closure->over;
	update->excerpt = excerpt_around(pass,
		times_lower_bound(pass->existing.times, pass->existing.n, known->item.time),
		times_lower_bound(pass->existing.times, pass->existing.n, closure->over.time));
	update->silent = closure->silent;
	pass->tally->recovered++;
}

static void withdraw(struct pass *pass, const struct change_record *known)
{
	struct change_record_update *update;

	if (known->state == CHANGE_WITHDRAWN)
		return;
	update = add_update(pass, known, CHANGE_WITHDRAWN, known->item.time);
	if (known->news == NOTIFY_HELD || known->news == NOTIFY_PENDING)
		update->reason = confirm_reasons[CONFIRM_LOST];
	if (known->state == CHANGE_CANDIDATE)
		pass->tally->lost++;
	else
		pass->tally->withdrawn++;
}

bool news_stands(struct arena *arena, struct findings *findings, const struct change_record *known)
{
	const struct axis *axis = findings->series->axis;

	if (!change_stands(known->state))
		return false;
	return retraction_holds(findings_values(arena, findings), axis->n, findings->changes,
		findings->count, axis_lower_bound(axis, known->item.time), known->sign);
}

static bool stands(const struct pass *pass, const struct change_record *known)
{
	return news_stands(NULL, pass->findings, known); /* it has its values */
}

/* `change`: its match; NULL if it is not found. */
static void judge_known(struct pass *pass, const struct change_record *known, enum fate fate,
	const struct change *change)
{
	bool withdrawn = known->state == CHANGE_WITHDRAWN;
	const struct attribution *before = &known->item.suspects;
	struct attribution now = {0};
	size_t after;

	switch (fate) {
	case FATE_SAME:
		/* A deployment may have been recorded late. Records of earlier versions have
		 * nothing to compare with. */
		if (before->known)
			now = attribution_of(
				pass->request->call.arena, pass->findings->series, change);
		if (withdrawn)
			follow(pass, known, CHANGE_CONFIRMED, change);
		else if (has_grown(pass, known, change) || has_outgrown(known, change) ||
			 (now.known && !attribution_same(&now, before)))
			follow(pass, known, known->state, change);
		break;
	case FATE_MOVED: follow(pass, known, CHANGE_MOVED, change); break;
	case FATE_GONE:
		after = pass->existing.n -
			times_lower_bound(pass->existing.times, pass->existing.n, known->item.time);
		/* Near the last point, with fewer points after it than when it was found: the
		 * newest are late or were withdrawn, and the rest cannot show it. */
		if (after < CHANGE_TOLERANCE && after < known->item.change.count_after)
			return;
		if (!stands(pass, known))
			withdraw(pass, known);
		return;
	case FATE_OUTSIDE: return;
	}
	pass->tally->moved += fate == FATE_MOVED;
	pass->tally->returned += withdrawn;
}

static struct known *list_known(
	struct arena *scratch, const struct change_record *known, size_t count)
{
	struct known *list = arena_array(scratch, count, sizeof *list);

	for (size_t i = 0; i < count; i++)
		list[i] = (struct known){.id = known[i].item.id,
			.time = known[i].item.time,
			.sign = known[i].sign,
			.withdrawn = known[i].state == CHANGE_WITHDRAWN};
	return list;
}

/* Whether the realigned windows show the known change differently in the points that were already
 * there: not at all, elsewhere, or although it was retracted. */
static bool is_otherwise(
	const struct realignment *realignment, const struct change_record *known, size_t before)
{
	if (before == MATCH_NONE || known->state == CHANGE_WITHDRAWN)
		return (before == MATCH_NONE) != (known->state == CHANGE_WITHDRAWN);
	return realignment->before[before].time != known->item.time;
}

/*
 * Differences of the realigned windows in points that were already there: known changes for which
 * that is so are kept from now on, and rejected ones are returned. Candidates have not been
 * announced and are judged as usual.
 */
static struct known *look_back(struct pass *pass, struct arena *scratch, const struct known *known,
	const struct change_record *records, size_t count, size_t *rejected_count)
{
	struct realignment *realignment = pass->realignment;
	size_t n = realignment->before_count, last = pass->existing.n - 1;
	struct found *before = arena_array(scratch, n, sizeof *before);
	struct known *rejected = arena_array(scratch, n, sizeof *rejected);
	struct matching result;

	for (size_t i = 0; i < n; i++) { /* the existing point of that time, else the next one */
		size_t at = times_lower_bound(
			pass->existing.times, pass->existing.n, realignment->before[i].time);

		before[i] = (struct found){
			.index = at < last ? at : last, .sign = realignment->before[i].sign};
	}
	match_changes(
		scratch, pass->existing.times, pass->existing.n, known, count, before, n, &result);
	free(realignment->kept);
	realignment->kept = memory_new(count, sizeof *realignment->kept);
	realignment->kept_count = 0;
	for (size_t i = 0; i < count; i++)
		if ((known[i].time < realignment->until ||
			    (!realignment->grown && !known[i].withdrawn)) &&
			records[i].state != CHANGE_CANDIDATE &&
			is_otherwise(realignment, &records[i], result.found_of[i]))
			realignment->kept[realignment->kept_count++] = known[i].id;
	*rejected_count = 0;
	for (size_t i = 0; i < n; i++)
		if ((realignment->before[i].under_way ||
			    realignment->before[i].time < realignment->until) &&
			result.known_of[i] == MATCH_NONE)
			rejected[(*rejected_count)++] = (struct known){.id = (int64_t)i,
				.time = realignment->before[i].time,
				.sign = realignment->before[i].sign};
	return rejected;
}

static bool is_kept(const struct realignment *realignment, int64_t id)
{
	for (size_t i = 0; i < realignment->kept_count; i++)
		if (realignment->kept[i] == id)
			return true;
	return false;
}

/* Confirmed changes may have moved further than the tolerance: if they stand, or to one between the
 * same levels. Recovered ones have an end. */
static void let_move(const struct pass *pass, const struct change_record *records,
	struct known *known, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct change *change = &records[i].item.change;

		if (records[i].state == CHANGE_RECOVERED)
			known[i].over = records[i].item.over.time;
		if (!change_stands(records[i].state))
			continue;
		known[i].before = change->level_before;
		known[i].after = change->level_after;
		if (stands(pass, &records[i]))
			known[i].followed = change->count_after;
	}
}

/* Whether it was recorded under another detector revision, and therefore stands although it is not
 * found. */
static bool outlives(const struct pass *pass, const struct change_record *known)
{
	const struct realignment *realignment = pass->realignment;

	if (known->state == CHANGE_WITHDRAWN || realignment->revised == 0 ||
		known->item.time > realignment->revised)
		return false;
	pass->tally->revision_gone += realignment->revising;
	return true;
}

/* Decided by time alone: whether the change lies among points that another detector revision has
 * seen. */
static bool is_unearthed(const struct pass *pass, const struct change *change)
{
	return pass->realignment->revising &&
	       pass->findings->series->axis->times[change->index] < pass->realignment->settled;
}

/* By found change: an unknown change is not reported, as it was rejected before, unless a fit has
 * uncovered it. */
static const bool *list_silent(struct pass *pass, struct arena *scratch, const struct found *now,
	const size_t *known_of, const struct known *rejected, size_t rejected_count)
{
	const struct findings *findings = pass->findings;
	bool *silent = arena_array(scratch, findings->count, sizeof *silent);
	size_t *fresh = arena_array(scratch, findings->count, sizeof *fresh), count = 0;
	struct found *found = arena_array(scratch, findings->count, sizeof *found);
	struct matching result;

	for (size_t i = 0; i < findings->count; i++)
		if (known_of[i] == MATCH_NONE) {
			found[count] = now[i];
			fresh[count++] = i;
		}
	match_changes(scratch, pass->existing.times, pass->existing.n, rejected, rejected_count,
		found, count, &result);
	for (size_t i = 0; i < count; i++)
		silent[fresh[i]] = result.known_of[i] != MATCH_NONE ||
				   is_unearthed(pass, &findings->changes[fresh[i]]);
	return silent;
}

/*
 * A fit of cycles or of a control while the agent runs may bring to light what the earlier one had
 * hidden: news, if it lasts, and if it cannot be a known change at another place.
 */
static void add_unknown(struct pass *pass, const size_t *known_of, const bool *silent)
{
	const struct findings *findings = pass->findings;
	const struct realignment *realignment = pass->realignment;
	bool fitted = realignment->refitted && realignment->kept_count == 0;

	for (size_t i = 0; i < findings->count; i++) {
		const struct change *change = &findings->changes[i];

		if (known_of[i] != MATCH_NONE)
			continue;
		bool quiet = silent[i] && (is_unearthed(pass, change) || !fitted ||
						  pass->closing.ends[i].verdict == RECOVERY_OVER);
		pass->tally->revision_new += quiet && pass->realignment->revising;
		if (!quiet && is_old(pass) && findings->season.cycles) {
			pass->realignment->candidates++;
			continue;
		}
		add_end(pass,
			add_candidate(pass, change, quiet ? confirm_reasons[CONFIRM_SEEN] : NULL),
			change);
	}
}

/* Reorders the records so that recovered ones come last, and returns the number of the others.
 * Candidates refer to the original array, so this is a copy that lives as long as the request. */
static size_t sort_records(struct arena *arena, const struct change_record **known, size_t count)
{
	struct change_record *sorted = arena_array(arena, count, sizeof *sorted);
	size_t open = 0, over = count;

	for (size_t i = 0; i < count; i++)
		sorted[(*known)[i].state == CHANGE_RECOVERED ? --over : open++] = (*known)[i];
	*known = sorted;
	return open;
}

/* By found change: until when the level behind it may be that of days off, whose cycle is not known
 * yet; else 0. */
static const int64_t *list_days_off(
	const struct pass *pass, struct arena *arena, const struct change *changes)
{
	struct season season = pass->findings->season;
	int64_t range = pass->realignment->range;
	int64_t *list = arena_array(arena, pass->findings->count, sizeof *list);

	season.undecided &= SEASON_WEEKLY;
	for (size_t i = 0; i < pass->findings->count; i++) {
		int64_t time = pass->existing.times[changes[i].index];
		int64_t until = hold_until(&season, range, 0, time, time);

		list[i] = until > time ? until : 0;
	}
	return list;
}

/* Ends are judged on existing points only, like all places. */
static void judge_ends(struct pass *pass, struct arena *scratch, const struct change_record *known,
	size_t open, size_t count, const struct matching *result, const bool *silent)
{
	struct findings *findings = pass->findings;
	struct change *changes = arena_array(scratch, findings->count, sizeof *changes);
	const struct series *series = findings->series;

	for (size_t i = 0; i < findings->count; i++) {
		changes[i] = findings->changes[i];
		changes[i].index = pass->existing.positions[changes[i].index];
		changes[i].place_from = pass->existing.positions[changes[i].place_from];
		changes[i].place_to = pass->existing.positions[changes[i].place_to];
	}
	pass->closing = (struct closing){.arena = scratch,
		.times = pass->existing.times,
		.values = pass->existing.values,
		.n = pass->existing.n,
		.changes = changes,
		.count = findings->count,
		.silent = silent,
		.oldest = pass->oldest,
		.until = list_days_off(pass, scratch, changes),
		.now = pass->clock_now,
		.direction = series_direction(series),
		.service = is_patient(pass->detection, findings)};
	recover_judge(&pass->closing, known, open, count, result);
	pass->realignment->waiting = pass->closing.waiting;
}

static struct found *list_found(const struct pass *pass, struct arena *arena)
{
	const struct findings *findings = pass->findings;
	struct found *list = arena_array(arena, findings->count, sizeof *list);

	for (size_t i = 0; i < findings->count; i++)
		list[i] = (struct found){pass->existing.positions[findings->changes[i].index],
			change_sign(&findings->changes[i]), findings->changes[i].level_before,
			findings->changes[i].level_after};
	return list;
}

void news_match(struct arena *arena, struct findings *findings,
	const struct change_record *const *known, size_t count, struct matching *out)
{
	struct pass pass = {.findings = findings, .existing = findings_prepared(arena, findings)};
	struct change_record *records = arena_array(arena, count, sizeof *records);
	struct known *list;

	for (size_t i = 0; i < count; i++)
		records[i] = *known[i];
	list = list_known(arena, records, count);
	let_move(&pass, records, list, count);
	match_changes(arena, pass.existing.times, pass.existing.n, list, count,
		list_found(&pass, arena), findings->count, out);
}

static void find_in_series(struct pass *pass, const struct change_record *known, size_t count)
{
	struct findings *findings = pass->findings;
	const double *values = findings->values;
	struct arena *scratch = arena_new();
	size_t open = sort_records(pass->request->call.arena, &known, count), rejected_count = 0;
	struct known *before = list_known(scratch, known, count), *rejected = NULL;
	struct found *now;
	struct matching result;
	const bool *silent;

	pass->existing = findings_prepared(scratch, findings); /* sets values, in scratch */
	now = list_found(pass, scratch);
	pass->oldest = news_oldest(
		pass->clock, pass->existing.times, pass->existing.n, pass->realignment->newer);
	pass->clock_now = hold_clock(pass->existing.times, pass->existing.n, pass->clock->now);
	if (pass->realignment->restarted && pass->existing.n > 0)
		rejected = look_back(pass, scratch, before, known, count, &rejected_count);
	let_move(pass, known, before, count);
	match_changes(scratch, pass->existing.times, pass->existing.n, before, count, now,
		findings->count, &result);
	silent = list_silent(pass, scratch, now, result.known_of, rejected, rejected_count);
	judge_ends(pass, scratch, known, open, count, &result, silent);
	add_unknown(pass, result.known_of, silent);
	for (size_t i = 0; i < open; i++) {
		size_t partner = result.found_of[i];
		const struct closure *closure = &pass->closing.closures[i];
		bool found = partner != MATCH_NONE, gone = result.fates[i] == FATE_GONE;
		bool kept = is_kept(pass->realignment, before[i].id);

		pass->realignment->triaged |= triage_passes_gates(known[i].triage.state);
		pass->tally->beyond += pass->existing.n > 0 &&
				       before[i].time > pass->existing.times[pass->existing.n - 1];
		if (kept && gone && outlives(pass, &known[i]))
			continue;
		if (closure->ending == ENDING_OVER)
			end_change(pass, &known[i], closure);
		else if (closure->ending == ENDING_LOST)
			withdraw(pass, &known[i]);
		if (closure->ending != ENDING_NONE)
			continue;
		if (kept && !gone) {
			if (found)
				keep_up(pass, &known[i], &findings->changes[partner]);
			continue;
		}
		if (found && change_was_candidate(&known[i]))
			add_known_candidate(pass, &findings->changes[partner], &known[i]);
		else
			judge_known(pass, &known[i], result.fates[i],
				found ? &findings->changes[partner] : NULL);
	}
	for (size_t i = open; i < count; i++)
		if (pass->closing.closures[i].ending == ENDING_BACK &&
			!is_kept(pass->realignment, known[i].item.id))
			add_update(pass, &known[i], CHANGE_CONFIRMED, known[i].item.time);
	findings->values = values;
	arena_free(scratch);
}

/* Records of branches come after those without. */
static int compare_to(const void *record, const void *series)
{
	const struct change_record *known = record;
	int order = strcmp(known->series, series);

	return order ? order : *known->branch != '\0';
}

/* The known records of the series, which are adjacent. */
static size_t known_of_series(const struct change_record *known, size_t count, const char *series,
	const struct change_record **first)
{
	size_t low = order_lower_bound(series, known, count, sizeof *known, compare_to);
	size_t high = low;

	while (high < count && compare_to(&known[high], series) == 0)
		high++;
	*first = low < high ? known + low : NULL;
	return high - low;
}

struct news_tally news_find(const struct analysis *analysis,
	struct realignment *const *realignments, const struct change_record *known,
	size_t known_count, const struct news_clock *clock, struct store_record *request)
{
	struct arena *arena = request->call.arena;
	struct news_tally tally = {0};
	struct candidates candidates = {0};
	size_t found = 0;
	struct pass shared = {.request = request,
		.candidates = &candidates,
		.test = arena_strdup(arena, analysis->test->name),
		.environment = analysis->test->environment,
		.clock = clock,
		.tally = &tally};

	for (size_t i = 0; i < analysis->data->count; i++)
		found += analysis->findings[i].count;
	candidates.items = arena_array(arena, found, sizeof *candidates.items);
	candidates.cases = arena_array(arena, found, sizeof *candidates.cases);
	request->records.items = arena_array(arena, found, sizeof *request->records.items);
	request->updates = arena_array(arena, known_count, sizeof *request->updates);
	for (size_t i = 0; i < analysis->data->count; i++) {
		struct pass pass = shared;
		const struct change_record *first;
		size_t count;

		pass.findings = &analysis->findings[i];
		pass.detection = analysis_configured(analysis->test, pass.findings->series->metric);
		pass.realignment = realignments ? realignments[i] : NULL;
		if (!pass.realignment) {
			pass.realignment = arena_alloc(arena, sizeof *pass.realignment);
			*pass.realignment = (struct realignment){.grown = true};
		}
		pass.realignment->candidates = 0;
		pass.realignment->hold_ends = WHEN_NEVER;
		pass.realignment->waiting = pass.realignment->triaged = false;
		pass.series = arena_strdup(arena, pass.findings->series->identity);
		count = known_of_series(known, known_count, pass.series, &first);
		if (pass.findings->count + count > 0)
			find_in_series(&pass, first, count);
	}
	confirmation_write(analysis, &candidates, request, &tally);
	return tally;
}
