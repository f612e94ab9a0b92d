/*
 * The statements in PostgreSQL's dialect. It has statistics, and chooses indices itself.
 */
#include "agent/store/postgresql/statements.h"

#define INDEXED_BY(index) ""
#define NOT_INDEXED ""
#define ORDERED_JOIN " JOIN"
#define LARGEST "greatest"
#define MATCHES(pattern, text)                                                                     \
	" (" text " = " pattern " OR " text " ~ (SELECT pattern_of(" pattern ")))"
#define TEXTS(json) " json_array_elements_text(CAST(" json " AS json))"
#define IDS(json)                                                                                  \
	" (SELECT CAST(value AS BIGINT) FROM json_array_elements_text(CAST(" json " AS json)))"
#define PAIRS(json, name) " json_array_elements(CAST(" json " AS json)) AS " name " (value)"
#define HAS_SUSPECT(start)                                                                         \
	" (strpos(suspects, " start ") > 0 AND EXISTS (SELECT 1"                                   \
	"  FROM json_array_elements(CAST(suspects AS json) -> 'list') AS suspect (value)"          \
	"  WHERE substr(suspect.value ->> 0, 1, length(" start ")) = " start "))"
#define LAST_ID(table)                                                                             \
	" (SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM " table "_id_seq)"
#define FORGET_LAST_ID(table) "SELECT CAST(" table " AS TEXT)" /* the other does all */
#define SET_LAST_ID(table, id)                                                                     \
	"SELECT setval(pg_get_serial_sequence(" table ", 'id'), greatest(" id ", 1), " id " > 0)"
#define NEXT_CHANGES(count)                                                                        \
	"SELECT id FROM (SELECT nextval('changes_id_seq') AS id FROM generate_series(1, " count    \
	")) AS next ORDER BY id"
#define COUNTS "SELECT state, count(*) FROM changes GROUP BY state"
#define PROBE "UPDATE schema SET probed = probed + 1"

#define STATEMENTS postgresql_statements
#include "agent/store/sql/statements.inc"
