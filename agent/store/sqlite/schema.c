/*
 * The schema version is SQLite's user_version. A migration, once released, is never changed.
 *
 * Triggers count the changes by state, so that a start need not scan a million rows. When a change
 * was first found is stored in its row only; its history holds later events. Statements that list
 * changes name their index, as SQLite, without statistics here, would guess.
 */
#include "agent/store/sqlite/schema.h"

#define VERSION_1                                                                                  \
	"CREATE TABLE changes ("                                                                   \
	" id INTEGER PRIMARY KEY, test TEXT NOT NULL, series TEXT NOT NULL, branch TEXT NOT NULL," \
	" sign INTEGER NOT NULL, time INTEGER NOT NULL, state INTEGER NOT NULL, news INTEGER NOT " \
	"NULL,"                                                                                    \
	" first_seen INTEGER NOT NULL, spacing INTEGER NOT NULL, updated INTEGER NOT NULL,"        \
	" metric TEXT NOT NULL, unit TEXT, direction INTEGER NOT NULL,"                            \
	" pvalue REAL, mean_before REAL, mean_after REAL, stddev_before REAL, stddev_after REAL,"  \
	" count_before INTEGER NOT NULL, count_after INTEGER NOT NULL, magnitude REAL,"            \
	" commit_before TEXT, commit_after TEXT, version_before TEXT, version_after TEXT) STRICT;" \
	"CREATE INDEX changes_of_series ON changes (test, series, branch);"                        \
	"CREATE INDEX changes_of_state ON changes (state);"                                        \
	"CREATE INDEX changes_pending ON changes (id) WHERE news = 1;"                             \
	"CREATE TABLE deliveries ("                                                                \
	" id INTEGER PRIMARY KEY, key TEXT NOT NULL, receiver TEXT NOT NULL, destination TEXT "    \
	"NOT "                                                                                     \
	"NULL,"                                                                                    \
	" payload TEXT NOT NULL, state INTEGER NOT NULL, receipt TEXT, problem TEXT,"              \
	" attempts INTEGER NOT NULL, created INTEGER NOT NULL, updated INTEGER NOT NULL) STRICT;"  \
	"CREATE INDEX deliveries_queued ON deliveries (id) WHERE state = 1;"                       \
	"CREATE TABLE announced ("                                                                 \
	" change INTEGER NOT NULL REFERENCES changes, delivery INTEGER NOT NULL REFERENCES "       \
	"deliveries,"                                                                              \
	" PRIMARY KEY (change, delivery)) STRICT, WITHOUT ROWID;"                                  \
	"CREATE TABLE series ("                                                                    \
	" test TEXT NOT NULL, series TEXT NOT NULL, branch TEXT NOT NULL,"                         \
	" run INTEGER NOT NULL, last_point INTEGER NOT NULL,"                                      \
	" PRIMARY KEY (test, series, branch)) STRICT, WITHOUT ROWID;"

#define VERSION_2                                                                                  \
	"DROP TABLE series;"                                                                       \
	"CREATE INDEX deliveries_settled ON deliveries (updated) WHERE state != 1;"                \
	"CREATE INDEX announced_by ON announced (delivery);"

/* The history of existing changes gets what is known: delivered messages, and the last move or
 * withdrawal. */
#define VERSION_3                                                                                  \
	"ALTER TABLE changes ADD COLUMN runs INTEGER NOT NULL DEFAULT 1;"                          \
	"ALTER TABLE changes ADD COLUMN members INTEGER NOT NULL DEFAULT 0;"                       \
	"ALTER TABLE changes ADD COLUMN shared TEXT;"                                              \
	"ALTER TABLE deliveries ADD COLUMN thread TEXT;"                                           \
	"CREATE INDEX changes_of_time ON changes (time);"                                          \
	"CREATE TABLE history ("                                                                   \
	" change INTEGER NOT NULL REFERENCES changes, number INTEGER NOT NULL,"                    \
	" event INTEGER NOT NULL, time INTEGER NOT NULL, point INTEGER NOT NULL,"                  \
	" receiver TEXT, destination TEXT,"                                                        \
	" PRIMARY KEY (change, number)) STRICT, WITHOUT ROWID;"                                    \
	"INSERT INTO history SELECT change,"                                                       \
	" row_number() OVER (PARTITION BY change ORDER BY deliveries.updated, deliveries.id),"     \
	" 6, deliveries.updated, changes.time, receiver, destination FROM announced"               \
	" JOIN changes ON changes.id = change"                                                     \
	" JOIN deliveries ON deliveries.id = delivery WHERE deliveries.state = 2;"                 \
	"INSERT INTO history SELECT id,"                                                           \
	" (SELECT coalesce(max(number), 0) + 1 FROM history WHERE change = id),"                   \
	" iif(state = 2, 3, 4), updated, time, NULL, NULL FROM changes WHERE state IN (2, 3);"     \
	"CREATE TABLE series ("                                                                    \
	" test TEXT NOT NULL, series TEXT NOT NULL, branch TEXT NOT NULL,"                         \
	" anchor INTEGER NOT NULL, last_point INTEGER NOT NULL,"                                   \
	" PRIMARY KEY (test, series, branch)) STRICT, WITHOUT ROWID;"                              \
	"CREATE TABLE conditions ("                                                                \
	" subject TEXT PRIMARY KEY, kind INTEGER NOT NULL, since INTEGER NOT NULL,"                \
	" text TEXT NOT NULL) STRICT, WITHOUT ROWID;"                                              \
	"CREATE TABLE counts (state INTEGER PRIMARY KEY, count INTEGER NOT NULL) STRICT;"          \
	"INSERT INTO counts VALUES (1, 0), (2, 0), (3, 0), (4, 0);"                                \
	"UPDATE counts SET count ="                                                                \
	" (SELECT count(*) FROM changes WHERE changes.state = counts.state);"                      \
	"CREATE TRIGGER counts_insert AFTER INSERT ON changes BEGIN"                               \
	" UPDATE counts SET count = count + 1 WHERE state = new.state; END;"                       \
	"CREATE TRIGGER counts_delete AFTER DELETE ON changes BEGIN"                               \
	" UPDATE counts SET count = count - 1 WHERE state = old.state; END;"                       \
	"CREATE TRIGGER counts_update AFTER UPDATE OF state ON changes"                            \
	" WHEN old.state != new.state BEGIN"                                                       \
	" UPDATE counts SET count = count - 1 WHERE state = old.state;"                            \
	" UPDATE counts SET count = count + 1 WHERE state = new.state; END;"

/* SQLite reuses the id of a deleted last row; ids that people have seen must not be reused. How far
 * earlier versions got with queued deliveries is unknown: any of them may have been sent. */
#define VERSION_4                                                                                  \
	"CREATE TABLE last_ids (name TEXT PRIMARY KEY, id INTEGER NOT NULL) STRICT, WITHOUT "      \
	"ROWID;"                                                                                   \
	"INSERT INTO last_ids SELECT 'changes', coalesce(max(id), 0) FROM changes;"                \
	"INSERT INTO last_ids SELECT 'deliveries', coalesce(max(id), 0) FROM deliveries;"          \
	"CREATE TRIGGER last_ids_changes AFTER DELETE ON changes"                                  \
	" WHEN old.id > (SELECT id FROM last_ids WHERE name = 'changes') BEGIN"                    \
	" UPDATE last_ids SET id = old.id WHERE name = 'changes'; END;"                            \
	"CREATE TRIGGER last_ids_deliveries AFTER DELETE ON deliveries"                            \
	" WHEN old.id > (SELECT id FROM last_ids WHERE name = 'deliveries') BEGIN"                 \
	" UPDATE last_ids SET id = old.id WHERE name = 'deliveries'; END;"                         \
	"ALTER TABLE deliveries ADD COLUMN attempt_started INTEGER;"                               \
	"ALTER TABLE deliveries ADD COLUMN not_before INTEGER;"                                    \
	"UPDATE deliveries SET attempt_started = updated WHERE state = 1;"                         \
	"CREATE INDEX deliveries_of_key ON deliveries (key);"

/* Attributes other than commit and version, as in rows.c. */
#define VERSION_5 "ALTER TABLE changes ADD COLUMN attributes TEXT;"

/* Recovered changes, and the detector revision of each series. */
#define VERSION_6                                                                                  \
	"ALTER TABLE changes ADD COLUMN recovered INTEGER;"                                        \
	"ALTER TABLE changes ADD COLUMN recovered_level REAL;"                                     \
	"CREATE INDEX changes_recovery ON changes (id) WHERE news = 4;"                            \
	"INSERT INTO counts VALUES (5, 0);"                                                        \
	"ALTER TABLE series ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;"                       \
	"ALTER TABLE series ADD COLUMN revised INTEGER NOT NULL DEFAULT 0;"

/* Details of a change beyond its means; NULL in rows of earlier versions. */
#define VERSION_7                                                                                  \
	"ALTER TABLE changes ADD COLUMN kind INTEGER;"                                             \
	"ALTER TABLE changes ADD COLUMN level_before REAL;"                                        \
	"ALTER TABLE changes ADD COLUMN level_after REAL;"                                         \
	"ALTER TABLE changes ADD COLUMN size REAL;"                                                \
	"ALTER TABLE changes ADD COLUMN size_low REAL;"                                            \
	"ALTER TABLE changes ADD COLUMN size_high REAL;"                                           \
	"ALTER TABLE changes ADD COLUMN slope REAL;"                                               \
	"ALTER TABLE changes ADD COLUMN place_from INTEGER;"                                       \
	"ALTER TABLE changes ADD COLUMN place_to INTEGER;"                                         \
	"ALTER TABLE changes ADD COLUMN place_commit_before TEXT;"                                 \
	"ALTER TABLE changes ADD COLUMN place_commit_after TEXT;"                                  \
	"ALTER TABLE changes ADD COLUMN place_version_before TEXT;"                                \
	"ALTER TABLE changes ADD COLUMN place_version_after TEXT;"

