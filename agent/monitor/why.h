/*
 * Why a series was told of at a place, or why it was not: the agent's own steps, from the points to
 * the message, with what each has made of it.
 */
#ifndef AGENT_MONITOR_WHY_H
#define AGENT_MONITOR_WHY_H

#include "agent/monitor/power.h"
#include "agent/store/store.h"
#include "conf/config.h"
#include "detectors/fdr.h"
#include "detectors/tried.h"
#include "sources/source.h"

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
	WHY_RECOVERED,   /* before it was told */
	WHY_CLUSTER,     /* a message of a cluster tells it */
	WHY_ENVIRONMENT, /* the message about its environment does, which was there before it */
	WHY_WAY_BACK,    /* of a change, whose end tells it */
	WHY_WOULD_TELL,  /* nothing of it is in the state, or there is none; as points came */
	WHY_TOO_OLD,     /* the same, and too old for an agent that starts now */
	WHY_DETECTOR,    /* something was tried there; `tried` says what dropped it */
	WHY_NOTHING,     /* nothing was */
	WHY_ENDED,       /* the series has no more points, and that was told; or it is not there */
	WHY_NO_DATA,     /* the source gives nothing */
	WHY_ENDS,
};

extern const char *const why_names[WHY_ENDS], *const why_sentences[WHY_ENDS];

/* How the place was chosen. */
enum why_place { WHY_ASKED, WHY_CHANGE, WHY_NEWEST, WHY_BEFORE, WHY_AFTER };

/* What is asked, and what the state holds of the test. */
struct why_request {
	const char *metric;   /* name of a metric or series, or an identity */
	const char *at;       /* a time, a commit, or NULL */
	int64_t now, max_age; /* ms; WHEN_NEVER */
	bool has_state;
	struct strings clusters;             /* groups of `type: cluster` that have the test */
	const struct change_record *records; /* of the test and the clusters, with their history */
	size_t record_count;
	const struct environment_event *environments; /* that some of these are part of */
	size_t environment_count;
	const struct series_checkpoint *marks;
	size_t mark_count;
	const struct condition *conditions; /* of all tests, as are vanished series */
	size_t condition_count;
	const struct vanished *vanished;
	size_t vanished_count;
};

struct why {
	const struct test *test;
	const struct series *series; /* NULL: there is nothing to look at, see `absent` */
	const struct detection *detection;
	bool has_state;
	size_t place;
	enum why_place chosen;
	size_t front;  /* the first point that counts */
	size_t points; /* that exist from there on */
	struct findings findings;
	const struct tried *tried; /* near the place, in order of index */
	size_t tried_count, tried_more;
	const struct tried *culprit;        /* that of them which is meant; or NULL */
	const struct announcement *change;  /* what stands there now; or NULL */
	const struct change_record *record; /* what the state knows there; or NULL */
	struct arrival arrival;             /* from where the change stands, else the place */
	size_t arrival_at;
	bool has_power;
	struct power power;
	struct fdr_rank rank;               /* of WHY_FDR */
	int64_t held_until;                 /* ms, of WHY_HOLD */
	const struct change_record *undone; /* of WHY_WAY_BACK, where the state knows it; or NULL */
	struct strings clusters;            /* the ask's */
	const struct change_record *cluster;         /* what they know there; or NULL */
	const struct environment_event *environment; /* that the record is part of; or NULL */
	const struct condition *condition; /* what was told of the test, and is not over; or NULL */
	const struct vanished *vanished;   /* it was told that the series has ended; or NULL */
	int64_t newest;                    /* ms, of the test's points; */
	int64_t last; /* ... of the series', where it is absent as far as the state knows, or
			 WHEN_ALWAYS */
	/* Of one without a series: its name or identity, what the source is asked for and for which
	 * time (WHEN_ALWAYS: all there is), and what it says; the texts may be NULL. */
	const char *absent, *question, *notice;
	int64_t since, until;
	enum why_end end;
};

/* How near a place what is tried is shown, and how near it is what is asked about; points. */
enum { WHY_SHOWN = 25, WHY_NEAR = 10, WHY_MOST = 40 };

/* Everything lives in `arena`, or is the query's and the ask's. Bounded work, for a worker. */
bool why_explain(struct arena *arena, const struct test *test, const struct query *query,
	const struct companions *companions, const struct why_request *ask, struct scratch *scratch,
	struct why *out, struct error *error) MUST_USE;

/* What the state has answered to STORE_LIST of the topics, STORE_MARKS of the test, and
 * STORE_HEALTH. */
void why_state(struct why_request *ask, const struct store_request *list,
	const struct store_request *marks, const struct store_request *health);

/* Sets the time of the query as the agent's, which has these marks. */
void why_query(const struct why_request *ask, struct task *task);

/* Names under which changes of the test are recorded: its own, and those of the clusters that it is
 * in, which go to *clusters. */
struct strings why_topics(const struct config *config, const struct test *test, struct arena *arena,
	struct strings *clusters);

/*
 * The series that is meant by ask->metric, in why->series; or NULL with what there is to say of
 * data that are not there. An error names the series that there are.
 */
bool why_find(struct arena *arena, const struct query *query, const struct why_request *ask,
	struct why *why, struct error *error) MUST_USE;

struct buf;
void why_put_text(struct buf *out, const struct why *why);
void why_put_json(struct buf *out, const struct why *why);
void why_put_power(struct buf *out, const struct axis *axis, const struct power *power);

#endif
