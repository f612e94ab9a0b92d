/*
 * Watching: pass after pass over the tests, from the source's answer to what is new.
 *
 * A pass reads a test's data and detects on a worker, asks the store what is known, has both
 * reconciled and the difference recorded, and hands what is new to the announcer. A pass that fails
 * changes nothing. Several tests are on their way at once, a single test is only once.
 */
#ifndef AGENT_WATCH_H
#define AGENT_WATCH_H

#include "agent/watch/announcer.h"

struct watch;

/* The tests are borrowed. */
struct watch *watch_new(struct agent *agent, struct announcer *announcer,
	const struct test *const *tests, size_t count);
void watch_free(struct watch *watch);

/* Begins: by schedule, or in a single pass all tests at once. `states` counts the changes in the
 * store by state. */
void watch_start(struct watch *watch, const int64_t states[CHANGE_STATES]);

#endif
