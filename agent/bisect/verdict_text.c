/* At most this many commits are named, the others counted. */
#include "agent/bisect/verdict_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/model/json_put.h"

enum {
	SHORTEST = 7,
	NAMED = 5,    /* commits of a set in the line */
	LISTED = 256, /* in JSON */
	BAR = 30,     /* columns */
	NARROWEST = 40,
};

static const double worth_a_row = .005;

const char *verdict_short(const struct journal_setup *setup, size_t position, char out[VERDICT_ID])
{
	const char *id = journal_commit(setup, position);
	size_t length = SHORTEST;

	for (size_t i = 0; i <= setup->candidates.count; i++) {
		const char *other = journal_commit(setup, i);

		while (length < strlen(id) && strncmp(other, id, length) == 0 &&
			strcmp(other, id) != 0)
			length++;
	}
	snprintf(out, VERDICT_ID, "%.*s", (int)length, id);
	return out;
}

/* 100% is shown only for certainty. */
static void put_percent(struct buf *out, double probability)
{
	if (probability >= .995 && probability < 1)
		buf_printf(out, "%.1f%%", fmin(100 * probability, 99.9));
	else if (probability > 0 && probability < .005)
		buf_text(out, "<1%");
	else
		buf_printf(out, "%.0f%%", 100 * probability);
}

/* "+6.3% [5.1, 7.4], 12 pairs" */
static void put_estimate(struct buf *out, const struct bisect_estimate *estimate, const char *after)
{
	if (isfinite(estimate->percent))
		buf_printf(out, "%+.1f%%", estimate->percent);
	else
		buf_text(out, "a step of unknown size");
	if (isfinite(estimate->low) && isfinite(estimate->high))
		buf_printf(out, " [%.1f, %.1f]", estimate->low, estimate->high);
	buf_printf(out, "%s%zu pair%s", after, estimate->pairs, estimate->pairs == 1 ? "" : "s");
}

/* "4f2c91a (97%)" */
static void put_commit(struct buf *out, const struct journal_setup *setup,
	const struct bisect_candidate *candidate)
{
	char id[VERDICT_ID];

	buf_printf(out, "%s (", verdict_short(setup, candidate->position, id));
	put_percent(out, candidate->probability);
	buf_text(out, candidate->broken ? ", cannot be tested)" : ")");
}

static void put_set(
	struct buf *out, const struct bisect_status *status, const struct journal_setup *setup)
{
	for (size_t i = 0; i < status->set_count && i < NAMED; i++) {
		buf_text(out, i ? ", " : "");
		put_commit(out, setup, &status->set[i]);
	}
	if (status->set_count > NAMED)
		buf_printf(out, " and %zu others", status->set_count - NAMED);
}

/* "one of 3, of which 2 cannot be tested: ..." */
static void put_left(
	struct buf *out, const struct bisect_status *status, const struct journal_setup *setup)
{
	size_t broken = 0;

	for (size_t i = 0; i < status->set_count; i++)
		broken += status->set[i].broken;
	buf_printf(out, "first bad: one of %zu", status->set_count);
	if (broken > 0)
		buf_printf(out, ", %zu of them untestable", broken);
	buf_text(out, ": ");
	put_set(out, status, setup);
}

/* The culprit, and other candidates with some probability. */
static void put_found(
	struct buf *out, const struct bisect_status *status, const struct journal_setup *setup)
{
	size_t culprit = status->set_count > 0 ? status->set[0].position : 0;
	size_t second = 0;

	buf_text(out, "first bad: ");
	put_set(out, status, setup);
	for (size_t i = 1; i <= setup->candidates.count; i++)
		if (i != culprit &&
			(second == 0 || status->probability[i] > status->probability[second]))
			second = i;
	if (status->set_count == 1 && second > 0 && status->probability[second] >= worth_a_row) {
		buf_text(out, ", ");
		put_commit(out, setup,
			&(struct bisect_candidate){second, status->probability[second], false});
	}
	buf_text(out, "; verified against its parent: ");
	put_estimate(out, &status->verified, ", ");
}

