/*
 * Matches changes and notices against silences.
 *
 * Its matchers (agent/base/matcher.h) compare named values: the test, its groups, the metric,
 * branch and direction, attributes of the points and labels of the series; for notices also the
 * source.
 */
#ifndef AGENT_DECIDE_SILENCE_H
#define AGENT_DECIDE_SILENCE_H

#include "agent/base/buf.h"
#include "agent/base/matcher.h"
#include "agent/model/change_record.h"
#include "agent/model/silence.h"

/* Its end, or the time at which somebody ended it. */
int64_t silence_end(const struct silence *silence);

/* Whether the silence is active at `now`. */
bool silence_holds(const struct silence *silence, int64_t now);

/* A change or a notice to match. Fields that do not apply to a notice are NULL. */
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

enum { SILENCE_VALUES = 3 };

/* A target while it is matched. The caller sets the target and its groups. */
struct silence_asked {
	const struct silence_target *subject;
	struct strings groups;
	const char *label_name; /* name of the value in `label` */
	bool has_label;
	struct buf bare, label;
	const char *items[SILENCE_VALUES];
};

void silence_asked_free(struct silence_asked *asked);

/* The names that every target has. */
enum { SILENCE_NAMES = 6 };
extern const char *const silence_names[SILENCE_NAMES];

/* A name as silence_values takes it: the built-in ones are compared as pointers. */
const char *silence_name(const char *name);

/* The values of that name, of a struct silence_asked: a matcher_values. */
struct strings silence_values(void *asked, const char *name);

/* Like matchers_parse, with the cheapest matchers first; the functions below accept only its
 * results. */
bool silence_compile(
	const char *text, struct arena *arena, struct matchers *out, struct error *error) MUST_USE;

/* Like matchers_parse without `selects`. */
bool silence_compile_any(
	const char *text, struct arena *arena, struct matchers *out, struct error *error) MUST_USE;

/* See matchers_match. */
bool silence_matches(const struct matchers *matchers, struct silence_asked *asked,
	struct matcher_effort *effort);

/* By the test and its groups alone: other names may have any value. */
bool silence_may_select(const struct matchers *matchers, struct silence_asked *asked,
	struct matcher_effort *effort);

/* Whether matching exceeds what an interactive request may cost, about a second of steps. */
bool silence_is_costly(const struct matcher_effort *effort);

/* The message for that, in the arena. */
const char *silence_costs(const struct matcher_effort *effort, struct arena *arena);

#endif
