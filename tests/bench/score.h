/*
 * How good predictions are: of a whole series against its truth, and of a series that arrives point
 * by point against what was announced and what became of it.
 *
 * Matching is one to one within a margin, each true point taking the nearest free one. F1 of
 * annotated data counts index 0 as a change point of everyone, as van den Burg and Williams 2020
 * do.
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
double score_f1_annotated(
	const struct labelled *series, const struct change *changes, size_t count, size_t margin);

enum { ALARMS_MOST = 256, FIRST_POINTS = 10, SAME_ALARM = 5 };

/* What the agent said while a series grew from FIRST_POINTS on. */
struct watched {
	size_t points;             /* steps taken */
	size_t alarms, wrong;      /* announced; those not within SAME_ALARM of the truth */
	size_t withdrawn;          /* announced, and no longer there at the end */
	size_t true_withdrawn;     /* of those that were right */
	size_t seen;               /* true points announced */
	size_t delays[TRUTH_MOST]; /* points after each of those until it was */
};

/*
 * Feeds the series to the detector. A change is followed as the agent does, by sign and nearest
 * place; with `tracked` false alarms are told apart by the places they were announced at alone,
 * which is how the peers were measured.
 */
struct watched score_stream(const struct labelled *series, const struct detector *detector,
	const void *options, const struct confirm_rule *rule, bool tracked,
	struct scratch *scratch);

#endif
