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
static const double HAIR = 0.02;

/* One series on its way from findings to records. */
struct subject {
	struct store_record *request;
	struct findings *findings;
	const struct detection *detection;
	struct candidates *candidates;
	struct realignment *realignment; /* one of its own where there is none */
	const char *test, *series;       /* in the request's arena */
	const char *environment;         /* the test's option, or NULL */
	const struct news_clock *clock;
	int64_t now, oldest, clock_now; /* clock_now: by the series' own clock */
	struct prepared existing;
	struct closing closing;
	struct news_tally *tally;
};

/* The surroundings of the existing points first..last. */
static struct packed_excerpt excerpt_around(
	const struct subject *subject, size_t first, size_t last)
{
	return excerpt_pack(subject->request->call.arena, subject->existing.times,
		subject->existing.points, subject->existing.n, first, last);
}

/* A trend is shown from its beginning to its end. */
static struct packed_excerpt excerpt_of(const struct subject *subject, const struct change *change)
{
	const size_t *positions = subject->existing.positions;

	if (change->kind == CHANGE_TREND)
		return excerpt_around(
			subject, positions[change->place_from], positions[change->place_to]);
	return excerpt_around(subject, positions[change->index], positions[change->index]);
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
	const struct subject *subject, struct candidate *candidate, int64_t time, size_t followed)
{
	const struct realignment *realignment = subject->realignment;
	const int64_t *times = subject->existing.times;
	size_t now = times_lower_bound(times, subject->existing.n, candidate->record->item.time);
	size_t last = hold_seen(times, subject->existing.n, time, followed);
	struct confirm_case *at = candidate->at;

	at->seen = times[last];
	at->until = hold_until(&subject->findings->season, realignment->range,
		at->service ? times[0] : 0, time, at->seen);
	at->off = hold_is_off(&subject->findings->season, time, at->seen);
	candidate->first_count = last >= now ? last - now + 1 : 1;
}

/*
 * How many points followed a new change when it was first seen. The first look at a series comes
 * late: what is confirmed by now was seen when so many points followed that it would have been, by
 * Welch's test of the nearest values.
 */
static size_t first_followed(const struct subject *subject, const struct confirm_case *at)
{
	const struct prepared *points = &subject->existing;
	struct change then = *at->change;
	size_t place = times_lower_bound(points->times, points->n, at->time);
	size_t before = then.count_before, count = at->change->count_after;

	if (subject->realignment->newer || !confirm_holds(at->rule, &then, count, at->service))
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
	struct subject *subject, const struct change *change, const char *silent)
{
	struct store_record *request = subject->request;
	struct candidates *candidates = subject->candidates;
	struct candidate *candidate = &candidates->items[candidates->count];
	struct confirm_case *at = &candidates->cases[candidates->count];
	struct change_record *record = &request->records.items[candidates->count++];

	candidate->record = record;
	candidate->at = at;
	candidate->realignment = subject->realignment;
	record->item = announce_change(request->call.arena, subject->test, subject->environment,
		subject->findings->series, change);
	findings_basis(request->call.arena, subject->findings, change, &record->item);
	record->series = subject->series;
	record->branch = "";
	record->sign = change_sign(change);
	record->state = CHANGE_CONFIRMED;
	record->first_seen = subject->now;
	record->item.excerpt = excerpt_of(subject, change);
	record->item.spacing = news_spacing(subject->existing.times, subject->existing.n,
		subject->existing.positions[change->index]);
	if (!silent && record->item.time < subject->oldest)
		silent = confirm_reasons[CONFIRM_AGE];
	*at = (struct confirm_case){.rule = &subject->detection->confirm,
		.change = &record->item.change,
		.time = record->item.time,
		.first_count = change->count_after,
		.service = is_patient(subject->detection, subject->findings),
		.silent = silent,
		.share = subject->detection->fdr,
		.of = subject->findings,
		.clock = subject->clock_now};
	set_hold(subject, candidate, record->item.time, first_followed(subject, at));
	return candidate;
}

