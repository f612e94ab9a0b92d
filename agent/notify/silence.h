/*
 * What a silence selects, among changes and notices.
 *
 * Its matchers (agent/base/matcher.h) are about named values: of the test, its groups, the metric,
 * the branch, the direction, attributes of the points and labels of the series; of notices also the
 * source.
 */
#ifndef AGENT_NOTIFY_SILENCE_H
#define AGENT_NOTIFY_SILENCE_H

#include "agent/base/buf.h"
#include "agent/base/dict.h"
#include "agent/base/matcher.h"
#include "agent/store/store.h"
#include "conf/config.h"

/* When it is over: its end, or when somebody ended it. */
int64_t silence_end(const struct silence *silence);

/* What a silence may select: a change, or a notice. Of a notice, what it is not about is NULL. */
struct silence_target {
	const char *test;
	const char *metric, *series; /* series: the identity, for labels */
	const char *branch;
	const char *source; /* the name of the server; only of notices */
	int sign, verdict;  /* of a change: see change_sign and announcement_verdict; else 0 */
	const struct attribute *attributes;
	size_t attribute_count;
	const char *environment, *commit, *version; /* or NULL */
};

struct silence_target silence_target_of(const struct change_record *record);

/* The groups of all tests, for asking about many: made when the first is asked for. The caller sets
 * the configuration and the arena. */
struct group_names {
	const char **items;
	size_t count;
};
struct silence_index {
	const struct config *config;
	struct arena *arena;
	struct name_index tests;
	struct group_names *groups; /* by the number of the test */
	size_t count;
	bool made;
};

enum { SILENCE_VALUES = 3 };

/* A subject while matchers ask for its values. The caller sets the subject, and its groups or where
 * they are looked up. */
struct silence_asked {
	const struct silence_target *subject;
	struct strings groups;
	/* Where `groups` are looked up when they are needed; or NULL. */
	const struct config *config;
	struct silence_index *index;
	struct arena *arena;
	const char *label_name; /* whose value is in `label`, if there is one */
	bool has_label;
	struct buf bare, label;
	const char *items[SILENCE_VALUES];
};

void silence_asked_free(struct silence_asked *asked);

/* A name as silence_values takes it: those that every subject has are compared as pointers. */
const char *silence_name(const char *name);

/* The values of that name, of a struct silence_asked: a matcher_values. */
struct strings silence_values(void *asked, const char *name);

/* The groups that the test is in, in the arena; a cluster is its own. */
struct strings silence_groups(const struct config *config, const char *test, struct arena *arena);

/* The same, without a look at all groups for each test. */
struct strings silence_index_groups(struct silence_index *index, const char *test);

/* The same as matchers_parse, with the matchers in the order of what they cost; the functions below
 * take only these. */
bool silence_compile(
	const char *text, struct arena *arena, struct matchers *out, struct error *error) MUST_USE;

/* The same of matchers_parse_any. */
bool silence_compile_any(
	const char *text, struct arena *arena, struct matchers *out, struct error *error) MUST_USE;

/* See matchers_match. */
bool silence_matches(const struct matchers *matchers, struct silence_asked *asked,
	struct matcher_effort *effort);

/* As far as the test and its groups say: of other names every value is possible. */
bool silence_may_select(const struct matchers *matchers, struct silence_asked *asked,
	struct matcher_effort *effort);

/* Whether it is selected, whatever the time. */
bool silence_selects(
	const struct config *config, const char *matchers, const struct silence_target *subject);

/* What the matchers reach: the tests of the configuration that they can select, by test and group,
 * and the open changes that they do select, with the first of either. `unknown` is the first name
 * that no test, change or label is known by, with the known name that is near it; or NULL. */
enum { SILENCE_REACH_SHOWN = 50 };
struct silence_reach {
	size_t tests, changes;
	const struct test *first_tests[SILENCE_REACH_SHOWN];
	const struct change_record *first_changes[SILENCE_REACH_SHOWN];
	const char *unknown, *suggestion;
	const char
		*problem; /* with `effort`: they took too long; then nothing is reached; or NULL */
};

/* What an answer may cost that somebody waits for: about a second of steps. */
bool silence_is_costly(const struct matcher_effort *effort);

/* What there is to say then, in the arena. */
const char *silence_costs(const struct matcher_effort *effort, struct arena *arena);

/* Matchers that cannot be read reach nothing. The texts are in the arena, or the configuration's.
 * With `effort` it stops once that is costly; NULL: it compares them all. */
void silence_reach(const struct config *config, const char *matchers,
	const struct record_rows *open, struct arena *arena, struct matcher_effort *effort,
	struct silence_reach *out);

#endif
