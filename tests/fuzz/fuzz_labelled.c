/*
 * The reader of labelled series: whatever it accepts keeps the promises that the scores rely on.
 */
#include <stdint.h>
#include <stdlib.h>

#include "agent/evaluate/labelled.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
	if (!holds)
		abort();
}

static void check_places(struct places places, size_t n)
{
	for (size_t i = 0; i < places.count; i++) {
		require(places.at[i] > 0 && places.at[i] < n);
		require(i == 0 || places.at[i - 1] < places.at[i]);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct line_reader *reader = line_reader_new();
	struct arena *arena = arena_new();
	struct labelled_series series;
	struct error error;
	if (labelled_read(reader, (const char *)data, size, arena, &series, &error)) {
		const struct labels *labels = &series.labels;
		require(labels->n > 0);
		check_places(labels->maybe, labels->n);
		require(labels->annotators || labels->annotator_count == 0);
		check_places(labels->all, labels->n);
		for (size_t a = 0; a < labels->annotator_count; a++) {
			check_places(labels->annotators[a], labels->n);
			require(score_hits(labels->annotators[a], labels->all, 0) ==
				labels->annotators[a].count);
		}
		for (size_t i = 0; i < labels->span_count; i++)
			require(labels->spans[i].from <= labels->spans[i].to &&
				labels->spans[i].to <= labels->n);
		if (labels->annotator_count == 1) {
			double cover = score_cover(labels, labels->all);
			require(cover > 1 - 1e-9 && cover < 1 + 1e-9);
		}
	}
	arena_free(arena);
	line_reader_free(reader);
	return 0;
}
