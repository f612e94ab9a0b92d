/*
 * Statements that list changes name their index, as SQLite, without statistics here, would guess.
 * Only SQLite has triggers that count the changes by state, so that a start need not scan a million
 * rows.
 */
#include "agent/store/sqlite/file.h"

static const struct sql_word words[] = {
	{"indexed", "INDEXED BY $1"},
	{"unindexed", "NOT INDEXED"},
	{"in_order", ""},
	{"ordered_join", "CROSS JOIN"},
	{"largest", "max"},
	{"matches", "matches($1, $2)"},
	{"texts", "json_each($1)"},
	{"changes_of_tests",
		"(SELECT * FROM changes INDEXED BY changes_of_series WHERE test IN (SELECT value"
		" FROM @texts{?1})) AS changes"},
	{"pairs", "json_each($1) AS $2"},
	{"has_suspect",
		"(json_valid(suspects) AND instr(suspects, ?3) > 0 AND EXISTS (SELECT 1 FROM"
		" json_each(suspects, '$.list') AS suspect WHERE substr(suspect.value ->> 0, 1,"
		" length(?3)) = ?3))"},
	{"triage_of_each", "LEFT JOIN triage ON triage.change = changes.id"},
	{"last_id", "coalesce((SELECT seq FROM sqlite_sequence WHERE name = '$1'), 0)"},
	{"forget_last_id", "DELETE FROM sqlite_sequence WHERE name = ?1"},
	{"set_last_id", "INSERT INTO sqlite_sequence (name, seq) VALUES (?1, ?2)"},
	{"next_changes",
		"WITH RECURSIVE next (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM next"
		" WHERE number < ?1) SELECT @last_id{changes} + number FROM next"},
	{"counts", "SELECT state, count FROM counts"},
	/* SQLite performs this write even if nothing changes. */
	{"probe", "PRAGMA application_id = 1213550164"},
	{0},
};

_Static_assert(STORE_APPLICATION == 1213550164, "@probe writes what is there");

const struct sql_words sqlite_words = {.words = words,
	.integer = "INTEGER",
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
