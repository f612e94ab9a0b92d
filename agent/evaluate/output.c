/*
 * The document has every count, so that others can add up. The text is a table of it with a row for
 * each detector.
 */
#include <string.h>

#include "agent/evaluate/evaluate.h"
#include "agent/model/json_put.h"
#include "agent/report/document.h"

static const char *const live_names[LIVES] = {"confirmed", "at_once"};

static double mean(double sum, size_t count)
{
	return count > 0 ? sum / (double)count : 0;
}

static const char *const changed[] = {"detector", "F1 within 5=all.margins.2.f1",
	"precision=all.margins.2.precision", "recall=all.margins.2.recall",
	"F1 within 2=all.margins.1.f1", "F1 within 0=all.margins.0.f1", NULL};

static const char *const pooled[] = {"detector", "F1 within 5=all.pooled.f1",
	"precision=all.pooled.precision", "recall=all.pooled.recall",
	"F1 with index 0=all.f1_annotated", "covering=all.covering", "Rand index=all.rand",
	"cycles removed=all.seasonal", "false per 1,000 without changes=all.flat_per_1000", NULL};

static const char *const confirmed[] = {"detector", "changes=all.confirmed.labelled",
	"announced=all.confirmed.seen", "delay in points=all.confirmed.delay_p50",
	"90th percentile=all.confirmed.delay_p90", "alarms=all.confirmed.alarms",
	"false=all.confirmed.false", "per 1,000 points=all.confirmed.false_per_1000",
	"withdrawn=all.confirmed.withdrawn", "of these correct=all.confirmed.right_withdrawn",
	NULL};

static const char *const at_once[] = {"detector", "changes=all.at_once.labelled",
	"announced=all.at_once.seen", "delay in points=all.at_once.delay_p50",
	"90th percentile=all.at_once.delay_p90", "alarms=all.at_once.alarms",
	"false=all.at_once.false", "per 1,000 points=all.at_once.false_per_1000",
	"withdrawn=all.at_once.withdrawn", "of these correct=all.at_once.right_withdrawn", NULL};

static const char *const classes[] = {"class", "series", "with changes=changed",
	"F1 within 5=margins.2.f1", "false per 1,000 without changes=flat_per_1000", NULL};

static const char *const triaged[] = {"detector", "real=judged.real", "found=judged.found",
	"false=judged.false.changes", "announced again=judged.false.announced",
	"alarms elsewhere=judged.other_alarms", "infra=judged.infra.changes",
	"announced=judged.infra.announced", "ignored=judged.ignored.changes",
	"announced=judged.ignored.announced", "not triaged=judged.open.changes",
	"announced=judged.open.announced", NULL};

static const char *const judgements[] = {
	"id", "test", "metric", "@time", "%size %=size", "state", "announced", "delay", NULL};

static const char *const not_scored[] = {
	"id", "test", "metric", "@time", "%size %=size", "state", "reason", NULL};

static const char *const about[] = {"series=detectors.0.all.series",
	"points=detectors.0.all.points", "series with changes=detectors.0.all.changed",
	"series without labels=unlabelled", "confirm", NULL};

static const struct document_section scores[] = {
	{NULL, NULL, about},
	{"series with changes", "detectors", changed},
	{"all series", "detectors", pooled},
	{0},
};

static const struct document_section live_scores[] = {
	{"one point at a time, confirmed", "detectors", confirmed},
	{"one point at a time, announced at once", "detectors", at_once},
	{0},
};

static const struct document_section triage_scores[] = {
	{"triaged changes, and what would be announced", "detectors", triaged},
	{"each of them", "triage.changes", judgements},
	{"cannot be scored", "triage.not_scored", not_scored},
	{0},
};

