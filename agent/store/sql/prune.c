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

_Static_assert(CHANGE_CONFIRMED < CHANGE_MOVED && CHANGE_MOVED < CHANGE_WITHDRAWN &&
		       CHANGE_WITHDRAWN < CHANGE_CANDIDATE && CHANGE_CANDIDATE < CHANGE_RECOVERED,
	"what is untracked is taken from one state on");

/* Of a change: it was last written before ?1, and has neither a pending announcement nor a
 * message. */
#define FORGOTTEN                                                                                  \
	" AND updated < ?1 AND (news != @news{pending} OR state IN (@state{withdrawn}, "           \
	"@state{recovered})) AND NOT "                                                             \
	"EXISTS (SELECT 1 FROM announced"                                                          \
	" WHERE change = id) AND NOT EXISTS (SELECT 1 FROM events WHERE change = changes.id AND"   \
	" due IS NOT NULL)"

static void doom(struct tx *tx, const struct store_prune *call, struct owners *doomed)
{
	struct value before = v_int(call->before);
	enum change_state first = call->thorough ? CHANGE_CONFIRMED : CHANGE_WITHDRAWN;

	owners_read(doomed,
		QUERY(tx,
			"SELECT id FROM changes @indexed{changes_of_state} JOIN series USING"
			" (test, series, branch) WHERE state IN (@state{withdrawn},"
			" @state{candidate}, @state{recovered}) AND time < "
			"anchor" FORGOTTEN,
			before));
	/* Changes of clusters never have a checkpoint. */
	owners_read(doomed,
		QUERY(tx,
			"SELECT id FROM changes @indexed{changes_of_state} WHERE state >= ?2 AND"
			" time < ?1 AND members = 0 AND NOT EXISTS (SELECT 1 FROM series WHERE"
			" series.test = changes.test AND series.series = changes.series AND"
			" series.branch = changes.branch) AND EXISTS (SELECT 1 FROM series WHERE"
			" series.test = changes.test AND last_point >= ?1)" FORGOTTEN,
			before, v_int(first)));
	if (call->thorough)
		owners_read(doomed,
			QUERY(tx,
				"SELECT id FROM series @ordered_join changes"
				" @indexed{changes_of_series} USING (test, series, branch) WHERE"
				" time < anchor" FORGOTTEN,
				before));
	if (call->tests.count > 0)
		owners_read(doomed, QUERY(tx,
					    TESTS_OF_CHANGES
					    " SELECT id FROM changes WHERE test IN (SELECT name"
					    " FROM tests WHERE name NOT IN (SELECT value FROM"
					    " @texts{?2}))" FORGOTTEN,
					    before, v_names(tx, &call->tests)));
	owners_sort(doomed, true);
}

/* Rows that refer to a change are deleted before it. */
static void delete_doomed(struct tx *tx, const struct owners *doomed, struct pruned *pruned)
{
	enum { AT_ONCE = 100000 };

	for (size_t i = 0; i < doomed->count; i += AT_ONCE) {
		size_t left = doomed->count - i;
		struct value ids = v_owners(
			tx, &(struct owners){doomed->items + i, left < AT_ONCE ? left : AT_ONCE});

		RUN(tx, "DELETE FROM triage WHERE change IN @ids{?1}", ids);
		RUN(tx, "DELETE FROM excerpts WHERE change IN @ids{?1}", ids);
		RUN(tx,
			"DELETE FROM bisection_events WHERE bisection IN (SELECT id FROM"
			" bisections WHERE change IN @ids{?1})",
			ids);
		RUN(tx, "DELETE FROM bisections WHERE change IN @ids{?1}", ids);
		pruned->events += CHANGED(tx,
			"DELETE FROM events WHERE change IN @ids{?1} AND kind < @event{triaged}",
			ids);
		pruned->changes += CHANGED(tx, "DELETE FROM changes WHERE id IN @ids{?1}", ids);
	}
}

static void delete_old(struct tx *tx, struct value before, struct pruned *pruned)
{
	pruned->events += CHANGED(tx,
		"DELETE FROM events WHERE kind != @event{announced} AND due IS NULL AND time < ?1"
		" AND (kind < @event{triaged} OR NOT EXISTS (SELECT 1 FROM changes WHERE "
		"changes.id = change"
		" AND state IN (@state{confirmed}, @state{moved}, @state{candidate})))",
		before);
	pruned->checkpoints += CHANGED(tx,
		"WITH fronts AS MATERIALIZED (SELECT test, min(anchor) AS front FROM series WHERE"
		" last_point >= ?1 GROUP BY test) DELETE FROM series WHERE last_point < ?1 AND"
		" last_point < (SELECT front FROM fronts WHERE fronts.test = series.test)",
		before);
	RUN(tx, "DELETE FROM vanished WHERE ended < ?1", before);
	RUN(tx,
		"DELETE FROM environments WHERE created < ?1 AND NOT EXISTS (SELECT 1 FROM"
		" changes WHERE environment_event = environments.id)",
		before);
	RUN(tx,
		"DELETE FROM incidents WHERE joined < ?1 AND NOT EXISTS (SELECT 1 FROM changes"
		" WHERE incident = incidents.id)",
		before);
	pruned->silences += CHANGED(tx,
		"DELETE FROM silences WHERE summed = 1 AND coalesce(ended, until) < ?1", before);
	RUN(tx,
		"DELETE FROM bisection_events WHERE bisection IN (SELECT id FROM bisections WHERE"
		" state = @bisection{over} AND ended < ?1)",
		before);
}

STORE_DEFINE(prune, .writes = true, .is_long = true)
{
	struct pruned *pruned = &call->pruned;
	struct owners doomed = {0};

	/* Messages of receivers that keep them stay while a change stands, or they are to be
	 * edited. */
	RUN(tx,
		"DELETE FROM announced WHERE delivery IN (SELECT id FROM deliveries"
		" @indexed{deliveries_settled} WHERE state != @delivery{queued} AND updated < ?1"
		" AND NOT (state = @delivery{sent} AND receipt IS NOT NULL AND receiver IN (SELECT"
		" value FROM @texts{?2}) AND (amend IS NOT NULL OR EXISTS (SELECT 1 FROM announced"
		" AS of JOIN changes ON changes.id = of.change WHERE of.delivery = deliveries.id"
		" AND changes.state @standing))))",
		v_int(call->before), v_names(tx, &call->keeping));
	pruned->deliveries = CHANGED(tx,
		"DELETE FROM deliveries @indexed{deliveries_settled} WHERE state !="
		" @delivery{queued} AND updated < ?1 AND NOT EXISTS (SELECT 1 FROM announced WHERE"
		" delivery = deliveries.id)",
		v_int(call->before));
	doom(tx, call, &doomed);
	delete_doomed(tx, &doomed, pruned);
	delete_old(tx, v_int(call->before), pruned);
	if (call->tests.count != 0)
		pruned->checkpoints += CHANGED(tx,
			"DELETE FROM series WHERE last_point < ?1 AND test NOT IN (SELECT value"
			" FROM @texts{?2})",
			v_int(call->before), v_names(tx, &call->tests));
	if (call->tests.count != 0)
		RUN(tx,
			"DELETE FROM seen WHERE ended < ?1 AND test NOT IN (SELECT value FROM"
			" @texts{?2})",
			v_int(call->before), v_names(tx, &call->tests));
	store_counts(tx);
}
