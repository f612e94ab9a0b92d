/*
 * Labelled series from triage (agent/model/triage.h): the state's changes on the data that the
 * sources return today.
 *
 * Expected, fixed and acknowledged changes are labels; a change found at a false one is a false
 * alarm. Around infra, ignored and open changes nothing counts; their outcomes are listed
 * separately.
 */
#ifndef AGENT_EVALUATE_TRIAGED_H
#define AGENT_EVALUATE_TRIAGED_H

#include "agent/cli/cli.h"
#include "agent/evaluate/labelled.h"
#include "agent/store/store.h"

struct judgement {
	const struct change_record *record;
	enum triage_state state; /* now */
	size_t at;               /* index in the series */
};

/* Whether this state means that the change is real, and worth announcing. */
bool judged_real(enum triage_state state);

/* A change that could not be judged, and why. */
struct unplaced {
	const struct change_record *record;
	enum triage_state state;
	const char *why;
};

/* Series that are detected in the same way. */
struct settings_group {
	const char *text; /* detection_text */
	const struct detection *detection;
	const struct labelled_series **series;
	size_t count, capacity;
};

struct triaged {
	struct config *config;
	const struct test *const *tests; /* those that were selected */
	size_t test_count;
	struct labelled_set set;       /* series of which people judged a change; class: the test */
	struct settings_group *groups; /* those with the most judgements first */
	size_t group_count;
	struct unplaced *unplaced; /* changes that people judged */
	size_t unplaced_count;
	int code; /* EXIT_NOTHING, or that of tests whose data could not be read */
};

/*
 * out->config is given. Reads the changes of the tests selected by the command's arguments from the
 * state (NULL: the configuration's), and the data. False and an error if nothing can be judged.
 * Call triaged_free in any case.
 */
bool triaged_load(
	struct cli *cli, const char *state, struct triaged *out, struct error *error) MUST_USE;
void triaged_free(struct cli *cli, struct triaged *triaged);

#endif
