/*
 * docs/design/algorithms.md section 6.6. All members' change points are votes, sorted by index.
 * Votes of different members within `tolerance` points of the first one form an agreement, with at
 * most one vote of each member; the vote with the smallest p gives it its place and p.
 */
#include "detectors/combine.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "detectors/scratch.h"
#include "detectors/segments.h"
#include "detectors/tried.h"

static const struct field combine_fields[] = {
	OPTION_INT(struct combine_options, tolerance, "5", 0, 1e6,
		"maximum distance between the detectors' places of one change",
		.metavar = "POINTS"),
	{0},
};

/* A change point of a member. */
struct vote {
	size_t index, member;
	double p;
	bool used; /* by an agreement */
};

static int by_index(const void *a, const void *b)
{
	const struct vote *one = a, *other = b;
	if (one->index != other->index)
		return one->index < other->index ? -1 : 1;
	return (one->member > other->member) - (one->member < other->member);
}

/* Runs the members, with `room` for the changes of one; writes all votes and returns their number.
 */
static size_t take_votes(const struct samples *samples, const struct combine_options *options,
	struct scratch *work, struct change *room, struct vote *votes)
{
	struct tried_list *tried = scratch_tried(work);
	size_t count = 0;
	for (size_t m = 0; m < options->count; m++) {
		const struct combine_member *member = &options->members[m];
		const struct detector *detector = detector_find(member->detector);
		assert(detector && detector != &combine_detector);
		if (tried)
			tried->by = member->detector;
		size_t found = detector->detect(samples, member->options, work, room);
		for (size_t i = 0; i < found; i++)
			votes[count++] = (struct vote){room[i].index, m, room[i].pvalue, false};
	}
	if (tried)
		tried->by = NULL;
	qsort(votes, count, sizeof(*votes), by_index);
	return count;
}

/* Notes a vote on which too few members agree. */
static void note_outvoted(const struct vote *vote, const struct vote *votes, size_t count,
	const struct combine_options *options, struct tried_list *tried)
{
	struct tried one = tried_untested(vote->index, TRIED_VOTES);
	bool voted[COMBINE_MOST] = {0};
	size_t members = 0, tolerance = (size_t)options->tolerance;

	one.pvalue = vote->p;
	for (size_t i = 0; i < count; i++)
		voted[votes[i].member] |= votes[i].index + tolerance >= vote->index &&
					  votes[i].index <= vote->index + tolerance;
	for (size_t m = 0; m < options->count; m++)
		members += voted[m];
	tried_limit(&one, "detectors", (double)members, (double)options->need);
	one.by = options->members[vote->member].detector;
	tried_note(tried, &one);
}

/*
 * Forms the agreement that begins with votes[first] and marks its votes as used. Returns the vote
 * with the smallest p; NULL if too few agree, which marks none.
 */
static const struct vote *agreement(struct vote *votes, size_t count, size_t first,
	const struct combine_options *options, struct scratch *work)
{
	struct vote *taken[COMBINE_MOST] = {0};
	const struct vote *best = &votes[first];
	size_t members = 0, reach = votes[first].index + (size_t)options->tolerance;
	for (size_t i = first; i < count && votes[i].index <= reach && members < options->count;
		i++) {
		if (!scratch_spend(work, 4))
			return NULL;
		if (votes[i].used || taken[votes[i].member])
			continue;
		taken[votes[i].member] = &votes[i];
		members++;
		best = votes[i].p < best->p ? &votes[i] : best;
	}
	if (members < options->need)
		return NULL;
	for (size_t m = 0; m < options->count; m++)
		if (taken[m])
			taken[m]->used = true;
	return best;
}

/* Agreements overlap where one member has several changes within the tolerance: they are sorted,
 * and of those at one place the best is kept. */
static size_t find_agreements(const struct combine_options *options, struct vote *votes,
	size_t count, struct scratch *work, struct vote *agreed)
{
	size_t found = 0, kept = 0;
	for (size_t i = 0; i < count && !scratch_is_spent(work); i++) {
		const struct vote *best =
			votes[i].used ? NULL : agreement(votes, count, i, options, work);
		if (best)
			agreed[found++] = *best;
	}
	qsort(agreed, found, sizeof(*agreed), by_index);
	for (size_t i = 0; i < found; i++)
		if (kept == 0 || agreed[kept - 1].index != agreed[i].index)
			agreed[kept++] = agreed[i];
		else
			agreed[kept - 1].p = fmin(agreed[kept - 1].p, agreed[i].p);
	return kept;
}

/*
 * Writes the changes at the agreements and returns their number. A detector that fills gaps may
 * place a change at a missing value: it moves to the next existing value, and is dropped if there
 * is none.
 */
static size_t describe(const struct samples *samples, const struct vote *agreed, size_t count,
	struct scratch *scratch, struct change *out)
{
	struct segments segments = segments_of(samples, scratch);
	size_t *cuts = scratch_take(scratch, count, sizeof(*cuts));
	double *pvalues = scratch_take(scratch, count, sizeof(*pvalues));
	size_t kept = 0, at = 0;
	for (size_t i = 0; i < count; i++) {
		while (at < segments.n && segments.places[at] < agreed[i].index)
			at++;
		if (at == 0 || at == segments.n || (kept > 0 && cuts[kept - 1] == at))
			continue;
		pvalues[kept] = agreed[i].p;
		cuts[kept++] = at;
	}
	segments_changes(&segments, cuts, pvalues, kept, out);
	return kept;
}

static size_t combine_detect(const struct samples *samples, const void *options,
	struct scratch *scratch, struct change *out)
{
	const struct combine_options *given = options;
	scratch_reset(scratch);
	size_t most = samples->n * given->count;
	struct vote *votes = scratch_take(scratch, most, sizeof(*votes));
	struct vote *agreed = scratch_take(scratch, most, sizeof(*agreed));
	struct scratch *work = scratch_child(scratch);
	struct tried_list *tried = scratch_tried(scratch);
	scratch_trace(work, tried);
	size_t voted = take_votes(samples, given, work, out, votes);
	size_t count = find_agreements(given, votes, voted, work, agreed);
	scratch_free(work);
	for (size_t i = 0; tried && i < voted; i++)
		if (!votes[i].used)
			note_outvoted(&votes[i], votes, voted, given, tried);
	return describe(samples, agreed, count, scratch, out);
}

static bool combine_check(const void *options, struct error *error)
{
	const struct combine_options *given = options;
	return given->count > 0 ||
	       error_set(error, ERROR_USAGE,
		       "combine: expected detectors, as in {all: [edivisive, kernel]}");
}

const struct detector combine_detector = {
	.plugin = {.name = "combine",
		.summary = "changes on which several detectors agree",
		.fields = combine_fields,
		.options_size = sizeof(struct combine_options),
		.check = combine_check},
	.thrift = "choose fewer detectors or a smaller tolerance",
	.detect = combine_detect,
};
