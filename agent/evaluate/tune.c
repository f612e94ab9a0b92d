/*
 * A search over a grid around the given options: significance, size and window, as far as the
 * detector has them. A grid is enough, as scores are flat between its points, and it is easy to
 * read.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/evaluate/evaluate.h"
#include "agent/model/json_put.h"

enum { TUNED = TUNED_MOST - 1, VALUES_MOST = 5, NUMBER_TEXT = 32, BAR = 40 };

/* Values of an option; with `times`, factors of the given one. */
struct range {
	const char *option;
	bool times;
	size_t count;
	double values[VALUES_MOST];
};

static const struct range ranges[TUNED] = {
	{"p_value", false, 5, {1e-2, 1e-3, 1e-4, 1e-5, 1e-6}},
	{"penalty", true, 5, {0.5, 1, 2, 4, 8}},
	{"magnitude", false, 5, {0, 0.01, 0.02, 0.05, 0.1}},
	{"window", true, 3, {0.5, 1, 2}},
};

/* The values to try for one option, the given one first. */
struct axis_values {
	const struct field *field;
	char texts[VALUES_MOST + 1][NUMBER_TEXT];
	size_t count;
};

/* Adds a value, unless present; rounded for an integer option. */
static void add_value(struct axis_values *axis, double value)
{
	if (axis->field->type == FIELD_INT)
		value = rint(value);
	char *text = axis->texts[axis->count];
	snprintf(text, NUMBER_TEXT, "%.10g", value);
	for (size_t i = 0; i < axis->count; i++)
		if (strcmp(axis->texts[i], text) == 0)
			return;
	axis->count++;
}

static size_t make_axes(const struct contender *contender, struct axis_values axes[static TUNED])
{
	size_t count = 0;
	for (size_t r = 0; r < TUNED; r++) {
		const struct range *range = &ranges[r];
		const struct field *field =
			field_find(contender->detector->plugin.fields, range->option);
		if (!field || (field->type != FIELD_INT && field->type != FIELD_DOUBLE))
			continue;
		struct axis_values *axis = &axes[count++];
		const void *at = (const char *)contender->options + field->offset;
		double given = field->type == FIELD_INT ? (double)*(const int64_t *)at
							: *(const double *)at;
		*axis = (struct axis_values){.field = field};
		add_value(axis, given);
		for (size_t i = 0; i < range->count; i++)
			add_value(axis, range->times ? given * range->values[i] : range->values[i]);
	}
	return count;
}

/* Combination `number` of the axes' values; false if the detector rejects it. */
static bool make_trial(const struct contender *given, const struct axis_values *axes,
	size_t axis_count, size_t number, struct arena *arena, struct contender *out)
{
	struct error error;
	struct buf name = {0};
	void *options = arena_alloc(arena, given->detector->plugin.options_size);
	size_t length = strlen(given->name);
	bool fine = true, open = length > 0 && given->name[length - 1] == ')';
	memcpy(options, given->options, given->detector->plugin.options_size);
	/* "edivisive(profile=otava, " and "edivisive(", before the other options */
	buf_append(&name, given->name, length - open);
	buf_text(&name, open ? ", " : "(");
	for (size_t i = 0; i < axis_count; i++) {
		const char *text = axes[i].texts[number % axes[i].count];
		number /= axes[i].count;
		fine = fine && field_parse(axes[i].field, options, text, arena, &error);
		buf_printf(&name, "%s%s=%s", i ? ", " : "", axes[i].field->name, text);
	}
	buf_char(&name, ')');
	fine = fine &&
	       (!given->detector->plugin.check || given->detector->plugin.check(options, &error));
	*out = *given;
	out->name = arena_strdup(arena, name.data);
	out->options = options;
	buf_free(&name);
	return fine;
}

static void mark_frontier(struct trials *trials)
{
	for (size_t i = 0; i < trials->count; i++) {
		struct trial *one = &trials->items[i];
		one->frontier = true;
		for (size_t j = 0; j < trials->count; j++) {
			const struct trial *other = &trials->items[j];
			bool better = other->recall > one->recall || other->wrong < one->wrong ||
				      (j < i && other->recall == one->recall &&
					      other->wrong == one->wrong);
			if (other->recall >= one->recall && other->wrong <= one->wrong && better)
				one->frontier = false;
		}
	}
}

