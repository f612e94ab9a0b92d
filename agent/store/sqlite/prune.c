/*
 * Forgetting. Whatever points to a row goes before it: links before deliveries, history before
 * changes. A change within the range of its series stays, whatever its state: it would be found
 * again, and be news.
 *
 * The anchor of a series that has vanished never moves. Its mark goes when its last point lies
 * before what the test's other series, that still grow, are looked at from; and a change without a
 * mark lies before its series' anchor, if the test has any that grows. Otherwise a test of which
 * the label sets come and go would leave rows for ever.
 */
#include "agent/store/sqlite/prune.h"

#include "agent/store/sqlite/rows.h"

_Static_assert(CHANGE_CONFIRMED < CHANGE_MOVED && CHANGE_MOVED < CHANGE_WITHDRAWN &&
		       CHANGE_WITHDRAWN < CHANGE_CANDIDATE && CHANGE_CANDIDATE < CHANGE_RECOVERED,
	"STATEMENT_DOOM_MARKLESS takes the states from one on");

/* Runs a statement of which the only value is a time; adds what it has changed to `count`. */
static bool run(struct store_file *file, enum statement statement, int64_t before, int64_t *count,
	struct error *error)
{
	struct binder binder = bind_to(file, statement);

	bind_integer(&binder, before);
	if (!bind_finish(&binder, error))
		return false;
	if (count)
		*count += store_file_changed(file);
	return true;
}

static bool run_plain(
	struct store_file *file, enum statement statement, int64_t *count, struct error *error)
{
	struct binder binder = bind_to(file, statement);

	if (!bind_finish(&binder, error))
		return false;
	if (count)
		*count += store_file_changed(file);
	return true;
}

static bool list_present(struct store_file *file, const struct strings *tests, struct error *error)
{
	if (!run_plain(file, STATEMENT_PRESENT_CLEAR, NULL, error))
		return false;
	for (size_t i = 0; i < tests->count; i++) {
		struct binder binder = bind_to(file, STATEMENT_PRESENT);

		bind_text(&binder, tests->items[i]);
		if (!bind_finish(&binder, error))
			return false;
	}
	return true;
}

static bool doom_markless(
	struct store_file *file, const struct store_request *request, struct error *error)
{
	struct binder binder = bind_to(file, STATEMENT_DOOM_MARKLESS);

	bind_integer(&binder, request->before);
	bind_integer(&binder, request->thorough ? CHANGE_CONFIRMED : CHANGE_WITHDRAWN);
	return bind_finish(&binder, error);
}

static bool doom(struct store_file *file, const struct store_request *request, struct error *error)
{
	if (!run_plain(file, STATEMENT_DOOMED_CLEAR, NULL, error) ||
		!run(file, STATEMENT_DOOM_WITHDRAWN, request->before, NULL, error) ||
		!doom_markless(file, request, error))
		return false;
	if (request->thorough && !run(file, STATEMENT_DOOM_OUTLIVED, request->before, NULL, error))
		return false;
	return request->tests.count == 0 ||
	       (list_present(file, &request->tests, error) &&
		       run(file, STATEMENT_DOOM_ABSENT, request->before, NULL, error));
}

bool store_prune(struct store_file *file, struct store_request *request, struct error *error)
{
	struct pruned *pruned = &request->pruned;
	int64_t before = request->before;

	*pruned = (struct pruned){0};
	return run(file, STATEMENT_PRUNE_LINKS, before, NULL, error) &&
	       run(file, STATEMENT_PRUNE_DELIVERIES, before, &pruned->deliveries, error) &&
	       doom(file, request, error) &&
	       run_plain(file, STATEMENT_DOOMED_EVENTS, &pruned->events, error) &&
	       run_plain(file, STATEMENT_DOOMED_CHANGES, &pruned->changes, error) &&
	       run(file, STATEMENT_PRUNE_EVENTS, before, &pruned->events, error) &&
	       run(file, STATEMENT_PRUNE_VANISHED, before, &pruned->marks, error) &&
	       run(file, STATEMENT_PRUNE_ENDED, before, NULL, error) &&
	       run(file, STATEMENT_PRUNE_ENVIRONMENTS, before, NULL, error) &&
	       (request->tests.count == 0 ||
		       run(file, STATEMENT_PRUNE_MARKS, before, &pruned->marks, error));
}
