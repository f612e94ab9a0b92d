/*
 * Why a series was told of at a place, or why it was not: the agent's own steps, from the points to
 * the message, with what each has made of it.
 */
#ifndef AGENT_WHY_H
#define AGENT_WHY_H

#include "agent/news/power.h"
#include "agent/news/store.h"
#include "detectors/tried.h"

/* Where a change, or the suspicion of one, has come to its end. The order is that of their names
 * and sentences. */
enum why_end {
	WHY_TOLD,         /* a message has arrived */
	WHY_WAITS,        /* for its group */
	WHY_DELIVERY,     /* in the outbox */
	WHY_MAX_AGE,      /* known, too old when it was first seen */
	WHY_SILENT,       /* known, and young enough, but no news when it was first seen */
	WHY_CONFIRMATION, /* a candidate by the rule of `confirm` */
	WHY_FDR,          /* ... and it holds: by the share of false ones */
	WHY_HOLD,         /* ... and both do: until it is known whether there are cycles */
	WHY_WITHDRAWN,
	WHY_RECOVERED,  /* before it was told */
	WHY_WOULD_TELL, /* nothing of it is in the state, or there is none; as points came */
	WHY_TOO_OLD,    /* the same, and too old for an agent that starts now */
	WHY_DETECTOR,   /* something was tried there; `tried` says what dropped it */
	WHY_NOTHING,    /* nothing was */
	WHY_ENDS,
};

extern const char *const why_names[WHY_ENDS], *const why_sentences[WHY_ENDS];

/* How the place was chosen. */
enum why_place { WHY_ASKED, WHY_CHANGE, WHY_NEWEST, WHY_BEFORE, WHY_AFTER };

/* What is asked, and what the state holds of the test. */
struct why_ask {
	const char *metric;   /* name of a metric or series, or an identity */
	const char *at;       /* a time, a commit, or NULL */
	int64_t now, max_age; /* ms; WHEN_NEVER */
	bool has_state;
	const struct record *records; /* of the test, with their history */
	size_t record_count;
	const struct series_mark *marks;
	size_t mark_count;
};

struct why {
	const struct test *test;
	const struct series *series;
	const struct detection *detection;
	bool has_state;
	size_t place;
	enum why_place chosen;
	size_t front;  /* the first point that counts */
	size_t points; /* that exist from there on */
	struct findings findings;
	const struct tried *tried; /* near the place, in order of index */
	size_t tried_count, tried_more;
	const struct tried *culprit;       /* that of them which is meant; or NULL */
	const struct announcement *change; /* what stands there now; or NULL */
	const struct record *record;       /* what the state knows there; or NULL */
	struct arrival arrival;            /* from where the change stands, else the place */
	size_t arrival_at;
	bool has_power;
	struct power power;
	enum why_end end;
};

/* How near a place what is tried is shown, and how near it is what is asked about; points. */
enum { WHY_SHOWN = 25, WHY_NEAR = 10, WHY_MOST = 40 };

/* Everything lives in `arena`, or is the data's and the ask's. Bounded work, for a worker. */
bool why_explain(struct arena *arena, const struct test *test, const struct dataset *data,
	const struct companions *companions, const struct why_ask *ask, struct scratch *scratch,
	struct why *out, struct error *error) MUST_USE;

/* Sets the time of the query as the agent's, which has these marks. */
void why_query(const struct why_ask *ask, struct task *task);

/* The series of the dataset that is meant by a name; an error names those there are. */
const struct series *why_series(
	const struct test *test, const struct dataset *data, const char *name, struct error *error);

struct buf;
void why_put_text(struct buf *out, const struct why *why, struct arena *arena);
void why_put_json(struct buf *out, const struct why *why);
void why_put_power(struct buf *out, const struct axis *axis, const struct power *power);

#endif