/* Times of events that must not happen again, or not soon. */
#define VERSION_8                                                                                  \
	"CREATE TABLE moments (name TEXT PRIMARY KEY, time INTEGER NOT NULL) STRICT, WITHOUT "     \
	"ROWID;"

/* Series that were reported as vanished. */
#define VERSION_9                                                                                  \
	"CREATE TABLE vanished (test TEXT NOT NULL, series TEXT NOT NULL, ended INTEGER NOT NULL," \
	" PRIMARY KEY (test, series)) STRICT, WITHOUT ROWID;"

/* The deployments that a change may come from, as in rows.c; NULL: unknown, as in rows of earlier
 * versions. */
#define VERSION_10 "ALTER TABLE changes ADD COLUMN suspects TEXT;"

/* Environments of changes, and environment events. */
#define VERSION_11                                                                                 \
	"ALTER TABLE changes ADD COLUMN environment TEXT;"                                         \
	"ALTER TABLE changes ADD COLUMN environment_event INTEGER;"                                \
	"CREATE INDEX changes_of_environment ON changes (environment_event)"                       \
	" WHERE environment_event IS NOT NULL;"                                                    \
	"CREATE TABLE environments ("                                                              \
	" id INTEGER PRIMARY KEY, label TEXT NOT NULL, value TEXT NOT NULL,"                       \
	" time INTEGER NOT NULL, spacing INTEGER NOT NULL, hit INTEGER NOT NULL,"                  \
	" total INTEGER NOT NULL, up INTEGER NOT NULL, down INTEGER NOT NULL,"                     \
	" worse INTEGER NOT NULL, better INTEGER NOT NULL, size REAL, elsewhere INTEGER NOT "      \
	"NULL,"                                                                                    \
	" elsewhere_changed INTEGER NOT NULL, told INTEGER NOT NULL, followed INTEGER NOT NULL,"   \
	" created INTEGER NOT NULL) STRICT;"

/*
 * Rebuilds all tables with constraints: ranges of values, foreign keys, one live delivery per key,
 * ids that are never reused. Rows of earlier versions that violate them are repaired or dropped,
 * and set_aside keeps the originals. Changes of a dropped delivery are announced again.
 */
#define V12_MOST "9007199254740992"
#define V12_CHANGES_BUT_EVENT                                                                      \
	"id, test, series, branch, sign, time, state, news, first_seen, spacing, updated, metric," \
	" unit, direction, pvalue, mean_before, mean_after, stddev_before, stddev_after,"          \
	" count_before, count_after, magnitude, commit_before, commit_after, version_before,"      \
	" version_after, runs, members, shared, attributes, recovered, recovered_level, kind,"     \
	" level_before, level_after, size, size_low, size_high, slope, place_from, place_to,"      \
	" place_commit_before, place_commit_after, place_version_before, place_version_after,"     \
	" suspects, environment, "
#define V12_CHANGES V12_CHANGES_BUT_EVENT "environment_event"
#define V12_DELIVERIES                                                                             \
	"id, key, receiver, destination, payload, state, receipt, problem, attempts, created,"     \
	" updated, thread, attempt_started, not_before"
#define V12_HISTORY "change, number, event, time, point, receiver, destination"
#define V12_SERIES "test, series, branch, anchor, last_point, revision, revised"
#define V12_CONDITIONS "subject, kind, since, text"
#define V12_ENVIRONMENTS                                                                           \
	"id, label, value, time, spacing, hit, total, up, down, worse, better, size, elsewhere,"   \
	" elsewhere_changed, told, followed, created"

#define V12_RENAME(table) "ALTER TABLE " table " RENAME TO old_" table ";"
#define V12_DROP(table) "DROP TABLE old_" table ";"

/* Moves the rows that satisfy `where` (or all, ""); those that were not moved are kept in
 * set_aside. `same`: the condition that `it` is the row `old`. */
#define V12_MOVE_AS(table, columns, values, where)                                                 \
	"INSERT OR IGNORE INTO " table " (" columns ") SELECT " values " FROM old_" table where ";"
#define V12_LEAVE(table, columns, same)                                                            \
	"INSERT INTO set_aside SELECT '" table "', 0, json_array(" columns ") FROM old_" table     \
	" AS old WHERE NOT EXISTS (SELECT 1 FROM " table " AS it WHERE " same ");"
#define V12_MOVE(table, columns, where, same)                                                      \
	V12_MOVE_AS(table, columns, columns, where) V12_LEAVE(table, columns, same)

#define V12_KEY_IS_TAKEN                                                                           \
	" state != 3 AND EXISTS (SELECT 1 FROM old_deliveries AS first"                            \
	" WHERE first.key = old_deliveries.key AND first.state != 3"                               \
	" AND first.id < old_deliveries.id)"

/* The last id used; a name in last_ids is that of a table. */
#define V12_SEQUENCE(table)                                                                        \
	"DELETE FROM sqlite_sequence WHERE name = '" table "';"                                    \
	"INSERT INTO sqlite_sequence (name, seq) SELECT '" table "', max(0,"                       \
	" coalesce((SELECT max(id) FROM old_" table " WHERE id <= " V12_MOST "), 0),"              \
	" coalesce((SELECT id FROM last_ids WHERE name = '" table "' AND id <= " V12_MOST          \
	"), 0));"

#define V12_BEGIN                                                                                  \
	V12_RENAME("changes")                                                                      \
	V12_RENAME("deliveries")                                                                   \
	V12_RENAME("announced")                                                                    \
	V12_RENAME("history")                                                                      \
	V12_RENAME("series")                                                                       \
	V12_RENAME("conditions")                                                                   \
	V12_RENAME("moments")                                                                      \
	V12_RENAME("vanished")                                                                     \
	V12_RENAME("environments")                                                                 \
	"DROP TABLE counts;"

