/*
 * Gates: which of the changes that a one-shot command finds do not count, because people have
 * accepted them: in review (known_changes), or by triage, which is in a state file or with an
 * agent.
 */
#ifndef AGENT_COMMANDS_GATE_H
#define AGENT_COMMANDS_GATE_H

#include "agent/analysis/analysis.h"
#include "agent/cli/cli.h"

struct gate_flags {
	struct strings known_changes; /* files */
	bool strict;
};

extern const struct field gate_fields[];

struct gate;

/* Never NULL. With `off` nothing is accepted, and nothing is said of it. The flags and the
 * configuration are borrowed. */
struct gate *gate_new(
	const struct gate_flags *flags, const struct config *config, bool off, struct cli *cli);
void gate_free(struct gate *gate); /* accepts NULL */

/* Sets `accepted` of the findings of a test: why each change does not count. */
void gate_judge(struct gate *gate, struct arena *arena, const struct analysis *analysis);

/* Why a regression without a change of its own, between two branches, does not count; NULL: it
 * does. It has been anywhere in the span of the series. */
const char *gate_judge_span(struct gate *gate, struct arena *arena, const struct test *test,
	const struct series *series, const struct change *change);

/* "2 accepted changes not counted", if there are any. */
void gate_print(size_t accepted, FILE *out);

#endif
