/*
 * Text has a column per detector, for comparison; JSON has every count, so that others can add
 * up.
 */
#include <string.h>

#include "agent/evaluate/evaluate.h"
#include "agent/model/json_put.h"

enum { LABEL = 42, NARROW = 12 };

static const char *const live_names[LIVES] = {"confirmed", "at_once"};

struct columns {
	struct buf *out;
	struct result *results;
	size_t count;
};

enum unit { PLAIN, PERCENT, COUNT };

static int width(const struct result *result)
{
	size_t length = strlen(result->contender->name);
	return (int)(length < NARROW ? NARROW : length) + 2;
}

/* Of the series with changes within a margin; MARGINS: of all series, within the main one. */
static const struct score_tally *tally_of(const struct result *result, size_t margin)
{
	return margin < MARGINS ? &result->whole.margins[margin] : &result->whole.all;
}

static double mean(double sum, size_t count)
{
	return count > 0 ? sum / (double)count : 0;
}

enum measure {
	/* Within a margin, as for tally_of. */
	PRECISION,
	RECALL,
	F1,
	/* Of all series. */
	ANNOTATED_F1,
	COVERING,
	RAND,
	SEASONAL,
	FLAT,
	/* By enum live. */
	SEEN,
	DELAY_HALF,
	DELAY_MOST,
	ALARMS,
	WRONG,
	WITHDRAWN,
	RIGHT_WITHDRAWN,
	OTHER_ALARMS,
};

static double number_of(struct result *result, enum measure measure, size_t which)
{
	const struct standing *whole = &result->whole;
	struct live *live = &result->whole.live[measure < SEEN ? 0 : which];
	const struct followed *alarms = &live->alarms;

	switch (measure) {
	case PRECISION: return score_precision(tally_of(result, which));
	case RECALL: return score_recall(tally_of(result, which));
	case F1: return score_f1(tally_of(result, which));
	case ANNOTATED_F1: return mean(whole->f1, whole->series);
	case COVERING: return mean(whole->cover, whole->series);
	case RAND: return mean(whole->rand, whole->series);
	case SEASONAL: return (double)whole->seasonal;
	case FLAT: return per_thousand((double)whole->flat_found, whole->flat_points);
	case SEEN: return mean((double)live->seen, live->truth);
	case DELAY_HALF: return (double)live_delay(live, 5);
	case DELAY_MOST: return (double)live_delay(live, 9);
	case ALARMS: return (double)alarms->alarms;
	case WRONG: return per_thousand((double)alarms->wrong, live->points);
	case WITHDRAWN: return mean((double)alarms->withdrawn, alarms->alarms);
	case RIGHT_WITHDRAWN:
		return mean((double)alarms->true_withdrawn, alarms->alarms - alarms->wrong);
	case OTHER_ALARMS: return (double)judged_of(live).other;
	}
	return 0;
}

/* A line: its label, and a number from each of the results. */
static void put_line(const struct columns *columns, const char *label, enum unit unit,
	enum measure measure, size_t which)
{
	buf_printf(columns->out, "%-*s", LABEL, label);
	for (size_t i = 0; i < columns->count; i++) {
		char text[32];
		double value = number_of(&columns->results[i], measure, which);
		if (unit == PERCENT)
			snprintf(text, sizeof text, "%.1f%%", 100 * value);
		else
			snprintf(text, sizeof text, "%.*f", unit == COUNT ? 0 : 3, value);
		buf_printf(columns->out, "%*s", width(&columns->results[i]), text);
	}
	buf_char(columns->out, '\n');
}

static void put_scores(const struct columns *columns, size_t margin)
{
	char title[80];
	snprintf(title, sizeof title, "  within %zu points: precision",
		evaluate_margins[margin < MARGINS ? margin : MARGIN_MAIN]);
	put_line(columns, title, PLAIN, PRECISION, margin);
	put_line(columns, "                   recall", PLAIN, RECALL, margin);
	put_line(columns, "                   F1", PLAIN, F1, margin);
}

static void put_header(const struct columns *columns, const char *label)
{
	buf_printf(columns->out, "%-*s", LABEL, label);
	for (size_t i = 0; i < columns->count; i++)
		buf_printf(columns->out, "%*s", width(&columns->results[i]),
			columns->results[i].contender->name);
	buf_char(columns->out, '\n');
}

static void put_live(const struct columns *columns, size_t which)
{
	put_line(columns, "  changes announced", PERCENT, SEEN, which);
	put_line(columns, "  delay in points, median", COUNT, DELAY_HALF, which);
	put_line(columns, "  delay in points, 90th percentile", COUNT, DELAY_MOST, which);
	put_line(columns, "  alarms", COUNT, ALARMS, which);
	put_line(columns, "  false alarms per 1,000 points", PLAIN, WRONG, which);
	put_line(columns, "  alarms withdrawn later", PERCENT, WITHDRAWN, which);
	put_line(columns, "  correct alarms withdrawn later", PERCENT, RIGHT_WITHDRAWN, which);
}