#define V12_TABLES                                                                                 \
	"CREATE TABLE environments ("                                                              \
	" id INTEGER PRIMARY KEY CHECK (id BETWEEN 1 AND 9007199254740992),"                       \
	" label TEXT NOT NULL, value TEXT NOT NULL,"                                               \
	" time INTEGER NOT NULL CHECK (time BETWEEN -9007199254740992 AND 9007199254740992),"      \
	" spacing INTEGER NOT NULL CHECK (spacing BETWEEN 0 AND 9007199254740992),"                \
	" hit INTEGER NOT NULL CHECK (hit BETWEEN 0 AND 9007199254740992),"                        \
	" total INTEGER NOT NULL CHECK (total BETWEEN 0 AND 9007199254740992),"                    \
	" up INTEGER NOT NULL CHECK (up BETWEEN 0 AND 9007199254740992),"                          \
	" down INTEGER NOT NULL CHECK (down BETWEEN 0 AND 9007199254740992),"                      \
	" worse INTEGER NOT NULL CHECK (worse BETWEEN 0 AND 9007199254740992),"                    \
	" better INTEGER NOT NULL CHECK (better BETWEEN 0 AND 9007199254740992), size REAL,"       \
	" elsewhere INTEGER NOT NULL CHECK (elsewhere BETWEEN 0 AND 9007199254740992),"            \
	" elsewhere_changed INTEGER NOT NULL CHECK (elsewhere_changed BETWEEN 0 AND "              \
	"9007199254740992),"                                                                       \
	" told INTEGER NOT NULL CHECK (told BETWEEN 0 AND 9007199254740992),"                      \
	" followed INTEGER NOT NULL CHECK (followed BETWEEN 0 AND 1),"                             \
	" created INTEGER NOT NULL CHECK (created BETWEEN -9007199254740992 AND "                  \
	"9007199254740992)) STRICT;"                                                               \
	"CREATE TABLE changes ("                                                                   \
	"id INTEGER PRIMARY KEY AUTOINCREMENT CHECK (id BETWEEN 1 AND 9007199254740992),"          \
	" test TEXT NOT NULL, series TEXT NOT NULL, branch TEXT NOT NULL,"                         \
	" sign INTEGER NOT NULL CHECK (sign BETWEEN -1 AND 1),"                                    \
	" time INTEGER NOT NULL CHECK (time BETWEEN -9007199254740992 AND 9007199254740992),"      \
	" state INTEGER NOT NULL CHECK (state BETWEEN 1 AND 5),"                                   \
	" news INTEGER NOT NULL CHECK (news BETWEEN 0 AND 4),"                                     \
	" first_seen INTEGER NOT NULL CHECK (first_seen BETWEEN -9007199254740992 AND "            \
	"9007199254740992),"                                                                       \
	" spacing INTEGER NOT NULL CHECK (spacing BETWEEN 0 AND 9007199254740992),"                \
	" updated INTEGER NOT NULL CHECK (updated BETWEEN -9007199254740992 AND "                  \
	"9007199254740992),"                                                                       \
	" metric TEXT NOT NULL, unit TEXT,"                                                        \
	" direction INTEGER NOT NULL CHECK (direction BETWEEN -1 AND 1), pvalue REAL,"             \
	" mean_before REAL, mean_after REAL, stddev_before REAL, stddev_after REAL,"               \
	" count_before INTEGER NOT NULL CHECK (count_before BETWEEN 0 AND 9007199254740992),"      \
	" count_after INTEGER NOT NULL CHECK (count_after BETWEEN 0 AND 9007199254740992),"        \
	" magnitude REAL, commit_before TEXT, commit_after TEXT, version_before TEXT,"             \
	" version_after TEXT,"                                                                     \
	" runs INTEGER NOT NULL CHECK (runs BETWEEN 0 AND 9007199254740992) DEFAULT 1,"            \
	" members INTEGER NOT NULL CHECK (members BETWEEN 0 AND 9007199254740992) DEFAULT 0,"      \
	" shared TEXT, attributes TEXT,"                                                           \
	" recovered INTEGER CHECK (recovered BETWEEN -9007199254740992 AND 9007199254740992),"     \
	" recovered_level REAL, kind INTEGER CHECK (kind BETWEEN 0 AND 1), level_before REAL,"     \
	" level_after REAL, size REAL, size_low REAL, size_high REAL, slope REAL,"                 \
	" place_from INTEGER CHECK (place_from BETWEEN -9007199254740992 AND 9007199254740992),"   \
	" place_to INTEGER CHECK (place_to BETWEEN -9007199254740992 AND 9007199254740992),"       \
	" place_commit_before TEXT, place_commit_after TEXT, place_version_before TEXT,"           \
	" place_version_after TEXT, suspects TEXT, environment TEXT,"                              \
	" environment_event INTEGER REFERENCES environments) STRICT;"                              \
	"CREATE TABLE deliveries ("                                                                \
	"id INTEGER PRIMARY KEY AUTOINCREMENT CHECK (id BETWEEN 1 AND 9007199254740992),"          \
	" key TEXT NOT NULL, receiver TEXT NOT NULL, destination TEXT NOT NULL,"                   \
	" payload TEXT NOT NULL, state INTEGER NOT NULL CHECK (state BETWEEN 1 AND 3),"            \
	" receipt TEXT, problem TEXT,"                                                             \
	" attempts INTEGER NOT NULL CHECK (attempts BETWEEN 0 AND 9007199254740992),"              \
	" created INTEGER NOT NULL CHECK (created BETWEEN -9007199254740992 AND "                  \
	"9007199254740992),"                                                                       \
	" updated INTEGER NOT NULL CHECK (updated BETWEEN -9007199254740992 AND "                  \
	"9007199254740992),"                                                                       \
	" thread TEXT,"                                                                            \
	" attempt_started INTEGER CHECK (attempt_started BETWEEN -9007199254740992 AND "           \
	"9007199254740992),"                                                                       \
	" not_before INTEGER CHECK (not_before BETWEEN -9007199254740992 AND 9007199254740992)) "  \
	"STRICT;"                                                                                  \
	"CREATE UNIQUE INDEX deliveries_once ON deliveries (key) WHERE state != 3;"                \
	"CREATE TABLE announced ( change INTEGER NOT NULL REFERENCES changes,"                     \
	" delivery INTEGER NOT NULL REFERENCES deliveries,"                                        \
	" PRIMARY KEY (change, delivery)) STRICT, WITHOUT ROWID;"                                  \
	"CREATE TABLE history ( change INTEGER NOT NULL REFERENCES changes,"                       \
	" number INTEGER NOT NULL, event INTEGER NOT NULL CHECK (event BETWEEN 1 AND 7),"          \
	" time INTEGER NOT NULL CHECK (time BETWEEN -9007199254740992 AND 9007199254740992),"      \
	" point INTEGER NOT NULL CHECK (point BETWEEN -9007199254740992 AND 9007199254740992),"    \
	" receiver TEXT, destination TEXT,"                                                        \
	" PRIMARY KEY (change, number)) STRICT, WITHOUT ROWID;"                                    \
	"CREATE TABLE series ( test TEXT NOT NULL, series TEXT NOT NULL,"                          \
	" branch TEXT NOT NULL,"                                                                   \
	" anchor INTEGER NOT NULL CHECK (anchor BETWEEN -9007199254740992 AND 9007199254740992),"  \
	" last_point INTEGER NOT NULL CHECK (last_point BETWEEN -9007199254740992 AND "            \
	"9007199254740992),"                                                                       \
	" revision INTEGER NOT NULL CHECK (revision BETWEEN 0 AND 9007199254740992) DEFAULT 0,"    \
	" revised INTEGER NOT NULL CHECK (revised BETWEEN -9007199254740992 AND "                  \
	"9007199254740992) DEFAULT 0,"                                                             \
	" PRIMARY KEY (test, series, branch)) STRICT, WITHOUT ROWID;"                              \
	"CREATE TABLE conditions ( subject TEXT PRIMARY KEY,"                                      \
	" kind INTEGER NOT NULL CHECK (kind BETWEEN 1 AND 5),"                                     \
	" since INTEGER NOT NULL CHECK (since BETWEEN -9007199254740992 AND 9007199254740992),"    \
	" text TEXT NOT NULL) STRICT, WITHOUT ROWID;"                                              \
	"CREATE TABLE moments ( name TEXT PRIMARY KEY,"                                            \
	" time INTEGER NOT NULL CHECK (time BETWEEN -9007199254740992 AND 9007199254740992)) "     \
	"STRICT, WITHOUT ROWID;"                                                                   \
	"CREATE TABLE vanished ( test TEXT NOT NULL, series TEXT NOT NULL,"                        \
	" ended INTEGER NOT NULL CHECK (ended BETWEEN -9007199254740992 AND 9007199254740992),"    \
	" PRIMARY KEY (test, series)) STRICT, WITHOUT ROWID;"                                      \
	"CREATE TABLE counts ( state INTEGER PRIMARY KEY,"                                         \
	" count INTEGER NOT NULL CHECK (count >= 0)) STRICT;"                                      \
	"CREATE TABLE set_aside ( source TEXT NOT NULL,"                                           \
	" mended INTEGER NOT NULL CHECK (mended IN (0, 1)), row TEXT NOT NULL) STRICT;"

/* Changes lose an event that does not exist; of deliveries with one key, the later ones get
 * another. A change is announced again if a delivery about it was dropped. */
#define V12_NO_EVENT                                                                               \
	"INSERT INTO set_aside SELECT 'changes', 1, json_array(" V12_CHANGES ") FROM old_changes"  \
	" WHERE environment_event IS NOT NULL"                                                     \
	" AND environment_event NOT IN (SELECT id FROM environments);"
#define V12_EXISTING_EVENT                                                                         \
	" (SELECT environments.id FROM environments WHERE environments.id = environment_event)"
#define V12_OTHER_KEYS                                                                             \
	"INSERT INTO set_aside SELECT 'deliveries', 1, json_array(" V12_DELIVERIES ")"             \
	" FROM old_deliveries WHERE" V12_KEY_IS_TAKEN ";"                                          \
	"UPDATE old_deliveries SET key = key || '-' || id WHERE" V12_KEY_IS_TAKEN ";"
#define V12_PENDING_AGAIN                                                                          \
	"UPDATE changes SET news = 1 WHERE news = 2 AND state NOT IN (3, 5) AND id IN"             \
	" (SELECT change FROM old_announced JOIN old_deliveries ON id = delivery"                  \
	"  WHERE state NOT IN (2, 3) AND delivery NOT IN (SELECT id FROM deliveries));"
#define V12_OF_CHANGES " WHERE change IN (SELECT id FROM changes)"
#define V12_OF_BOTH V12_OF_CHANGES " AND delivery IN (SELECT id FROM deliveries)"

#define V12_ROWS                                                                                   \
	V12_MOVE("environments", V12_ENVIRONMENTS, "", "it.id = old.id")                           \
	V12_NO_EVENT                                                                               \
	V12_MOVE_AS("changes", V12_CHANGES, V12_CHANGES_BUT_EVENT V12_EXISTING_EVENT, "")          \
	V12_LEAVE("changes", V12_CHANGES, "it.id = old.id")                                        \
	V12_OTHER_KEYS                                                                             \
	V12_MOVE("deliveries", V12_DELIVERIES, "", "it.id = old.id")                               \
	V12_PENDING_AGAIN                                                                          \
	V12_MOVE("announced", "change, delivery", V12_OF_BOTH,                                     \
		"it.change = old.change AND it.delivery = old.delivery")                           \
	V12_MOVE("history", V12_HISTORY, V12_OF_CHANGES,                                           \
		"it.change = old.change AND it.number = old.number")                               \
	V12_MOVE("series", V12_SERIES, "",                                                         \
		"it.test = old.test AND it.series = old.series AND it.branch = old.branch")        \
	V12_MOVE("conditions", V12_CONDITIONS, "", "it.subject = old.subject")                     \
	V12_MOVE("moments", "name, time", "", "it.name = old.name")                                \
	V12_MOVE("vanished", "test, series, ended", "",                                            \
		"it.test = old.test AND it.series = old.series")

#define V12_END                                                                                    \
	V12_SEQUENCE("changes")                                                                    \
	V12_SEQUENCE("deliveries")                                                                 \
	V12_DROP("announced")                                                                      \
	V12_DROP("history")                                                                        \
	V12_DROP("changes")                                                                        \
	V12_DROP("deliveries")                                                                     \
	V12_DROP("series")                                                                         \
	V12_DROP("conditions")                                                                     \
	V12_DROP("moments")                                                                        \
	V12_DROP("vanished")                                                                       \
	V12_DROP("environments")                                                                   \
	"DROP TABLE last_ids;"

#define V12_INDEXES                                                                                \
	"CREATE INDEX changes_of_series ON changes (test, series, branch);"                        \
	"CREATE INDEX changes_of_state ON changes (state);"                                        \
	"CREATE INDEX changes_of_time ON changes (time);"                                          \
	"CREATE INDEX changes_pending ON changes (id) WHERE news = 1;"                             \
	"CREATE INDEX changes_recovery ON changes (id) WHERE news = 4;"                            \
	"CREATE INDEX changes_of_environment ON changes (environment_event) WHERE"                 \
	" environment_event IS NOT NULL;"                                                          \
	"CREATE INDEX deliveries_queued ON deliveries (id) WHERE state = 1;"                       \
	"CREATE INDEX deliveries_settled ON deliveries (updated) WHERE state != 1;"                \
	"CREATE INDEX deliveries_of_key ON deliveries (key);"                                      \
	"CREATE INDEX announced_by ON announced (delivery);"                                       \
	"INSERT INTO counts VALUES (1, 0), (2, 0), (3, 0), (4, 0), (5, 0);"                        \
	"UPDATE counts SET count = (SELECT count(*) FROM changes WHERE changes.state ="            \
	" counts.state);"                                                                          \
	"CREATE TRIGGER counts_insert AFTER INSERT ON changes BEGIN UPDATE counts SET count ="     \
	" count + 1 WHERE state = new.state; END;"                                                 \
	"CREATE TRIGGER counts_delete AFTER DELETE ON changes BEGIN UPDATE counts SET count ="     \
	" count - 1 WHERE state = old.state; END;"                                                 \
	"CREATE TRIGGER counts_update AFTER UPDATE OF state ON changes WHEN old.state !="          \
	" new.state BEGIN UPDATE counts SET count = count - 1 WHERE state = old.state; UPDATE"     \
	" counts SET count = count + 1 WHERE state = new.state; END;"