/* The verdict of the series' own history about the found change, a step. */
static enum precedent_verdict precedent_at(const struct subject *subject, size_t which)
{
	const struct closing *closing = &subject->closing;
	const struct prepared *points = &subject->existing;
	size_t begin = which > 0 ? closing->changes[which - 1].index : 0;
	size_t n = points->n, place = closing->changes[which].index;
	size_t count = n - place < PRECEDENT_LONG ? n - place : 0;
	double *sunday = arena_array(closing->arena, count, sizeof *sunday);
	bool morning =
		count > 0 && season_remove_sundays(&subject->findings->season,
				     points->times + place, points->points + place, count, sunday);
	/* The series may have begun before what was queried of it. */
	int64_t range = subject->realignment->range;
	bool is_cut = range > 0 &&
		      points->times[0] <= subject->now - range +
						  FRONT_POINTS * news_spacing(points->times, n, 0);

	return precedent_of(
		points->values, points->times, n, begin, place, morning ? sunday : NULL, is_cut);
}

/* A change that is over already is recorded with its end; one that may be the end of another
 * waits. */
static void add_end(
	const struct subject *subject, struct candidate *candidate, const struct change *change)
{
	const struct closing *closing = &subject->closing;
	size_t which = (size_t)(change - subject->findings->changes);
	const struct recovery *end = &closing->ends[which];
	struct confirm_case *at = candidate->at;

	if (!at->silent && closing->passed[which]) {
		at->silent = confirm_reasons[CONFIRM_OVER];
		at->at_once = true;
	}
	at->doubt = closing->doubts[which];
	if (closing->service && !at->silent && at->doubt == DOUBT_NONE)
		at->precedent = precedent_at(subject, which);
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
static bool is_old(const struct subject *subject)
{
	return subject->realignment->restarted && !subject->realignment->grown;
}

/*
 * A known candidate is found again. Without new points it is confirmed no more than it was, except
 * that its hold may have ended. Whether it is too old to be announced was decided when it was
 * first seen. A lost one starts over, with its age, too; if it is too old by now, there is nothing
 * to wait for.
 */
static void add_known_candidate(
	struct subject *subject, const struct change *change, const struct change_record *known)
{
	bool silent = known->news == NOTIFY_SILENT;
	const char *reason = known->reason
				     ? arena_strdup(subject->request->call.arena, known->reason)
				     : confirm_reasons[CONFIRM_AGE];
	struct candidate *candidate = add_candidate(subject, change, silent ? reason : NULL);
	struct change_record *record = candidate->record;
	struct confirm_case *at = candidate->at;

	candidate->known = known;
	candidate->grown = subject->realignment->grown;
	record->item.id = known->item.id;
	record->confirmed = true;
	record->first_seen = known->first_seen;
	record->updated = subject->now;
	record->runs = 1;
	if (known->state == CHANGE_CANDIDATE) {
		at->first_count = known->item.change.count_after;
		set_hold(subject, candidate, known->item.time, at->first_count);
		if (!silent)
			at->silent = NULL;
		record->runs = known->runs + candidate->grown;
		if (is_old(subject) && at->until == at->seen)
			at->again = known->reason ? reason : confirm_reasons[CONFIRM_AGAIN];
	} else {
		at->at_once = at->silent;
		if (is_old(subject) && subject->findings->season.cycles) /* see is_old */
			at->again = confirm_reasons[CONFIRM_AGAIN];
	}
	add_end(subject, candidate, change);
}

static struct change_record_update *add_update(struct subject *subject,
	const struct change_record *known, enum change_state state, int64_t time)
{
	struct store_record *request = subject->request;
	struct change_record_update *update = &request->updates[request->update_count++];

	*update = (struct change_record_update){
		.id = known->item.id, .state = state, .time = time, .now = subject->now};
	return update;
}

/* Updates the record to the present findings, except how many points followed the change when it
 * was announced, on which its standing is judged. */
static void follow(struct subject *subject, const struct change_record *known,
	enum change_state state, const struct change *change)
{
	struct arena *arena = subject->request->call.arena;
	const struct series *series = subject->findings->series;
	struct announcement *item = arena_alloc(arena, sizeof *item);
	const struct attribution *before = &known->item.suspects;
	struct change_record_update *update;

	*item = announce_change(arena, subject->test, subject->environment, series, change);
	item->change.count_after = known->item.change.count_after;
	update = add_update(subject, known, state, item->time);
	update->item = item;
	update->excerpt = excerpt_of(subject, change);
	/* Other suspects are announced if a deployment was recorded late, but only for a limited
	 * time. Records of earlier versions have nothing to compare with. */
	item->suspects.corrections = before->corrections;
	update->corrected = before->known && item->suspects.known &&
			    before->corrections < CORRECTIONS_MOST &&
			    known->state != CHANGE_WITHDRAWN && known->news == NOTIFY_QUEUED &&
			    attribution_gained(&item->suspects, before);
	item->suspects.corrections += update->corrected;
	subject->tally->corrected += update->corrected;
}

/* A trend has gone further, or its levels have moved by more than HAIR. */
static bool has_grown(const struct subject *subject, const struct change_record *known,
	const struct change *change)
{
	const struct change *before = &known->item.change;
	const int64_t *times = subject->findings->series->axis->times;
	double rise = fabs(change->level_after - change->level_before);
	double moved = fmax(fabs(change->level_before - before->level_before),
		fabs(change->level_after - before->level_after));

	if (change->kind != CHANGE_TREND && before->kind != CHANGE_TREND)
		return false;
	return change->kind != before->kind ||
	       times[change->place_from] != known->item.place_from ||
	       times[change->place_to] != known->item.place_to || moved > HAIR * rise;
}

/* The step is larger than at its triage. */
static bool has_outgrown(const struct change_record *known, const struct change *change)
{
	return triage_passes_gates(known->triage.state) && triage_outgrown(&known->triage, change);
}

/* Updates a change that stays where it was announced: for a trend, how far it has gone. */
static void keep_up(
	struct subject *subject, const struct change_record *known, const struct change *change)
{
	bool trend = known->item.change.kind == CHANGE_TREND && change->kind == CHANGE_TREND;

	if (known->state == CHANGE_WITHDRAWN || !subject->realignment->grown ||
		!((trend && has_grown(subject, known, change)) || has_outgrown(known, change)))
		return;
	follow(subject, known, known->state, change);
	subject->request->updates[subject->request->update_count - 1].time = known->item.time;
}

static void close(
	struct subject *subject, const struct change_record *known, const struct closure *closure)
{
	struct change_record_update *update =
		add_update(subject, known, CHANGE_RECOVERED, known->item.time);

	update->over = closure->over;
	update->excerpt = excerpt_around(subject,
		times_lower_bound(subject->existing.times, subject->existing.n, known->item.time),
		times_lower_bound(
			subject->existing.times, subject->existing.n, closure->over.time));
	update->silent = closure->silent;
	subject->tally->recovered++;
}

static void lose(struct subject *subject, const struct change_record *known)
{
	struct change_record_update *update;

	if (known->state == CHANGE_WITHDRAWN)
		return;
	update = add_update(subject, known, CHANGE_WITHDRAWN, known->item.time);
	if (known->news == NOTIFY_HELD || known->news == NOTIFY_PENDING)
		update->reason = confirm_reasons[CONFIRM_LOST];
	if (known->state == CHANGE_CANDIDATE)
		subject->tally->lost++;
	else
		subject->tally->withdrawn++;
}

bool news_stands(struct arena *arena, struct findings *findings, const struct change_record *known)
{
	const struct axis *axis = findings->series->axis;

	if (!change_stands(known->state))
		return false;
	return retraction_holds(findings_values(arena, findings), axis->n, findings->changes,
		findings->count, axis_lower_bound(axis, known->item.time), known->sign);
}

static bool stands(const struct subject *subject, const struct change_record *known)
{
	return news_stands(NULL, subject->findings, known); /* it has its values */
}

/* `change`: its match; NULL if it is not found. */
static void judge_known(struct subject *subject, const struct change_record *known, enum fate fate,
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
				subject->request->call.arena, subject->findings->series, change);
		if (withdrawn)
			follow(subject, known, CHANGE_CONFIRMED, change);
		else if (has_grown(subject, known, change) || has_outgrown(known, change) ||
			 (now.known && !attribution_same(&now, before)))
			follow(subject, known, known->state, change);
		break;
	case FATE_MOVED: follow(subject, known, CHANGE_MOVED, change); break;
	case FATE_GONE:
		after = subject->existing.n - times_lower_bound(subject->existing.times,
						      subject->existing.n, known->item.time);
		/* Near the last point, with fewer points after it than when it was found: the
		 * newest are late or were withdrawn, and the rest cannot show it. */
		if (after < CHANGE_TOLERANCE && after < known->item.change.count_after)
			return;
		if (!stands(subject, known))
			lose(subject, known);
		return;
	case FATE_OUTSIDE: return;
	}
	subject->tally->moved += fate == FATE_MOVED;
	subject->tally->returned += withdrawn;
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
static struct known *look_back(struct subject *subject, struct arena *scratch,
	const struct known *known, const struct change_record *records, size_t count,
	size_t *rejected_count)
{
	struct realignment *realignment = subject->realignment;
	size_t n = realignment->before_count, last = subject->existing.n - 1;
	struct found *before = arena_array(scratch, n, sizeof *before);
	struct known *rejected = arena_array(scratch, n, sizeof *rejected);
	struct matching result;

	for (size_t i = 0; i < n; i++) { /* the existing point of that time, else the next one */
		size_t at = times_lower_bound(
			subject->existing.times, subject->existing.n, realignment->before[i].time);

		before[i] = (struct found){
			.index = at < last ? at : last, .sign = realignment->before[i].sign};
	}
	match_changes(scratch, subject->existing.times, subject->existing.n, known, count, before,
		n, &result);
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
static void let_move(const struct subject *subject, const struct change_record *records,
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
		if (stands(subject, &records[i]))
			known[i].followed = change->count_after;
	}
}

