/*
 * docs/design/algorithms.md section 9.
 */
#include "detectors/score.h"

#include <stdint.h>
#include <stdlib.h>

#include "agent/base/arena.h"

static size_t distance(size_t a, size_t b)
{
	return a > b ? a - b : b - a;
}

bool labels_unsure(const struct labels *labels, size_t place)
{
	for (size_t i = 0; i < labels->span_count; i++)
		if (place >= labels->spans[i].from && place < labels->spans[i].to)
			return true;
	for (size_t i = 0; i < labels->maybe.count; i++)
		if (distance(labels->maybe.at[i], place) <= SCORE_NEAR)
			return true;
	return false;
}

/* Marks the found places that match a label; returns their number. */
static size_t match(struct places labels, struct places found, size_t margin, bool *taken)
{
	size_t hits = 0, from = 0;
	for (size_t k = 0; k < labels.count; k++) {
		while (from < found.count && found.at[from] + margin < labels.at[k])
			from++;
		size_t best = found.count; /* the nearest free one */
		for (size_t i = from; i < found.count && found.at[i] <= labels.at[k] + margin;
			i++) {
			size_t away = distance(found.at[i], labels.at[k]);
			if (!taken[i] && away <= margin &&
				(best == found.count ||
					away < distance(found.at[best], labels.at[k])))
				best = i;
		}
		if (best == found.count)
			continue;
		taken[best] = true;
		hits++;
	}
	return hits;
}

size_t score_hits(struct places labels, struct places found, size_t margin)
{
	bool *taken = memory_new(found.count, sizeof *taken);
	size_t hits = match(labels, found, margin, taken);
	free(taken);
	return hits;
}

struct places score_counted(
	const struct labels *labels, struct places found, size_t margin, size_t *room)
{
	bool *taken = memory_new(found.count + 1, sizeof *taken);
	size_t kept = 0;
	match(labels->all, found, margin, taken);
	for (size_t i = 0; i < found.count; i++)
		if (taken[i] || !labels_unsure(labels, found.at[i]))
			room[kept++] = found.at[i];
	free(taken);
	return (struct places){room, kept};
}

void score_add(
	struct score_tally *tally, const struct labels *labels, struct places found, size_t margin)
{
	double seen = 0, truth = 0, annotators = (double)labels->annotator_count;
	for (size_t a = 0; a < labels->annotator_count; a++) {
		seen += (double)score_hits(labels->annotators[a], found, margin);
		truth += (double)labels->annotators[a].count;
	}
	tally->right += (double)score_hits(labels->all, found, margin);
	tally->found += (double)found.count;
	tally->seen += seen / annotators;
	tally->truth += truth / annotators;
}

/* F1, the harmonic mean. */
static double f1_of(double precision, double recall)
{
	double sum = precision + recall;
	return sum > 0 ? 2 * precision * recall / sum : 0;
}

double score_precision(const struct score_tally *tally)
{
	return tally->found > 0 ? tally->right / tally->found : 1;
}

double score_recall(const struct score_tally *tally)
{
	return tally->truth > 0 ? tally->seen / tally->truth : 1;
}

double score_f1(const struct score_tally *tally)
{
	return f1_of(score_precision(tally), score_recall(tally));
}

/* A copy with index 0 in front. */
static struct places with_origin(struct places places)
{
	size_t *at = memory_new(places.count + 1, sizeof *at);
	at[0] = 0;
	for (size_t i = 0; i < places.count; i++)
		at[i + 1] = places.at[i];
	return (struct places){at, places.count + 1};
}

static void free_places(struct places places)
{
	free((size_t *)(uintptr_t)places.at);
}

double score_f1_annotated(const struct labels *labels, struct places found, size_t margin)
{
	struct places all = with_origin(labels->all), ours = with_origin(found);
	double precision = (double)score_hits(all, ours, margin) / (double)ours.count, recall = 0;
	for (size_t a = 0; a < labels->annotator_count; a++) {
		struct places one = with_origin(labels->annotators[a]);
		recall += (double)score_hits(one, ours, margin) / (double)one.count;
		free_places(one);
	}
	free_places(all);
	free_places(ours);
	return f1_of(precision, recall / (double)labels->annotator_count);
}

/* Segment k of a series with these change points. */
static struct score_span segment(struct places places, size_t k, size_t n)
{
	return (struct score_span){
		k > 0 ? places.at[k - 1] : 0, k < places.count ? places.at[k] : n};
}

static double length(struct score_span span)
{
	return (double)(span.to - span.from);
}

static double common(struct score_span a, struct score_span b)
{
	size_t from = a.from > b.from ? a.from : b.from, to = a.to < b.to ? a.to : b.to;
	return to > from ? (double)(to - from) : 0;
}

double score_cover(const struct labels *labels, struct places found)
{
	size_t n = labels->n;
	double sum = 0;
	for (size_t a = 0; a < labels->annotator_count; a++)
		for (size_t k = 0, first = 0; k <= labels->annotators[a].count; k++) {
			struct score_span one = segment(labels->annotators[a], k, n);
			double best = 0; /* Jaccard index */
			while (first < found.count && found.at[first] <= one.from)
				first++;
			for (size_t i = first; i <= found.count; i++) {
				struct score_span other = segment(found, i, n);
				double both = common(one, other);
				double jaccard = both / (length(one) + length(other) - both);
				if (other.from >= one.to)
					break;
				if (jaccard <= best)
					continue;
				sum += (jaccard - best) * length(one);
				best = jaccard;
			}
		}
	return sum / ((double)n * (double)labels->annotator_count);
}

static double pairs(double points)
{
	return points * (points - 1) / 2;
}

static double pairs_within(struct places places, size_t n)
{
	double sum = 0;
	for (size_t k = 0; k <= places.count; k++)
		sum += pairs(length(segment(places, k, n)));
	return sum;
}

double score_rand(const struct labels *labels, struct places found)
{
	double all = pairs((double)labels->n), sum = 0;
	if (labels->n < 2)
		return 1;
	for (size_t a = 0; a < labels->annotator_count; a++) {
		struct places one = labels->annotators[a];
		double together = 0;
		for (size_t k = 0, first = 0; k <= one.count; k++) {
			struct score_span labelled = segment(one, k, labels->n);
			while (first < found.count && found.at[first] <= labelled.from)
				first++;
			for (size_t i = first; i <= found.count; i++) {
				struct score_span other = segment(found, i, labels->n);
				if (other.from >= labelled.to)
					break;
				together += pairs(common(labelled, other));
			}
		}
		sum += 1 - (pairs_within(one, labels->n) + pairs_within(found, labels->n) -
				   2 * together) /
				   all;
	}
	return sum / (double)labels->annotator_count;
}
