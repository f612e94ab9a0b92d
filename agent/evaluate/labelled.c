/*
 * The reader of `detect` reads the line and locates the labels, which are few and parsed into
 * trees: there is no second reader with its own idea of JSON, such as whether NaN is allowed.
 */
#include "agent/evaluate/labelled.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "agent/analysis/line_batch.h"
#include "agent/base/order.h"

enum { MOST_POINTS = 50 * 1000 * 1000 };

/* The members of a line and their spellings: of several on a line the last counts. */
enum part { POINTS, MAYBE, SPANS, GROUP, NAME, PARTS };

static const struct {
	const char *name;
	enum part part;
} spellings[] = {
	{"change_points", POINTS},
	{"annotations", POINTS},
	{"true", POINTS},
	{"maybe", MAYBE},
	{"unsure", SPANS},
	{"class", GROUP},
	{"kind", GROUP},
	{"name", NAME},
};

enum { SPELLINGS = sizeof spellings / sizeof *spellings };

struct parts {
	json_t *trees[PARTS];     /* NULL if missing */
	const char *names[PARTS]; /* as spelled on the line */
};

static bool make_trees(
	const struct line_part at[SPELLINGS], struct parts *parts, struct error *error)
{
	const char *last[PARTS] = {NULL};
	for (size_t i = 0; i < SPELLINGS; i++) {
		enum part part = spellings[i].part;
		json_error_t problem;
		if (!at[i].from || (last[part] && at[i].from < last[part]))
			continue;
		last[part] = at[i].from;
		json_decref(parts->trees[part]);
		parts->names[part] = spellings[i].name;
		parts->trees[part] = json_loadb(
			at[i].from, (size_t)(at[i].to - at[i].from), JSON_DECODE_ANY, &problem);
		if (!parts->trees[part])
			return error_set(
				error, ERROR_DATA, "\"%s\": %s", spellings[i].name, problem.text);
	}
	return true;
}

void labelled_arrange(size_t *at, size_t *count)
{
	size_t kept = 0;
	qsort(at, *count, sizeof *at, order_sizes);
	for (size_t i = 0; i < *count; i++)
		if (kept == 0 || at[kept - 1] != at[i])
			at[kept++] = at[i];
	*count = kept;
}

static bool read_index(
	const json_t *value, size_t least, size_t most, size_t *out, struct error *error)
{
	json_int_t index = json_integer_value(value);
	if (!json_is_integer(value))
		return error_set(error, ERROR_DATA, "contains a value that is not an integer");
	if (index < (json_int_t)least || index > (json_int_t)most)
		return error_set(error, ERROR_DATA,
			"%lld is not within the series (from %zu to %zu)", (long long)index, least,
			most);
	*out = (size_t)index;
	return true;
}

/* Places in order, each once, without the trivial one at 0. */
static bool read_places(
	const json_t *list, size_t n, struct arena *arena, struct places *out, struct error *error)
{
	size_t count = json_array_size(list), kept = 0, *at;
	if (!json_is_array(list))
		return error_set(error, ERROR_DATA, "is not a list");
	at = arena_array(arena, count + 1, sizeof *at);
	for (size_t i = 0; i < count; i++) {
		if (!read_index(json_array_get(list, i), 0, n > 0 ? n - 1 : 0, &at[kept], error))
			return false;
		kept += at[kept] > 0;
	}
	labelled_arrange(at, &kept);
	*out = (struct places){at, kept};
	return true;
}

static bool read_points(
	json_t *points, struct arena *arena, struct labels *labels, struct error *error)
{
	bool several = json_is_object(points);
	size_t count = several ? json_object_size(points) : 1, a = 0, total = 0, *all;
	struct places *annotators = arena_array(arena, count + 1, sizeof *annotators);
	const char *name;
	json_t *list;
	if (!several && !json_is_array(points))
		return error_set(error, ERROR_DATA, "is neither a list nor a map of lists");
	if (!several && !read_places(points, labels->n, arena, &annotators[0], error))
		return false;
	json_object_foreach(points, name, list)
	{
		if (!read_places(list, labels->n, arena, &annotators[a++], error))
			return error_prefix(error, "of \"%.80s\" ", name);
	}
	labels->annotators = annotators;
	labels->annotator_count = count;
	for (a = 0; a < count; a++)
		total += annotators[a].count;
	all = arena_array(arena, total + 1, sizeof *all);
	total = 0;
	for (a = 0; a < count; a++)
		for (size_t i = 0; i < annotators[a].count; i++)
			all[total++] = annotators[a].at[i];
	labelled_arrange(all, &total);
	labels->all = (struct places){all, total};
	return true;
}

static bool read_spans(
	const json_t *list, struct arena *arena, struct labels *labels, struct error *error)
{
	size_t count = json_array_size(list);
	struct score_span *spans = arena_array(arena, count + 1, sizeof *spans);
	if (list && !json_is_array(list))
		return error_set(error, ERROR_DATA, "is not a list");
	for (size_t i = 0; i < count; i++) {
		const json_t *pair = json_array_get(list, i);
		if (json_array_size(pair) != 2)
			return error_set(
				error, ERROR_DATA, "contains an entry that is not [from, to]");
		if (!read_index(json_array_get(pair, 0), 0, labels->n, &spans[i].from, error) ||
			!read_index(json_array_get(pair, 1), spans[i].from, labels->n, &spans[i].to,
				error))
			return false;
	}
	labels->spans = spans;
	labels->span_count = count;
	return true;
}

