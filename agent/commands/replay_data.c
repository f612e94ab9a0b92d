/*
 * A test's data stays in the arena it was read into. The times at which points of a test arrived
 * are listed once, so that a replay can go from one to the next.
 *
 * For a sliding range, data is read from two ranges before the start, since the agent's anchors
 * stay in place for a while.
 */
#include "agent/base/order.h"
#include "agent/commands/replay.h"

#include <stdlib.h>
#include <string.h>

#include "agent/analysis/select.h"
#include "agent/analysis/timeline.h"
#include "agent/base/dict.h"
#include "agent/base/when.h"

struct history {
	struct dataset data;
	struct axis arrivals; /* the times of its points, each once */
};

struct replay_data {
	struct arena *arena;
	struct dict histories; /* by test */
	int64_t from, until;
};

int64_t replay_since(const struct test *test, int64_t from)
{
	int64_t range = source_range(source_find(test->source->name), test->options);

	if (range > 0)
		return selection_standing_since(from, range) - range;
	return test->source->server_size > 0 ? from - SELECTION_SERVER_RANGE : WHEN_ALWAYS;
}

static void prepare(void *context, struct task *task)
{
	const struct replay_data *past = context;

	task->query.until = past->until;
	task->query.since = replay_since(task->test, past->from);
}

static void list_times(struct arena *arena, struct history *history)
{
	size_t axis_count, room = 0, count = 0, kept = 0;
	struct axis **axes = dataset_axes(&history->data, arena, &axis_count);
	int64_t *times;

	for (size_t i = 0; i < axis_count; i++)
		room += axes[i]->n;
	times = arena_array(arena, room, sizeof *times);
	for (size_t i = 0; i < axis_count; i++) {
		if (axes[i]->n)
			memcpy(times + count, axes[i]->times, axes[i]->n * sizeof *times);
		count += axes[i]->n;
	}
	qsort(times, count, sizeof *times, order_times);
	for (size_t i = 0; i < count; i++)
		if (kept == 0 || times[i] != times[kept - 1])
			times[kept++] = times[i];
	history->arrivals = (struct axis){.n = kept, .times = times};
}

/* Takes over the memory of the task's data. */
static void ready(void *context, struct task *const *tasks)
{
	struct replay_data *past = context;
	struct task *task = tasks[0];
	struct history *history;

	if (!gather_log(task) || task->abandoned)
		return;
	history = arena_alloc(past->arena, sizeof *history);
	history->data = task->query.data;
	*dict_place(&past->histories, task->test->name) = history;
	list_times(past->arena, history);
	arena_join(past->arena, task->query.arena);
	task->query.arena = arena_new();
}

struct replay_data *replay_data_gather(struct cli *cli, const struct config *config,
	const struct test *const *tests, size_t count, int64_t from, int64_t until, int *code)
{
	struct arena *arena = arena_new();
	struct replay_data *past = arena_alloc(arena, sizeof *past);
	struct gather gather = {.tests = tests,
		.count = count,
		.config = config,
		.prepare = prepare,
		.ready = ready,
		.context = past};

	*past = (struct replay_data){
		.arena = arena, .histories = {.arena = arena}, .from = from, .until = until};
	if (!gather_run(&gather, cli)) {
		arena_free(arena);
		past = NULL;
	}
	*code = gather.code;
	return past;
}

void replay_data_free(struct replay_data *past)
{
	if (past)
		arena_free(past->arena);
}

bool replay_data_has(const struct replay_data *past, const char *test)
{
	return dict_get(&past->histories, test);
}

/* An axis of the points [first, last) of an axis. */
static struct axis *cut(struct arena *arena, const struct axis *axis, size_t first, size_t last)
{
	struct axis *view = arena_alloc(arena, sizeof *view);

	*view = (struct axis){.n = last - first,
		.times = axis->times + first,
		.columns = arena_array(arena, axis->column_count, sizeof *view->columns),
		.column_count = axis->column_count};
	for (size_t i = 0; i < axis->column_count; i++)
		view->columns[i] =
			(struct column){axis->columns[i].name, axis->columns[i].values + first};
	return view;
}

/* A server does not know a series without points; a file always has its columns. */
void replay_data_view(const struct replay_data *past, const char *test, int64_t since,
	int64_t until, struct arena *arena, struct dataset *out)
{
	const struct history *history = dict_get(&past->histories, test);
	const struct dataset *data = &history->data;
	const struct axis *shared = NULL;
	struct axis *view = NULL;
	size_t first = 0;

	*out = (struct dataset){arena_array(arena, data->count, sizeof *out->series), 0};
	for (size_t i = 0; i < data->count; i++) {
		const struct series *series = &data->series[i];
		bool alone = i + 1 == data->count || data->series[i + 1].axis != series->axis;

		if (series->axis != shared) {
			size_t last = axis_lower_bound(series->axis, until);

			first = axis_lower_bound(series->axis, since);
			view = cut(arena, series->axis, first, last > first ? last : first);
			if (alone && view->n == 0 && data->count > 1)
				continue;
			shared = series->axis;
		}
		out->series[out->count] = *series;
		out->series[out->count].axis = view;
		out->series[out->count++].values = series->values + first;
	}
}

int64_t replay_data_next(const struct replay_data *past, const char *test, int64_t time)
{
	const struct history *history = dict_get(&past->histories, test);
	size_t at = axis_lower_bound(&history->arrivals, time);

	return at < history->arrivals.n ? history->arrivals.times[at] : WHEN_NEVER;
}