/* Whether it was recorded under another detector revision, and therefore stands although it is not
 * found. */
static bool outlives(const struct subject *subject, const struct change_record *known)
{
	const struct realignment *realignment = subject->realignment;

	if (known->state == CHANGE_WITHDRAWN || realignment->revised == 0 ||
		known->item.time > realignment->revised)
		return false;
	subject->tally->revision_gone += realignment->revising;
	return true;
}

/* Decided by time alone: whether the change lies among points that another detector revision has
 * seen. */
static bool is_unearthed(const struct subject *subject, const struct change *change)
{
	return subject->realignment->revising &&
	       subject->findings->series->axis->times[change->index] <
		       subject->realignment->settled;
}

/* By found change: an unknown change is not reported, as it was rejected before, unless a fit has
 * uncovered it. */
static const bool *list_silent(struct subject *subject, struct arena *scratch,
	const struct found *now, const size_t *known_of, const struct known *rejected,
	size_t rejected_count)
{
	const struct findings *findings = subject->findings;
	bool *silent = arena_array(scratch, findings->count, sizeof *silent);
	size_t *fresh = arena_array(scratch, findings->count, sizeof *fresh), count = 0;
	struct found *found = arena_array(scratch, findings->count, sizeof *found);
	struct matching result;

	for (size_t i = 0; i < findings->count; i++)
		if (known_of[i] == MATCH_NONE) {
			found[count] = now[i];
			fresh[count++] = i;
		}
	match_changes(scratch, subject->existing.times, subject->existing.n, rejected,
		rejected_count, found, count, &result);
	for (size_t i = 0; i < count; i++)
		silent[fresh[i]] = result.known_of[i] != MATCH_NONE ||
				   is_unearthed(subject, &findings->changes[fresh[i]]);
	return silent;
}

