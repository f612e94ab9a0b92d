/*
 * What a silence selects, among changes and notices.
 *
 * Its matchers (agent/base/matcher.h) compare named values: the test, its groups, the metric,
 * branch and direction, attributes of the points and labels of the series; for notices also the
 * source.
 */
#ifndef AGENT_NOTIFY_SILENCE_H
#define AGENT_NOTIFY_SILENCE_H

#include "agent/base/buf.h"
#include "agent/base/dict.h"
#include "agent/base/matcher.h"
#include "agent/store/store.h"
#include "conf/config.h"

/* Its end, or the time at which somebody ended it. */
int64_t silence_end(const struct silence *silence);

/* What a silence may select: a change or a notice. Fields that do not apply to a notice are
 * NULL. */
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

/* The groups of all tests, built at the first use. The caller sets the configuration and the
 * arena. */
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

/* A target while it is matched. The caller sets the target, and its groups or where they are looked
 * up. */
struct silence_asked {
	const struct silence_target *subject;
	struct strings groups;
	/* Where `groups` are looked up when they are needed; or NULL. */
	const struct config *config;
	struct silence_index *index;
	struct arena *arena;
	const char *label_name; /* name of the value in `label` */
	bool has_label;
	struct buf bare, label;
	const char *items[SILENCE_VALUES];
};

void silence_asked_free(struct silence_asked *asked);

/* A name as silence_values takes it: the built-in ones are compared as pointers. */
const char *silence_name(const char *name);

/* The values of that name, of a struct silence_asked: a matcher_values. */
struct strings silence_values(void *asked, const char *name);

/* The groups that the test is in, in the arena; a cluster is its own. */
struct strings silence_groups(const struct config *config, const char *test, struct arena *arena);

/* The same, without searching all groups for each test. */
struct strings silence_index_groups(struct silence_index *index, const char *test);

/* Like matchers_parse, with the cheapest matchers first; the functions below accept only its
 * results. */
bool silence_compile(
	const char *text, struct arena *arena, struct matchers *out, struct error *error) MUST_USE;

/* Like matchers_parse_any. */
bool silence_compile_any(
	const char *text, struct arena *arena, struct matchers *out, struct error *error) MUST_USE;

/* See matchers_match. */
bool silence_matches(const struct matchers *matchers, struct silence_asked *asked,
	struct matcher_effort *effort);

/* By the test and its groups alone: other names may have any value. */
bool silence_may_select(const struct matchers *matchers, struct silence_asked *asked,
	struct matcher_effort *effort);

/* Whether the silence selects it, at any time. */
bool silence_selects(
	const struct config *config, const char *matchers, const struct silence_target *subject);

/* What the matchers select: the number of configured tests that they can select, by test and group,
 * and of open changes that they do select, with the first of each. `unknown` is the first name that
 * no test, change or label has, with the nearest one that exists; or NULL. */
enum { SILENCE_REACH_SHOWN = 50 };
struct silence_reach {
	size_t tests, changes;
	const struct test *first_tests[SILENCE_REACH_SHOWN];
	const struct change_record *first_changes[SILENCE_REACH_SHOWN];
	const char *unknown, *suggestion;
	const char
		*problem; /* with `effort`: they took too long, and nothing is counted; or NULL */
};

/* Whether matching exceeds what an interactive request may cost, about a second of steps. */
bool silence_is_costly(const struct matcher_effort *effort);

/* The message for that, in the arena. */
const char *silence_costs(const struct matcher_effort *effort, struct arena *arena);

/* Invalid matchers select nothing. The texts are in the arena, or the configuration's. With
 * `effort` it stops once that is costly; NULL: no limit. */
void silence_reach(const struct config *config, const char *matchers,
	const struct record_rows *open, struct arena *arena, struct matcher_effort *effort,
	struct silence_reach *out);

#endif