static void put_over(
	struct buf *out, const struct bisect_status *status, const struct journal_setup *setup)
{
	switch (status->end) {
	case BISECT_FOUND: put_found(out, status, setup); break;
	case BISECT_SET:
		put_left(out, status, setup);
		buf_text(out, "; no testable commit separates them");
		break;
	case BISECT_OUT_OF_BUDGET:
		put_left(out, status, setup);
		buf_text(out, "; the budget is used up");
		break;
	case BISECT_NOT_REPRODUCED:
		buf_text(out, "not reproduced: ");
		put_estimate(out, &status->ends, " after ");
		break;
	case BISECT_ENDS_BROKEN: buf_text(out, "cannot measure an end of the range"); break;
	case BISECT_CANCELLED:
		buf_text(out, "cancelled");
		if (status->set_count > 0 && status->set_count < setup->candidates.count) {
			buf_text(out, "; ");
			put_left(out, status, setup);
		}
		break;
	}
}

void verdict_text(
	struct buf *out, const struct bisect_status *status, const struct journal_setup *setup)
{
	switch (status->phase) {
	case BISECT_ENDS:
		buf_text(out, "measuring the ends");
		if (status->ends.pairs > 0) {
			buf_text(out, ": ");
			put_estimate(out, &status->ends, " after ");
		}
		break;
	case BISECT_SEARCH:
		buf_printf(
			out, "%zu of %zu commits left", status->set_count, setup->candidates.count);
		if (status->set_count > 0 && status->set_count < setup->candidates.count) {
			buf_text(out, ": ");
			put_set(out, status, setup);
		}
		break;
	case BISECT_VERIFY:
		buf_text(out, "comparing with its parent: ");
		put_set(out, status, setup);
		break;
	case BISECT_OVER: put_over(out, status, setup); break;
	}
	if (status->more_steps)
		buf_text(out, "; the range seems to have more than one step, this is the largest");
}

const char *verdict_end_name(enum bisect_end end)
{
	static const char *const names[] = {[BISECT_FOUND] = "found",
		[BISECT_SET] = "set",
		[BISECT_OUT_OF_BUDGET] = "out_of_budget",
		[BISECT_NOT_REPRODUCED] = "not_reproduced",
		[BISECT_ENDS_BROKEN] = "ends_broken",
		[BISECT_CANCELLED] = "cancelled"};

	return names[end];
}

static void put_candidate(struct buf *out, const struct bisect_candidate *candidate,
	const struct journal_setup *setup)
{
	json_put(out, "{commit: %s, position: %zu", journal_commit(setup, candidate->position),
		candidate->position);
	if (setup->subjects.count > 0)
		json_put_text(out, "subject", setup->subjects.items[candidate->position]);
	json_put(out, "probability: %g, broken: %d bool}", candidate->probability,
		candidate->broken);
}

static void put_estimate_json(
	struct buf *out, const char *key, const struct bisect_estimate *estimate)
{
	json_key(out, key);
	if (estimate->pairs == 0) {
		buf_text(out, "null");
		return;
	}
	json_put(out, "{pairs: %zu, percent: %g, low: %g, high: %g}", estimate->pairs,
		estimate->percent, estimate->low, estimate->high);
}

void verdict_json(
	struct buf *out, const struct bisect_status *status, const struct journal_setup *setup)
{
	bool over = status->phase == BISECT_OVER;

	json_put(out, "phase: %s, end: %s optional, culprit:", journal_phases[status->phase],
		over ? verdict_end_name(status->end) : "");
	if (over && status->end == BISECT_FOUND && status->set_count > 0)
		put_candidate(out, &status->set[0], setup);
	else
		buf_text(out, "null");
	buf_text(out, ", \"set\": [");
	for (size_t i = 0; i < status->set_count && i < LISTED; i++)
		put_candidate(out, &status->set[i], setup);
	json_put(out, "], set_count: %zu, candidates: %zu, broken: %zu, runs: %zu, rounds: %zu",
		status->set_count, setup->candidates.count, status->broken, status->runs,
		status->rounds);
	put_estimate_json(out, "ends", &status->ends);
	put_estimate_json(out, "verified", &status->verified);
	json_put(out, "spread: %g, more_steps: %d bool", status->spread, status->more_steps);
}

/* The measurements at a position. */
struct level {
	size_t count, failed;
	double mean;
};

