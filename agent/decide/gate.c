#include "agent/decide/gate.h"

#include <fnmatch.h>
#include <math.h>
#include <string.h>

#include "agent/base/order.h"
#include "agent/base/when.h"

static bool name_matches(const char *pattern, const char *name)
{
	return strcmp(pattern, name) == 0 ||
	       (strpbrk(pattern, "*?[\\") && fnmatch(pattern, name, 0) == 0);
}

static size_t digits(const char *text)
{
	return strspn(text, "0123456789abcdefABCDEF");
}

/* Whether they are equal, or one abbreviates the other. */
static bool same_commit(const char *a, const char *b)
{
	size_t n = strlen(a), m = b ? strlen(b) : 0, shorter = n < m ? n : m;

	if (!b)
		return false;
	if (n == m || shorter < KNOWN_COMMIT_LEAST || digits(a) < n || digits(b) < m)
		return strcmp(a, b) == 0;
	return strncmp(a, b, shorter) == 0;
}

static bool comes_from(const struct announcement *item, const char *commit)
{
	if (same_commit(commit, item->commit_after) ||
		same_commit(commit, item->place_commit_after))
		return true;
	for (size_t i = 0; i < item->suspects.listed; i++)
		if (same_commit(commit, item->suspects.list[i].commit))
			return true;
	return false;
}

static int64_t less(int64_t time, int64_t by)
{
	return time < WHEN_ALWAYS + by ? WHEN_ALWAYS : time - by;
}

/* Within the tolerance, in points, that identifies a change. */
static bool lies_at(
	const struct announcement *item, int64_t spacing, const struct known_change *known)
{
	int64_t slack = CHANGE_TOLERANCE * spacing;
	int64_t first = item->place_from < item->time ? item->place_from : item->time;
	int64_t last = item->place_to > item->time ? item->place_to : item->time;

	return less(first, slack) <= known->to && less(known->from, slack) <= last;
}

/* Whether the near end of its interval is no larger than the largest accepted size. */
static bool is_within(const struct change *change, double at_most)
{
	double size = fabs(change->size);
	double near = change->size < 0 ? -change->size_high : change->size_low;

	if (at_most <= 0)
		return true;
	return size <= at_most || near <= at_most;
}

static bool covers(const struct known_change *known, const struct change_record *record)
{
	const struct announcement *item = &record->item;

	return name_matches(known->test, item->test) &&
	       (!known->metric || name_matches(known->metric, item->metric) ||
		       (record->series && name_matches(known->metric, record->series))) &&
	       (known->direction == 0 || known->direction == record->sign) &&
	       is_within(&item->change, known->at_most) && lies_at(item, item->spacing, known) &&
	       (!known->commit || comes_from(item, known->commit));
}

const struct known_change *gate_known(const struct known_change *entries, size_t count,
	const struct change_record *record, int64_t now, const struct known_change **expired)
{
	*expired = NULL;
	for (size_t i = 0; i < count; i++) {
		const struct known_change *known = &entries[i];

		if (!covers(known, record))
			continue;
		if (now < known->until) {
			*expired = NULL;
			return known;
		}
		*expired = known;
	}
	return NULL;
}

struct decision gate_triage(const struct triage *triage, const struct change *change, int64_t now)
{
	if (!triage_passes_gates(triage_at(triage, now)) || triage_outgrown(triage, change))
		return (struct decision){0};
	return (struct decision){DROP, triage_state_names[triage->state], 0};
}

/* Whether the causes that are known of both are the same. */
static bool same_suspects(const struct change_record *a, const struct change_record *b)
{
	const char *a_before, *a_after, *b_before, *b_after;

	if (a->environment_event != 0 || b->environment_event != 0)
		return a->environment_event == b->environment_event;
	if (a->item.suspects.listed > 0 || b->item.suspects.listed > 0)
		return attribution_same(&a->item.suspects, &b->item.suspects);
	announcement_range(&a->item, &a_before, &a_after);
	announcement_range(&b->item, &b_before, &b_after);
	return a_after && order_same(a_after, b_after) && order_same(a_before, b_before);
}

/* Percent; infinite: from zero. */
static double extent(double size)
{
	return isnan(size) ? HUGE_VAL : fabs(size);
}

/* Whether people have accepted the change itself. */
static bool is_accepted(const struct change_record *record, int64_t now)
{
	const struct triage *triage = &record->triage;

	return triage_is_accepted(triage_at(triage, now)) && triage->inherited == 0 &&
	       !(triage->person && strcmp(triage->person, KNOWN_CHANGES_PERSON) == 0);
}

struct decision gate_inherit(const struct change_record *joiner, const struct record_rows *members,
	int64_t now, const struct change_record **from)
{
	const char *reason = NULL;

	*from = NULL;
	for (size_t i = 0; i < members->count; i++) {
		const struct change_record *member = &members->items[i];

		if (change_stands(member->state) &&
			triage_at(&member->triage, now) == TRIAGE_OPEN) {
			*from = NULL;
			return (struct decision){PASS, "not all of its incident is triaged", 0};
		}
		if (!is_accepted(member, now))
			continue;
		if (!same_suspects(joiner, member))
			reason =
				reason ? reason : "its suspects are not those of what was accepted";
		else if (announcement_verdict(&joiner->item) !=
				 announcement_verdict(&member->item) ||
			 extent(joiner->item.change.size) > extent(member->triage.size))
			reason = "larger than what was accepted";
		else if (!*from || extent(member->triage.size) > extent((*from)->triage.size))
			*from = member;
	}
	return *from ? (struct decision){DROP, triage_state_names[(*from)->triage.state], 0}
		     : (struct decision){PASS, reason, 0};
}

bool gate_concerns(const struct known_change *entries, size_t count, const char *test)
{
	for (size_t i = 0; i < count; i++)
		if (name_matches(entries[i].test, test))
			return true;
	return false;
}

/* The far end of the interval, so that a later estimate of the same change does not exceed it. */
static double largest(const struct change *change)
{
	double most =
		fmax(fabs(change->size), fmax(fabs(change->size_low), fabs(change->size_high)));

	return isfinite(most) ? ceil(10 * most) / 10 : 0;
}

struct known_change gate_entry(
	const struct change_record *record, const char *reason, int64_t until)
{
	const struct announcement *item = &record->item;
	const char *commit = item->commit_after ? item->commit_after : item->place_commit_after;

	if (commit && known_commit_is_short(commit))
		commit = NULL;
	return (struct known_change){.test = item->test,
		.metric = item->metric,
		.commit = commit,
		.from = commit ? WHEN_ALWAYS : item->time,
		.to = commit ? WHEN_NEVER : item->time,
		.direction = record->sign,
		.at_most = largest(&item->change),
		.reason = reason,
		.until = until};
}
