/*
 * Tables of what may be wrong with which source and test, found by name. Part of condition.c.
 */
#ifndef AGENT_MONITOR_TROUBLES_H
#define AGENT_MONITOR_TROUBLES_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/core/dict.h"

#define TROUBLES_NOWHERE SIZE_MAX /* the source of a test that has not run yet */

enum trouble_state {
	TROUBLE_NONE,
	TROUBLE_TOLD,
	TROUBLE_HUSHED, /* one of many */
	TROUBLE_OLD,    /* it was so before anybody looked: is not told, nor its end */
};

/* Something that may be wrong with a subject. */
struct trouble {
	enum trouble_state state;
	int64_t since;
	uint64_t failures; /* in a row */
	bool awaited;      /* of a test after a restart: nobody knows yet whether it is over */
};

/* Of a test, and of the tests of a source together. */
enum aspect { ASPECT_FAILS, ASPECT_STALE, ASPECTS };

/* The tests of a source that are in one kind of trouble. */
struct crowd {
	size_t told, hushed, old, awaited;
	struct trouble many;
};

struct supplier {
	const char *name;
	struct trouble down;
	int64_t clock;     /* of the first failure */
	uint64_t outages;  /* that are over */
	uint64_t answered; /* runs that went well */
	struct crowd crowds[ASPECTS];
};

struct subject {
	const char *name;
	size_t source;
	struct trouble troubles[ASPECTS];
	int64_t failed;    /* the monotonic clock at its last failure that counted */
	uint64_t outage;   /* source.outages at its last failure */
	uint64_t answered; /* source.answered when its first failure in a row came */
	bool seen;
	int64_t newest, arrived; /* arrived: on the monotonic clock */
	int64_t usual;           /* ms, until a point is missed, as the data said by then; or 0 */
};

struct troubles {
	struct arena *arena;
	struct name_index source_index, test_index; /* the names' places in these arrays */
	struct supplier *sources;
	struct subject *tests;
	size_t source_capacity, test_capacity;
};

struct troubles troubles_new(void);
void troubles_free(struct troubles *tables);

/* The place of the source, which is made if it is not there. Pointers to other sources are invalid
 * then. */
size_t troubles_source(struct troubles *tables, const char *name);

/* The same for a test. If it is another source's so far, it moves to this one's crowds. */
struct subject *troubles_test(struct troubles *tables, const char *name, size_t source);

/* Adds the trouble to the crowd (step 1) or takes it away (step SIZE_MAX, that is -1). */
void crowd_count(struct crowd *crowd, const struct trouble *trouble, size_t step);

/* The same for all troubles of a test and its source's crowds. */
void troubles_count(struct troubles *tables, const struct subject *test, size_t step);

#endif
