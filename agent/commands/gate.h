/*
 * Gates: which of the changes that a one-shot command finds do not count, because people have
 * accepted them: in review (known_changes), or by triage, which is in a state file or with an
 * agent.
 */
#ifndef AGENT_COMMANDS_GATE_H
#define AGENT_COMMANDS_GATE_H

#include "agent/analysis/analysis.h"
#include "agent/base/dict.h"
#include "agent/cli/agent_api.h"
#include "agent/commands/command_context.h"
#include "agent/model/change_record.h"

struct gate_flags {
	struct strings known_changes; /* files */
	const char *state;            /* or NULL */
	struct agent_api_options agent;
	bool strict;
};

extern const struct field gate_fields[];

struct gate;

/* Reads the triaged changes of the tests, and the other changes of their tests, from the state or
 * agent of the flags; none if they name neither. Only the members in the API's JSON are set.
 * ERROR_STATE if it is unavailable. */
bool gate_read(const struct gate_flags *flags, const struct test *const *tests, size_t count,
	struct arena *arena, struct record_rows *out, struct error *error) MUST_USE;

/*
 * Reads the triage before any test is read. Under --profile otava nothing is accepted. The flags
 * and the context are borrowed; the gate lives as long as the command. NULL and an error,
 * ERROR_STATE if the state or the agent of the flags is unavailable.
 */
struct gate *gate_new(
	const struct gate_flags *flags, const struct command_context *context, struct error *error);

/* Sets `accepted` of the findings of a test: why each change does not count. `branch`: as
 * requested, or NULL. */
void gate_judge(struct gate *gate, struct arena *arena, const char *branch,
	const struct analysis *analysis);

/* Why a regression without a change of its own, between two branches, does not count; NULL: it
 * does. It has been anywhere in its place. */
const char *gate_judge_span(struct gate *gate, struct arena *arena, const struct test *test,
	struct findings *findings, const struct change *change);

/*
 * The metrics of a test that have too little data to be judged: a gate must not pass on them. A
 * metric with several series (pods come and go) lacks data only if none of them can be judged. A
 * zeroed struct with its arena set is empty.
 */
struct gate_lacks {
	struct arena *arena;
	struct dict metrics;
	struct gate_lack *items;
	size_t count;
};

/* `what`: "2 points at the baseline"; NULL: the series can be judged. Lives in the arena. */
void gate_lack(struct gate_lacks *lacks, const struct series *series, const char *what);

/* False, and an ERROR_DATA that names the metrics, if any of them lacks something. */
bool gate_has_enough(
	const struct gate_lacks *lacks, const struct test *test, struct error *error) MUST_USE;

/* "2 accepted changes not counted", if there are any. */
void gate_print(size_t accepted, FILE *out);

#endif