static const char version_12[] = V12_BEGIN V12_TABLES V12_ROWS V12_END V12_INDEXES;

/* Retractions that are to be sent: 1 as the change was withdrawn, 2 as its suspects are others. */
#define VERSION_13                                                                                 \
	"ALTER TABLE announced ADD COLUMN retraction INTEGER"                                      \
	" CHECK (retraction BETWEEN 1 AND 2);"                                                     \
	"CREATE INDEX announced_retracted ON announced (delivery, change)"                         \
	" WHERE retraction IS NOT NULL;"

/*
 * What people say. `accepted_...`: the size of the change when it was accepted. `owed`: its news
 * was settled by accepting it, and is told when it is open again. `told_after`: the last delivery
 * of before it was news again. Of a delivery, `amend` counts what was said about its changes since
 * it was sent or last edited, NULL: nothing; `reaction` is what was read there last.
 */
#define VERSION_14                                                                                 \
	"CREATE TABLE triage ("                                                                    \
	" change INTEGER PRIMARY KEY REFERENCES changes,"                                          \
	" triage INTEGER NOT NULL CHECK (triage BETWEEN 1 AND 7),"                                 \
	" version INTEGER NOT NULL CHECK (version BETWEEN 1 AND 9007199254740992),"                \
	" owner TEXT, note TEXT, link TEXT, person TEXT,"                                          \
	" triaged INTEGER NOT NULL CHECK (triaged BETWEEN -9007199254740992 AND "                  \
	"9007199254740992),"                                                                       \
	" until INTEGER CHECK (until BETWEEN -9007199254740992 AND 9007199254740992),"             \
	" accepted_size REAL, accepted_low REAL, accepted_high REAL,"                              \
	" owed INTEGER NOT NULL CHECK (owed BETWEEN 0 AND 1) DEFAULT 0,"                           \
	" renewals INTEGER NOT NULL CHECK (renewals BETWEEN 0 AND 9007199254740992) DEFAULT 0,"    \
	" told_after INTEGER NOT NULL CHECK (told_after BETWEEN 0 AND 9007199254740992)"           \
	" DEFAULT 0) STRICT;"                                                                      \
	"ALTER TABLE deliveries ADD COLUMN amend INTEGER"                                          \
	" CHECK (amend BETWEEN 0 AND 9007199254740992);"                                           \
	"ALTER TABLE deliveries ADD COLUMN reaction TEXT;"                                         \
	"CREATE INDEX deliveries_to_amend ON deliveries (id) WHERE amend IS NOT NULL;"             \
	"CREATE INDEX triage_until ON triage (until) WHERE until IS NOT NULL;"                     \
	"CREATE INDEX triage_owed ON triage (change) WHERE owed = 1 AND triage < 3;"               \
	"CREATE TABLE silences ("                                                                  \
	" id INTEGER PRIMARY KEY AUTOINCREMENT CHECK (id BETWEEN 1 AND 9007199254740992),"         \
	" matchers TEXT NOT NULL,"                                                                 \
	" begins INTEGER NOT NULL CHECK (begins BETWEEN -9007199254740992 AND 9007199254740992),"  \
	" until INTEGER NOT NULL CHECK (until BETWEEN -9007199254740992 AND 9007199254740992),"    \
	" owner TEXT, reason TEXT, person TEXT,"                                                   \
	" created INTEGER NOT NULL CHECK (created BETWEEN -9007199254740992 AND "                  \
	"9007199254740992),"                                                                       \
	" ended INTEGER CHECK (ended BETWEEN -9007199254740992 AND 9007199254740992),"             \
	" ended_by TEXT,"                                                                          \
	" reminded INTEGER NOT NULL CHECK (reminded BETWEEN 0 AND 1) DEFAULT 0,"                   \
	" summed INTEGER NOT NULL CHECK (summed BETWEEN 0 AND 1) DEFAULT 0) STRICT;"               \
	"CREATE TABLE audit ("                                                                     \
	" id INTEGER PRIMARY KEY AUTOINCREMENT CHECK (id BETWEEN 1 AND 9007199254740992),"         \
	" time INTEGER NOT NULL CHECK (time BETWEEN -9007199254740992 AND 9007199254740992),"      \
	" person TEXT, origin TEXT, action TEXT NOT NULL,"                                         \
	" change INTEGER CHECK (change BETWEEN 1 AND 9007199254740992),"                           \
	" subject TEXT, detail TEXT) STRICT;"                                                      \
	"CREATE INDEX audit_of_change ON audit (change, id) WHERE change IS NOT NULL;"             \
	"CREATE INDEX audit_of_time ON audit (time);"

/*
 * Of what a message announced: when the change was and how large, as the message says it; NULL in
 * rows of earlier versions. `said`: what receivers are to be told of it, bits of enum said_kind. Of
 * a delivery, `amended`: how often it was; `reminded`: when people were last reminded of it, ms;
 * `kind`: the notifier that has written the payload, NULL in rows of earlier versions.
 */
#define VERSION_15                                                                                 \
	"ALTER TABLE announced ADD COLUMN told_time INTEGER"                                       \
	" CHECK (told_time BETWEEN -9007199254740992 AND 9007199254740992);"                       \
	"ALTER TABLE announced ADD COLUMN told_size REAL;"                                         \
	"ALTER TABLE announced ADD COLUMN said INTEGER CHECK (said BETWEEN 1 AND 3);"              \
	"CREATE INDEX announced_said ON announced (delivery, change) WHERE said IS NOT NULL;"      \
	"ALTER TABLE deliveries ADD COLUMN amended INTEGER"                                        \
	" CHECK (amended BETWEEN 0 AND 9007199254740992);"                                         \
	"ALTER TABLE deliveries ADD COLUMN reminded INTEGER"                                       \
	" CHECK (reminded BETWEEN -9007199254740992 AND 9007199254740992);"                        \
	"ALTER TABLE deliveries ADD COLUMN kind TEXT;"                                             \
	"CREATE INDEX deliveries_kept ON deliveries (receiver, id)"                                \
	" WHERE state = 2 AND receipt IS NOT NULL;"

const char *const store_migrations[STORE_VERSION] = {VERSION_1, VERSION_2, VERSION_3, VERSION_4,
	VERSION_5, VERSION_6, VERSION_7, VERSION_8, VERSION_9, VERSION_10, VERSION_11, version_12,
	VERSION_13, VERSION_14, VERSION_15};

const char store_temporary[] = "CREATE TEMP TABLE present (test TEXT PRIMARY KEY) WITHOUT ROWID;"
			       "CREATE TEMP TABLE doomed (change INTEGER PRIMARY KEY);"
			       "CREATE TEMP TABLE selected (change INTEGER PRIMARY KEY);";

_Static_assert(STORE_VERSION == 15, "STATEMENT_PROBE writes the version");

/* The columns of an announcement, in the order of bind_item and read_item. */
#define ITEM_COLUMNS                                                                               \
	"metric, unit, direction, pvalue, mean_before, mean_after, stddev_before, stddev_after,"   \
	" count_before, count_after, magnitude, commit_before, commit_after, version_before,"      \
	" version_after, members, shared, attributes, suspects, kind, level_before, level_after, " \
	"size,"                                                                                    \
	" size_low, size_high, slope, place_from, place_to, place_commit_before,"                  \
	" place_commit_after, place_version_before, place_version_after, environment"

/* What was said about a change, in the order of read_triage. */
#define TRIAGE_COLUMNS                                                                             \
	"triage, version, owner, note, link, person, triaged, until, accepted_size, accepted_low," \
	" accepted_high, renewals"

/* The columns of a record, in the order of read_record; from CHANGES. */
#define RECORD_COLUMNS                                                                             \
	"changes.id, test, series, branch, sign, time, changes.state, news, first_seen, spacing,"  \
	" runs, changes.updated, recovered, recovered_level, environment_event, " ITEM_COLUMNS     \
	", " TRIAGE_COLUMNS

#define WITH_TRIAGE " LEFT JOIN triage ON triage.change = changes.id"

/* The columns of the audit log, in the order of read_entry. */
#define AUDIT_COLUMNS "id, time, person, origin, action, change, subject, detail"

/* The columns of a message that is followed up, in the order of read_followed. */
#define FOLLOWED_COLUMNS "id, key, receiver, destination, receipt, updated, coalesce(amend, 0)"

/* What an edit can still reach. */
#define AMENDABLE " (state = 1 OR (state = 2 AND receipt IS NOT NULL))"

/* Of `announced`; ?2: the size as it is now. */
#define OTHER_SIZE " AND abs(?2 - told_size) > 0.1 * abs(told_size)"

/* The triage of a change is an accepted one. */
#define ACCEPTED " (triage BETWEEN 3 AND 6)"

