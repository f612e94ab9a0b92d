/* Conditions of sources, tests and environments, and when each was reported last. */
#ifndef AGENT_MODEL_HEALTH_H
#define AGENT_MODEL_HEALTH_H

#include "agent/base/arena.h"
#include "agent/model/announcement.h"

enum condition_kind {
	CONDITION_SOURCE = 1, /* a source is down */
	CONDITION_TEST,       /* a test fails, its source is up */
	CONDITION_STALE,      /* a test's data is stale */
	CONDITION_MANY_FAIL,  /* more failing tests of a source than are reported one by one */
	CONDITION_MANY_STALE,
};

/* A problem that began, or is over. */
struct condition {
	const char *subject; /* unique: "source NAME", "test NAME", "data NAME", ... */
	enum condition_kind kind;
	int64_t since;    /* ms, wall clock: the first failure, the last point */
	const char *text; /* one sentence for people; of one that is over: that it recovered */
	bool over;
};

/* A series that was reported as vanished; stored. */
struct vanished {
	const char *test, *series; /* series: its identity */
	int64_t ended;             /* ms, its last point */
	bool back;                 /* it has points again: to be deleted */
};

/* When a named event that happens once, or once in a while, happened last. */
struct stored_moment {
	const char *name;
	int64_t time; /* ms, wall clock */
};

struct environment_rows {
	struct environment_event *items;
	size_t count;
};

/* The conditions of sources and tests, and the times of the last notices. */
struct health_rows {
	struct condition *conditions; /* all, or those to write */
	size_t condition_count;
	struct stored_moment *moments;
	size_t moment_count;
	struct vanished *vanished;
	size_t vanished_count;
};

#endif
