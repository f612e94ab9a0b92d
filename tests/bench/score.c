#include "tests/bench/score.h"

#include <string.h>

static size_t distance(size_t a, size_t b)
{
	return a > b ? a - b : b - a;
}

/* How many of the truth, ascending, have a partner of their own among the found. */
static size_t matches(
	const size_t *truth, size_t truths, const size_t *found, size_t count, size_t margin)
{
	bool taken[SERIES_MOST] = {false};
	size_t hits = 0;
	for (size_t k = 0; k < truths; k++) {
		size_t best = count;
		for (size_t i = 0; i < count; i++)
			if (!taken[i] && distance(found[i], truth[k]) <= margin &&
				(best == count || distance(found[i], truth[k]) <
							  distance(found[best], truth[k])))
				best = i;
		if (best == count)
			continue;
		taken[best] = true;
		hits++;
	}
	return hits;
}

void tally_add(struct tally *tally, const struct labelled *series, const struct change *changes,
	size_t count, size_t margin)
{
	size_t found[SERIES_MOST];
	for (size_t i = 0; i < count; i++)
		found[i] = changes[i].index;
	tally->hits += matches(series->truth, series->truth_count, found, count, margin);
	tally->found += count;
	tally->truth += series->truth_count;
}

double tally_f1(struct tally tally)
{
	size_t both = tally.found + tally.truth;
	return both > 0 ? 2 * (double)tally.hits / (double)both : 1;
}

double score_f1_annotated(
	const struct labelled *series, const struct change *changes, size_t count, size_t margin)
{
	size_t found[SERIES_MOST] = {0}, truth[TRUTH_MOST + 1] = {0};
	for (size_t i = 0; i < count; i++)
		found[i + 1] = changes[i].index;
	for (size_t k = 0; k < series->truth_count; k++)
		truth[k + 1] = series->truth[k];
	size_t hits = matches(truth, series->truth_count + 1, found, count + 1, margin);
	return 2 * (double)hits / (double)(count + series->truth_count + 2);
}

/* A change that is followed from pass to pass. */
struct followed {
	size_t index, first_count, alarm;
	int sign;
	bool there, announced;
};

struct watch {
	struct followed changes[ALARMS_MOST];
	size_t count;
	size_t alarm_at[ALARMS_MOST], alarm_seen[ALARMS_MOST], alarm_count;
};

static int sign_of(const struct change *change)
{
	return change->mean_after > change->mean_before ? 1 : -1;
}

/* The followed change that this one is: the nearest within SAME_ALARM; else a new one. */
static struct followed *follow(struct watch *watch, const struct change *change)
{
	struct followed *best = NULL;
	for (size_t i = 0; i < watch->count; i++) {
		struct followed *known = &watch->changes[i];
		size_t away = distance(known->index, change->index);
		if (!known->there && known->sign == sign_of(change) && away <= SAME_ALARM &&
			(!best || away < distance(best->index, change->index)))
			best = known;
	}
	if (!best && watch->count < ALARMS_MOST) {
		best = &watch->changes[watch->count++];
		*best = (struct followed){
			.sign = sign_of(change), .first_count = change->count_after};
	}
	return best;
}

static bool is_told(const struct watch *watch, size_t index)
{
	for (size_t i = 0; i < watch->alarm_count; i++)
		if (distance(watch->alarm_at[i], index) <= SAME_ALARM)
			return true;
	return false;
}

static void announce(struct watch *watch, struct followed *known, size_t seen)
{
	known->announced = true;
	if (is_told(watch, known->index) || watch->alarm_count == ALARMS_MOST)
		return;
	known->alarm = watch->alarm_count + 1;
	watch->alarm_at[watch->alarm_count] = known->index;
	watch->alarm_seen[watch->alarm_count++] = seen;
}

/* One pass over what was found among the first `seen` points. A candidate that is gone is
 * forgotten. */
static void take_in(struct watch *watch, const struct change *changes, size_t count, size_t seen,
	const struct confirm_rule *rule, bool tracked)
{
	for (size_t i = 0; i < watch->count; i++)
		watch->changes[i].there = false;
	for (size_t i = 0; i < count; i++) {
		struct followed *known = follow(watch, &changes[i]);
		if (!known)
			continue;
		known->index = changes[i].index;
		known->there = true;
		if (known->announced && tracked)
			continue;
		if (known->announced || confirm_holds(rule, &changes[i], known->first_count))
			announce(watch, known, seen);
	}
	for (size_t i = 0; i < watch->count; i++)
		if (!watch->changes[i].there && !watch->changes[i].announced)
			watch->changes[i--] = watch->changes[--watch->count];
}

static bool is_true(const struct labelled *series, size_t index)
{
	for (size_t k = 0; k < series->truth_count; k++)
		if (distance(series->truth[k], index) <= SAME_ALARM)
			return true;
	return false;
}

static bool is_left(const struct watch *watch, size_t alarm, const struct change *changes,
	size_t count, bool tracked)
{
	for (size_t i = 0; tracked && i < watch->count; i++)
		if (watch->changes[i].alarm == alarm + 1 && watch->changes[i].there)
			return true;
	for (size_t i = 0; i < count; i++)
		if (distance(changes[i].index, watch->alarm_at[alarm]) <= SAME_ALARM)
			return true;
	return false;
}

static void judge(struct watched *out, const struct watch *watch, const struct labelled *series,
	const struct change *changes, size_t count, bool tracked)
{
	out->alarms = watch->alarm_count;
	for (size_t a = 0; a < watch->alarm_count; a++) {
		bool right = is_true(series, watch->alarm_at[a]);
		bool left = is_left(watch, a, changes, count, tracked);
		out->wrong += !right;
		out->withdrawn += !left;
		out->true_withdrawn += right && !left;
	}
	for (size_t k = 0; k < series->truth_count; k++)
		for (size_t a = 0; a < watch->alarm_count; a++)
			if (distance(watch->alarm_at[a], series->truth[k]) <= SAME_ALARM &&
				watch->alarm_seen[a] > series->truth[k]) {
				out->delays[out->seen++] = watch->alarm_seen[a] - series->truth[k];
				break;
			}
}

struct watched score_stream(const struct labelled *series, const struct detector *detector,
	const void *options, const struct confirm_rule *rule, bool tracked, struct scratch *scratch)
{
	struct watched out = {0};
	struct watch watch = {0};
	struct stream *stream = detector->stream_new(options);
	const struct change *changes = NULL;
	size_t count = 0;
	for (size_t seen = 0; seen < series->n; out.points++) {
		size_t more = seen > 0 ? 1 : FIRST_POINTS;
		more = more < series->n ? more : series->n;
		changes = detector->stream_append(
			stream, series->values + seen, more, scratch, &count);
		seen += more;
		take_in(&watch, changes, count, seen, rule, tracked);
	}
	judge(&out, &watch, series, changes, count, tracked);
	detector->stream_free(stream);
	return out;
}
