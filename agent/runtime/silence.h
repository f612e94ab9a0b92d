/*
 * Silences with the configuration (see agent/decide/silence.h): its groups, and the numbers of
 * selected tests and changes.
 */
#ifndef AGENT_RUNTIME_SILENCE_H
#define AGENT_RUNTIME_SILENCE_H

#include "agent/decide/silence.h"
#include "agent/store/store.h"
#include "conf/config.h"

/* Whether the silence selects it, at any time. */
bool silence_selects(
	const struct config *config, const char *matchers, const struct silence_target *subject);

/* Of the silences that hold the change at `now` the one that ends last, or NULL. */
const struct silence *silence_of(const struct config *config, const struct silence_rows *silences,
	const struct change_record *record, int64_t now);

/* The selection of the matchers: the number of configured tests that they can select, by test and
 * group, and of open changes that they do select, with the first of each. `unknown` is the first
 * name that no test, change or label has, with the nearest one that exists; or NULL. */
enum { SILENCE_REACH_SHOWN = 50 };
struct silence_reach {
	size_t tests, changes;
	const struct test *first_tests[SILENCE_REACH_SHOWN];
	const struct change_record *first_changes[SILENCE_REACH_SHOWN];
	const char *unknown, *suggestion;
	const char
		*problem; /* with `effort`: they took too long, and nothing is counted; or NULL */
};

/* Invalid matchers select nothing. The texts are in the arena, or the configuration's. With
 * `effort` it stops once that is costly; NULL: no limit. */
void silence_reach(const struct config *config, const char *matchers,
	const struct record_rows *open, struct arena *arena, struct matcher_effort *effort,
	struct silence_reach *out);

#endif
