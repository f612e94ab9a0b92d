/*
 * The rows by which the default profile is judged, on one page: accuracy on whole series, alarms
 * while they arrive, ramps, short series, and recorded sets where they are at hand.
 *
 *     bench_rows [--series N] [--first SEED] [--classes] [--confirm auto|off|N] [--data FOLDER]
 *
 * FOLDER holds synthetic.jsonl and the other annotated sets (default: $HUNTER_REFERENCE_DATA, its
 * folder datasets); without it only generated series are measured.
 */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "detectors/edivisive/edivisive.h"
#include "tests/bench/score.h"

struct bench {
	struct scratch *scratch;
	struct edivisive_options options;
	struct confirm_rule rule;
	size_t series; /* of a class */
	uint64_t first;
	bool classes; /* a line for each class */
	const char *data;
};

/* Everything that is counted of one class. */
struct counts {
	struct tally margins[3]; /* 0, 2, 5 */
	size_t series, points, found;
	struct watched stream, agent; /* sums; announced at once by place, and by the rule */
	size_t agent_delays[200], stream_delays[200];
};

static const size_t margins[3] = {0, 2, 5};

static void add_watched(struct watched *sum, const struct watched *one, size_t delays[static 200])
{
	sum->points += one->points;
	sum->alarms += one->alarms;
	sum->wrong += one->wrong;
	sum->withdrawn += one->withdrawn;
	sum->true_withdrawn += one->true_withdrawn;
	sum->seen += one->seen;
	for (size_t i = 0; i < one->seen; i++)
		delays[one->delays[i] < 199 ? one->delays[i] : 199]++;
}

static void count_one(const struct bench *bench, const struct labelled *series, bool stream,
	struct counts *counts)
{
	static struct change changes[SERIES_MOST];
	struct samples samples = {.values = series->values, .n = series->n};
	size_t found =
		edivisive_detector.detect(&samples, &bench->options, bench->scratch, changes);
	counts->series++;
	counts->points += series->n;
	counts->found += found;
	for (size_t m = 0; m < 3; m++)
		tally_add(&counts->margins[m], series, changes, found, margins[m]);
	if (!stream)
		return;
	struct confirm_rule at_once = {.mode = CONFIRM_OFF};
	struct watched one = score_stream(
		series, &edivisive_detector, &bench->options, &at_once, false, bench->scratch);
	add_watched(&counts->stream, &one, counts->stream_delays);
	one = score_stream(
		series, &edivisive_detector, &bench->options, &bench->rule, true, bench->scratch);
	add_watched(&counts->agent, &one, counts->agent_delays);
}

static double per_thousand(size_t part, size_t whole)
{
	return whole > 0 ? 1000 * (double)part / (double)whole : 0;
}

static size_t quantile(const size_t delays[static 200], size_t seen, double q)
{
	size_t rank = (size_t)(q * (double)seen), passed = 0, delay = 0;
	if (seen == 0)
		return 0;
	rank = rank < seen ? rank : seen - 1;
	while ((passed += delays[delay]) <= rank)
		delay++;
	return delay;
}

static void print_class(const struct series_class *c, const struct counts *counts)
{
	printf("%-24s", c->name);
	for (size_t m = 0; m < 3; m++)
		printf(" %5.3f", tally_f1(counts->margins[m]));
	printf("  %5.2f a series %6.2f/1000", (double)counts->found / (double)counts->series,
		per_thousand(counts->found, counts->points));
	for (size_t i = 0; i < 2; i++) {
		const struct watched *w = i ? &counts->agent : &counts->stream;
		const size_t *delays = i ? counts->agent_delays : counts->stream_delays;
		size_t truth = counts->margins[0].truth;
		printf(" | alarms %4zu wrong %4zu (%5.2f/1000) gone %3zu", w->alarms, w->wrong,
			per_thousand(w->wrong, w->points), w->withdrawn);
		if (truth > 0)
			printf(" seen %4.2f after %2zu %2zu %3zu", (double)w->seen / (double)truth,
				quantile(delays, w->seen, .1), quantile(delays, w->seen, .5),
				quantile(delays, w->seen, .9));
	}
	putchar('\n');
}

/* Means over flat classes, as the peers' figures are. */
struct flat {
	double whole, stream, agent;
	size_t classes;
};

static void add_flat(struct flat *flat, const struct counts *counts)
{
	flat->whole += per_thousand(counts->found, counts->points);
	flat->stream += per_thousand(counts->stream.wrong, counts->stream.points);
	flat->agent += per_thousand(counts->agent.wrong, counts->agent.points);
	flat->classes++;
}

