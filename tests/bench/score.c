/*
 * The metrics are those of `hunter-c evaluate` (detectors/score.h, detectors/online_eval.h); here
 * they take the bench's series.
 */
#include "tests/bench/score.h"

#include "detectors/online_eval.h"

/* The places of the changes, which need room for as many. */
static struct places places_of(const struct change *changes, size_t count, size_t *room)
{
	for (size_t i = 0; i < count; i++)
		room[i] = changes[i].index;
	return (struct places){room, count};
}

static struct labels labels_of(const struct labelled *series, struct places *truth)
{
	*truth = (struct places){series->truth, series->truth_count};
	return (struct labels){
		.annotators = truth, .annotator_count = 1, .all = *truth, .n = series->n};
}

void tally_add(struct tally *tally, const struct labelled *series, const struct change *changes,
	size_t count, size_t margin)
{
	size_t room[SERIES_MOST];
	struct places truth = {series->truth, series->truth_count};
	tally->hits += score_hits(truth, places_of(changes, count, room), margin);
	tally->found += count;
	tally->truth += series->truth_count;
}

double tally_f1(struct tally tally)
{
	size_t both = tally.found + tally.truth;
	return both > 0 ? 2 * (double)tally.hits / (double)both : 1;
}

double tally_f1_annotated(
	const struct labelled *series, const struct change *changes, size_t count, size_t margin)
{
	size_t room[SERIES_MOST];
	struct places truth;
	struct labels labels = labels_of(series, &truth);
	return score_f1_annotated(&labels, places_of(changes, count, room), margin);
}

struct watched score_stream(const struct labelled *series, const struct detector *detector,
	const void *options, const struct confirm_rule *rule, bool tracked, struct scratch *scratch)
{
	struct watched out = {0};
	struct places truth;
	struct labels labels = labels_of(series, &truth);
	struct follower *follower = follower_new(rule, tracked);
	struct stream *stream = detector->stream_new(options, 0);
	const struct change *changes = NULL;
	size_t count = 0;
	for (size_t seen = 0; seen < series->n; out.points++) {
		size_t more = seen > 0 ? 1 : ONLINE_FIRST;
		more = more < series->n ? more : series->n;
		changes = detector->stream_append(
			stream, series->values + seen, more, scratch, &count);
		seen += more;
		follower_take(follower, series->values, seen, changes, count);
	}
	struct followed followed = follower_judge(follower, &labels, changes, count);
	out.alarms = followed.alarms;
	out.wrong = followed.wrong;
	out.withdrawn = followed.withdrawn;
	out.true_withdrawn = followed.true_withdrawn;
	for (size_t k = 0; k < series->truth_count; k++)
		out.seen += follower_delay(follower, series->truth[k], &out.delays[out.seen]);
	detector->stream_free(stream);
	follower_free(follower);
	return out;
}
