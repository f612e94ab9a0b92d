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
static void delete_before(
	struct tx *tx, enum statement statement, int64_t before, const char *names, int64_t *count)
{
	if (names)
		RUN(tx, statement, v_id(before), v_text(names));
	else
		RUN(tx, statement, v_id(before));
	if (count)
		*count += tx_changed(tx);
}

/* Adds the changes that the statement finds, whose first parameter is the time before which they
 * were last written. */
static void doom_by(struct tx *tx, enum statement statement, const struct store_prune *call,
	struct owners *doomed)
{
	struct sql_query query = QUERY(tx, statement, v_id(call->before));

	if (statement == STATEMENT_DOOM_UNTRACKED)
		query_bind(&query, v_id(call->thorough ? CHANGE_CONFIRMED : CHANGE_WITHDRAWN));
	else if (statement == STATEMENT_DOOM_ABSENT)
		query_bind(&query, v_text(rows_names(tx, &call->tests)));
	owners_read(doomed, &query);
}

static void doom(struct tx *tx, const struct store_prune *call, struct owners *doomed)
{
	doom_by(tx, STATEMENT_DOOM_WITHDRAWN, call, doomed);
	doom_by(tx, STATEMENT_DOOM_UNTRACKED, call, doomed);
	if (call->thorough)
		doom_by(tx, STATEMENT_DOOM_OUTLIVED, call, doomed);
	if (call->tests.count > 0)
		doom_by(tx, STATEMENT_DOOM_ABSENT, call, doomed);
	owners_sort(doomed, true);
}

/* What refers to a change is deleted before it. */
static void delete_doomed(struct tx *tx, const struct owners *doomed, struct pruned *pruned)
{
	enum { AT_ONCE = 100000 };
	static const enum statement statements[] = {STATEMENT_DOOMED_TRIAGE,
		STATEMENT_DOOMED_EXCERPTS, STATEMENT_DOOMED_BISECTION_EVENTS,
		STATEMENT_DOOMED_BISECTIONS, STATEMENT_DOOMED_EVENTS, STATEMENT_DOOMED_CHANGES};
	enum { ALL = sizeof statements / sizeof *statements };
	int64_t *const counts[ALL] = {[ALL - 2] = &pruned->events, [ALL - 1] = &pruned->changes};

	for (size_t i = 0; i < doomed->count; i += AT_ONCE) {
		size_t left = doomed->count - i;
		const char *ids = owners_json(tx, doomed, i, left < AT_ONCE ? left : AT_ONCE);

		for (size_t j = 0; j < ALL; j++) {
			RUN(tx, statements[j], v_text(ids));
			if (counts[j])
				*counts[j] += tx_changed(tx);
		}
	}
}

static void prune(struct tx *tx, void *context)
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
		{STATEMENT_PRUNE_ENVIRONMENTS, NULL}, {STATEMENT_PRUNE_INCIDENTS, NULL},
		{STATEMENT_PRUNE_SILENCES, &pruned->silences},
		{STATEMENT_PRUNE_BISECTION_EVENTS, NULL}};
	const char *tests = rows_names(tx, &call->tests);
	const char *keeping = rows_names(tx, &call->keeping);

	delete_before(tx, STATEMENT_PRUNE_LINKS, before, keeping, NULL);
	delete_before(tx, STATEMENT_PRUNE_DELIVERIES, before, NULL, &pruned->deliveries);
	doom(tx, call, &doomed);
	delete_doomed(tx, &doomed, pruned);
	for (size_t i = 0; i < sizeof old / sizeof *old; i++)
		delete_before(tx, old[i].statement, before, NULL, old[i].count);
	if (call->tests.count != 0)
		delete_before(tx, STATEMENT_PRUNE_CHECKPOINTS, before, tests, &pruned->checkpoints);
	store_counts(tx);
}

STORE_DEFINE(prune, .run = prune, .writes = true, .is_long = true);
