/*
 * Predictions for scoring: reads JSON lines {"name", "series"} and writes {"name", "cps"}, the
 * change points that a detector finds in each. With --stream the points are fed one at a time from
 * the tenth on, and a line is
 * {"name", "alarms": [[index, points seen], ...], "final": [...]}; alarms within 5 points of an
 * earlier one are the same. Usage: predict [--detector NAME] [--profile NAME] [--stream] <
 * FILE.jsonl
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/arena.h"
#include "detectors/detector.h"

enum { FIRST_POINTS = 10, SAME_ALARM = 5 };

struct task {
	const struct detector *detector;
	void *options;
	struct scratch *scratch;
};

static json_t *indexes(const struct change *changes, size_t count)
{
	json_t *array = json_array();
	for (size_t i = 0; i < count; i++)
		json_array_append_new(array, json_integer((json_int_t)changes[i].index));
	return array;
}

static json_t *predict_whole(const struct task *task, const double *values, size_t n)
{
	struct change *changes = memory_new(n + 1, sizeof(*changes));
	struct samples samples = {.values = values, .n = n};
	size_t count = task->detector->detect(&samples, task->options, task->scratch, changes);
	json_t *answer = json_pack("{s:o}", "cps", indexes(changes, count));
	free(changes);
	return answer;
}

static bool is_known(const json_t *alarms, size_t index)
{
	for (size_t i = 0; i < json_array_size(alarms); i++) {
		json_int_t at = json_integer_value(json_array_get(json_array_get(alarms, i), 0));
		if (llabs(at - (json_int_t)index) <= SAME_ALARM)
			return true;
	}
	return false;
}

/* Of a detector without a stream: the first values, anew. */
static const struct change *detect_first(
	const struct task *task, const double *values, size_t n, struct change *room, size_t *count)
{
	const struct samples samples = {.values = values, .n = n};
	*count = task->detector->detect(&samples, task->options, task->scratch, room);
	return room;
}

static json_t *predict_stream(const struct task *task, const double *values, size_t n)
{
	const struct detector *detector = task->detector;
	struct stream *stream =
		detector->stream_new ? detector->stream_new(task->options, 0) : NULL;
	struct change *room = memory_new(n + 1, sizeof(*room));
	json_t *alarms = json_array(), *last = json_array();
	for (size_t seen = 0; seen < n;) {
		size_t more = seen ? 1 : n < FIRST_POINTS ? n : FIRST_POINTS, count;
		const struct change *changes =
			stream ? detector->stream_append(
					 stream, values + seen, more, task->scratch, &count)
			       : detect_first(task, values, seen + more, room, &count);
		seen += more;
		for (size_t i = 0; i < count; i++)
			if (!is_known(alarms, changes[i].index))
				json_array_append_new(
					alarms, json_pack("[I,I]", (json_int_t)changes[i].index,
							(json_int_t)seen));
		if (seen == n) {
			json_decref(last);
			last = indexes(changes, count);
		}
	}
	if (stream)
		detector->stream_free(stream);
	free(room);
	return json_pack("{s:o,s:o}", "alarms", alarms, "final", last);
}

static bool predict_line(const struct task *task, const char *line, bool streaming)
{
	json_t *row = json_loads(line, 0, NULL);
	const json_t *series = json_object_get(row, "series");
	size_t n = json_array_size(series);
	double *values = memory_new(n + 1, sizeof(double));
	for (size_t i = 0; i < n; i++) {
		const json_t *value = json_array_get(series, i);
		values[i] = json_is_number(value) ? json_number_value(value) : strtod("nan", NULL);
	}
	json_t *answer =
		streaming ? predict_stream(task, values, n) : predict_whole(task, values, n);
	json_object_set(answer, "name", json_object_get(row, "name"));
	json_dumpf(answer, stdout, JSON_COMPACT);
	putchar('\n');
	bool read = row != NULL;
	json_decref(answer);
	json_decref(row);
	free(values);
	return read;
}

static bool set_option(
	const struct task *task, const char *name, const char *text, struct arena *arena)
{
	struct error error;
	const struct field *field = field_find(task->detector->plugin.fields, name);
	if (!field) {
		fprintf(stderr, "predict: no option %s\n", name);
		return false;
	}
	if (!field_parse(field, task->options, text, arena, &error)) {
		fprintf(stderr, "predict: %s\n", error.text);
		return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	bool streaming = false, fine = true;
	struct arena *arena = arena_new();
	struct task task = {
		.detector = detector_find(detectors[0]->name), .scratch = scratch_new()};
	for (int i = 1; i + 1 < argc; i++)
		if (strcmp(argv[i], "--detector") == 0)
			task.detector = detector_find(argv[i + 1]);
	if (!task.detector) {
		fprintf(stderr, "predict: no such detector\n");
		return 2;
	}
	task.options = arena_alloc(arena, task.detector->plugin.options_size);
	field_defaults(task.detector->plugin.fields, task.options);
	for (int i = 1; i < argc && fine; i++) {
		if (strcmp(argv[i], "--stream") == 0)
			streaming = true;
		else if (i + 1 == argc || strncmp(argv[i], "--", 2) != 0)
			fine = false;
		else if (strcmp(argv[i++], "--detector") != 0)
			fine = set_option(&task, argv[i - 1] + 2, argv[i], arena);
	}
	char *line = NULL;
	size_t size = 0;
	while (fine && getline(&line, &size, stdin) > 0)
		fine = predict_line(&task, line, streaming);
	free(line);
	scratch_free(task.scratch);
	arena_free(arena);
	return fine ? 0 : 2;
}
