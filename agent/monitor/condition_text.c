/*
 * One sentence for each kind, begun or over. Problems are cut, as a server may say a great deal.
 */
#include "agent/monitor/condition_text.h"

#include <string.h>

#include "agent/core/utf8.h"
#include "agent/core/when.h"

enum { PROBLEM_MAX = 300 };

static int cut(const char *problem)
{
	return (int)utf8_cut(problem, PROBLEM_MAX);
}

static void begun(const struct condition *condition, const struct outcome *outcome,
	const struct condition_data *data, struct buf *out)
{
	const char *name = condition_name(condition);
	char since[WHEN_TEXT], limit[WHEN_TEXT];

	when_format(condition->since, since);
	when_format_duration(data->limit, limit);
	switch (condition->kind) {
	case CONDITION_SOURCE:
		buf_printf(out,
			"source %s is down: no run has succeeded since %s; test \"%s\": %.*s", name,
			since, outcome->test, cut(outcome->problem), outcome->problem);
		break;
	case CONDITION_TEST:
		buf_printf(out, "test \"%s\" has failed since %s: %.*s", name, since,
			cut(outcome->problem), outcome->problem);
		break;
	case CONDITION_STALE:
		if (data->newest == WHEN_ALWAYS)
			buf_printf(
				out, "test \"%s\" has had no data for longer than %s", name, limit);
		else
			buf_printf(out,
				"test \"%s\" has had no new data for longer than %s: its last "
				"point "
				"is from %s",
				name, limit, since);
		break;
	case CONDITION_MANY_FAIL:
	case CONDITION_MANY_STALE:
		buf_printf(out,
			"source %s: more than %d of its tests %s; the others are not reported "
			"individually",
			name, CONDITION_TOLD_SINGLY,
			condition->kind == CONDITION_MANY_FAIL ? "fail" : "have no new data");
		break;
	}
}

static void over(const struct condition *condition, const struct outcome *outcome, struct buf *out)
{
	const char *name = condition_name(condition);
	char time[WHEN_TEXT];

	when_format_rough(
		outcome->now > condition->since ? outcome->now - condition->since : 0, time);
	switch (condition->kind) {
	case CONDITION_SOURCE:
		buf_printf(out, "source %s is up again, after %s", name, time);
		break;
	case CONDITION_TEST:
		buf_printf(out, "test \"%s\" has recovered, after %s", name, time);
		break;
	case CONDITION_STALE:
		if (outcome->stale_after == WHEN_NEVER)
			buf_printf(out, "test \"%s\" may be without new data from now on", name);
		else
			buf_printf(out, "test \"%s\" has new data again, after %s", name, time);
		break;
	case CONDITION_MANY_FAIL:
	case CONDITION_MANY_STALE:
		buf_printf(out,
			"source %s: the tests that were not reported individually have %s, after "
			"%s",
			name,
			condition->kind == CONDITION_MANY_FAIL ? "recovered" : "new data again",
			time);
		break;
	}
}

void condition_text_gone(const struct condition *condition, struct buf *out)
{
	const char *name = condition_name(condition);

	if (condition->kind == CONDITION_TEST || condition->kind == CONDITION_STALE)
		buf_printf(out, "test \"%s\" is no longer configured", name);
	else
		buf_printf(out, "source %s is no longer used", name);
}

void condition_text(const struct condition *condition, const struct outcome *outcome,
	const struct condition_data *data, struct buf *out)
{
	if (condition->over)
		over(condition, outcome, out);
	else
		begun(condition, outcome, data, out);
}
