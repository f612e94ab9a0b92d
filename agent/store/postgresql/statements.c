/*
 * The statements and tables in PostgreSQL's dialect. It has statistics, and chooses indices itself.
 */
#include "agent/store/postgresql/statements.h"

#define INDEXED_BY(index) ""
#define NOT_INDEXED ""
#define ORDERED_JOIN " JOIN"
#define LARGEST "greatest"
#define MATCHES(pattern, text)                                                                     \
	" (" text " = " pattern " OR " text " ~ (SELECT pattern_of(" pattern ")))"
#define TEXTS(json) " json_array_elements_text(CAST(" json " AS json))"
#define CHANGES_OF_TESTS                                                                           \
	" (SELECT found.* FROM (SELECT DISTINCT value FROM" TEXTS(                                 \
		"?1") ") AS test"                                                                  \
		      " CROSS JOIN LATERAL (SELECT * FROM changes WHERE changes.test = "           \
		      "test.value OFFSET 0)"                                                       \
		      " AS found) AS changes"
#define PAIRS(json, name) " json_array_elements(CAST(" json " AS json)) AS " name " (value)"
#define HAS_SUSPECT                                                                                \
	" (strpos(suspects, ?3) > 0 AND EXISTS (SELECT 1"                                          \
	"  FROM json_array_elements(CAST(suspects AS json) -> 'list') AS suspect (value)"          \
	"  WHERE substr(suspect.value ->> 0, 1, length(?3)) = ?3))"
#define TRIAGE_OF_EACH                                                                             \
	" LEFT JOIN LATERAL (SELECT * FROM triage WHERE change = changes.id OFFSET 0) AS triage"   \
	" ON true"
#define LAST_ID(table)                                                                             \
	" (SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM " table "_id_seq)"
#define FORGET_LAST_ID "SELECT CAST(?1 AS TEXT)" /* the other does all */
#define SET_LAST_ID "SELECT setval(pg_get_serial_sequence(?1, 'id'), greatest(?2, 1), ?2 > 0)"
#define NEXT_CHANGES                                                                               \
	"SELECT id FROM (SELECT nextval('changes_id_seq') AS id FROM generate_series(1, ?1"        \
	")) AS next ORDER BY id"
#define COUNTS "SELECT state, count(*) FROM changes GROUP BY state"
#define PROBE "UPDATE schema SET probed = probed + 1"

/*
 * `commits`: the last transaction that a writer has committed, and one that is refused, as somebody
 * was told that it was not committed (see connection.h).
 *
 * pattern_of: a shell pattern, as fnmatch() takes it, as a regular expression.
 *
 * Rows of `agents` are leases (see agent/fleet/fleet.h). An agent that is gone stays while a
 * shard names it, or a test in `singles` (see agent/fleet/tests.h).
 */
static const char more[] =
	"CREATE TABLE schema ("
	" one BIGINT PRIMARY KEY CHECK (one = 1), version BIGINT NOT NULL,"
	" probed BIGINT NOT NULL) WITH (fillfactor = 50);\n"
	"CREATE TABLE commits ("
	" writer TEXT COLLATE \"C\" NOT NULL PRIMARY KEY,"
	" number BIGINT NOT NULL CHECK (number BETWEEN 0 AND 9007199254740992),"
	" refused BIGINT NOT NULL CHECK (refused BETWEEN 0 AND 9007199254740992),"
	" used BIGINT NOT NULL CHECK (used BETWEEN -9007199254740992 AND 9007199254740992),"
	" CHECK (number = 0 OR number != refused)) WITH (fillfactor = 50);\n"
	"CREATE FUNCTION pattern_of(pattern TEXT) RETURNS TEXT LANGUAGE sql IMMUTABLE STRICT AS "
	"$$"
	" SELECT '^' || coalesce(string_agg(CASE"
	" WHEN token = '*' THEN '.*'"
	" WHEN token = '?' THEN '.'"
	" WHEN token ~ '^[[].' THEN regexp_replace(token, '^[[]!', '[^')"
	" WHEN token ~ '^[\\\\].' THEN regexp_replace(substr(token, 2),"
	"  '^([][*.+?(){}|^$\\\\])$', '\\\\\\1')"
	" ELSE regexp_replace(token, '^([][*.+?(){}|^$\\\\])$', '\\\\\\1') END,"
	" '' ORDER BY place), '') || '$' FROM (SELECT found[1] AS token, place FROM"
	" regexp_matches(pattern, '([\\\\].|[[][!^]?[]]?(?:[[]:[a-z]+:[]]|[^]])*[]]|.)', 'g')"
	" WITH ORDINALITY AS all_of (found, place)) AS tokens $$;\n"
	"CREATE TABLE agents ("
	" instance BIGINT PRIMARY KEY, name TEXT COLLATE \"C\" NOT NULL,"
	" address TEXT COLLATE \"C\" NOT NULL, version TEXT COLLATE \"C\" NOT NULL,"
	" configuration BIGINT NOT NULL, tests BIGINT NOT NULL, joined BIGINT NOT NULL,"
	" renewed BIGINT NOT NULL, until BIGINT NOT NULL, late BIGINT NOT NULL,"
	" gone BIGINT NOT NULL DEFAULT 0) WITH (fillfactor = 50);\n"
	"CREATE TABLE shards ("
	" shard BIGINT PRIMARY KEY, holder BIGINT NOT NULL DEFAULT 0,"
	" term BIGINT NOT NULL DEFAULT 0) WITH (fillfactor = 50);\n"
	"CREATE TABLE views ("
	" source TEXT COLLATE \"C\" NOT NULL, instance BIGINT NOT NULL,"
	" verdict BIGINT NOT NULL, since BIGINT NOT NULL,"
	" text TEXT COLLATE \"C\" NOT NULL, failing_told BIGINT NOT NULL,"
	" failing_many BIGINT NOT NULL, stale_told BIGINT NOT NULL,"
	" stale_many BIGINT NOT NULL, awaited BIGINT NOT NULL, changed BIGINT NOT NULL,"
	" PRIMARY KEY (source, instance));\n"
	"CREATE TABLE requests ("
	" test TEXT COLLATE \"C\" NOT NULL PRIMARY KEY, shard BIGINT NOT NULL,"
	" asked BIGINT NOT NULL);\n"
	"CREATE TABLE configurations (configuration BIGINT PRIMARY KEY, announced BIGINT NOT "
	"NULL);\n"
	"CREATE TABLE fingerprints ("
	" configuration BIGINT NOT NULL, test TEXT COLLATE \"C\" NOT NULL,"
	" fingerprint BIGINT NOT NULL,"
	" PRIMARY KEY (configuration, test));\n"
	"CREATE TABLE singles ("
	" test TEXT COLLATE \"C\" NOT NULL PRIMARY KEY,"
	" holder BIGINT NOT NULL, term BIGINT NOT NULL) WITH (fillfactor = 50);\n"
	"INSERT INTO shards (shard) SELECT generate_series(0, 255);\n";

