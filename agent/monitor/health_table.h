/*
 * Tables of what may be wrong with which source and test, found by name. Part of condition.c.
 */
#ifndef AGENT_MONITOR_TROUBLES_H
#define AGENT_MONITOR_TROUBLES_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/core/dict.h"

#define TROUBLES_NOWHERE SIZE_MAX /* the source of a test that has not run yet */

enum health_phase {
	HEALTH_OK,
	HEALTH_REPORTED,
	HEALTH_SUPPRESSED, /* one of many */
	HEALTH_OLD,        /* it was so before anybody looked: is not told, nor its end */
};

/* Something that may be wrong with a subject. */
struct health_state {
	enum health_phase state;
	int64_t since;
	uint64_t failures; /* in a row */
	bool awaited;      /* of a test after a restart: nobody knows yet whether it is over */
};

/* Of a test, and of the tests of a source together. */
enum aspect { ASPECT_FAILS, ASPECT_STALE, ASPECTS };

/* The tests of a source that are in one kind of trouble. */
struct health_counts {
	size_t told, suppressed, old, awaited;
	struct health_state many;
};

struct source_health {
	const char *name;
	struct health_state down;
	int64_t clock;     /* of the first failure */
	uint64_t outages;  /* that are over */
	uint64_t answered; /* runs that went well */
	struct health_counts counts[ASPECTS];
};

struct test_health {
	const char *name;
	size_t source;
	struct health_state troubles[ASPECTS];
	int64_t failed;    /* the monotonic clock at its last failure that counted */
	uint64_t outage;   /* source.outages at its last failure */
	uint64_t answered; /* source.answered when its first failure in a row came */
	bool seen;
	int64_t newest, arrived; /* arrived: on the monotonic clock */
	int64_t usual;           /* ms, until a point is missed, as the data said by then; or 0 */
};

struct health_table {
	struct arena *arena;
	struct name_index source_index, test_index; /* the names' places in these arrays */
	struct source_health *sources;
	struct test_health *tests;
	size_t source_capacity, test_capacity;
};

struct health_table health_table_new(void);
void health_table_free(struct health_table *tables);

/* The place of the source, which is made if it is not there. Pointers to other sources are invalid
 * then. */
size_t health_table_source(struct health_table *tables, const char *name);

/* The same for a test. If it is another source's so far, it moves to this one's crowds. */
struct test_health *health_table_test(struct health_table *tables, const char *name, size_t source);

/* Adds the trouble to the crowd (step 1) or takes it away (step SIZE_MAX, that is -1). */
void health_counts_add(
	struct health_counts *crowd, const struct health_state *trouble, size_t step);

/* The same for all troubles of a test and its source's crowds. */
void health_table_count(struct health_table *tables, const struct test_health *test, size_t step);

#endif