static const struct standing *group_of(const struct result *result, const char *name)
{
	for (size_t i = 0; i < result->group_count; i++)
		if (strcmp(result->groups[i].group, name) == 0)
			return &result->groups[i];
	return NULL;
}

static void put_classes(const struct columns *columns)
{
	const struct result *first = &columns->results[0];
	buf_char(columns->out, '\n');
	put_header(columns, "F1 within 5 points, or points per 1,000");
	for (size_t g = 0; g < first->group_count; g++) {
		buf_printf(columns->out, "  %-*s", LABEL - 2, first->groups[g].group);
		for (size_t i = 0; i < columns->count; i++) {
			const struct standing *group =
				group_of(&columns->results[i], first->groups[g].group);
			char text[32] = "";
			if (group && group->changed > 0)
				snprintf(text, sizeof text, "%.3f",
					score_f1(&group->margins[MARGIN_MAIN]));
			else if (group)
				snprintf(text, sizeof text, "%.2f/1,000",
					per_thousand(
						(double)group->flat_found, group->flat_points));
			buf_printf(columns->out, "%*s", width(&columns->results[i]), text);
		}
		buf_char(columns->out, '\n');
	}
}

void evaluate_put_text(struct buf *out, struct result *results, size_t count,
	const struct evaluation *evaluation, const char *rule, bool by_class)
{
	const struct columns columns = {out, results, count};
	const struct standing *whole = &results[0].whole;
	buf_printf(out, "%zu series, %zu points; %zu of the series have changes", whole->series,
		whole->points, whole->changed);
	if (evaluation->unlabelled > 0)
		buf_printf(out, "; %zu without labels left out", evaluation->unlabelled);
	buf_text(out, "\n\n");
	put_header(&columns, "series with changes");
	for (size_t m = MARGINS; m-- > 0;)
		put_scores(&columns, m);
	buf_text(out, "all series\n");
	put_scores(&columns, MARGINS);
	buf_text(out, "all series, index 0 counted as a change\n");
	put_line(&columns, "  F1 within 5 points, mean", PLAIN, ANNOTATED_F1, 0);
	put_line(&columns, "  covering, mean", PLAIN, COVERING, 0);
	put_line(&columns, "  Rand index, mean", PLAIN, RAND, 0);
	if (evaluation->timed)
		put_line(&columns, "  series with cycles removed", COUNT, SEASONAL, 0);
	buf_text(out, "series without changes\n");
	put_line(&columns, "  points found per 1,000", PLAIN, FLAT, 0);
	if (evaluation->live) {
		buf_printf(out, "one point at a time, confirm: %s\n", rule);
		put_live(&columns, LIVE_CONFIRMED);
		buf_text(out, "one point at a time, announced at once\n");
		put_live(&columns, LIVE_AT_ONCE);
	}
	if (by_class)
		put_classes(&columns);
}

/* How many of the changes in a state would be announced, of each of the results; TRIAGE_STATES: of
 * those that are news. */
static void put_share(const struct columns *columns, const char *label, size_t state)
{
	buf_printf(columns->out, "%-*s", LABEL, label);
	for (size_t i = 0; i < columns->count; i++) {
		struct judged judged = judged_of(&columns->results[i].whole.live[LIVE_CONFIRMED]);
		bool news = state == TRIAGE_STATES;
		char text[64];
		snprintf(text, sizeof text, "%zu of %zu",
			news ? judged.found : judged.announced[state],
			news ? judged.real : judged.said[state]);
		buf_printf(columns->out, "%*s", width(&columns->results[i]), text);
	}
	buf_char(columns->out, '\n');
}

struct judged judged_of(const struct live *live)
{
	struct judged out = {0};
	for (size_t i = 0; i < live->outcome_count; i++) {
		const struct judged_outcome *outcome = &live->outcomes[i];
		enum triage_state state = outcome->judgement->state;
		out.said[state]++;
		out.announced[state] += outcome->announced;
		out.real += judged_real(state);
		out.found += judged_real(state) && outcome->announced;
	}
	if (live->alarms.wrong > out.announced[TRIAGE_FALSE])
		out.other = live->alarms.wrong - out.announced[TRIAGE_FALSE];
	return out;
}

double judged_f1(const struct live *live)
{
	struct judged judged = judged_of(live);
	size_t wrong = judged.announced[TRIAGE_FALSE] + judged.other;
	size_t all = judged.real + judged.found + wrong;
	return all > 0 ? 2 * (double)judged.found / (double)all : 0;
}

