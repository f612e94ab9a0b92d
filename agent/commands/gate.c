/* A record is made of each change, as the agent makes one, and only for tests that may need it. */
#include "agent/commands/gate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/when.h"
#include "agent/monitor/news.h"
#include "agent/notify/accepted.h"
#include "agent/notify/announce.h"

const struct field gate_fields[] = {
	OPTION_LIST(struct gate_flags, known_changes,
		"a file with known_changes: that are not counted, beside those of the "
		"configuration",
		.metavar = "FILE"),
	OPTION_BOOL(struct gate_flags, strict, "count changes that have been accepted, too"),
	{0},
};

struct gate {
	const struct config *config;
	int64_t now;
	bool off;    /* says nothing of accepted changes */
	bool strict; /* none is accepted */
	bool *told;  /* by entry: that it has expired */
};

struct gate *gate_new(
	const struct gate_flags *flags, const struct config *config, bool off, struct cli *cli)
{
	struct gate *gate = memory_new(1, sizeof *gate);

	*gate = (struct gate){
		.config = config, .now = cli->now, .off = off, .strict = flags->strict};
	gate->told = memory_new(config->known_change_count + 1, sizeof *gate->told);
	return gate;
}

void gate_free(struct gate *gate)
{
	if (gate)
		free(gate->told);
	free(gate);
}

/* Says once that an entry would have covered a change. */
static void tell_expired(
	struct gate *gate, const struct known_change *entry, const struct change_record *record)
{
	bool *told = &gate->told[entry - gate->config->known_changes];
	char until[WHEN_TEXT], place[300];

	if (*told)
		return;
	*told = true;
	snprintf(place, sizeof place, "%.200s:%d", entry->file, entry->line);
	log_event(LEVEL_WARN, "a known change counts again: its entry has expired",
		LOG_TEXT("test", record->item.test), LOG_TEXT("metric", record->item.metric),
		LOG_TEXT("entry", place), LOG_TEXT("until", when_format(entry->until, until)),
		LOG_TEXT("reason", entry->reason));
}

/* The points of a series that have values. */
struct existing {
	int64_t *times;
	size_t n;
};

static struct existing existing_points(struct arena *arena, const struct series *series)
{
	const struct axis *axis = series->axis;
	struct existing out = {.times = arena_array(arena, axis->n, sizeof *out.times)};

	for (size_t i = 0; i < axis->n; i++)
		if (!isnan(series->values[i]))
			out.times[out.n++] = axis->times[i];
	return out;
}

static size_t position_of(const struct existing *points, int64_t time)
{
	size_t at = 0;

	while (at < points->n && points->times[at] < time)
		at++;
	return at < points->n ? at : points->n > 0 ? points->n - 1 : 0;
}

static struct change_record record_of(struct arena *arena, const struct test *test,
	const struct series *series, const struct change *change, const struct existing *points)
{
	struct change_record record = {
		.item = announce_change(arena, test->name, test->environment, series, change)};

	record.series = series->identity;
	record.sign = change_sign(change);
	record.spacing =
		news_spacing(points->times, points->n, position_of(points, record.item.time));
	return record;
}

static const char *judge(struct gate *gate, const struct change_record *record)
{
	const struct known_change *expired;
	const struct known_change *entry =
		accepted_known(gate->config, record, gate->now, &expired);

	if (!entry && expired)
		tell_expired(gate, expired, record);
	return entry ? entry->reason : NULL;
}

static bool is_needed(const struct gate *gate, const char *test)
{
	return !gate->off && !gate->strict && accepted_concerns(gate->config, test);
}

void gate_judge(struct gate *gate, struct arena *arena, const struct analysis *analysis)
{
	bool needed = is_needed(gate, analysis->test->name);

	for (size_t s = 0; s < analysis->data->count && !gate->off; s++) {
		struct findings *found = &analysis->findings[s];
		const char **accepted = arena_array(arena, found->count, sizeof *accepted);
		struct existing points = {0};

		if (needed && found->count > 0)
			points = existing_points(arena, found->series);
		for (size_t i = 0; needed && i < found->count; i++) {
			struct change_record record = record_of(
				arena, analysis->test, found->series, &found->changes[i], &points);

			accepted[i] = judge(gate, &record);
		}
		found->accepted = accepted;
	}
}

const char *gate_judge_span(struct gate *gate, struct arena *arena, const struct test *test,
	const struct series *series, const struct change *change)
{
	struct existing points;
	struct change_record record;

	if (!is_needed(gate, test->name))
		return NULL;
	points = existing_points(arena, series);
	record = record_of(arena, test, series, change, &points);
	return judge(gate, &record);
}

void gate_print(size_t accepted, FILE *out)
{
	if (accepted > 0)
		fprintf(out, "%zu accepted change%s not counted\n", accepted,
			accepted == 1 ? "" : "s");
}
