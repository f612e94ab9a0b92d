/* `evaluate`: scores detectors on labelled series. */
#include "agent/evaluate/evaluate.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "agent/analysis/analysis.h"
#include "agent/base/error.h"
#include "agent/base/hash.h"
#include "agent/commands/commands.h"
#include "agent/commands/state_file.h"
#include "agent/model/json_put.h"
#include "agent/report/table.h"
#include "detectors/combine.h"

/*
 * A search over a grid around the given options: significance, size and window, as far as the
 * detector has them. A grid is enough, as scores are flat between its points, and it is easy to
 * read.
 */

enum { TUNED = TUNED_MOST - 1, VALUES_MOST = 5, NUMBER_TEXT = 32, BAR = 40 };

/* Options that were tried, and their scores. */
struct trial {
	struct contender contender;
	double recall, precision, f1, wrong; /* over all series; wrong: per 1,000 points */
	bool frontier; /* no other trial finds as much with fewer wrong points */
};

struct trials {
	struct trial *items; /* the first is the contender as given */
	size_t count;
	size_t best; /* the highest F1; the nearest to the first on ties */
};

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

static bool tune_search(struct evaluation *evaluation, const struct contender *contender,
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

static void tune_put_text(struct buf *out, const struct trials *trials)
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

static void tune_put_json(struct buf *out, const struct trials *trials)
{
	json_put(out, "best: %zu, trials: [", trials->best);
	for (size_t i = 0; i < trials->count; i++) {
		const struct trial *trial = &trials->items[i];
		json_put(out,
			"\n{detector: %s, precision: %g, recall: %g, f1: %g, false_per_1000: %g, "
			"frontier: %d bool}",
			trial->contender.name, trial->precision, trial->recall, trial->f1,
			trial->wrong, trial->frontier);
	}
	buf_char(out, ']');
}

/* ---- the command ---- */

enum { MAX_JOBS = 256, CONTENDERS_MOST = 32 };

static const struct field evaluate_fields[] = {
	OPTION_LIST(struct evaluate_options, truth,
		"labelled series as JSON lines; - is standard input", .metavar = "FILE,..."),
	OPTION_LIST(struct evaluate_options, detector,
		"detector to score, default edivisive: \"kernel\", \"edivisive(window=30, "
		"profile=otava)\", \"combine(all: edivisive, kernel)\"",
		.metavar = "NAME,..."),
	OPTION_BOOL(struct evaluate_options, from_triage,
		"score the configured detection against triaged changes (hunter-c triage), of all "
		"tests or the named ones"),
	OPTION_STRING(struct evaluate_options, state_file, NULL,
		"with --from-triage, " STATE_FILE_HELP, .metavar = "PATH"),
	OPTION_STRING(struct evaluate_options, label, NULL,
		"label series interactively: plot them with candidate places and write the answers "
		"to this file, for --truth",
		.metavar = "FILE"),
	OPTION_LIST(struct evaluate_options, series,
		"with --label, series as JSON lines, as for detect; default: those of all tests or "
		"the named ones",
		.metavar = "FILE,..."),
	OPTION_INT(struct evaluate_options, count, "20", 1, 1000000,
		"with --label, number of series; the same ones on each start"),
	OPTION_STRING(struct evaluate_options, confirm, NULL,
		"confirmation rule for point-by-point scoring: auto (the default), off or a number "
		"of points",
		.metavar = "RULE"),
	OPTION_STRING(struct evaluate_options, season, NULL,
		"daily and weekly cycles to remove from series with times; default: that of each "
		"detector",
		.metavar = "auto|none|day|week"),
	OPTION_STRING(struct evaluate_options, zone, NULL,
		"time zone of the cycles, such as Europe/Berlin", .metavar = "ZONE"),
	OPTION_STRING(struct evaluate_options, holidays, NULL,
		"holidays, treated as Sundays: dates, or files with one date per line",
		.metavar = "DATE|FILE,..."),
	OPTION_BOOL(struct evaluate_options, whole, "score whole series only, not point by point"),
	OPTION_BOOL(struct evaluate_options, by_class, "also print a line per class of series"),
	OPTION_BOOL(struct evaluate_options, tune,
		"search better options on half of the series and validate them on the rest; with "
		"--from-triage, propose them as a diff of the configuration"),
	OPTION_CHOICE(struct evaluate_options, output, "text", cli_outputs,
		"output format; json has the counts of each class"),
	OPTION_INT(struct evaluate_options, jobs, "0", 0, MAX_JOBS,
		"number of threads; 0: one per usable CPU", .letter = 'j'),
	OPTION_BYTES(struct evaluate_options, max_line, "16MiB", 1024, 1 << 30,
		"maximum line length; longer lines are errors"),
	{0},
};

static const struct option_part evaluate_parts[] = {{evaluate_fields, 0}, {0}};

/* The state of the command. */
struct work {
	struct cli *cli;
	const struct evaluate_options *options;
	struct labelled_set set;
	const struct labelled_series **series; /* those of the set, in order of use */
	struct contender *contenders;
	size_t contender_count;
	struct evaluation evaluation;
};

/* Reads "kernel(penalty=2)", which is a member of a `combine`, and "combine(HOW)", and applies the
 * flags for cycles. */
static bool read_contender(const struct evaluate_options *options, const char *text,
	struct arena *arena, struct contender *out, struct error *error)
{
	static const char head[] = "combine(", own[] = "combine: ";
	const struct setting cycles[] = {{"season", options->season}, {"zone", options->zone},
		{"holidays", options->holidays}};
	const struct detection none = {0};
	struct detection whole, member[COMBINE_MOST], chosen;
	size_t length = strlen(text);
	bool combines = strncmp(text, head, strlen(head)) == 0 && text[length - 1] == ')';
	const char *how =
		combines ? arena_strndup(arena, text + strlen(head), length - strlen(head) - 1)
			 : arena_printf(arena, "any: %s", text);
	const struct setting setting = {"combine", how};

	if (!detection_overlay(&cli_schema, &none, &setting, 1, arena, &whole, error)) {
		if (!combines && strncmp(error->text, own, strlen(own)) == 0)
			memmove(error->text, error->text + strlen(own),
				strlen(error->text + strlen(own)) + 1);
		return error_prefix(error, "--detector: ");
	}
	if (!combines)
		combine_members(&cli_schema, &whole, member);
	chosen = combines ? whole : member[0];
	for (size_t i = 0; i < sizeof cycles / sizeof *cycles; i++) {
		const struct detection base = chosen;

		if (cycles[i].value && !detection_overlay(&cli_schema, &base, &cycles[i], 1, arena,
					       &chosen, error))
			return error_prefix(error, "--");
	}
	*out = (struct contender){text, detector_find(chosen.detector->name), chosen.options,
		analysis_season(&chosen), analysis_clock(&chosen)};
	return true;
}

static bool read_contenders(struct work *work, struct error *error)
{
	static const char *const usual[] = {"edivisive"};
	static const char *const loose[] = {"edivisive(profile=otava, p_value=0.05, season=auto)",
		"kernel(penalty=0.5, season=auto)", "edivisive(p_value=0.05)"};
	struct arena *arena = work->cli->arena;
	struct strings names = work->options->detector;
	if (names.count == 0)
		names = work->options->label ? (struct strings){loose, 3}
					     : (struct strings){usual, 1};
	if (names.count > CONTENDERS_MOST)
		return error_set(error, ERROR_USAGE, "--detector: more than %d", CONTENDERS_MOST);
	work->contenders = arena_array(arena, names.count, sizeof *work->contenders);
	for (size_t i = 0; i < names.count; i++)
		if (!read_contender(work->options, names.items[i], arena,
			    &work->contenders[work->contender_count++], error))
			return false;
	return true;
}

/* Where the labels come from. */
enum mode { TRUTH = 1, TRIAGE = 2, LABEL = 4 };

/* Flags exclude the same choice by the configuration, and what a person could not answer. */
static bool check_flags(const struct work *work, enum mode mode, struct error *error)
{
	static const char *const names[] = {[TRUTH] = "--truth",
		[TRIAGE] = "--from-triage, which scores the detection as configured",
		[LABEL] = "--label"};
	const struct evaluate_options *options = work->options;
	const struct strings *arguments = &work->cli->arguments;
	const struct {
		const char *name;
		bool given;
		unsigned modes; /* that have it */
	} flags[] = {
		{"truth", options->truth.count > 0, TRUTH},
		{"from-triage", options->from_triage, TRIAGE},
		{"series", options->series.count > 0, LABEL},
		{"detector", options->detector.count > 0, TRUTH | LABEL},
		{"season", options->season != NULL, TRUTH | LABEL},
		{"zone", options->zone != NULL, TRUTH | LABEL},
		{"holidays", options->holidays != NULL, TRUTH | LABEL},
		{"confirm", options->confirm != NULL, TRUTH},
		{"whole", options->whole, TRUTH},
		{"tune", options->tune, TRUTH | TRIAGE},
		{"state-file", options->state_file != NULL, TRIAGE},
	};
	if (mode == TRUTH && options->truth.count == 0)
		return error_set(error, ERROR_USAGE,
			"--truth FILE (labelled series) or --from-triage (triaged changes) is "
			"required");
	for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
		if (flags[i].given && !(flags[i].modes & mode))
			return error_set(error, ERROR_USAGE, "--%s does not apply to %s",
				flags[i].name, names[mode]);
	if (options->series.count > 0 && arguments->count > 0)
		return error_set(error, ERROR_USAGE,
			"--series and a test (\"%.200s\") are mutually exclusive",
			arguments->items[0]);
	for (size_t i = 0; i < options->series.count; i++)
		if (strcmp(options->series.items[i], "-") == 0)
			return error_set(error, ERROR_USAGE,
				"--series -: standard input is used for the answers");
	return true;
}

/*
 * Whether options are searched on this series. It depends on the name only, so that it is
 * stable. The hash must spread names that differ in a digit; its key is a constant.
 */
static bool is_searched(const struct work *work, size_t index)
{
	const char *id = work->set.series[index].id;
	uint64_t hash = *id ? hash_keyed((struct hash_key){0}, id, strlen(id)) : index;
	return work->options->tune && hash % 2 == 0;
}

/* All series of the set; with --tune, those first on which options are searched. Returns their
 * number. */
static size_t arrange(struct work *work)
{
	size_t searched = 0, count = 0;
	work->series = arena_array(
		work->cli->arena, work->set.count, sizeof(const struct labelled_series *));
	for (int part = 0; part < 2; part++) {
		for (size_t i = 0; i < work->set.count; i++)
			if (is_searched(work, i) == (part == 0))
				work->series[count++] = &work->set.series[i];
		searched = part == 0 ? count : searched;
	}
	return searched;
}

/* Scores every contender on the series of the evaluation and appends the result to `text`. */
static bool compare(struct work *work, struct buf *text, struct error *error)
{
	struct evaluation *evaluation = &work->evaluation;
	const struct evaluate_options *options = work->options;
	struct result *results = memory_new(work->contender_count, sizeof *results);
	evaluation->live = !options->whole;
	evaluation->total += evaluation->count * work->contender_count;
	size_t done = 0;
	bool good = true;
	for (; good && done < work->contender_count; done++)
		good = evaluate_contender(
			evaluation, &work->contenders[done], &results[done], error);
	if (good)
		evaluate_put_json(text, results, work->contender_count, evaluation,
			options->confirm ? options->confirm : "auto");
	for (size_t i = 0; i < done; i++)
		result_free(&results[i]);
	free(results);
	return good;
}

/* Scores the contenders; with --tune the given options and the best ones found, on the series not
 * searched on. */
static bool score(struct work *work, struct error *error)
{
	const struct evaluate_options *options = work->options;
	struct evaluation *evaluation = &work->evaluation;
	struct contender both[2];
	struct trials trials = {0};
	struct buf text = {0}, found = {0};
	size_t searched = arrange(work);
	bool json = options->output == EVALUATE_JSON;
	evaluation->series = work->series;
	evaluation->count = searched;
	if (options->tune) {
		if (searched == 0 || searched == work->set.count)
			return error_set(error, ERROR_DATA,
				"--tune: %zu series are too few to split into halves",
				work->set.count);
		if (!tune_search(evaluation, work->contenders, work->cli->arena, &trials, error))
			return false;
		json_put(&text, "{tuned_on: %zu, tried_on: %zu", searched,
			work->set.count - searched);
		tune_put_json(&text, &trials);
		both[0] = work->contenders[0];
		both[1] = trials.items[trials.best].contender;
		work->contenders = both;
		work->contender_count = trials.best == 0 ? 1 : 2;
	} else {
		buf_char(&text, '{');
	}
	evaluation->series = work->series + searched;
	evaluation->count = work->set.count - searched;
	bool good = compare(work, &text, error);
	buf_text(&text, "}\n");
	if (good && options->tune && !json) {
		buf_printf(&found, "searched on %zu series: ", searched);
		tune_put_text(&found, &trials);
		buf_text(&found, "\nvalidated on the remaining series:\n");
		text_flush(&found, work->cli->out);
	}
	if (good && json)
		text_flush(&text, work->cli->out);
	else if (good)
		evaluate_print(&text, !options->whole, options->by_class, work->cli->out);
	fflush(work->cli->out);
	buf_free(&text);
	return good;
}

/* Reads the labelled series. */
static bool load(struct work *work, struct error *error)
{
	const struct evaluate_options *options = work->options;
	struct evaluation *evaluation = &work->evaluation;
	struct confirm_rule *rule = &evaluation->rules[LIVE_CONFIRMED].rule;
	enum season_mode season = work->contenders[0].season;
	if (work->cli->arguments.count > 0)
		return error_set(error, ERROR_USAGE,
			"evaluate takes no arguments (give the file with --truth)");
	if (options->tune && work->contender_count > 1)
		return error_set(error, ERROR_USAGE, "--tune takes one --detector");
	evaluation->rules[LIVE_CONFIRMED].tracked = true;
	evaluation->rules[LIVE_AT_ONCE].rule.mode = CONFIRM_OFF;
	evaluation->rule_count = LIVES;
	if (!confirm_parse(options->confirm ? options->confirm : "auto", rule, error) ||
		!labelled_load(&options->truth, (size_t)options->max_line, work->cli->arena,
			&work->set, error))
		return false;
	evaluation->unlabelled = work->set.unlabelled;
	/* A cycle requested by name needs times. */
	for (size_t i = 0; i < work->set.count; i++)
		if (!work->set.series[i].times && (season == SEASON_DAY || season == SEASON_WEEK))
			return error_set(error, ERROR_DATA,
				"--season %s: series \"%.200s\" has no \"times\", nor \"start\" "
				"and \"step\"",
				options->season, work->set.series[i].id);
	return true;
}

static int run(struct cli *cli)
{
	const struct evaluate_options *options = cli->options;
	enum mode mode = options->label ? LABEL : options->from_triage ? TRIAGE : TRUTH;
	struct error error;
	struct work work = {.cli = cli,
		.options = options,
		.evaluation = {.jobs = (size_t)options->jobs, .progress = cli->progress}};
	if (!check_flags(&work, mode, &error))
		return cli_fail(&error);
	if (mode == TRIAGE)
		return evaluate_triage(cli);
	if (!read_contenders(&work, &error))
		return cli_fail(&error);
	if (mode == LABEL)
		return evaluate_label(cli, work.contenders, work.contender_count);
	bool good = load(&work, &error) && score(&work, &error);
	return good ? EXIT_NOTHING : cli_fail(&error);
}

const struct command evaluate_command = {
	.name = "evaluate",
	.arguments = "[TEST|GROUP...]",
	.summary = "Score detectors on labelled series",
	.details =
		"Reads labelled series, one JSON object per line:\n"
		"\n"
		"  {\"id\": \"a\", \"series\": [1, 2.5, null], \"change_points\": [2]}\n"
		"  {\"id\": \"b\", \"series\": [..], \"change_points\": {\"ann\": [7], \"ben\": "
		"[]}, \"class\": \"disk\", \"unsure\": [[20, 24]]}\n"
		"  {\"id\": \"c\", \"series\": [..], \"true\": [40], \"maybe\": [52]}\n"
		"\n"
		"A change point is the index, from 0, of the first value of a new level. "
		"Detections in unsure spans, or within 5 points of a maybe, count only if they are "
		"labelled. Prints all detectors side by side: precision, recall and F1 within 0, 2 "
		"and 5 points, covering and Rand index, false points in series without changes; "
		"and, point by point, the delay of announcements in points, false alarms and later "
		"withdrawals. Daily and weekly cycles are removed as by the agent from series with "
		"\"times\", or \"start\" and \"step\" in seconds (--season).\n"
		"\n"
		"  hunter-c evaluate --truth labelled.jsonl --detector edivisive --detector "
		"kernel\n"
		"  hunter-c evaluate --truth labelled.jsonl --tune\n"
		"\n"
		"--label collects these labels: it plots one series after another, with candidate "
		"places marked by letters, reads answers such as \"ac\", \"a b?\" (b may be one) "
		"or \"-\" (none), and writes them to that file. The next start resumes where the "
		"last one stopped.\n"
		"\n"
		"  hunter-c evaluate --label labelled.jsonl 'db.*'\n"
		"  hunter-c evaluate --label labelled.jsonl --series series.jsonl\n"
		"\n"
		"--from-triage uses the recorded changes and their triage as labels: expected, "
		"fixed and acknowledged changes are real, false ones are not. Reads the tests' "
		"data from their sources and scores each test's configured detection: false alarms "
		"it would announce again, real changes it finds, and its delay. --tune then "
		"proposes better settings as a diff of the configuration, with their cost on the "
		"validation series.\n"
		"\n"
		"  hunter-c evaluate --from-triage\n"
		"  hunter-c evaluate --from-triage --tune 'db.*' | patch -p0\n",
	.parts = evaluate_parts,
	.options_size = sizeof(struct evaluate_options),
	.run = run,
};