void evaluate_put_judged(struct buf *out, struct result *results, size_t count)
{
	const struct columns columns = {out, results, count};
	buf_text(out, "triaged changes, and what would be announced\n");
	put_share(&columns, "  real changes found", TRIAGE_STATES);
	put_line(&columns, "  delay in points, median", COUNT, DELAY_HALF, LIVE_CONFIRMED);
	put_share(&columns, "  false alarms announced again", TRIAGE_FALSE);
	put_line(&columns, "  alarms where no change is recorded", COUNT, OTHER_ALARMS,
		LIVE_CONFIRMED);
	put_share(&columns, "  infra: correct, but unwanted", TRIAGE_INFRA);
	put_share(&columns, "  ignored", TRIAGE_IGNORED);
	put_share(&columns, "  not triaged, on the same series", TRIAGE_OPEN);
}

void judged_put_json(struct buf *out, const struct judged *judged)
{
	buf_printf(out, "\"real\": %zu, \"found\": %zu, \"other_alarms\": %zu", judged->real,
		judged->found, judged->other);
	for (size_t i = TRIAGE_OPEN; i < TRIAGE_STATES; i++)
		buf_printf(out, ", \"%s\": {\"changes\": %zu, \"announced\": %zu}",
			triage_state_names[i], judged->said[i], judged->announced[i]);
}

static void put_tally(struct buf *out, const struct score_tally *tally)
{
	json_put_number(out, "precision", score_precision(tally));
	json_put_number(out, "recall", score_recall(tally));
	json_put_number(out, "f1", score_f1(tally));
	json_put_number(out, "right", tally->right);
	json_put_number(out, "found", tally->found);
	json_put_number(out, "seen", tally->seen);
	json_put_number(out, "labelled", tally->truth);
	buf_char(out, '}');
}

static void put_live_json(struct buf *out, const char *name, struct live *live)
{
	buf_printf(out,
		", \"%s\": {\"points\": %zu, \"alarms\": %zu, \"false\": %zu, \"withdrawn\": %zu, "
		"\"right_withdrawn\": %zu, \"seen\": %zu, \"labelled\": %zu, \"delay_p50\": %zu, "
		"\"delay_p90\": %zu}",
		name, live->points, live->alarms.alarms, live->alarms.wrong, live->alarms.withdrawn,
		live->alarms.true_withdrawn, live->seen, live->truth, live_delay(live, 5),
		live_delay(live, 9));
}

static void put_standing(struct buf *out, struct standing *standing)
{
	buf_text(out, "{\"class\": ");
	buf_json_text(out, standing->group);
	buf_printf(out,
		", \"series\": %zu, \"changed\": %zu, \"points\": %zu, \"found\": %zu, "
		"\"flat_points\": %zu, \"flat_found\": %zu",
		standing->series, standing->changed, standing->points, standing->found,
		standing->flat_points, standing->flat_found);
	buf_printf(out, ", \"seasonal\": %zu", standing->seasonal);
	json_put_number(out, "flat_per_1000",
		per_thousand((double)standing->flat_found, standing->flat_points));
	buf_text(out, ", \"margins\": [");
	for (size_t m = 0; m < MARGINS; m++) {
		buf_printf(out, "%s{\"margin\": %zu", m ? ", " : "", evaluate_margins[m]);
		put_tally(out, &standing->margins[m]);
	}
	buf_printf(out, "], \"pooled\": {\"margin\": %zu", evaluate_margins[MARGIN_MAIN]);
	put_tally(out, &standing->all);
	json_put_number(out, "f1_annotated", mean(standing->f1, standing->series));
	json_put_number(out, "covering", mean(standing->cover, standing->series));
	json_put_number(out, "rand", mean(standing->rand, standing->series));
	for (size_t i = 0; i < LIVES && standing->live[i].points > 0; i++)
		put_live_json(out, live_names[i], &standing->live[i]);
	buf_char(out, '}');
}

void evaluate_put_json(struct buf *out, struct result *results, size_t count, const char *rule)
{
	buf_text(out, "\"confirm\": ");
	buf_json_text(out, rule);
	buf_text(out, ", \"detectors\": [");
	for (size_t i = 0; i < count; i++) {
		struct result *result = &results[i];
		buf_text(out, i ? ",\n {\"detector\": " : "\n {\"detector\": ");
		buf_json_text(out, result->contender->name);
		json_put_number(out, "seconds", result->seconds);
		buf_text(out, ", \"all\": ");
		put_standing(out, &result->whole);
		buf_text(out, ",\n  \"classes\": [");
		for (size_t g = 0; g < result->group_count; g++) {
			buf_text(out, g ? ",\n   " : "\n   ");
			put_standing(out, &result->groups[g]);
		}
		buf_text(out, "]}");
	}
	buf_char(out, ']');
}