static void print_flat(const char *what, const struct flat *flat)
{
	double n = (double)flat->classes;
	printf("  false/1,000 %-18s whole %.3f   at once %.2f   confirmed %.2f\n", what,
		flat->whole / n, flat->stream / n, flat->agent / n);
}

static void print_gone(const char *what, const struct watched *w)
{
	size_t right = w->alarms - w->wrong;
	printf("  %-12s alarms %5zu  withdrawn %4.1f%%  of the right ones %.2f%%\n", what,
		w->alarms, 100 * (double)w->withdrawn / fmax(1, (double)w->alarms),
		100 * (double)w->true_withdrawn / fmax(1, (double)right));
}

static void add_all(struct watched *sum, const struct watched *one)
{
	size_t unused[200] = {0};
	struct watched plain = *one;
	plain.seen = 0;
	add_watched(sum, &plain, unused);
}

static void print_set(const char *name, const struct counts *counts, bool hard)
{
	struct tally pooled[3] = {{0}};
	struct flat independent = {0}, all = {0};
	struct watched stream = {0}, agent = {0};
	printf("%s\n", name);
	for (size_t i = 0; i < series_class_count; i++) {
		const struct series_class *c = &series_classes[i];
		const struct counts *one = &counts[i];
		if (c->hard != hard || one->series == 0)
			continue;
		add_all(&stream, &one->stream);
		add_all(&agent, &one->agent);
		for (size_t m = 0; m < 3 && c->group <= GROUP_MULTI; m++) {
			pooled[m].hits += one->margins[m].hits;
			pooled[m].found += one->margins[m].found;
			pooled[m].truth += one->margins[m].truth;
		}
		if (c->group == GROUP_FLAT) {
			add_flat(&all, one);
			if (!c->dependent)
				add_flat(&independent, one);
		}
		if (c->group == GROUP_RAMP)
			printf("  %-22s points a ramp %.2f   alarms at once %.2f   confirmed "
			       "%.2f\n",
				c->name, (double)one->found / (double)one->series,
				(double)one->stream.alarms / (double)one->series,
				(double)one->agent.alarms / (double)one->series);
	}
	printf("  F1@0 %.3f  F1@2 %.3f  F1@5 %.3f\n", tally_f1(pooled[0]), tally_f1(pooled[1]),
		tally_f1(pooled[2]));
	print_flat("independent flat", &independent);
	print_flat("all flat", &all);
	print_gone("at once", &stream);
	print_gone("confirmed", &agent);
}

static void print_delays(const struct counts *counts)
{
	static const char *const names[] = {"step_5in2", "step_5in1", "step_5in5"};
	for (size_t i = 0; i < 3; i++) {
		const struct counts *one = &counts[series_class_find(names[i]) - series_classes];
		double truth = fmax(1, (double)one->margins[0].truth);
		printf("  %s: at once %zu (%.0f%%), confirmed %zu (%.0f%%)\n", names[i],
			quantile(one->stream_delays, one->stream.seen, .5),
			100 * (double)one->stream.seen / truth,
			quantile(one->agent_delays, one->agent.seen, .5),
			100 * (double)one->agent.seen / truth);
	}
}

static void report(
	const struct bench *bench, const char *name, const struct counts *counts, bool hard)
{
	for (size_t i = 0; bench->classes && i < series_class_count; i++)
		if (counts[i].series > 0 && series_classes[i].hard == hard)
			print_class(&series_classes[i], &counts[i]);
	print_set(name, counts, hard);
	if (!hard)
		print_delays(counts);
}

static void measure_generated(const struct bench *bench)
{
	static struct labelled series;
	struct counts *counts = calloc(series_class_count, sizeof *counts);
	if (!counts)
		abort();
	for (size_t i = 0; i < series_class_count; i++)
		for (uint64_t k = 0; k < bench->series; k++) {
			series_generate(&series_classes[i], bench->first + k, &series);
			count_one(bench, &series, true, &counts[i]);
		}
	report(bench, "generated, 34 classes", counts, false);
	report(bench, "generated, harder classes", counts, true);
	const struct counts *brief = &counts[series_class_find("step_short") - series_classes];
	printf("  15 to 40 points, one step: found %zu of %zu, and %zu others\n",
		brief->margins[2].hits, brief->margins[2].truth,
		brief->margins[2].found - brief->margins[2].hits);
	free(counts);
}