/* ?2 test, ?3 commit */
#define HAS_TEST " (?2 IS NULL OR matches(?2, test))"
#define HAS_COMMIT                                                                                 \
	" (?3 IS NULL OR substr(commit_after, 1, length(?3)) = ?3"                                 \
	"  OR substr(place_commit_after, 1, length(?3)) = ?3"                                      \
	"  OR (json_valid(suspects) AND instr(suspects, ?3) > 0 AND EXISTS (SELECT 1"              \
	"   FROM json_each(suspects, '$.list') AS suspect"                                         \
	"   WHERE substr(suspect.value ->> 0, 1, length(?3)) = ?3)))"

/* The columns of a delivery, in the order of read_delivery. */
#define DELIVERY_COLUMNS(now)                                                                      \
	"id, key, receiver, destination, NULL, thread, state, receipt, attempts, " now             \
	", attempt_started IS NOT NULL, coalesce(not_before, 0), kind"

/* Of `announced`: the message no longer holds. One whose change was found again does. */
#define RETRACTED                                                                                  \
	" retraction IS NOT NULL AND (retraction = 2 OR"                                           \
	" (SELECT state FROM changes WHERE changes.id = change) = 3)"

/* Of `announced` and `deliveries`: something is to be said of what the message announced. */
#define SAID " said IS NOT NULL AND deliveries.state = 2"

/* Delivery ?1 has no attempt yet, and all its changes are withdrawn or accepted, or have outgrown
 * what it says. */
#define POINTLESS                                                                                  \
	" id = ?1 AND state = 1 AND attempt_started IS NULL AND receipt IS NULL"                   \
	" AND EXISTS (SELECT 1 FROM announced WHERE delivery = ?1)"                                \
	" AND NOT EXISTS (SELECT 1 FROM announced JOIN changes ON changes.id = "                   \
	"announced.change" WITH_TRIAGE " WHERE delivery = ?1 AND changes.state != 3"               \
	"  AND NOT coalesce(" ACCEPTED " OR told_after >= ?1, 0))"

/* ?1 value for the index, ?2 since, ?3 until, ?4 states, ?5 before_id, ?6 limit, ?7 pattern, ?8
 * updated, ?9 triage, ?10 now */
#define LIST(index, condition)                                                                     \
	"SELECT " RECORD_COLUMNS " FROM changes " index WITH_TRIAGE " WHERE " condition            \
	" AND time >= ?2 AND time < ?3 AND id < ?5"                                                \
	" AND ((?4 >> state) & 1 OR state NOT BETWEEN 1 AND 5)"                                    \
	" AND (?7 IS NULL OR matches(?7, test)) AND updated >= ?8"                                 \
	" AND (?9 = 0 OR (?9 >> CASE WHEN triage.until <= ?10 THEN 1 ELSE coalesce(triage, 1)"     \
	" END) & 1) ORDER BY id DESC LIMIT ?6"

/* ?1 test, ?2 metric: the series of the metric, by identity. */
#define OF_METRIC " test = ?1 AND (series = ?2 OR substr(series, 1, length(?2) + 1) = ?2 || '{')"

/* ?3 the metric's new name */
#define RENAMED(column) " ?3 || substr(" column ", length(?2) + 1)"

/* All tests with changes: one index seek per test. */
#define TESTS_OF_CHANGES                                                                           \
	"WITH RECURSIVE tests (name) AS (SELECT min(test) FROM changes UNION ALL"                  \
	" SELECT (SELECT min(test) FROM changes WHERE test > name) FROM tests"                     \
	" WHERE name IS NOT NULL)"

