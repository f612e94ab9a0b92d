/*
 * Pieces of statements that several files of this folder use. A statement stands where it is used,
 * in SQL that both databases understand, but for marks that statements.c replaces before it is
 * prepared. Of the words in which they differ (see the tables of words in their statements.c):
 *
 *   @indexed{index}, @unindexed   after the name of a table
 *   @ordered_join         the table before it is read first
 *   @largest              function: the largest of its arguments
 *   @matches{pattern,text}  condition: the same text, or one that the shell pattern matches
 *   @texts{json}          table: `value`s of a JSON array of texts
 *   @changes_of_tests     table `changes`: those of the tests ?1, a JSON array, by their index
 *   @pairs{json,name}     table: `value`s, each a JSON array
 *   @has_suspect          condition: a suspect of the change has a commit that starts with ?3
 *   @triage_of_each       the row of each change in `triage`, if there is one: each looked for
 *   @last_id{table}       query: the last id that was given to a row of it
 *   @forget_last_id, @set_last_id  statements: what @last_id of ?1 returns becomes ?2
 *   @next_changes         query: ?1 ids for new rows of `changes`, in ascending order
 *   @counts               query: how many changes there are of each state
 *   @probe                a write that changes nothing
 *   @in_order             at the end of a query: its rows are read in the order of an index
 *
 * And of what is known here: @message{updated} are the columns of a delivery, in the order of
 * read_delivery, with when it was created or updated; @ids{json} are the numbers in a JSON array;
 * @state{withdrawn} is the number of that state of a change, @news{pending} of its news,
 * @triage{open}, @event{confirmed}, @delivery{sent}, @bisection{running} and @line{answer} (of a
 * journal) likewise; a state @standing is that of a change that stands, and @waiting that nobody
 * has decided what it is; @TABLE stands for all columns of a table,
 * @+TABLE for a statement that inserts a row, @=TABLE for one that writes a row whose key may be
 * there, @<TABLE for one that reads a page of rows after a key; of changes @record for all columns,
 * @compared and @found for those of such a use (see agent/model/columns.h), and @found?2 for as
 * many parameters, from ?2 on.
 *
 * A row is looked for by (SELECT ... WHERE id = ...) rather than by EXISTS where there may be many:
 * a database without statistics, which makes a join of the latter, may take all for few. Where an
 * integer is a condition, it is compared with 0; a number of bits is cast to INTEGER.
 */
#ifndef AGENT_STORE_SQL_WORDS_H
#define AGENT_STORE_SQL_WORDS_H

/* The triage of a change, in the order of read_triage. */
#define TRIAGE_COLUMNS                                                                             \
	"triage, version, owner, note, link, person, triaged, until, accepted_size, accepted_low," \
	" accepted_high, inherited, renewals"

/* The change that a standing one ends: it brought the level back, CHANGE_TOLERANCE points around
 * its recovery, and not as far again to the other side (agent/decide/recover.c). */
#define ENDS                                                                                       \
	"CASE WHEN changes.state @standing THEN (SELECT begun.id FROM changes AS"                  \
	" begun @indexed{changes_recovered} WHERE begun.test = changes.test AND"                   \
	" begun.series = changes.series AND begun.branch = changes.branch AND begun.state ="       \
	" @state{recovered} AND begun.recovered BETWEEN changes.time - 5 * changes.spacing AND"    \
	" changes.time + 5 * changes.spacing AND begun.sign = -changes.sign AND begun.time <"      \
	" changes.time AND (begun.recovered_level - begun.level_before) * begun.sign >= -0.5 *"    \
	" abs(begun.level_after - begun.level_before) ORDER BY begun.time DESC, begun.id LIMIT 1)" \
	" END"

/* The columns of a record, in the order of read_record; from CHANGES. */
#define RECORD_COLUMNS "@record, " TRIAGE_COLUMNS ", " ENDS

#define WITH_TRIAGE " LEFT JOIN triage ON triage.change = changes.id"

/* Of `deliveries`: the receipt of the message that one continues, or NULL. */
#define THREAD_RECEIPT                                                                             \
	"(SELECT receipt FROM deliveries AS first @indexed{deliveries_of_key} WHERE first.key ="   \
	" deliveries.thread AND receipt IS NOT NULL ORDER BY first.id LIMIT 1)"

/* Messages that an edit can still reach. */
#define AMENDABLE                                                                                  \
	" (state = @delivery{queued} OR (state = @delivery{sent} AND receipt IS NOT NULL))"

/* The triage of a change is an accepted one. */
#define ACCEPTED " (triage BETWEEN @triage{expected} AND @triage{false})"

/* Of `deliveries`: there was no attempt yet, and all its changes are withdrawn or accepted, or have
 * outgrown the size in it. */
#define POINTLESS                                                                                  \
	" (deliveries.state = @delivery{queued} AND attempt_started IS NULL AND receipt IS NULL"   \
	" AND EXISTS (SELECT 1 FROM announced WHERE delivery = deliveries.id) AND NOT EXISTS"      \
	" (SELECT 1 FROM announced JOIN changes ON changes.id = announced.change" WITH_TRIAGE      \
	" WHERE delivery = deliveries.id AND changes.state != @state{withdrawn} AND NOT"           \
	" coalesce(" ACCEPTED " OR told_after >= deliveries.id, false)))"

/* All tests with changes: one index seek per test. */
#define TESTS_OF_CHANGES                                                                           \
	"WITH RECURSIVE tests (name) AS (SELECT min(test) FROM changes UNION ALL"                  \
	" SELECT (SELECT min(test) FROM changes WHERE test > name) FROM tests"                     \
	" WHERE name IS NOT NULL)"

/* Of `changes`: it is to be announced now. One that some receivers have and that is over there
 * waits for its return before others get it. */
#define AWAITS                                                                                     \
	" (news = @news{pending} AND changes.state != @state{withdrawn} AND NOT (changes.state ="  \
	" @state{recovered} AND EXISTS (SELECT 1 FROM announced WHERE change = changes.id)))"

/* Pending announcements: changes, events that no round has seen, and those that wait. */
#define DUE                                                                                        \
	"SELECT (SELECT count(*) FROM changes WHERE" AWAITS                                        \
	"), (SELECT count(*) FROM events @indexed{events_due} WHERE due IS NOT"                    \
	" NULL AND reason IS NULL), (SELECT count(*) FROM events @indexed{events_due} WHERE due"   \
	" IS NOT NULL AND reason IS NOT NULL)"

#endif
