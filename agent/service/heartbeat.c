/*
 * The weekly heartbeat: what was read, what was found, and what has no data, so that silence means
 * no changes. The first one is sent when all tests have run once.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/buf.h"
#include "agent/base/dict.h"
#include "agent/base/order.h"
#include "agent/base/utf8.h"
#include "agent/fleet/fleet.h"
#include "agent/monitor/condition.h"
#include "agent/monitor/power.h"
#include "agent/service/letters.h"

enum {
	CHANGES_MOST = 1000, /* counted at most */
	NAMED = 5,           /* listed by name at most */
	LONGEST = 100,
};
#define WEEK INT64_C(604800000)

static bool times(
	const struct receiver *receiver, int64_t last, int64_t now, int64_t *before, int64_t *next)
{
	*next = last == 0 ? now : last + WEEK;
	*before = *next <= now ? *next : last;
	return receiver->heartbeat;
}

/* Tests or sources without data, of one kind. */
struct lack {
	struct buf names;
	size_t count;
};

struct survey {
	const struct letter *letter;
	struct dict sources; /* already counted */
	size_t tests, elsewhere, read, series, points;
	struct lack down, failing, stale;
	double *smallest; /* percent, of the series that were measured */
	size_t measured, measured_tests;
};

static void add_lack(struct lack *lack, const char *name)
{
	if (lack->count++ < NAMED)
		buf_printf(&lack->names, "%s%.*s", lack->count > 1 ? ", " : "",
			(int)utf8_cut(name, LONGEST), name);
}

static void survey_test(void *context, const struct scheduler_test *seen)
{
	struct survey *survey = context;
	const struct test *test = seen->test;
	const char *source = condition_source(test);
	const struct scheduler_test known = letter_test(seen, &survey->letter->lists[0]->health),
				    *state = &known;

	if (!letter_goes_to(&test->notify, survey->letter->receiver))
		return;
	survey->tests++;
	survey->elsewhere += state->elsewhere != NULL;
	survey->read += !state->failing &&
			(state->elsewhere ? state->down_since == 0 : state->last_run != 0);
	survey->series += state->series;
	survey->points += state->points;
	if (state->measured > 0) {
		survey->smallest = memory_resize(survey->smallest,
			survey->measured + state->measured, sizeof *survey->smallest);
		memcpy(survey->smallest + survey->measured, state->smallest,
			state->measured * sizeof *survey->smallest);
		survey->measured += state->measured;
		survey->measured_tests++;
	}
	if (state->down_since != 0 && !dict_get(&survey->sources, source)) {
		*dict_place(&survey->sources, source) = test;
		add_lack(&survey->down, source);
	} else if (state->down_since == 0 && state->failing) {
		add_lack(&survey->failing, test->name);
	}
	if (state->down_since == 0 && !state->failing && state->stale)
		add_lack(&survey->stale, test->name);
}

static void put_lack(struct buf *out, struct lack *lack, const char *one, const char *many)
{
	if (lack->count == 0)
		return;
	buf_printf(
		out, "; %zu %s: %s", lack->count, lack->count == 1 ? one : many, lack->names.data);
	if (lack->count > NAMED)
		buf_printf(out, " and %zu more", lack->count - NAMED);
	buf_free(&lack->names);
}

static void put_percent(struct buf *out, double percent)
{
	buf_printf(out, "%s%.0f%%", isfinite(percent) ? "" : "over ",
		isfinite(percent) ? percent : power_sizes[POWER_SIZES - 1]);
}

/* The smallest step that would be announced. */
static void put_smallest(struct buf *out, struct survey *survey)
{
	const double *sizes = survey->smallest;
	size_t n = survey->measured;

	if (n == 0) {
		if (survey->tests > 0)
			buf_text(out, "; smallest detectable change unknown");
		return;
	}
	qsort(survey->smallest, n, sizeof *survey->smallest, order_numbers);
	buf_text(out, "; smallest detectable change: ");
	put_percent(out, sizes[(n - 1) / 2]);
	if (sizes[n - 1] > sizes[(n - 1) / 2]) {
		buf_text(out, " in half of the series, ");
		put_percent(out, sizes[n - 1]);
		buf_text(out, " in all");
	}
	buf_printf(out, " (measured: %zu series of %zu of %zu tests)", n, survey->measured_tests,
		survey->tests);
	free(survey->smallest);
}

static void write(struct letter *letter, const struct receiver *receiver)
{
	const struct store_list *list = letter->lists[0];
	struct survey survey = {.letter = letter, .sources = {.arena = letter->arena}};
	size_t changes = 0; /* of the receiver's tests, found in the last week */
	struct buf text = {0}, *out = &text;
	bool well;

	(void)receiver;
	for (size_t i = 0; i < list->records.count; i++) {
		const struct change_record *record = &list->records.items[i];

		changes += record->first_seen >= list->filter.updated &&
			   record->state != CHANGE_CANDIDATE && record->state != CHANGE_WITHDRAWN &&
			   letter_goes_to(config_notify(letter->agent->config, record->item.test),
				   letter->receiver);
	}
	scheduler_each(letter->scheduler, survey_test, &survey);
	well = survey.down.count + survey.failing.count + survey.stale.count == 0;
	buf_printf(out, "hunter-c is running: read %zu of %zu tests ", survey.read, survey.tests);
	if (survey.elsewhere > 0)
		buf_printf(out, "by %zu agents", fleet_size(letter->agent));
	else
		buf_printf(out, "(%zu series, %zu points)", survey.series, survey.points);
	buf_printf(out, ", %s%zu %s found in the last 7 days", list->more ? "more than " : "",
		changes, changes == 1 ? "change was" : "changes were");
	put_lack(out, &survey.down, "source is down", "sources are down");
	put_lack(out, &survey.failing, "test fails", "tests fail");
	put_lack(out, &survey.stale, "test has no new data", "tests have no new data");
	if (well)
		buf_text(out, "; all of them have data");
	put_smallest(out, &survey);
	letter->notice.subject = "hunter-c";
	letter->notice.text = buf_keep(&text, letter->arena);
	letter->notice.recovered = well;
}

static void filter(const struct letter *letter, size_t number, struct change_filter *filter)
{
	(void)number;
	filter->updated = letter->now - WEEK;
	filter->limit = CHANGES_MOST;
}

const struct letter_kind heartbeat_letter = {.name = "heartbeat ",
	.message = MESSAGE_HEARTBEAT,
	.lists = 1,
	.at_once = true,
	.measures = true,
	.times = times,
	.filter = filter,
	.write = write};