static struct level *list_levels(const struct journal *journal)
{
	struct level *levels = memory_new(journal->setup->candidates.count + 1, sizeof *levels);

	for (size_t i = 0; i < journal->count; i++) {
		const struct bisect_result *result = &journal->entries[i].result;
		struct level *level = &levels[result->position];

		if (journal->entries[i].kind != JOURNAL_RESULT)
			continue;
		level->failed +=
			result->outcome != BISECT_MEASURED && result->outcome != BISECT_LOST;
		if (result->outcome == BISECT_MEASURED)
			level->mean += (result->value - level->mean) / (double)++level->count;
	}
	return levels;
}

/* Whether a commit's row is shown: measured, or probable. */
static bool is_shown(const struct bisect_status *status, const struct journal_setup *setup,
	const struct level *levels, size_t position)
{
	return position == 0 || position == setup->candidates.count || levels[position].count > 0 ||
	       levels[position].failed > 0 || status->probability[position] >= worth_a_row;
}

static void put_bar(struct buf *out, double probability)
{
	static const char *const parts[] = {"", "\xE2\x96\x8F", "\xE2\x96\x8E", "\xE2\x96\x8D",
		"\xE2\x96\x8C", "\xE2\x96\x8B", "\xE2\x96\x8A", "\xE2\x96\x89"};
	size_t eighths = (size_t)lround(probability * BAR * 8);

	for (size_t i = 0; i < eighths / 8; i++)
		buf_text(out, "\xE2\x96\x88");
	buf_text(out, parts[eighths % 8]);
	for (size_t i = (eighths + 7) / 8; i < BAR; i++)
		buf_char(out, ' ');
}

static void put_row(struct buf *out, const struct bisect_status *status,
	const struct journal_setup *setup, const struct level *level, size_t position, size_t width,
	int columns)
{
	char id[VERDICT_ID], mean[32] = "";
	double probability = position > 0 ? status->probability[position] : 0;
	size_t used;

	if (level->count > 0)
		snprintf(mean, sizeof mean, "%.6g", level->mean);
	buf_printf(out, "%-*s %12s ", (int)width, verdict_short(setup, position, id), mean);
	if (level->count > 0)
		buf_printf(out, "%5zu ", level->count);
	else
		buf_text(out, level->failed > 0 ? "fails " : "      ");
	if (position == 0) {
		buf_printf(out, "%-*s", BAR + 5, "good");
	} else {
		struct buf percent = {0};

		put_bar(out, probability);
		put_percent(&percent, probability);
		buf_printf(out, "%5s", percent.data);
		buf_free(&percent);
	}
	used = width + 20 + BAR + 6;
	if (setup->subjects.count > 0 && (size_t)columns > used + 8) {
		buf_char(out, ' ');
		buf_clean(out, setup->subjects.items[position], (size_t)columns - used);
	}
	while (out->length > 0 && out->data[out->length - 1] == ' ')
		out->data[--out->length] = '\0';
	buf_char(out, '\n');
}

void verdict_plot(struct buf *out, const struct bisect_status *status,
	const struct journal *journal, int columns)
{
	const struct journal_setup *setup = journal->setup;
	struct level *levels = list_levels(journal);
	size_t width = SHORTEST, hidden = 0;
	double sum = 0;
	char id[VERDICT_ID];

	for (size_t i = 0; i <= setup->candidates.count; i++)
		if (is_shown(status, setup, levels, i) &&
			strlen(verdict_short(setup, i, id)) > width)
			width = strlen(id);
	buf_printf(out, "%-*s %12s %5s probability\n", (int)width, "commit", "mean", "runs");
	for (size_t i = 0; i <= setup->candidates.count; i++) {
		if (!is_shown(status, setup, levels, i)) {
			hidden++;
			sum += status->probability[i];
			continue;
		}
		if (hidden > 0)
			buf_printf(out, "... %zu commit%s", hidden, hidden == 1 ? "" : "s");
		if (hidden > 0 && sum > 0) {
			buf_text(out, ", ");
			put_percent(out, sum);
		}
		buf_text(out, hidden > 0 ? "\n" : "");
		hidden = 0;
		sum = 0;
		put_row(out, status, setup, &levels[i], i, width,
			columns > NARROWEST ? columns : NARROWEST);
	}
	free(levels);
}
