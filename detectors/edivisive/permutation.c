/*
 * The series is cut greedily at its best split. Each candidate is compared with the best splits
 * that result when the values of every current piece are shuffled. There are no windows and no
 * second pass. A search is O(n^2), a candidate costs `permutations` searches; trials stop as soon
 * as the candidate cannot become significant any more.
 */
#include "detectors/edivisive/permutation.h"

#include <math.h>
#include <string.h>

#include "detectors/edivisive/search.h"
#include "detectors/finite.h"
#include "detectors/loops.h"
#include "detectors/random.h"
#include "detectors/scratch.h"
#include "detectors/segments.h"

static const struct field permutation_fields[] = {
	OPTION_INT(struct edivisive_permutation_options, permutations, "199", 1, 1e6,
		"number of random permutations; raised to what the p-value requires",
		.metavar = "COUNT"),
	OPTION_DOUBLE(struct edivisive_permutation_options, p_value, "0.05", 1e-6, 1,
		"maximum p-value of a change point", .alias = "max_pvalue", .letter = 'P',
		.metavar = "P"),
	OPTION_INT(struct edivisive_permutation_options, seed, "1", 0, 9e15,
		"random seed; the same seed gives the same result", .metavar = "NUMBER"),
	{0},
};

struct piece {
	size_t start, end;
	struct split split; /* tau counts from start */
	double p;           /* of the change point at start */
};

/* A search in progress: the pieces so far, and buffers for trials. */
struct trial {
	const struct segments *segments;
	const double *values; /* scaled */
	double *shuffled;
	size_t n;
	struct scratch *scratch;
	struct search search;
	struct piece *pieces;
	size_t count;
	size_t permutations;
	double p_value;
	uint64_t random;
};

/* The largest q after shuffling the values of each piece. */
static double best_by_chance(struct trial *trial)
{
	double best = -HUGE_VAL;
	memcpy(trial->shuffled, trial->values, trial->n * sizeof(double));
	for (size_t i = 0; i < trial->count; i++) {
		double *values = trial->shuffled + trial->pieces[i].start;
		size_t n = trial->pieces[i].end - trial->pieces[i].start;
		for (size_t k = n; k > 1; k--) {
			size_t j = (size_t)(random_next(&trial->random) % k);
			double value = values[k - 1];
			values[k - 1] = values[j];
			values[j] = value;
		}
		double q = search_split(&trial->search, values, n).q;
		best = q > best ? q : best;
	}
	return best;
}

/* The share of trials that reach q. Equal arrangements differ by rounding, and count as reaching
 * it. */
static double candidate_p(struct trial *trial, double q)
{
	size_t reached = 1, all = trial->permutations + 1;
	for (size_t i = 0; i < trial->permutations; i++) {
		if (best_by_chance(trial) >= q - 1e-12 * fabs(q))
			reached++;
		if ((double)reached / (double)all > trial->p_value ||
			!scratch_spend(trial->scratch, 10 * trial->n))
			break;
	}
	return (double)reached / (double)all;
}

static void search_piece(const struct trial *trial, struct piece *piece)
{
	piece->split = search_split(
		&trial->search, trial->values + piece->start, piece->end - piece->start);
}

/* Notes the best split of each remaining piece. `p` is that of the best one, which has failed; its
 * trials may have been stopped early. */
static void note_whole(const struct trial *trial, const struct piece *best, double p)
{
	struct tried_list *tried = scratch_tried(trial->scratch);

	for (size_t i = 0; tried && i < trial->count; i++) {
		const struct piece *piece = &trial->pieces[i];
		bool tested = piece == best;
		struct tried one;

		if (piece->split.tau == 0 || !(piece->split.q > 0))
			continue;
		one = segments_tried(trial->segments, piece->start, piece->start + piece->split.tau,
			piece->end, tested ? TRIED_TEST : TRIED_OUTDONE);
		one.pvalue = tested ? p : (double)NAN;
		if (tested)
			tried_limit(&one, "p", p, trial->p_value);
		else
			tried_limit(&one, "q", piece->split.q, best->split.q);
		tried_note(tried, &one);
	}
}

/* Cuts pieces until a candidate fails. */
static void cut_pieces(struct trial *trial)
{
	for (;;) {
		struct piece *best = trial->pieces;
		for (size_t i = 1; i < trial->count; i++)
			if (trial->pieces[i].split.q > best->split.q)
				best = trial->pieces + i;
		if (best->split.tau == 0 || !(best->split.q > 0))
			return;
		double p = candidate_p(trial, best->split.q);
		if (p > trial->p_value)
			note_whole(trial, best, p);
		if (p > trial->p_value || scratch_is_spent(trial->scratch))
			return;
		size_t behind = (size_t)(trial->pieces + trial->count - best);
		memmove(best + 1, best, behind * sizeof(*best));
		trial->count++;
		best[0].end = best[1].start = best[0].start + best[0].split.tau;
		best[1].p = p;
		search_piece(trial, &best[0]);
		search_piece(trial, &best[1]);
	}
}

static size_t permutation_detect(const struct samples *samples, const void *options,
	struct scratch *scratch, struct change *out)
{
	const struct edivisive_permutation_options *given = options;
	scratch_reset(scratch);
	struct segments segments = segments_of(samples, scratch);
	size_t n = segments.n;
	if (n < 2)
		return 0;
	double *scaled = scratch_take(scratch, n, sizeof(double));
	finite_scale(segments.values, n, scaled);
	size_t needed = (size_t)ceil(1 / given->p_value) - 1;
	size_t asked = (size_t)given->permutations;
	struct trial trial = {
		.segments = &segments,
		.values = scaled,
		.shuffled = scratch_take(scratch, n, sizeof(double)),
		.n = n,
		.scratch = scratch,
		.search = search_new(n, loops_best(), scratch),
		.pieces = scratch_take(scratch, n + 1, sizeof(struct piece)),
		.count = 1,
		.permutations = asked > needed ? asked : needed,
		.p_value = given->p_value,
		.random = (uint64_t)given->seed,
	};
	trial.pieces[0] = (struct piece){.start = 0, .end = n};
	search_piece(&trial, &trial.pieces[0]);
	cut_pieces(&trial);
	size_t count = trial.count - 1;
	size_t *cuts = scratch_take(scratch, count, sizeof(*cuts));
	double *pvalues = scratch_take(scratch, count, sizeof(*pvalues));
	for (size_t i = 0; i < count; i++) {
		cuts[i] = trial.pieces[i + 1].start;
		pvalues[i] = trial.pieces[i + 1].p;
	}
	segments_changes(&segments, cuts, pvalues, count, out);
	return count;
}

const struct detector edivisive_permutation_detector = {
	.plugin = {.name = "edivisive_permutation",
		.summary = "e-divisive on the whole series, tested by permutations (Matteson and "
			   "James 2014)",
		.fields = permutation_fields,
		.options_size = sizeof(struct edivisive_permutation_options)},
	.thrift = "choose fewer permutations",
	.detect = permutation_detect,
};