bool tune_search(struct evaluation *evaluation, const struct contender *contender,
	struct arena *arena, struct trials *out, struct error *error)
{
	struct axis_values axes[TUNED];
	size_t axis_count = make_axes(contender, axes), combinations = 1;
	if (axis_count == 0)
		return error_set(error, ERROR_USAGE,
			"--tune: %s has no p_value, penalty, magnitude or window", contender->name);
	for (size_t i = 0; i < axis_count; i++)
		combinations *= axes[i].count;
	*out = (struct trials){.items = arena_array(arena, combinations, sizeof *out->items)};
	evaluation->total += combinations * evaluation->count;
	for (size_t k = 0; k < combinations; k++) {
		struct trial *trial = &out->items[out->count];
		if (!make_trial(contender, axes, axis_count, k, arena, &trial->contender)) {
			evaluation->total -= evaluation->count;
			continue;
		}
		struct result result;
		bool good = evaluate_contender(evaluation, &trial->contender, &result, error);
		const struct score_tally *all = &result.whole.all;
		trial->precision = score_precision(all);
		trial->recall = score_recall(all);
		trial->f1 = score_f1(all);
		trial->wrong = per_thousand(all->found - all->right, result.whole.points);
		result_free(&result);
		if (!good)
			return error_prefix(error, "%.200s: ", trial->contender.name);
		if (trial->f1 > out->items[out->best].f1)
			out->best = out->count;
		out->count++;
	}
	mark_frontier(out);
	return true;
}

/* Rules to try besides the given one. */
static const char *const confirms[] = {"auto", "4 points", "8 points", "12 points", "20 points"};
enum { CONFIRMS = sizeof confirms / sizeof *confirms };

/* Adds the rules to the evaluation; the texts of those added are written from the second on. */
static void add_rules(struct evaluation *evaluation, const char *texts[static LIVES_MOST])
{
	const struct confirm_rule given = evaluation->rules[0].rule;
	evaluation->rule_count = 1;
	for (size_t i = 0; i < CONFIRMS; i++) {
		struct error error;
		struct live_rule *added = &evaluation->rules[evaluation->rule_count];
		*added = (struct live_rule){.tracked = true};
		if (!confirm_parse(confirms[i], &added->rule, &error) ||
			(added->rule.mode == given.mode && added->rule.points == given.points))
			continue;
		texts[evaluation->rule_count++] = confirms[i];
	}
}

static bool is_better(
	const struct tuned *one, size_t delay, const struct tuned *best, size_t best_delay)
{
	if (one->f1 != best->f1)
		return one->f1 > best->f1;
	return one->count != best->count ? one->count < best->count : delay < best_delay;
}

static struct tuned describe(const struct axis_values *axes, size_t axis_count, size_t number,
	const char *confirm, struct arena *arena)
{
	struct tuned out = {0};
	for (size_t i = 0; i < axis_count; i++) {
		size_t digit = number % axes[i].count;
		number /= axes[i].count;
		if (digit > 0)
			out.settings[out.count++] = (struct setting){
				axes[i].field->name, arena_strdup(arena, axes[i].texts[digit])};
	}
	if (confirm)
		out.settings[out.count++] = (struct setting){"confirm", confirm};
	return out;
}

/* A search on triaged changes: the best combination so far. */
struct judged_search {
	struct evaluation *evaluation;
	const struct contender *given;
	struct arena *arena;
	struct axis_values axes[TUNED];
	size_t axis_count;
	const char *confirms[LIVES_MOST]; /* by rule; the first is the given one */
	struct tuned *best;
	size_t best_delay, best_number;
};

/* Tries one combination of the axes' values with each rule. */
static bool try_number(struct judged_search *search, size_t number, struct error *error)
{
	struct evaluation *evaluation = search->evaluation;
	struct tuned *best = search->best;
	struct contender trial;
	struct result result;
	if (!make_trial(search->given, search->axes, search->axis_count, number, search->arena,
		    &trial)) {
		evaluation->total -= evaluation->count;
		return true;
	}
	bool good = evaluate_contender(evaluation, &trial, &result, error);
	for (size_t r = 0; good && r < evaluation->rule_count; r++) {
		struct live *live = &result.whole.live[r];
		struct tuned one = describe(search->axes, search->axis_count, number,
			search->confirms[r], search->arena);
		size_t delay = live_delay(live, 5);
		one.contender = trial;
		one.rule = evaluation->rules[r];
		one.f1 = judged_f1(live);
		one.given_f1 = best->trials > 0 ? best->given_f1 : one.f1;
		one.trials = best->trials + 1;
		if (best->trials > 0 && !is_better(&one, delay, best, search->best_delay)) {
			best->trials++;
			continue;
		}
		*best = one;
		search->best_delay = delay;
		search->best_number = number;
	}
	result_free(&result);
	return good || error_prefix(error, "%.200s: ", trial.name);
}

