/*
 * The statements and tables in SQLite's dialect. Those that list changes name their index, as
 * SQLite, without statistics here, would guess.
 */
#include "agent/store/sqlite/statements.h"

#define INDEXED_BY(index) " INDEXED BY " index
#define NOT_INDEXED " NOT INDEXED"
#define ORDERED_JOIN " CROSS JOIN"
#define LARGEST "max"
#define MATCHES(pattern, text) " matches(" pattern ", " text ")"
#define TEXTS(json) " json_each(" json ")"
#define CHANGES_OF_TESTS                                                                           \
	" (SELECT * FROM changes INDEXED BY changes_of_series WHERE test IN (SELECT value "        \
	"FROM" TEXTS("?1") ")) AS changes"
#define PAIRS(json, name) " json_each(" json ") AS " name
#define HAS_SUSPECT                                                                                \
	" (json_valid(suspects) AND instr(suspects, ?3) > 0 AND EXISTS (SELECT 1"                  \
	"  FROM json_each(suspects, '$.list') AS suspect"                                          \
	"  WHERE substr(suspect.value ->> 0, 1, length(?3)) = ?3))"
#define TRIAGE_OF_EACH " LEFT JOIN triage ON triage.change = changes.id"
#define LAST_ID(table) " coalesce((SELECT seq FROM sqlite_sequence WHERE name = '" table "'), 0)"
#define FORGET_LAST_ID "DELETE FROM sqlite_sequence WHERE name = ?1"
#define SET_LAST_ID "INSERT INTO sqlite_sequence (name, seq) VALUES (?1, ?2)"
#define NEXT_CHANGES                                                                               \
	"WITH RECURSIVE next (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM next WHERE"    \
	" number < ?1) SELECT" LAST_ID("changes") " + number FROM next"
#define COUNTS "SELECT state, count FROM counts"

/* SQLite performs this write even if nothing changes. */
#define PROBE "PRAGMA application_id = 1213550164"

_Static_assert(STORE_APPLICATION == 1213550164, "PROBE writes what is there");

const struct sql_words sqlite_words = {.integer = "INTEGER",
	.text = "TEXT",
	.number = "REAL",
	.bytes = "BLOB",
	.length = "length",
	.sequence = "INTEGER PRIMARY KEY AUTOINCREMENT",
	.rows = " STRICT",
	.keyed = " STRICT, WITHOUT ROWID",
	.more = "CREATE TABLE counts (state INTEGER PRIMARY KEY, count INTEGER NOT NULL) STRICT;"
		"INSERT INTO counts VALUES (1, 0), (2, 0), (3, 0), (4, 0), (5, 0);"
		"CREATE TRIGGER counts_insert AFTER INSERT ON changes BEGIN UPDATE counts SET "
		"count ="
		" count + 1 WHERE state = new.state; END;"
		"CREATE TRIGGER counts_delete AFTER DELETE ON changes BEGIN UPDATE counts SET "
		"count ="
		" count - 1 WHERE state = old.state; END;"
		"CREATE TRIGGER counts_update AFTER UPDATE OF state ON changes WHEN old.state !="
		" new.state BEGIN UPDATE counts SET count = count - 1 WHERE state = old.state; "
		"UPDATE"
		" counts SET count = count + 1 WHERE state = new.state; END;"};

#include "agent/store/sql/words.inc"

const char *const sqlite_statements[STATEMENT_TEXTS] = {
#include "agent/store/sql/statements.inc"
};
