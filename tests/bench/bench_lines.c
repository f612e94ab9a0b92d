/*
 * bench_lines: what reading a line of `detect --input jsonl` costs, beside jansson's tree of the
 * same line; and reading and writing a single number, beside libc.
 *
 * Prints rows of: name, work, time, rate, peak memory, with tabs between.
 */
#include <jansson.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "agent/analysis/series_lines.h"
#include "agent/base/buf.h"
#include "agent/base/number.h"

enum { POINTS = 200, LINES = 500, NUMBERS = POINTS * LINES, ROUNDS = 7 };

/* Numbers as text, each at a distance of NUMBER_TEXT from the last, and lines of them. */
struct input {
	double values[NUMBERS];
	char (*texts)[NUMBER_TEXT];
	struct buf lines[LINES];
	size_t bytes;
};

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* About 100 with 2% noise; every bit of a double, or three decimals. */
static void fill(struct input *input, bool whole)
{
	uint64_t seed = 88172645463325252u;
	input->bytes = 0;
	for (size_t i = 0; i < NUMBERS; i++) {
		double sum = 0;
		for (int k = 0; k < 12; k++)
			sum += (double)(next_random(&seed) >> 11) * 0x1p-53;
		double value = 100 + 2 * (sum - 6);
		input->values[i] = whole ? value : round(value * 1000) / 1000;
		number_format(input->values[i], input->texts[i]);
	}
	for (size_t i = 0; i < LINES; i++) {
		struct buf *line = &input->lines[i];
		buf_clear(line);
		buf_printf(line, "{\"id\": \"series-%zu\", \"series\": [", i);
		for (size_t k = 0; k < POINTS; k++)
			buf_printf(line, "%s%s", k ? ", " : "", input->texts[i * POINTS + k]);
		buf_text(line, "]}");
		input->bytes += line->length;
	}
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Each does the whole input once and returns a sum, so that nothing is left out. */
static double read_lines(const struct input *input)
{
	struct line_reader *reader = line_reader_new();
	double sum = 0;
	for (size_t i = 0; i < LINES; i++) {
		struct line line;
		struct error error;
		if (line_read(reader, input->lines[i].data, input->lines[i].length, &line, &error))
			sum += line.values[POINTS - 1];
	}
	line_reader_free(reader);
	return sum;
}

static double read_with_jansson(const struct input *input)
{
	double sum = 0;
	for (size_t i = 0; i < LINES; i++) {
		json_error_t error;
		json_t *row = json_loadb(input->lines[i].data, input->lines[i].length, 0, &error);
		json_t *series = json_object_get(row, "series");
		sum += json_number_value(json_array_get(series, POINTS - 1));
		json_decref(row);
	}
	return sum;
}

static double parse_numbers(const struct input *input)
{
	double sum = 0, value = 0;
	for (size_t i = 0; i < NUMBERS; i++) {
		const char *text = input->texts[i];
		number_scan(text, text + NUMBER_TEXT, &value);
		sum += value;
	}
	return sum;
}

static double parse_with_libc(const struct input *input)
{
	double sum = 0;
	for (size_t i = 0; i < NUMBERS; i++)
		sum += strtod(input->texts[i], NULL);
	return sum;
}

static double format_numbers(const struct input *input)
{
	char text[NUMBER_TEXT];
	size_t sum = 0;
	for (size_t i = 0; i < NUMBERS; i++)
		sum += number_format(input->values[i], text);
	return (double)sum;
}

static double format_with_libc(const struct input *input)
{
	char text[NUMBER_TEXT];
	int sum = 0;
	for (size_t i = 0; i < NUMBERS; i++)
		sum += snprintf(text, sizeof text, "%.17g", input->values[i]);
	return sum;
}

/* Prints the fastest of some rounds, per piece. */
static void measure(const struct input *input, const char *name, const char *work,
	double (*run)(const struct input *), size_t pieces)
{
	double fastest = HUGE_VAL;
	for (int i = 0; i < ROUNDS; i++) {
		double start = now();
		volatile double sum = run(input);
		(void)sum;
		double taken = now() - start;
		fastest = taken < fastest ? taken : fastest;
	}
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	double each = fastest / (double)pieces;
	printf("%s\t%s\t", name, work);
	printf(each < 1e-6 ? "%.1f ns\t" : "%.2f us\t", each < 1e-6 ? each * 1e9 : each * 1e6);
	if (pieces == LINES)
		printf("%.0f MB/s\t", (double)input->bytes / fastest / 1e6);
	else
		printf("%.0f M/s\t", 1 / each / 1e6);
	printf("%.1f MB\n", (double)usage.ru_maxrss / 1024);
}

int main(void)
{
	struct input *input = calloc(1, sizeof *input);
	input->texts = calloc(NUMBERS, sizeof *input->texts);
	fill(input, true);
	measure(input, "line", "read a JSON line of 200 points of 17 digits", read_lines, LINES);
	measure(input, "line", "the same by jansson", read_with_jansson, LINES);
	measure(input, "number", "read a number of 17 digits", parse_numbers, NUMBERS);
	measure(input, "number", "the same by strtod", parse_with_libc, NUMBERS);
	measure(input, "number", "write a number of 17 digits", format_numbers, NUMBERS);
	measure(input, "number", "the same by printf", format_with_libc, NUMBERS);
	fill(input, false);
	measure(input, "line", "read a JSON line of 200 points of 6 digits", read_lines, LINES);
	measure(input, "line", "the same by jansson", read_with_jansson, LINES);
	measure(input, "number", "read a number of 6 digits", parse_numbers, NUMBERS);
	measure(input, "number", "the same by strtod", parse_with_libc, NUMBERS);
	for (size_t i = 0; i < LINES; i++)
		buf_free(&input->lines[i]);
	free(input->texts);
	free(input);
	return 0;
}