void evaluate_print(const struct buf *text, bool live, bool by_class, FILE *out)
{
	json_t *document = json_loadb(text->data, text->length, 0, NULL);
	struct arena *arena = arena_new();

	document_print(arena, document, scores, out);
	if (live) {
		putc('\n', out);
		document_print(arena, document, live_scores, out);
	}
	if (json_object_get(document, "triage")) {
		putc('\n', out);
		document_print(arena, document, triage_scores, out);
	}
	json_t *all = json_object_get(document, "detectors");
	for (size_t i = 0; by_class && i < json_array_size(all); i++) {
		const json_t *detector = json_array_get(all, i);

		fprintf(out, "\n%s by class:\n",
			json_string_value(json_object_get(detector, "detector")));
		document_table(arena, json_object_get(detector, "classes"), classes, out);
	}
	arena_free(arena);
	json_decref(document);
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

void judged_put_json(struct buf *out, const struct judged *judged)
{
	json_put(out, "{real: %zu, found: %zu, other_alarms: %zu", judged->real, judged->found,
		judged->other);
	for (size_t i = TRIAGE_OPEN; i < TRIAGE_STATES; i++) {
		json_key(out, triage_state_names[i]);
		json_put(out, "{changes: %zu, announced: %zu}", judged->said[i],
			judged->announced[i]);
	}
}

static void put_tally(struct buf *out, const struct score_tally *tally)
{
	json_put(out,
		"precision: %g, recall: %g, f1: %g, right: %g, found: %g, seen: %g, "
		"labelled: %g}",
		score_precision(tally), score_recall(tally), score_f1(tally), tally->right,
		tally->found, tally->seen, tally->truth);
}

static void put_live_json(struct buf *out, const char *name, struct live *live)
{
	json_key(out, name);
	json_put(out,
		"{points: %zu, alarms: %zu, false: %zu, withdrawn: %zu, "
		"right_withdrawn: %zu, seen: %zu, labelled: %zu, delay_p50: %zu, "
		"delay_p90: %zu, false_per_1000: %g}",
		live->points, live->alarms.alarms, live->alarms.wrong, live->alarms.withdrawn,
		live->alarms.true_withdrawn, live->seen, live->truth, live_delay(live, 5),
		live_delay(live, 9), per_thousand((double)live->alarms.wrong, live->points));
}

static void put_standing(struct buf *out, struct standing *standing)
{
	json_put(out,
		"{class: %s, series: %zu, changed: %zu, points: %zu, found: %zu, flat_points: %zu, "
		"flat_found: %zu, seasonal: %zu, flat_per_1000: %g, margins: [",
		standing->group, standing->series, standing->changed, standing->points,
		standing->found, standing->flat_points, standing->flat_found, standing->seasonal,
		per_thousand((double)standing->flat_found, standing->flat_points));
	for (size_t m = 0; m < MARGINS; m++) {
		json_put(out, "{margin: %zu", evaluate_margins[m]);
		put_tally(out, &standing->margins[m]);
	}
	json_put(out, "], pooled: {margin: %zu", evaluate_margins[MARGIN_MAIN]);
	put_tally(out, &standing->all);
	json_put(out, "f1_annotated: %g, covering: %g, rand: %g",
		mean(standing->f1, standing->series), mean(standing->cover, standing->series),
		mean(standing->rand, standing->series));
	for (size_t i = 0; i < LIVES && standing->live[i].points > 0; i++)
		put_live_json(out, live_names[i], &standing->live[i]);
	buf_char(out, '}');
}

void evaluate_put_json(struct buf *out, struct result *results, size_t count,
	const struct evaluation *evaluation, const char *rule)
{
	json_put(out, "confirm: %s, unlabelled: %jd id, detectors: [", rule,
		(int64_t)evaluation->unlabelled);
	for (size_t i = 0; i < count; i++) {
		struct result *result = &results[i];
		struct live *live = &result->whole.live[LIVE_CONFIRMED];
		struct judged judged = judged_of(live);

		json_put(out, "\n{detector: %s, seconds: %g, all:", result->contender->name,
			result->seconds);
		put_standing(out, &result->whole);
		if (live->outcome_count > 0) {
			json_put(out, "judged:");
			judged_put_json(out, &judged);
			buf_char(out, '}');
		}
		json_put(out, "classes: [");
		for (size_t g = 0; g < result->group_count; g++) {
			json_line(out);
			put_standing(out, &result->groups[g]);
		}
		buf_text(out, "]}");
	}
	buf_char(out, ']');
}
