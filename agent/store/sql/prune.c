/*
 * References are deleted before the rows they point to: links before deliveries, history
 * and bisections before changes. A change within its series' range stays, whatever its state: it
 * would be found again and announced.
 *
 * The anchor of a vanished series never moves. Its checkpoint is deleted when its last point lies
 * before the anchors of the test's growing series; and a change without a checkpoint counts as
 * before its series' anchor if the test has any growing series. Otherwise a test whose label sets
 * come and go would leave rows forever.
 */
#include "agent/store/sql/read.h"
#include "agent/store/sql/rows.h"

_Static_assert(CHANGE_CONFIRMED < CHANGE_MOVED && CHANGE_MOVED < CHANGE_WITHDRAWN &&
		       CHANGE_WITHDRAWN < CHANGE_CANDIDATE && CHANGE_CANDIDATE < CHANGE_RECOVERED,
	"STATEMENT_DOOM_UNTRACKED takes the states from one on");

/* Deletes what is before the time, and not of these names if there are any; adds the number of rows
 * to `count`. */
static bool delete_before(struct store_file *file, enum statement statement, int64_t before,
	const char *names, int64_t *count, struct error *error)
{
	bool done = names ? RUN(file, statement, error, v_id(before), v_text(names))
			  : RUN(file, statement, error, v_id(before));

	if (done && count)
		*count += file->driver->changed(file);
	return done;
}

/* Adds the changes that the statement finds, whose first parameter is the time before which they
 * were last written. */
static bool doom_by(struct store_file *file, enum statement statement,
	const struct store_prune *call, struct owners *doomed, struct error *error)
{
	struct arena *arena = call->call.arena;
	struct reader reader = {.binder = bind_to(file, statement), .arena = arena};

	bind_integer(&reader.binder, call->before);
	if (statement == STATEMENT_DOOM_UNTRACKED)
		bind_integer(&reader.binder, call->thorough ? CHANGE_CONFIRMED : CHANGE_WITHDRAWN);
	else if (statement == STATEMENT_DOOM_ABSENT)
		bind_text(&reader.binder, rows_names(arena, &call->tests));
	return owners_read(doomed, &reader, error);
}

static bool doom(struct store_file *file, const struct store_prune *call, struct owners *doomed,
	struct error *error)
{
	if (!doom_by(file, STATEMENT_DOOM_WITHDRAWN, call, doomed, error) ||
		!doom_by(file, STATEMENT_DOOM_UNTRACKED, call, doomed, error) ||
		(call->thorough && !doom_by(file, STATEMENT_DOOM_OUTLIVED, call, doomed, error)) ||
		(call->tests.count > 0 &&
			!doom_by(file, STATEMENT_DOOM_ABSENT, call, doomed, error)))
		return false;
	owners_sort(doomed, true);
	return true;
}

/* What refers to a change is deleted before it. */
static bool delete_doomed(struct store_file *file, const struct owners *doomed,
	struct pruned *pruned, struct error *error)
{
	enum { AT_ONCE = 100000 };
	static const enum statement statements[] = {STATEMENT_DOOMED_TRIAGE,
		STATEMENT_DOOMED_EXCERPTS, STATEMENT_DOOMED_BISECTION_EVENTS,
		STATEMENT_DOOMED_BISECTIONS, STATEMENT_DOOMED_EVENTS, STATEMENT_DOOMED_CHANGES};
	enum { ALL = sizeof statements / sizeof *statements };
	int64_t *const counts[ALL] = {[ALL - 2] = &pruned->events, [ALL - 1] = &pruned->changes};
	bool done = true;

	for (size_t i = 0; done && i < doomed->count; i += AT_ONCE) {
		size_t left = doomed->count - i;
		struct arena *scratch = arena_new();
		const char *ids = owners_json(scratch, doomed, i, left < AT_ONCE ? left : AT_ONCE);

		for (size_t j = 0; done && j < ALL; j++) {
			done = RUN(file, statements[j], error, v_text(ids));
			if (done && counts[j])
				*counts[j] += file->driver->changed(file);
		}
		arena_free(scratch);
	}
	return done;
}

static bool prune(struct store_file *file, void *context, struct error *error)
{
	struct store_prune *call = context;
	struct pruned *pruned = &call->pruned;
	struct owners doomed = {0};
	int64_t before = call->before;
	const struct {
		enum statement statement;
		int64_t *count;
	} old[] = {{STATEMENT_PRUNE_EVENTS, &pruned->events},
		{STATEMENT_PRUNE_VANISHED, &pruned->checkpoints}, {STATEMENT_PRUNE_ENDED, NULL},
		{STATEMENT_PRUNE_ENVIRONMENTS, NULL}, {STATEMENT_PRUNE_SILENCES, &pruned->silences},
		{STATEMENT_PRUNE_AUDIT, &pruned->audit}, {STATEMENT_PRUNE_BISECTION_EVENTS, NULL}};
	const char *tests = rows_names(call->call.arena, &call->tests);
	const char *keeping = rows_names(call->call.arena, &call->keeping);

	*pruned = (struct pruned){0};
	if (!delete_before(file, STATEMENT_PRUNE_LINKS, before, keeping, NULL, error) ||
		!delete_before(file, STATEMENT_PRUNE_DELIVERIES, before, NULL, &pruned->deliveries,
			error) ||
		!doom(file, call, &doomed, error) || !delete_doomed(file, &doomed, pruned, error))
		return false;
	for (size_t i = 0; i < sizeof old / sizeof *old; i++)
		if (!delete_before(file, old[i].statement, before, NULL, old[i].count, error))
			return false;
	return (call->tests.count == 0 || delete_before(file, STATEMENT_PRUNE_CHECKPOINTS, before,
						  tests, &pruned->checkpoints, error)) &&
	       store_counts(file, &call->counts, error);
}

const struct store_work store_prune_work = {.run = prune,
	.writes = true,
	.is_long = true,
	.counts = offsetof(struct store_prune, counts)};