/*
 * A fit of cycles or of a control while the agent runs may bring to light what the earlier one had
 * hidden: news, if it lasts, and if it cannot be a known change at another place.
 */
static void add_unknown(struct subject *subject, const size_t *known_of, const bool *silent)
{
	const struct findings *findings = subject->findings;
	const struct realignment *realignment = subject->realignment;
	bool fitted = realignment->refitted && realignment->kept_count == 0;

	for (size_t i = 0; i < findings->count; i++) {
		const struct change *change = &findings->changes[i];

		if (known_of[i] != MATCH_NONE)
			continue;
		bool quiet =
			silent[i] && (is_unearthed(subject, change) || !fitted ||
					     subject->closing.ends[i].verdict == RECOVERY_OVER);
		subject->tally->revision_new += quiet && subject->realignment->revising;
		if (!quiet && is_old(subject) && findings->season.cycles) {
			subject->realignment->candidates++;
			continue;
		}
		add_end(subject,
			add_candidate(
				subject, change, quiet ? confirm_reasons[CONFIRM_SEEN] : NULL),
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
	const struct subject *subject, struct arena *arena, const struct change *changes)
{
	struct season season = subject->findings->season;
	int64_t range = subject->realignment->range;
	int64_t *list = arena_array(arena, subject->findings->count, sizeof *list);

	season.undecided &= SEASON_WEEKLY;
	for (size_t i = 0; i < subject->findings->count; i++) {
		int64_t time = subject->existing.times[changes[i].index];
		int64_t until = hold_until(&season, range, 0, time, time);

		list[i] = until > time ? until : 0;
	}
	return list;
}

/* Ends are judged on existing points only, like all places. */
static void judge_ends(struct subject *subject, struct arena *scratch,
	const struct change_record *known, size_t open, size_t count, const struct matching *result,
	const bool *silent)
{
	struct findings *findings = subject->findings;
	struct change *changes = arena_array(scratch, findings->count, sizeof *changes);
	const struct series *series = findings->series;

	for (size_t i = 0; i < findings->count; i++) {
		changes[i] = findings->changes[i];
		changes[i].index = subject->existing.positions[changes[i].index];
		changes[i].place_from = subject->existing.positions[changes[i].place_from];
		changes[i].place_to = subject->existing.positions[changes[i].place_to];
	}
	subject->closing = (struct closing){.arena = scratch,
		.times = subject->existing.times,
		.values = subject->existing.values,
		.n = subject->existing.n,
		.changes = changes,
		.count = findings->count,
		.silent = silent,
		.oldest = subject->oldest,
		.until = list_days_off(subject, scratch, changes),
		.now = subject->clock_now,
		.direction = series_direction(series),
		.service = is_patient(subject->detection, findings)};
	recover_judge(&subject->closing, known, open, count, result);
	subject->realignment->waiting = subject->closing.waiting;
}

static struct found *list_found(const struct subject *subject, struct arena *arena)
{
	const struct findings *findings = subject->findings;
	struct found *list = arena_array(arena, findings->count, sizeof *list);

	for (size_t i = 0; i < findings->count; i++)
		list[i] = (struct found){subject->existing.positions[findings->changes[i].index],
			change_sign(&findings->changes[i]), findings->changes[i].level_before,
			findings->changes[i].level_after};
	return list;
}

void news_match(struct arena *arena, struct findings *findings,
	const struct change_record *const *known, size_t count, struct matching *out)
{
	struct subject subject = {
		.findings = findings, .existing = findings_prepared(arena, findings)};
	struct change_record *records = arena_array(arena, count, sizeof *records);
	struct known *list;

	for (size_t i = 0; i < count; i++)
		records[i] = *known[i];
	list = list_known(arena, records, count);
	let_move(&subject, records, list, count);
	match_changes(arena, subject.existing.times, subject.existing.n, list, count,
		list_found(&subject, arena), findings->count, out);
}

static void find_in_series(struct subject *subject, const struct change_record *known, size_t count)
{
	struct findings *findings = subject->findings;
	const double *values = findings->values;
	struct arena *scratch = arena_new();
	size_t open = sort_records(subject->request->call.arena, &known, count), rejected_count = 0;
	struct known *before = list_known(scratch, known, count), *rejected = NULL;
	struct found *now;
	struct matching result;
	const bool *silent;

	subject->existing = findings_prepared(scratch, findings); /* sets values, in scratch */
	now = list_found(subject, scratch);
	subject->oldest = news_oldest(subject->clock, subject->existing.times, subject->existing.n,
		subject->realignment->newer);
	subject->clock_now =
		hold_clock(subject->existing.times, subject->existing.n, subject->clock->now);
	if (subject->realignment->restarted && subject->existing.n > 0)
		rejected = look_back(subject, scratch, before, known, count, &rejected_count);
	let_move(subject, known, before, count);
	match_changes(scratch, subject->existing.times, subject->existing.n, before, count, now,
		findings->count, &result);
	silent = list_silent(subject, scratch, now, result.known_of, rejected, rejected_count);
	judge_ends(subject, scratch, known, open, count, &result, silent);
	add_unknown(subject, result.known_of, silent);
	for (size_t i = 0; i < open; i++) {
		size_t partner = result.found_of[i];
		const struct closure *closure = &subject->closing.closures[i];
		bool found = partner != MATCH_NONE, gone = result.fates[i] == FATE_GONE;
		bool kept = is_kept(subject->realignment, before[i].id);

		subject->realignment->triaged |= triage_passes_gates(known[i].triage.state);
		subject->tally->beyond +=
			subject->existing.n > 0 &&
			before[i].time > subject->existing.times[subject->existing.n - 1];
		if (kept && gone && outlives(subject, &known[i]))
			continue;
		if (closure->ending == ENDING_OVER)
			close(subject, &known[i], closure);
		else if (closure->ending == ENDING_LOST)
			lose(subject, &known[i]);
		if (closure->ending != ENDING_NONE)
			continue;
		if (kept && !gone) {
			if (found)
				keep_up(subject, &known[i], &findings->changes[partner]);
			continue;
		}
		if (found && change_was_candidate(&known[i]))
			add_known_candidate(subject, &findings->changes[partner], &known[i]);
		else
			judge_known(subject, &known[i], result.fates[i],
				found ? &findings->changes[partner] : NULL);
	}
	for (size_t i = open; i < count; i++)
		if (subject->closing.closures[i].ending == ENDING_BACK &&
			!is_kept(subject->realignment, known[i].item.id))
			add_update(subject, &known[i], CHANGE_CONFIRMED, known[i].item.time);
	findings->values = values;
	arena_free(scratch);
}

/* Records of branches come after those without. */
static int compare_to(const struct change_record *known, const char *series)
{
	int order = strcmp(known->series, series);

	return order ? order : *known->branch != '\0';
}

/* The known records of the series, which are adjacent. */
static size_t known_of_series(const struct change_record *known, size_t count, const char *series,
	const struct change_record **first)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare_to(&known[middle], series) < 0)
			low = middle + 1;
		else
			high = middle;
	}
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
	struct subject shared = {.request = request,
		.candidates = &candidates,
		.test = arena_strdup(arena, analysis->test->name),
		.environment = analysis->test->environment,
		.clock = clock,
		.now = clock->now,
		.tally = &tally};

	for (size_t i = 0; i < analysis->data->count; i++)
		found += analysis->findings[i].count;
	candidates.items = arena_array(arena, found, sizeof *candidates.items);
	candidates.cases = arena_array(arena, found, sizeof *candidates.cases);
	request->records.items = arena_array(arena, found, sizeof *request->records.items);
	request->updates = arena_array(arena, known_count, sizeof *request->updates);
	for (size_t i = 0; i < analysis->data->count; i++) {
		struct subject subject = shared;
		const struct change_record *first;
		size_t count;

		subject.findings = &analysis->findings[i];
		subject.detection =
			analysis_configured(analysis->test, subject.findings->series->metric);
		subject.realignment = realignments ? realignments[i] : NULL;
		if (!subject.realignment) {
			subject.realignment = arena_alloc(arena, sizeof *subject.realignment);
			*subject.realignment = (struct realignment){.grown = true};
		}
		subject.realignment->candidates = 0;
		subject.realignment->hold_ends = WHEN_NEVER;
		subject.realignment->waiting = subject.realignment->triaged = false;
		subject.series = arena_strdup(arena, subject.findings->series->identity);
		count = known_of_series(known, known_count, subject.series, &first);
		if (subject.findings->count + count > 0)
			find_in_series(&subject, first, count);
	}
	confirmation_write(analysis, &candidates, request, &tally);
	return tally;
}