static bool read_labels(const struct parts *parts, struct arena *arena, struct labelled_series *out,
	struct error *error)
{
	const json_t *group = parts->trees[GROUP], *maybe = parts->trees[MAYBE];
	json_t *points = parts->trees[POINTS];
	if (points && !read_points(points, arena, &out->labels, error))
		return error_prefix(error, "\"%s\" ", parts->names[POINTS]);
	if (maybe && !read_places(maybe, out->labels.n, arena, &out->labels.maybe, error))
		return error_prefix(error, "\"%s\" ", parts->names[MAYBE]);
	if (!read_spans(parts->trees[SPANS], arena, &out->labels, error))
		return error_prefix(error, "\"%s\" ", parts->names[SPANS]);
	if (group && !json_is_string(group))
		return error_set(error, ERROR_DATA, "\"%s\" is not a string", parts->names[GROUP]);
	out->group = arena_strdup(arena, group ? json_string_value(group) : "");
	return true;
}

/* The id, else the name. */
static const char *read_name(
	const struct line *line, const struct parts *parts, struct arena *arena)
{
	json_t *id = line->id ? json_loadb(line->id, line->id_length, JSON_DECODE_ANY, NULL) : NULL;
	const json_t *name = line->id ? id : parts->trees[NAME];
	const char *text = json_is_string(name) ? arena_strdup(arena, json_string_value(name))
						: arena_strndup(arena, line->id ? line->id : "",
							  line->id_length);
	json_decref(id);
	return text;
}

bool labelled_read(struct line_reader *reader, const char *text, size_t length, struct arena *arena,
	struct labelled_series *out, struct error *error)
{
	struct line line;
	struct line_part at[SPELLINGS]; /* of each spelling's value */
	struct line_wanted wanted[SPELLINGS];
	struct parts parts = {0};
	for (size_t i = 0; i < SPELLINGS; i++)
		wanted[i] = (struct line_wanted){spellings[i].name, &at[i]};
	line_reader_want(reader, wanted, SPELLINGS);
	bool read = line_read(reader, text, length, &line, error);
	line_reader_want(reader, NULL, 0);
	if (!read)
		return false;
	if (line.n == 0)
		return error_set(error, ERROR_DATA, "\"series\" is empty");
	*out = (struct labelled_series){
		.values = arena_copy(arena, line.values, line.n, sizeof *line.values),
		.runs = arena_copy(arena, line.runs, line.n, sizeof *line.runs),
		.hashes = arena_copy(arena, line.hashes, line.n, sizeof *line.hashes),
		.times = arena_copy(arena, line.times, line.n, sizeof *line.times),
		.labels.n = line.n};
	read = make_trees(at, &parts, error) && read_labels(&parts, arena, out, error);
	out->id = read_name(&line, &parts, arena);
	for (size_t i = 0; i < PARTS; i++)
		json_decref(parts.trees[i]);
	return read;
}

static bool load_batch(const struct batch *batch, struct line_reader *reader, struct arena *arena,
	struct labelled_set *set, size_t *points, struct error *error)
{
	struct batch_line line;
	size_t offset = 0;
	for (uint64_t number = batch->line; batch_line(batch, &offset, &line); number++) {
		struct labelled_series series;
		if (batch_line_is_blank(&line))
			continue;
		bool good = !line.cut;
		if (line.cut)
			error_set(error, ERROR_DATA, "line longer than %zu bytes (--max-line)",
				batch->max_line);
		good = good && labelled_read(reader, line.text, line.length, arena, &series, error);
		if (good && (*points += series.labels.n) > MOST_POINTS)
			good = error_set(
				error, ERROR_DATA, "more than %d points in all", MOST_POINTS);
		if (good && !set->lines && !series.labels.annotators)
			good = error_set(error, ERROR_DATA,
				"no \"change_points\" or \"true\" (use an empty list for none)");
		if (!good)
			return error_prefix(
				error, "%s:%llu: ", batch->file, (unsigned long long)number);
		if (set->lines)
			series.line = arena_strndup(arena, line.text, line.length);
		if (set->lines && !*series.id)
			series.id = arena_printf(
				arena, "%s:%llu", batch->file, (unsigned long long)number);
		if (!set->lines && series.labels.annotator_count == 0) {
			set->unlabelled++;
			continue;
		}
		set->series = arena_grow(arena, set->series, set->count, sizeof series);
		set->series[set->count++] = series;
	}
	return true;
}

bool labelled_load(const struct strings *files, size_t max_line, struct arena *arena,
	struct labelled_set *set, struct error *error)
{
	struct batch_reader *batches = batch_reader_new(files, max_line);
	struct line_reader *reader = line_reader_new();
	struct batch batch = {0};
	enum batch_step step;
	size_t points = 0;
	bool good = true;
	while (good && (step = batch_read(batches, &batch, error)) != BATCH_END)
		good = step == BATCH_LINES &&
		       load_batch(&batch, reader, arena, set, &points, error);
	if (good && set->count == 0 && !set->lines)
		good = error_set(error, ERROR_DATA, "no labelled series in the files");
	batch_free(&batch);
	line_reader_free(reader);
	batch_reader_free(batches);
	return good;
}
