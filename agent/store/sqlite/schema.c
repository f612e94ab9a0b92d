/*
 * The schema version is SQLite's user_version. A migration, once released, is never changed.
 *
 * Triggers count the changes by state, so that a start need not scan a million rows. When a change
 * was first found is stored in its row only; its history holds later events.
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

/* The points around a change that is confirmed, as agent/core/excerpt.c packs them. */
#define VERSION_16                                                                                 \
	"CREATE TABLE excerpts ("                                                                  \
	" change INTEGER PRIMARY KEY REFERENCES changes,"                                          \
	" points BLOB NOT NULL CHECK (length(points) BETWEEN 1 AND 2048)) STRICT;"

/*
 * Bisections with their journals, and in `changes` what they have found (agent/core/culprit.h).
 * `announced` is made anew, as `said` has another bit.
 */
#define VERSION_17                                                                                 \
	"ALTER TABLE changes ADD COLUMN culprit TEXT;"                                             \
	"ALTER TABLE announced RENAME TO old_announced;"                                           \
	"CREATE TABLE announced ( change INTEGER NOT NULL REFERENCES changes,"                     \
	" delivery INTEGER NOT NULL REFERENCES deliveries,"                                        \
	" retraction INTEGER CHECK (retraction BETWEEN 1 AND 2),"                                  \
	" told_time INTEGER CHECK (told_time BETWEEN -9007199254740992 AND 9007199254740992),"     \
	" told_size REAL, said INTEGER CHECK (said BETWEEN 1 AND 7),"                              \
	" PRIMARY KEY (change, delivery)) STRICT, WITHOUT ROWID;"                                  \
	"INSERT INTO announced SELECT change, delivery, retraction, told_time, told_size, said"    \
	" FROM old_announced;"                                                                     \
	"DROP TABLE old_announced;"                                                                \
	"CREATE INDEX announced_by ON announced (delivery);"                                       \
	"CREATE INDEX announced_retracted ON announced (delivery, change)"                         \
	" WHERE retraction IS NOT NULL;"                                                           \
	"CREATE INDEX announced_said ON announced (delivery, change) WHERE said IS NOT NULL;"      \
	"CREATE TABLE bisections ("                                                                \
	" id INTEGER PRIMARY KEY AUTOINCREMENT CHECK (id BETWEEN 1 AND 9007199254740992),"         \
	" change INTEGER NOT NULL REFERENCES changes, lab TEXT NOT NULL,"                          \
	" state INTEGER NOT NULL CHECK (state BETWEEN 1 AND 3),"                                   \
	" asked INTEGER NOT NULL CHECK (asked BETWEEN -9007199254740992 AND 9007199254740992),"    \
	" begun INTEGER CHECK (begun BETWEEN -9007199254740992 AND 9007199254740992),"             \
	" ended INTEGER CHECK (ended BETWEEN -9007199254740992 AND 9007199254740992),"             \
	" runs INTEGER NOT NULL CHECK (runs BETWEEN 0 AND 9007199254740992),"                      \
	" person TEXT, setup TEXT, outcome TEXT, verdict TEXT, cancelled TEXT) STRICT;"            \
	"CREATE INDEX bisections_of_change ON bisections (change);"                                \
	"CREATE INDEX bisections_open ON bisections (id) WHERE state != 3;"                        \
	"CREATE INDEX bisections_begun ON bisections (begun) WHERE begun IS NOT NULL;"             \
	"CREATE TABLE bisection_events ("                                                          \
	" bisection INTEGER NOT NULL REFERENCES bisections, number INTEGER NOT NULL,"              \
	" kind INTEGER NOT NULL CHECK (kind BETWEEN 1 AND 4),"                                     \
	" run INTEGER NOT NULL CHECK (run BETWEEN 0 AND 9007199254740992), line TEXT NOT NULL,"    \
	" PRIMARY KEY (bisection, number)) STRICT, WITHOUT ROWID;"

/* By it the change that another ends is found (ENDS in agent/store/sql/statements.inc). */
#define VERSION_18                                                                                 \
	"CREATE INDEX changes_recovered ON changes (test, series, branch, recovered)"              \
	" WHERE state = 5;"

const char *const store_migrations[STORE_VERSION] = {VERSION_1, VERSION_2, VERSION_3, VERSION_4,
	VERSION_5, VERSION_6, VERSION_7, VERSION_8, VERSION_9, VERSION_10, VERSION_11, version_12,
	VERSION_13, VERSION_14, VERSION_15, VERSION_16, VERSION_17, VERSION_18};