/* The window comes last, and is tried only with the best of the other settings: each of its values
 * costs as much as any other, and it matters least. */
bool tune_judged(struct evaluation *evaluation, const struct contender *contender,
	struct arena *arena, struct tuned *out, struct error *error)
{
	struct judged_search search = {
		.evaluation = evaluation, .given = contender, .arena = arena, .best = out};
	size_t combinations = 1;
	*out = (struct tuned){0};
	search.axis_count = make_axes(contender, search.axes);
	const struct axis_values *last =
		&search.axes[search.axis_count > 0 ? search.axis_count - 1 : 0];
	bool window = search.axis_count > 0 && strcmp(last->field->name, "window") == 0;
	size_t rest = window ? last->count - 1 : 0;
	for (size_t i = 0; i + window < search.axis_count; i++)
		combinations *= search.axes[i].count;
	add_rules(evaluation, search.confirms);
	evaluation->total = (combinations + rest) * evaluation->count;
	evaluation->done = 0;
	for (size_t k = 0; k < combinations; k++)
		if (!try_number(&search, k, error))
			return false;
	const size_t best = search.best_number;
	for (size_t w = 1; w <= rest; w++)
		if (!try_number(&search, best + w * combinations, error))
			return false;
	return true;
}

static int by_wrong(const void *a, const void *b)
{
	const struct trial *x = *(struct trial *const *)a, *y = *(struct trial *const *)b;
	if (x->wrong != y->wrong)
		return x->wrong < y->wrong ? -1 : 1;
	return x->recall < y->recall ? -1 : x->recall > y->recall;
}

/* The trials of the frontier in order, as an array that the caller frees. */
static const struct trial **frontier(const struct trials *trials, size_t *count)
{
	const struct trial **list = memory_new(trials->count, sizeof(const struct trial *));
	*count = 0;
	for (size_t i = 0; i < trials->count; i++)
		if (trials->items[i].frontier)
			list[(*count)++] = &trials->items[i];
	qsort(list, *count, sizeof(const struct trial *), by_wrong);
	return list;
}

static void put_trial(struct buf *out, const struct trials *trials, const struct trial *trial)
{
	bool best = trial == &trials->items[trials->best], given = trial == trials->items;
	char bar[BAR + 1];
	size_t length = (size_t)lrint(trial->recall * BAR);
	memset(bar, '#', length);
	bar[length] = '\0';
	buf_printf(out, "%10.2f  %6.3f  %5.3f  %-*s  %s%s\n", trial->wrong, trial->recall,
		trial->f1, BAR, bar, trial->contender.name,
		best && given ? "  <- given and best"
		: best        ? "  <- best"
		: given       ? "  <- given"
			      : "");
}

void tune_put_text(struct buf *out, const struct trials *trials)
{
	size_t count;
	const struct trial **list = frontier(trials, &count);
	buf_printf(out,
		"%zu combinations tried; the best trade-offs between recall and false points:\n"
		"\n",
		trials->count);
	buf_printf(out, "%10s  %6s  %5s\n", "false/1000", "recall", "F1");
	for (size_t i = 0; i < count; i++)
		put_trial(out, trials, list[i]);
	if (!trials->items[0].frontier) {
		buf_text(out, "\n"
			      "as given, not among the best:\n");
		put_trial(out, trials, &trials->items[0]);
	}
	if (!trials->items[trials->best].frontier) {
		buf_text(out, "\nthe best F1:\n");
		put_trial(out, trials, &trials->items[trials->best]);
	}
	free(list);
}

void tune_put_json(struct buf *out, const struct trials *trials)
{
	buf_printf(out, "\"best\": %zu, \"trials\": [", trials->best);
	for (size_t i = 0; i < trials->count; i++) {
		const struct trial *trial = &trials->items[i];
		buf_text(out, i ? ",\n {\"detector\": " : "\n {\"detector\": ");
		buf_json_text(out, trial->contender.name);
		json_put_number(out, "precision", trial->precision);
		json_put_number(out, "recall", trial->recall);
		json_put_number(out, "f1", trial->f1);
		json_put_number(out, "false_per_1000", trial->wrong);
		json_put_bool(out, "frontier", trial->frontier);
		buf_char(out, '}');
	}
	buf_char(out, ']');
}
