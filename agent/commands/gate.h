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

struct gate_flags {
	struct strings known_changes; /* files */
	const char *state;            /* or NULL */
	struct agent_api_options agent;
	bool strict;
};

extern const struct field gate_fields[];

struct gate;
struct triage_list;

/* Reads what people have said of changes of the tests, from where the flags say; *out stays as it
 * is if they say nothing of it. ERROR_STATE if that is not available. `arena`: for names. */
bool gate_read(const struct gate_flags *flags, const struct test *const *tests, size_t count,
	struct arena *arena, struct triage_list **out, struct error *error) MUST_USE;

/*
 * Reads what people have said, before any test is read. Under --profile otava nothing is accepted,
 * and nothing is said of it. The flags and the context are borrowed. NULL and an error, ERROR_STATE
 * if the state or the agent that the flags name is not available.
 */
struct gate *gate_new(
	const struct gate_flags *flags, const struct command_context *context, struct error *error);
void gate_free(struct gate *gate); /* accepts NULL */

/* Sets `accepted` of the findings of a test: why each change does not count. `branch`: as it was
 * asked for, or NULL. */
void gate_judge(struct gate *gate, struct arena *arena, const char *branch,
	const struct analysis *analysis);

/* Why a regression without a change of its own, between two branches, does not count; NULL: it
 * does. It has been anywhere in its place. */
const char *gate_judge_span(struct gate *gate, struct arena *arena, const struct test *test,
	struct findings *findings, const struct change *change);

/*
 * What the metrics of a test lack, so that nothing can be said of them: a gate must not take that
 * for a good result. A metric with several series (pods come and go) lacks something only if none
 * of them can be judged. A zeroed struct with its arena set is empty.
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