static bool read_series(const json_t *row, struct labelled *out)
{
	const json_t *values = json_object_get(row, "series"), *truth;
	*out = (struct labelled){.n = json_array_size(values)};
	if (out->n > SERIES_MOST)
		return false;
	for (size_t i = 0; i < out->n; i++) {
		const json_t *value = json_array_get(values, i);
		out->values[i] = json_is_number(value) ? json_number_value(value) : nan("");
	}
	json_t *annotations = json_object_get(row, "annotations");
	truth = json_object_iter_value(json_object_iter(annotations));
	for (size_t i = 0; i < json_array_size(truth) && i < TRUTH_MOST; i++)
		out->truth[out->truth_count++] =
			(size_t)json_integer_value(json_array_get(truth, i));
	return true;
}

/* Calls `each` for every row of the file; false if there is none. */
static bool each_row(const struct bench *bench, const char *file,
	void (*each)(const struct bench *, const json_t *, void *), void *context)
{
	char path[1024], *line = NULL;
	size_t size = 0;
	snprintf(path, sizeof path, "%s/%s.jsonl", bench->data, file);
	FILE *in = fopen(path, "r");
	if (!in)
		return false;
	while (getline(&line, &size, in) > 0) {
		json_t *row = json_loads(line, 0, NULL);
		each(bench, row, context);
		json_decref(row);
	}
	free(line);
	fclose(in);
	return true;
}

static void count_recorded(const struct bench *bench, const json_t *row, void *context)
{
	static struct labelled series;
	struct counts *counts = context;
	const char *name = json_string_value(json_object_get(row, "class"));
	const struct series_class *c = name ? series_class_find(name) : NULL;
	if (c && read_series(row, &series))
		count_one(bench, &series, true, &counts[c - series_classes]);
}

struct judged {
	double f1;
	size_t series, right;
};

/* Mean F1, and how many series come out as a person reads them: as many points, each within 2. */
static void judge_row(const struct bench *bench, const json_t *row, void *context)
{
	static struct labelled series;
	static struct change changes[SERIES_MOST];
	struct judged *judged = context;
	if (!read_series(row, &series) ||
		json_object_size(json_object_get(row, "annotations")) == 0)
		return;
	struct samples samples = {.values = series.values, .n = series.n};
	size_t count =
		edivisive_detector.detect(&samples, &bench->options, bench->scratch, changes);
	struct tally tally = {0};
	tally_add(&tally, &series, changes, count, 2);
	judged->series++;
	judged->f1 += tally_f1_annotated(&series, changes, count, 5);
	bool right = tally.hits == tally.found && tally.hits == tally.truth;
	judged->right += right;
	if (!right && bench->classes)
		printf("  %s\n", json_string_value(json_object_get(row, "name")));
}

static void measure_recorded(const struct bench *bench)
{
	static const char *const files[] = {
		"sap-hana-small-per-build", "sap-hana-small", "lnt-series"};
	struct counts *counts = calloc(series_class_count, sizeof *counts);
	if (!counts)
		abort();
	if (each_row(bench, "synthetic", count_recorded, counts))
		report(bench, "synthetic.jsonl", counts, false);
	free(counts);
	for (size_t i = 0; i < 3; i++) {
		struct judged judged = {0};
		if (each_row(bench, files[i], judge_row, &judged))
			printf("%s: F1 %.3f, %zu of %zu as read\n", files[i],
				judged.f1 / (double)judged.series, judged.right, judged.series);
	}
}

int main(int argc, char **argv)
{
	struct bench bench = {.scratch = scratch_new(), .series = 50, .first = 1};
	struct error error;
	char folder[1024] = "";
	const char *reference = getenv("HUNTER_REFERENCE_DATA");
	if (reference)
		snprintf(folder, sizeof folder, "%s/datasets", reference);
	bench.data = folder;
	field_defaults(edivisive_detector.plugin.fields, &bench.options);
	for (int i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "";
		if (strcmp(argv[i], "--classes") == 0)
			bench.classes = true;
		else if (strcmp(argv[i], "--otava") == 0)
			bench.options.profile = EDIVISIVE_OTAVA;
		else if (strcmp(argv[i], "--series") == 0)
			bench.series = strtoul(value, NULL, 10), i++;
		else if (strcmp(argv[i], "--first") == 0)
			bench.first = strtoul(value, NULL, 10), i++;
		else if (strcmp(argv[i], "--data") == 0)
			bench.data = value, i++;
		else if (strcmp(argv[i], "--confirm") == 0 &&
			 confirm_parse(value, &bench.rule, &error))
			i++;
		else {
			fprintf(stderr, "bench_rows: what is %s?\n", argv[i]);
			return 2;
		}
	}
	measure_generated(&bench);
	if (bench.data[0])
		measure_recorded(&bench);
	scratch_free(bench.scratch);
	return 0;
}