const char *const store_statements[STATEMENT_COUNT] = {
	[STATEMENT_PENDING] = "SELECT " RECORD_COLUMNS " FROM changes" WITH_TRIAGE
			      " WHERE news = 1 AND state != 3 ORDER BY changes.id",
	[STATEMENT_TOLD] =
		"SELECT DISTINCT changes.id, receiver FROM changes"
		" JOIN announced ON announced.change = changes.id"
		" JOIN deliveries ON delivery = deliveries.id" WITH_TRIAGE
		" WHERE news = 1 AND deliveries.state != 3"
		" AND deliveries.id > coalesce(told_after, 0) ORDER BY changes.id, receiver",
	[STATEMENT_QUEUED] = "SELECT " DELIVERY_COLUMNS(
		"created") " FROM deliveries WHERE state = 1 ORDER BY id",
	[STATEMENT_POINTLESS] =
		"UPDATE deliveries SET state = 3, updated = ?2,"
		" problem = 'its changes were withdrawn, accepted or outgrown before it was sent'"
		" WHERE" POINTLESS,
	[STATEMENT_UNTELL] =
		"UPDATE changes SET news = 3 WHERE state = 3 AND news = 2"
		" AND id IN (SELECT change FROM announced WHERE delivery = ?)"
		" AND NOT EXISTS (SELECT 1 FROM announced JOIN deliveries ON"
		" deliveries.id = delivery WHERE change = changes.id AND deliveries.state != 3)",
	[STATEMENT_OWE_DELIVERY] =
		"UPDATE triage SET owed = 1 WHERE" ACCEPTED
		" AND change IN (SELECT change FROM announced WHERE delivery = ?)",
	[STATEMENT_ATTEMPT] =
		"UPDATE deliveries SET attempt_started = coalesce(attempt_started, ?2),"
		" not_before = NULL WHERE id = ?1",
	[STATEMENT_PAYLOAD] =
		"SELECT payload, (SELECT receipt FROM deliveries AS first INDEXED BY"
		" deliveries_of_key WHERE first.key = deliveries.thread AND receipt IS NOT NULL"
		" ORDER BY first.id LIMIT 1) FROM deliveries WHERE id = ? AND state = 1",
	[STATEMENT_REOPEN] = "UPDATE changes SET news = 1 WHERE news = 2 AND state NOT IN (3, 5)"
			     " AND id IN (SELECT change FROM announced WHERE delivery = ?)",
	[STATEMENT_COUNTS] = "SELECT state, count FROM counts",
	[STATEMENT_CONDITIONS] = "SELECT subject, kind, since, text FROM conditions",
	[STATEMENT_MOMENTS] = "SELECT name, time FROM moments",
	[STATEMENT_VANISHED_ALL] = "SELECT test, series, ended FROM vanished",
	[STATEMENT_RECENT] = "SELECT " DELIVERY_COLUMNS(
		"updated") " FROM deliveries INDEXED BY deliveries_settled"
			   " WHERE state != 1 AND updated >= ? AND state = 2"
			   " AND EXISTS (SELECT 1 FROM announced WHERE delivery = deliveries.id)"
			   " ORDER BY updated DESC LIMIT 1000",
	[STATEMENT_RECENT_RECORDS] =
		"SELECT " RECORD_COLUMNS
		" FROM announced JOIN changes ON announced.change = changes.id" WITH_TRIAGE
		" WHERE delivery = ?",
	[STATEMENT_RETRACT] = "UPDATE announced SET retraction = ?2 WHERE change = ?1 AND"
			      " (SELECT state FROM deliveries WHERE id = delivery) = 2",
	[STATEMENT_RETRACT_LATE] = "UPDATE announced SET retraction = 1 WHERE delivery = ?1"
				   " AND (SELECT state FROM changes WHERE id = change) = 3",
	[STATEMENT_RETRACTIONS] = "SELECT " DELIVERY_COLUMNS(
		"updated") ", change, retraction FROM announced INDEXED BY announced_retracted"
			   " JOIN deliveries ON id = delivery WHERE" RETRACTED
			   " ORDER BY id, change LIMIT ?",
	[STATEMENT_RETRACTED] = "UPDATE announced SET retraction = NULL"
				" WHERE change = ?1 AND delivery = ?2 AND retraction = ?3",
	[STATEMENT_RECORD_OF] =
		"SELECT " RECORD_COLUMNS " FROM changes" WITH_TRIAGE " WHERE id = ?",
	[STATEMENT_KNOWN] =
		"SELECT id, series, branch, sign, time, state, news, first_seen,"
		" spacing, runs, count_after, kind, level_before, level_after,"
		" place_from, place_to, suspects, recovered, "
		"recovered_level, " TRIAGE_COLUMNS " FROM changes INDEXED BY"
		" changes_of_series" WITH_TRIAGE " WHERE test = ? ORDER BY series, branch, id",
	[STATEMENT_CHECKPOINTS] =
		"SELECT series, branch, anchor, last_point, revision, revised FROM series"
		" WHERE test = ?",
	[STATEMENT_LIST] = LIST("NOT INDEXED", "true"),
	[STATEMENT_LIST_TEST] =
		LIST("INDEXED BY changes_of_series", "test IN (SELECT value FROM json_each(?1))"),
	[STATEMENT_LIST_TIME] = LIST("INDEXED BY changes_of_time", "true"),
	[STATEMENT_LIST_STATE] = LIST("INDEXED BY changes_of_state", "state = ?1"),
	[STATEMENT_EVENTS] = "SELECT event, time, point, receiver, destination FROM history"
			     " WHERE change = ? ORDER BY number",
	[STATEMENT_RECORD] =
		"INSERT INTO changes (test, series, branch, sign, time, state, news,"
		" first_seen, spacing, runs, updated, " ITEM_COLUMNS
		") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?8, ?11,"
		" ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27,"
		" ?28, ?29, ?30, ?31, ?32, ?33, ?34, ?35, ?36, ?37, ?38, ?39, ?40, ?41, ?42, ?43)",
	[STATEMENT_CONFIRM] =
		"UPDATE changes SET sign = ?2, time = ?3, state = ?4, news = ?5, spacing = ?6,"
		" runs = ?7, updated = ?8 WHERE id = ?1",
	[STATEMENT_STATE_OF] = "SELECT state, time, members FROM changes WHERE id = ?",
	/* A change that is withdrawn before it was announced is announced if it returns; not if
	 * some receivers have it already. ?6: do not announce the recovery; neither is a second
	 * recovery announced of a change that was found again. */
	[STATEMENT_UPDATE] =
		"UPDATE changes SET time = ?2, state = ?3, updated = ?4,"
		" recovered = iif(?3 = 5, recovered, NULL),"
		" recovered_level = iif(?3 = 5, recovered_level, NULL),"
		" runs = iif(?5 = 0, runs, ?5), news = CASE"
		" WHEN ?3 = 3 AND news = 4 THEN 2"
		" WHEN ?3 = 3 AND news = 1 THEN"
		"  iif(EXISTS (SELECT 1 FROM announced WHERE change = ?1), 2, 3)"
		/* Nobody is told of a change whose end is no news: it is settled. */
		" WHEN ?3 = 5 AND state != 5 AND news = 1 AND (?6 OR (SELECT count(*) FROM history"
		"  WHERE change = ?1 AND event = 7) > 1) THEN"
		"  iif(EXISTS (SELECT 1 FROM announced WHERE change = ?1), 2, 3)"
		" WHEN ?3 != 5 OR state = 5 OR ?6 OR (SELECT count(*) FROM history"
		"  WHERE change = ?1 AND event = 7) > 1 OR EXISTS (SELECT 1 FROM triage"
		"  WHERE change = ?1 AND triage BETWEEN 4 AND 6) THEN news"
		" WHEN news = 2 THEN 4"
		" WHEN news = 1 THEN iif(EXISTS (SELECT 1 FROM announced WHERE change = ?1), 4, 3)"
		" ELSE news END WHERE id = ?1",
	[STATEMENT_RENEW] =
		"UPDATE changes SET (" ITEM_COLUMNS ") = (?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10,"
		" ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26,"
		" ?27, ?28, ?29, ?30, ?31, ?32, ?33, ?34) WHERE id = ?1",
	[STATEMENT_RECOVER] =
		"UPDATE changes SET recovered = nullif(?2, 0), recovered_level = ?3 WHERE id = ?1",
	[STATEMENT_DUE] = "SELECT (SELECT count(*) FROM changes WHERE news = 1 AND state != 3),"
			  " (SELECT count(*) FROM changes WHERE news = 4),"
			  " (SELECT count(*) FROM announced INDEXED BY announced_retracted"
			  " WHERE" RETRACTED "), (SELECT count(*) FROM announced"
			  " INDEXED BY announced_said JOIN deliveries ON id = delivery"
			  " WHERE" SAID ")",
	[STATEMENT_RECOVERED] = "SELECT " RECORD_COLUMNS " FROM changes" WITH_TRIAGE
				" WHERE news = 4 ORDER BY id LIMIT ?",
	/* The first message to each destination; and recipients whose message was pruned. */
	[STATEMENT_TOLD_BY] = "SELECT " DELIVERY_COLUMNS(
		"updated") " FROM deliveries WHERE id IN"
			   " (SELECT min(id) FROM announced JOIN deliveries ON delivery = id"
			   "  WHERE change = ?1 AND state != 3 GROUP BY receiver, destination)"
			   " UNION ALL SELECT DISTINCT 1, '', receiver, destination, NULL, NULL, "
			   "2, NULL, 0,"
			   " ?2, 0, 0, NULL FROM history WHERE change = ?1 AND event = 6 AND NOT "
			   "EXISTS"
			   " (SELECT 1 FROM announced JOIN deliveries ON delivery = id WHERE "
			   "change = ?1"
			   "  AND state != 3 AND deliveries.receiver = history.receiver"
			   "  AND deliveries.destination = history.destination)",
	[STATEMENT_EVENT] = "INSERT INTO history SELECT id,"
			    " (SELECT coalesce(max(number), 0) + 1 FROM history WHERE change = ?1),"
			    " ?2, ?3, ?4, NULL, NULL FROM changes WHERE id = ?1",
	[STATEMENT_FORGET_EVENT] =
		"DELETE FROM history WHERE change = ?1 AND event != 6"
		" AND number <= (SELECT max(number) FROM history WHERE change = ?1) - ?2",
	[STATEMENT_CHECKPOINT] =
		"INSERT INTO series VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"
		" ON CONFLICT DO UPDATE SET anchor = ?4, last_point = ?5, revision = ?6,"
		" revised = ?7",
	[STATEMENT_QUEUE] =
		"INSERT INTO deliveries (key, receiver, destination, payload, thread, state,"
		" attempts, created, updated, kind) VALUES (?1, ?2, ?3, ?4, ?5, 1, 0, ?6, ?6, ?7)"
		" ON CONFLICT (key) WHERE state != 3 DO NOTHING",
	[STATEMENT_QUEUED_BEFORE] = "SELECT id FROM deliveries INDEXED BY deliveries_once"
				    " WHERE key = ? AND state != 3",
	[STATEMENT_ANNOUNCE] =
		"INSERT OR IGNORE INTO announced (change, delivery, told_time, told_size)"
		" SELECT id, ?2, coalesce(?3, time), coalesce(?4, size) FROM changes WHERE id = ?1",
	/* A change that recovered while its message was being queued counts as announced. */
	[STATEMENT_TELL] =
		"UPDATE changes SET news = iif(state = 5 AND news = 3, 4, 2) WHERE id = ?",
	[STATEMENT_SETTLE] =
		"UPDATE deliveries SET state = ?2, receipt = coalesce(?3, receipt), problem = ?4,"
		" attempts = ?5, updated = ?6, attempt_started = iif(?7, attempt_started, NULL),"
		" not_before = nullif(?8, 0) WHERE id = ?1",
	[STATEMENT_ARRIVED] = "INSERT INTO history SELECT change,"
			      " (SELECT coalesce(max(number), 0) + 1 FROM history"
			      "  WHERE history.change = announced.change),"
			      " 6, ?2, changes.time, receiver, destination FROM announced"
			      " JOIN changes ON changes.id = change"
			      " JOIN deliveries ON deliveries.id = delivery WHERE delivery = ?1",
	[STATEMENT_CONDITION] = "INSERT INTO conditions VALUES (?1, ?2, ?3, ?4)"
				" ON CONFLICT DO UPDATE SET kind = ?2, since = ?3, text = ?4",
	[STATEMENT_CONDITION_OVER] = "DELETE FROM conditions WHERE subject = ?",
	[STATEMENT_MOMENT] = "INSERT INTO moments VALUES (?1, ?2) ON CONFLICT DO UPDATE SET"
			     " time = ?2",
	[STATEMENT_VANISHED] = "INSERT INTO vanished VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE SET"
			       " ended = ?3",
	[STATEMENT_VANISHED_BACK] = "DELETE FROM vanished WHERE test = ? AND series = ?",
	[STATEMENT_ENVIRONMENTS] =
		"SELECT id, label, value, time, spacing, hit, total, up, down, worse, better, size,"
		" elsewhere, elsewhere_changed, told, followed, created, (SELECT count(*)"
		" FROM changes WHERE environment_event = environments.id AND state = 1"
		" AND recovered IS NULL), (SELECT count(*) FROM changes"
		" WHERE environment_event = environments.id AND state = 5 AND news = 2)"
		" FROM environments ORDER BY id",
	[STATEMENT_ENVIRONMENT] =
		"INSERT OR REPLACE INTO environments VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9,"
		" ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)",
	[STATEMENT_MEMBER] = "UPDATE changes SET environment_event ="
			     " (SELECT id FROM environments WHERE id = ?2) WHERE id = ?1",
	/* By the first message to each destination about the other changes. */
	[STATEMENT_MEMBER_TOLD] =
		"INSERT OR IGNORE INTO announced (change, delivery, told_time, told_size)"
		" SELECT ?1, min(deliveries.id), (SELECT time FROM changes WHERE id = ?1),"
		" (SELECT size FROM changes WHERE id = ?1) FROM changes"
		" INDEXED BY changes_of_environment JOIN announced ON change = changes.id"
		" JOIN deliveries ON deliveries.id = delivery"
		" WHERE environment_event = ?2 AND deliveries.state != 3"
		" GROUP BY receiver, destination",
	[STATEMENT_TEST_KNOWN] = "SELECT EXISTS (SELECT 1 FROM changes WHERE test = ?1)"
				 " OR EXISTS (SELECT 1 FROM series WHERE test = ?1)",
	[STATEMENT_RENAME_CHANGES] = "UPDATE changes SET test = ?2 WHERE test = ?1",
	[STATEMENT_RENAME_SERIES] = "UPDATE series SET test = ?2 WHERE test = ?1",
	[STATEMENT_RENAME_VANISHED] = "UPDATE OR REPLACE vanished SET test = ?2 WHERE test = ?1",
	[STATEMENT_RENAME_CONDITIONS] =
		"UPDATE OR REPLACE conditions SET subject = substr(subject, 1, 5) || ?2"
		" WHERE subject IN ('test ' || ?1, 'data ' || ?1)",
	[STATEMENT_RENAME_MOMENTS] = "UPDATE OR REPLACE moments SET name = 'series ' || ?2"
				     " WHERE name = 'series ' || ?1",
	[STATEMENT_METRIC_KNOWN] = "SELECT EXISTS (SELECT 1 FROM changes WHERE" OF_METRIC
				   ") OR EXISTS (SELECT 1 FROM series WHERE" OF_METRIC ")",
	[STATEMENT_RENAME_METRIC_CHANGES] = "UPDATE changes SET series =" RENAMED(
		"series") ", metric ="
			  " iif(substr(metric, 1, length(?2)) = ?2," RENAMED(
				  "metric") ", metric)"
					    " WHERE" OF_METRIC,
	[STATEMENT_RENAME_METRIC_SERIES] =
		"UPDATE series SET series =" RENAMED("series") " WHERE" OF_METRIC,
	[STATEMENT_RENAME_METRIC_VANISHED] =
		"UPDATE OR REPLACE vanished SET series =" RENAMED("series") " WHERE" OF_METRIC,
	/* ?1 and ?4: ids from and to; ?5: whatever its state */
	[STATEMENT_SELECT] = "INSERT OR IGNORE INTO selected SELECT id FROM changes"
			     " WHERE id BETWEEN ?1 AND ?4"
			     " AND (?5 OR state IN (1, 2, 4)) AND" HAS_TEST " AND" HAS_COMMIT,
	/* ?5: key */
	[STATEMENT_SELECT_MESSAGE] =
		"INSERT OR IGNORE INTO selected SELECT changes.id"
		" FROM deliveries INDEXED BY deliveries_of_key"
		" CROSS JOIN announced INDEXED BY announced_by ON delivery = deliveries.id"
		" CROSS JOIN changes ON changes.id = announced.change"
		" WHERE key = ?5 AND changes.id BETWEEN ?1 AND ?4 AND" HAS_TEST " AND" HAS_COMMIT,
	[STATEMENT_SELECTED_CLEAR] = "DELETE FROM selected",
	[STATEMENT_SELECTED] =
		"SELECT " RECORD_COLUMNS
		" FROM selected CROSS JOIN changes ON changes.id = selected.change" WITH_TRIAGE
		" ORDER BY selected.change",
	[STATEMENT_TRIAGE] =
		"INSERT INTO triage (change, triage, version, owner, note, link, person, triaged,"
		" until, accepted_size, accepted_low, accepted_high)"
		" VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, nullif(?9, 0), ?10, ?11, ?12)"
		" ON CONFLICT DO UPDATE SET triage = ?2, version = ?3, owner = ?4, note = ?5,"
		" link = ?6, person = ?7, triaged = ?8, until = nullif(?9, 0), accepted_size = ?10,"
		" accepted_low = ?11, accepted_high = ?12",
	/* Whether it stands, too: what is withdrawn or over cannot have grown. */
	[STATEMENT_MEASURED] =
		"SELECT triage, accepted_size, accepted_low, accepted_high FROM triage"
		" JOIN changes ON id = change WHERE change = ? AND state IN (1, 2) AND triage != 1",
	/* The recovery of a change that was none of the program's is not told. */
	[STATEMENT_DROP_RECOVERY] = "UPDATE changes SET news = 2 WHERE id = ? AND news = 4",
	/* All that is pending and accepted is settled, and owed; what is owed and no longer
	 * accepted is pending. */
	[STATEMENT_OWE] = "UPDATE triage SET owed = 1 WHERE" ACCEPTED " AND change IN"
			  " (SELECT id FROM changes INDEXED BY changes_pending WHERE news = 1)",
	[STATEMENT_OWED_SETTLED] = "UPDATE changes INDEXED BY changes_pending SET news = 2"
				   " WHERE news = 1 AND EXISTS (SELECT 1 FROM triage"
				   " WHERE change = id AND owed AND" ACCEPTED ")",
	[STATEMENT_PAY] = "UPDATE changes SET news = 1 WHERE news = 2 AND state IN (1, 2)"
			  " AND id IN (SELECT change FROM triage INDEXED BY triage_owed"
			  "  WHERE owed = 1 AND triage < 3)",
	[STATEMENT_PAID] = "UPDATE triage INDEXED BY triage_owed SET owed = 0"
			   " WHERE owed = 1 AND triage < 3 AND EXISTS"
			   " (SELECT 1 FROM changes WHERE id = change AND news = 1)",
	[STATEMENT_OPEN] =
		"UPDATE triage SET triage = 1, version = version + 1, person = ?2, triaged = ?3,"
		" until = NULL, note = NULL WHERE change = ?1",
	[STATEMENT_AMEND] = "UPDATE deliveries SET amend = coalesce(amend, 0) + 1 WHERE" AMENDABLE
			    " AND id IN (SELECT delivery FROM announced WHERE change = ?)",
	/* Where the change is said to have another size, by more than a tenth of it; ?2 the size */
	[STATEMENT_AMEND_GROWN] =
		"UPDATE deliveries SET amend = coalesce(amend, 0) + 1 WHERE" AMENDABLE
		" AND id IN (SELECT delivery FROM announced WHERE change = ?1" OTHER_SIZE ")",
	[STATEMENT_GROWN] =
		"UPDATE announced SET told_size = ?2, said = iif(told_size IS NULL, said,"
		" coalesce(said, 0) | 1) WHERE change = ?1"
		" AND (told_size IS NULL OR (true" OTHER_SIZE "))",
	/*
	 * ?1 receiver, ?2 sent or reminded of at or before it: the last message to each destination
	 * about regressions that stand and are open.
	 */
	[STATEMENT_TO_REMIND] = "SELECT " DELIVERY_COLUMNS(
		"updated") " FROM deliveries INDEXED BY deliveries_settled"
			   " WHERE state != 1 AND updated <= ?2 AND state = 2 AND receiver = ?1"
			   " AND id > ?4 AND coalesce(reminded, updated) <= ?2 AND EXISTS"
			   " (SELECT 1 FROM announced JOIN changes ON changes.id = "
			   "announced.change" WITH_TRIAGE
			   " WHERE delivery = deliveries.id AND changes.state IN (1, 2)"
			   "  AND direction * sign < 0 AND coalesce(triage, 1) = 1 AND NOT EXISTS"
			   "  (SELECT 1 FROM announced AS again JOIN deliveries AS later"
			   "   ON later.id = again.delivery WHERE again.change = changes.id"
			   "   AND later.id > deliveries.id AND later.state = 2"
			   "   AND later.receiver = deliveries.receiver"
			   "   AND later.destination = deliveries.destination))"
			   " ORDER BY id LIMIT ?3",
	[STATEMENT_REMINDED] = "UPDATE deliveries SET reminded = ?2 WHERE id = ?1",
	/* ?2 bits of enum said_kind */
	[STATEMENT_SAY] = "UPDATE announced SET said = coalesce(said, 0) | ?2 WHERE change = ?1"
			  " AND (SELECT state FROM deliveries WHERE id = delivery) != 3",
	[STATEMENT_SAID] = "SELECT " DELIVERY_COLUMNS(
		"updated") ", change, said FROM announced INDEXED BY announced_said"
			   " JOIN deliveries ON id = delivery WHERE" SAID
			   " ORDER BY id, change LIMIT ?",
	/* Unless more has become known: ?3 bits, ?4 version of the triage, ?5 time */
	[STATEMENT_SAID_DONE] =
		"UPDATE announced SET said = nullif(said & ~?3, 0)"
		" WHERE change = ?1 AND delivery = ?2 AND said IS NOT NULL"
		" AND coalesce((SELECT version FROM triage WHERE change = ?1), 0) = ?4"
		" AND (SELECT time FROM changes WHERE id = ?1) = ?5",
	/* Delivery ?1 is queued about changes of which something has been said, or that are not
	 * what they were when it was written. */
	[STATEMENT_AMEND_LATE] =
		"UPDATE deliveries SET amend = coalesce(amend, 0) + 1"
		" WHERE id = ?1 AND EXISTS (SELECT 1 FROM announced"
		"  JOIN changes ON changes.id = announced.change" WITH_TRIAGE
		"  WHERE delivery = ?1 AND (coalesce(triage, 1) != 1 OR changes.state IN (3, 5)"
		"   OR changes.time != told_time))",
	/* Change ?1 was written after ?3, when delivery ?2 was written about it. */
	[STATEMENT_AMEND_STALE] =
		"UPDATE deliveries SET amend = coalesce(amend, 0) + 1 WHERE id = ?2"
		" AND (SELECT updated FROM changes WHERE id = ?1) > ?3",
	[STATEMENT_AMENDED] = "UPDATE deliveries SET amend = iif(amend = ?2, NULL, amend),"
			      " amended = coalesce(amended, 0) + 1,"
			      " receipt = coalesce(?3, receipt) WHERE id = ?1 AND state = 2",
	[STATEMENT_MARK] = "SELECT coalesce(amend, 0) FROM deliveries WHERE id = ?",
	/* ?1 receivers, ?2 limit */
	[STATEMENT_TO_AMEND] =
		"SELECT " FOLLOWED_COLUMNS " FROM deliveries INDEXED BY deliveries_to_amend"
		" WHERE amend IS NOT NULL AND state = 2 AND receipt IS NOT NULL"
		" AND receiver IN (SELECT value FROM json_each(?1)) ORDER BY id LIMIT ?2",
	/* ?1 receivers, ?2 limit, ?3 since */
	[STATEMENT_TO_READ] =
		"SELECT " FOLLOWED_COLUMNS " FROM deliveries INDEXED BY deliveries_settled"
		" WHERE state != 1 AND updated >= ?3 AND state = 2 AND receipt IS NOT NULL"
		" AND receiver IN (SELECT value FROM json_each(?1))"
		" AND (coalesce(reaction, '') != '' OR EXISTS (SELECT 1 FROM announced"
		"  JOIN changes ON changes.id = announced.change" WITH_TRIAGE
		"  WHERE delivery = deliveries.id AND changes.state IN (1, 2)"
		"  AND coalesce(triage, 1) < 3)) ORDER BY updated DESC LIMIT ?2",
	/* Messages about changes that stand and nobody has settled; ?1 receivers */
	[STATEMENT_TO_REFRESH] =
		"SELECT " FOLLOWED_COLUMNS " FROM deliveries INDEXED BY deliveries_kept"
		" WHERE state = 2 AND receipt IS NOT NULL"
		" AND receiver IN (SELECT value FROM json_each(?1)) AND EXISTS"
		" (SELECT 1 FROM announced JOIN changes ON changes.id = "
		"announced.change" WITH_TRIAGE
		"  WHERE delivery = deliveries.id AND changes.state IN (1, 2)"
		"  AND coalesce(triage, 1) < 3) ORDER BY id LIMIT ?2",
	/* Of all receivers, how many messages of each they are. */
	[STATEMENT_LEFT] = "SELECT receiver, count(*) FROM deliveries INDEXED BY deliveries_kept "
			   "WHERE state = 2 AND receipt IS NOT NULL"
			   " AND EXISTS (SELECT 1 FROM announced JOIN changes"
			   "  ON changes.id = announced.change" WITH_TRIAGE
			   "  WHERE delivery = deliveries.id AND changes.state IN (1, 2)"
			   "  AND coalesce(triage, 1) < 3) GROUP BY receiver ORDER BY receiver",
	[STATEMENT_FOLLOWED] =
		"SELECT " FOLLOWED_COLUMNS ", payload, reaction,"
		" coalesce(amended, 0), thread, kind FROM deliveries WHERE id = ? AND state = 2",
	[STATEMENT_TOLD_RECORDS] = "SELECT " RECORD_COLUMNS ", coalesce(told_time, changes.time)"
				   " FROM announced JOIN changes"
				   " ON announced.change = changes.id" WITH_TRIAGE
				   " WHERE delivery = ? ORDER BY announced.change",
	/* As if it had never been sent. */
	[STATEMENT_SEND_ANEW] = "UPDATE deliveries SET state = 1, receipt = NULL, problem = NULL,"
				" attempts = 0, attempt_started = NULL, not_before = NULL,"
				" reaction = NULL, amend = coalesce(amend, 0) + 1"
				" WHERE id = ? AND state = 2",
	[STATEMENT_REACTION] = "UPDATE deliveries INDEXED BY deliveries_of_key SET reaction = ?2"
			       " WHERE key = ?1 AND state != 3",
	/* The change is news again, as if no receiver had it. */
	[STATEMENT_RENEW_TRIAGE] =
		"UPDATE triage SET renewals = renewals + 1, owed = 0, told_after ="
		" coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'deliveries'), 0)"
		" WHERE change = ?",
	[STATEMENT_RENEW_NEWS] =
		"UPDATE changes SET news = 1 WHERE id = ? AND news IN (0, 2) AND state IN (1, 2)",
	[STATEMENT_EXPIRED] =
		"INSERT INTO selected SELECT change FROM triage INDEXED BY triage_until"
		" WHERE until IS NOT NULL AND until <= ?",
	[STATEMENT_NEXT_EXPIRY] = "SELECT coalesce(min(until), 0)"
				  " FROM triage INDEXED BY triage_until WHERE until IS NOT NULL",
	[STATEMENT_SILENCE_SAME] =
		"SELECT id FROM silences WHERE matchers = ?1"
		" AND (begins = ?2 AND until = ?3"
		/* one that begins at once, said again within two minutes */
		"  OR ?2 = ?7 AND begins = created AND created > ?7 - 120000"
		"   AND (until = ?3 OR until - begins = ?3 - ?2))"
		" AND owner IS ?4 AND reason IS ?5 AND person IS ?6 AND ended IS NULL",
	[STATEMENT_SILENCE_ADD] =
		"INSERT INTO silences (matchers, begins, until, owner, reason, person, created)"
		" VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
	[STATEMENT_SILENCE_END] =
		"UPDATE silences SET ended = ?2, ended_by = ?3 WHERE id = ?1 AND ended IS NULL",
	[STATEMENT_SILENCE_NOTE] =
		"UPDATE silences SET reminded = max(reminded, ?2), summed = max(summed, ?3)"
		" WHERE id = ?1",
	/* ?1 id, or 0; ?2: with those that are over and summed; ?3 now */
	[STATEMENT_SILENCES] =
		"SELECT id, matchers, begins, until, owner, reason, person, created, ended,"
		" ended_by, reminded, summed FROM silences WHERE (?1 = 0 OR id = ?1)"
		" AND (?2 OR NOT summed OR (ended IS NULL AND until > ?3)) ORDER BY id",
	[STATEMENT_AUDIT_ADD] =
		"INSERT INTO audit (time, person, origin, action, change, subject, detail) VALUES"
		" (?1, ?2, ?3, ?4, nullif(?5, 0), coalesce(?6, (SELECT test || ' ' || metric"
		"  FROM changes WHERE id = ?5)), ?7)",
	/* ?1 since, ?2 before, ?3 limit */
	[STATEMENT_AUDIT] = "SELECT " AUDIT_COLUMNS " FROM audit NOT INDEXED"
			    " WHERE time >= ?1 AND id < ?2 ORDER BY id DESC LIMIT ?3",
	[STATEMENT_AUDIT_OF] = "SELECT " AUDIT_COLUMNS " FROM audit INDEXED BY audit_of_change"
			       " WHERE change = ?4 AND time >= ?1 AND id < ?2 ORDER BY id DESC"
			       " LIMIT ?3",
	[STATEMENT_AUDIT_EVENTS] =
		"SELECT action = 'reopen', time, person, origin, detail FROM (SELECT * FROM audit"
		" INDEXED BY audit_of_change WHERE change = ? AND action IN ('triage', 'reopen')"
		" ORDER BY id DESC LIMIT 50) ORDER BY id",
	[STATEMENT_PROBE] =
		"PRAGMA user_version = 15" /* SQLite performs this write even if nothing changes */,
	[STATEMENT_PRESENT_CLEAR] = "DELETE FROM present",
	[STATEMENT_PRESENT] = "INSERT OR IGNORE INTO present VALUES (?)",
	/* ?2 receivers whose messages stay while a change stands, or they are to be edited */
	[STATEMENT_PRUNE_LINKS] =
		"DELETE FROM announced WHERE delivery IN"
		" (SELECT id FROM deliveries INDEXED BY deliveries_settled"
		"  WHERE state != 1 AND updated < ?1 AND NOT (state = 2 AND receipt IS NOT NULL"
		"   AND receiver IN (SELECT value FROM json_each(?2)) AND (amend IS NOT NULL"
		"   OR EXISTS (SELECT 1 FROM announced AS of JOIN changes ON changes.id = of.change"
		"    WHERE of.delivery = deliveries.id AND changes.state IN (1, 2)))))",
	[STATEMENT_PRUNE_DELIVERIES] = "DELETE FROM deliveries INDEXED BY deliveries_settled"
				       " WHERE state != 1 AND updated < ? AND NOT EXISTS"
				       " (SELECT 1 FROM announced WHERE delivery = deliveries.id)",
	[STATEMENT_DOOM_WITHDRAWN] =
		"INSERT INTO doomed SELECT id FROM changes INDEXED BY changes_of_state"
		" JOIN series USING (test, series, branch)"
		" WHERE state IN (3, 4, 5) AND time < anchor AND updated < ? AND news NOT IN (1, 4)"
		" AND NOT EXISTS (SELECT 1 FROM announced WHERE change = id)",
	[STATEMENT_DOOM_OUTLIVED] =
		"INSERT OR IGNORE INTO doomed SELECT id FROM series CROSS JOIN changes"
		" INDEXED BY changes_of_series USING (test, series, branch)"
		" WHERE time < anchor AND updated < ? AND news NOT IN (1, 4)"
		" AND NOT EXISTS (SELECT 1 FROM announced WHERE change = id)",
	/* ?2: the first of the states. Changes of clusters never have a checkpoint. */
	[STATEMENT_DOOM_UNTRACKED] =
		"INSERT OR IGNORE INTO doomed SELECT id FROM changes INDEXED BY changes_of_state"
		" WHERE state >= ?2 AND time < ?1 AND updated < ?1 AND news NOT IN (1, 4) AND "
		"members = 0"
		" AND NOT EXISTS (SELECT 1 FROM series WHERE series.test = changes.test AND"
		" series.series = changes.series AND series.branch = changes.branch)"
		" AND EXISTS (SELECT 1 FROM series WHERE series.test = changes.test"
		" AND last_point >= ?1)"
		" AND NOT EXISTS (SELECT 1 FROM announced WHERE change = id)",
	[STATEMENT_DOOM_ABSENT] =
		TESTS_OF_CHANGES " INSERT OR IGNORE INTO doomed SELECT id FROM changes"
				 " WHERE test IN (SELECT name FROM tests WHERE name NOT IN present)"
				 " AND updated < ? AND news NOT IN (1, 4)"
				 " AND NOT EXISTS (SELECT 1 FROM announced WHERE change = id)",
	[STATEMENT_DOOMED_TRIAGE] = "DELETE FROM triage WHERE change IN doomed",
	[STATEMENT_DOOMED_EVENTS] = "DELETE FROM history WHERE change IN doomed",
	[STATEMENT_DOOMED_CHANGES] = "DELETE FROM changes WHERE id IN doomed",
	[STATEMENT_DOOMED_CLEAR] = "DELETE FROM doomed",
	[STATEMENT_PRUNE_EVENTS] = "DELETE FROM history WHERE event != 6 AND time < ?",
	[STATEMENT_PRUNE_CHECKPOINTS] =
		"DELETE FROM series WHERE last_point < ? AND test NOT IN present",
	[STATEMENT_PRUNE_ENDED] = "DELETE FROM vanished WHERE ended < ?",
	[STATEMENT_PRUNE_ENVIRONMENTS] =
		"DELETE FROM environments WHERE created < ? AND NOT EXISTS"
		" (SELECT 1 FROM changes WHERE environment_event = environments.id)",
	[STATEMENT_PRUNE_SILENCES] =
		"DELETE FROM silences WHERE summed AND coalesce(ended, until) < ?",
	[STATEMENT_PRUNE_AUDIT] =
		"DELETE FROM audit WHERE time < ? AND NOT EXISTS (SELECT 1 FROM changes"
		" WHERE changes.id = change AND state IN (1, 2, 4))",
	[STATEMENT_PRUNE_VANISHED] =
		"WITH fronts AS MATERIALIZED (SELECT test, min(anchor) AS front FROM series"
		" WHERE last_point >= ?1 GROUP BY test)"
		" DELETE FROM series WHERE last_point < ?1 AND last_point <"
		" (SELECT front FROM fronts WHERE fronts.test = series.test)",
};
