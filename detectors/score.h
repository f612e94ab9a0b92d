/*
 * Scores of change points against labels, over whole series: docs/design/algorithms.md section 9.
 *
 * Matching is one to one within a margin: each label, in order, takes the nearest found place that
 * is still free. The scores over several annotators count index 0 as a change point of everyone
 * (van den Burg and Williams, "An Evaluation of Change Point Detection Algorithms", 2020).
 */
#ifndef DETECTORS_SCORE_H
#define DETECTORS_SCORE_H

#include <stdbool.h>
#include <stddef.h>

enum { SCORE_NEAR = 5 }; /* points: how far off a place may be and still count as found */

/* Change points: ascending, each once, from 1 to n - 1. */
struct places {
	const size_t *at;
	size_t count;
};

/* [from, to) */
struct score_span {
	size_t from, to;
};

/* The labels that people gave a series of n points. */
struct labels {
	const struct places *annotators; /* at least one */
	size_t annotator_count;
	struct places all; /* union of the annotators' labels */
	/* Where people are unsure, spans and SCORE_NEAR points around places: a change found there
	 * counts only if it matches a label. */
	struct places maybe;
	const struct score_span *spans;
	size_t span_count;
	size_t n;
};

/* Is the place near a maybe or within one of the unsure spans? */
bool labels_unsure(const struct labels *labels, size_t place);

/* The number of labels that are matched one to one with found places. */
size_t score_hits(struct places labels, struct places found, size_t margin);

/* The found places that count: without those in unsure spans that no label matches. `room` holds
 * them, at most found.count. */
struct places score_counted(
	const struct labels *labels, struct places found, size_t margin, size_t *room);

/* Sums over series. With several annotators precision counts found places that any of them
 * labelled; recall is the mean over them. */
struct score_tally {
	double right, found; /* found places that are labelled; all found ones */
	double seen, truth;  /* labelled places that were found; all labelled ones */
};

void score_add(
	struct score_tally *tally, const struct labels *labels, struct places found, size_t margin);

/* 1 where nothing was found, nothing is there, or both. */
double score_precision(const struct score_tally *tally);
double score_recall(const struct score_tally *tally);
double score_f1(const struct score_tally *tally);

/* F1 of one series, with index 0. */
double score_f1_annotated(const struct labels *labels, struct places found, size_t margin);

/* Covering, 0..1: how well the segments between found places cover those between labels. */
double score_cover(const struct labels *labels, struct places found);

/* Rand index: the share of pairs of points on which labels and result agree whether the two are in
 * one segment. */
double score_rand(const struct labels *labels, struct places found);

#endif
