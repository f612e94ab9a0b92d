/*
 * What Prometheus answered, on its way to a dataset: the pieces of a long range are put together by
 * label set, and each label set becomes a series with a name and an identity.
 */
#ifndef SOURCES_PROMETHEUS_SERIES_H
#define SOURCES_PROMETHEUS_SERIES_H

#include "sources/prometheus_answer.h"
#include "sources/source.h"

struct collection;

/* All of it lives in the arena. */
struct collection *collection_new(struct arena *arena);

/*
 * The series that follow are of this metric (NULL: each is of a metric named by its __name__), and
 * their points outside of [from, to) are dropped. The ranges of one metric come in order of time.
 */
void collection_expect(
	struct collection *collection, const struct metric *metric, int64_t from, int64_t to);

/* An answer_take; the context is the collection. */
void collection_take(void *collection, const struct answer_series *series);

/* Native histograms that were left out, since collection_new. */
size_t collection_histograms(const struct collection *collection);

/*
 * The dataset: a series for each label set that has points. Its name is the metric's with the
 * labels in which the metric's series differ, its identity the metric's with all labels. Series
 * with the same time stamps share an axis. Values are scaled.
 */
struct dataset collection_dataset(struct collection *collection);

#endif