const struct sql_words postgresql_words = {.integer = "BIGINT",
	.text = "TEXT COLLATE \"C\"",
	.number = "DOUBLE PRECISION",
	.bytes = "BYTEA",
	.length = "octet_length",
	.sequence = "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY",
	.rows = "",
	.keyed = "",
	.more = more};

#include "agent/store/sql/words.inc"

const char *const postgresql_statements[STATEMENT_TEXTS] = {
#include "agent/store/sql/statements.inc"
};

/* Of a fleet. */

#define MOMENT                                                                                     \
	" moment AS (SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT) AS now)"

#define DAY "86400000"

#define LIVES "EXISTS (SELECT 1 FROM agents WHERE instance = ?1 AND gone = 0)"

/* Requests for runs that the agent makes. */
#define ASKED                                                                                      \
	" FROM requests JOIN shards ON requests.shard = shards.shard"                              \
	" LEFT JOIN singles ON singles.test = requests.test"                                       \
	" WHERE coalesce(singles.holder, shards.holder) = ?1"

/* Of `singles`: nobody that lives holds it. */
#define FREE " (holder = 0 OR EXISTS (SELECT 1 FROM agents WHERE instance = holder AND gone != 0))"

#define NAMED                                                                                      \
	" test IN (SELECT value FROM json_array_elements_text(CAST(?2 AS JSON)) AS listed "        \
	"(value))"

/* Rows of three kinds: one of numbers, the agents, the shards. */
#define PICTURE                                                                                    \
	" SELECT 0, now, (SELECT count(*) FROM renewed), changes, recoveries, retractions, said,"  \
	" (SELECT CAST(coalesce(sum(id), 0) AS BIGINT) FROM changes WHERE news = 1)"               \
	" + 3 * (SELECT CAST(coalesce(sum(id), 0) AS BIGINT) FROM changes WHERE news = 4),"        \
	" (SELECT CAST(coalesce(sum(id), 0) AS BIGINT) + count(*) FROM deliveries"                 \
	" WHERE state = 1), (SELECT CAST(coalesce(sum(id), 0) AS BIGINT) FROM"                     \
	" (SELECT id FROM events WHERE kind > 7 ORDER BY id DESC LIMIT ?5) AS latest),"            \
	" (SELECT CAST(coalesce(sum(changed), 0) AS BIGINT) FROM views JOIN agents"                \
	" ON agents.instance = views.instance WHERE gone = 0),"                                    \
	" (SELECT count(*)" ASKED "),"                                                             \
	" (SELECT CAST(coalesce(sum(term), 0) AS BIGINT) FROM singles), NULL, NULL, NULL"          \
	" FROM moment, due"                                                                        \
	" UNION ALL SELECT 1, instance, configuration, tests, joined, renewed, until, late, gone," \
	" 0, 0, 0, 0, name, address, version FROM agents"                                          \
	" UNION ALL SELECT 2, shard, holder, term, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL, NULL, NULL"    \
	" FROM shards"

/* Of configurations that no agent has had for a day. */
#define OLD                                                                                        \
	" WHERE configuration IN (SELECT configuration FROM configurations, moment"                \
	" WHERE announced < now - 86400000 AND configuration NOT IN"                               \
	" (SELECT configuration FROM agents WHERE gone = 0))"

/* Configurations of agents that live. This agent's row may still have what it had before. */
#define LIVE                                                                                       \
	" live AS (SELECT configuration, announced, votes FROM configurations JOIN"                \
	" (SELECT configuration, count(*) AS votes FROM (SELECT CAST(?2 AS BIGINT)"                \
	" AS configuration UNION ALL SELECT configuration FROM agents"                             \
	" WHERE gone = 0 AND instance != ?1) AS each GROUP BY configuration) AS votes"             \
	" USING (configuration))"

#undef STATEMENT
#define STATEMENT(name, ...) [STATEMENT_##name - STATEMENT_COUNT] = __VA_ARGS__,

const char *const fleet_statements[STATEMENT_ALL - STATEMENT_COUNT] = {
#include "agent/store/sql/fleet.inc"
};
