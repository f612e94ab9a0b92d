/*
 * The scores of predictions for the series of generate.h: of a whole series against its truth, and
 * of one that arrives point by point against what was announced and what became of it.
 */
#ifndef TESTS_BENCH_SCORE_H
#define TESTS_BENCH_SCORE_H

#include "detectors/confirm.h"
#include "detectors/detector.h"
#include "tests/bench/generate.h"

/* True positives, and how many were found and true. */
struct tally {
	size_t hits, found, truth;
};

void tally_add(struct tally *tally, const struct labelled *series, const struct change *changes,
	size_t count, size_t margin);
double tally_f1(struct tally tally);

/* F1 with index 0. */
double tally_f1_annotated(
	const struct labelled *series, const struct change *changes, size_t count, size_t margin);

/* What the agent said while a series grew, as detectors/online_eval.h has it. */
struct watched {
	size_t points;             /* steps taken */
	size_t alarms, wrong;      /* announced; those not near the truth */
	size_t withdrawn;          /* announced, and no longer there at the end */
	size_t true_withdrawn;     /* of those that were right */
	size_t seen;               /* true points announced */
	size_t delays[TRUTH_MOST]; /* points after each of those until it was */
};

/* Feeds the series to the detector, which must have a stream. */
struct watched score_stream(const struct labelled *series, const struct detector *detector,
	const void *options, const struct confirm_rule *rule, bool tracked,
	struct scratch *scratch);

#endif
