/*
 * `--update-postgres`: writes changes into the tables they were read from, as Otava does. The
 * statement runs once per change, with the attributes of the first point of the new level.
 */
#include <string.h>

#include "agent/base/when.h"
#include "sources/postgres/bind.h"
#include "sources/postgres/rows.h"
#include "sources/postgres/session.h"

bool postgres_update_check(struct arena *arena, const struct postgres_options *options,
	const struct metric *metrics, size_t metric_count, struct error *error)
{
	struct pairs names = postgres_attributes(arena, options);
	struct pair *pairs = arena_array(arena, 2 * names.count + 1, sizeof *pairs);
	size_t count = 0;
	struct bound bound;
	if (!options->update_statement || !*options->update_statement)
		return error_set(error, ERROR_USAGE, "\"update_statement\" is missing");
	for (size_t i = 0; i < names.count; i++) {
		pairs[count++] = (struct pair){names.items[i].value, "x"};
		pairs[count++] = (struct pair){names.items[i].key, "x"};
	}
	pairs[count++] = (struct pair){options->time_column, "x"};
	for (size_t i = 0; i < metric_count || i == 0; i++) {
		struct bind_values values = {
			.metric = metric_count ? metrics[i].name : "x", .named = {pairs, count}};
		if (!bind_update(arena, options->update_statement, &values, &bound, error)) {
			error->kind = ERROR_USAGE;
			return false;
		}
	}
	return true;
}

/* The time as the server wrote it. dataset_keep cuts axes by advancing their pointers. */
static const char *stamp(const struct query *query, const struct axis *axis, size_t index)
{
	const struct postgres_stamps *stamps = query->state;
	char text[WHEN_TEXT];
	if (stamps)
		return stamps->texts[(axis->times - stamps->times) + (ptrdiff_t)index];
	return arena_strdup(query->arena, when_format_iso(axis->times[index], text));
}

static bool bind(const struct query *query, const struct postgres_change *at, struct bound *bound,
	struct error *error)
{
	const struct postgres_options *options = query->options;
	const struct axis *axis = at->series->axis;
	const struct change *change = at->change;
	size_t index = change->index, count = 0;
	/* How much the old level differs from the new, in percent of the new. */
	double backward = change->mean_after == 0
				  ? 0
				  : 100.0 * (change->mean_before / change->mean_after - 1.0);
	struct pairs names = postgres_attributes(query->arena, options);
	struct pair *pairs = arena_array(query->arena, 2 * names.count + 1, sizeof *pairs);
	for (size_t i = 0; i < names.count; i++) {
		const struct column *column = axis_column(axis, names.items[i].value);
		if (!column)
			continue;
		pairs[count++] = (struct pair){column->name, column->values[index]};
		pairs[count++] = (struct pair){names.items[i].key, column->values[index]};
	}
	pairs[count++] = (struct pair){options->time_column, stamp(query, axis, index)};
	struct bind_values values = {.metric = at->series->name,
		.named = {pairs, count},
		.numbers = {change_percent(change), backward, change->pvalue}};
	return bind_update(query->arena, options->update_statement, &values, bound, error);
}

static bool update_all(struct session *session, const struct postgres_change *changes, size_t count,
	size_t *rows, struct error *error)
{
	struct query *query = session->query;
	for (size_t i = 0; i < count; i++) {
		const struct series *series = changes[i].series;
		char text[WHEN_TEXT];
		struct bound bound;
		size_t written = 0;
		when_format(series->axis->times[changes[i].change->index], text);
		if (!bind(query, &changes[i], &bound, error) ||
			!session_run(session, &bound, &written, error))
			return error_prefix(
				error, "update_statement for %s at %s: ", series->name, text);
		if (written == 0)
			query_notice(query, "update_statement wrote no row for %s at %s",
				series->name, text);
		*rows += written;
	}
	return session_commit(session, error);
}

bool postgres_update(struct query *query, const struct postgres_change *changes, size_t count,
	size_t *rows, struct error *error)
{
	struct session session;
	*rows = 0;
	if (count == 0)
		return true;
	bool good = session_open(&session, query, SESSION_WRITE, error) &&
		    update_all(&session, changes, count, rows, error);
	session_close(&session);
	return good;
}
