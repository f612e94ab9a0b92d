/*
 * Why a change of a series was announced, or not: the agent's own steps, from the points to the
 * message, with the outcome of each.
 */
#ifndef AGENT_MONITOR_WHY_H
#define AGENT_MONITOR_WHY_H

#include "agent/monitor/power.h"
#include "agent/store/store.h"
#include "conf/config.h"
#include "detectors/tried.h"
#include "sources/source.h"

/* Moments that `replay` leaves in a state that it keeps: from when on the first run of a test has
 * read points, by its name, if it has not read all; and until when the last has. */
#define REPLAYED_SINCE "replayed since "
#define REPLAYED_UNTIL "replayed until"

/* Where a change, or a possible change, ended up. The order is that of their names and
 * sentences. */
enum why_end {
	WHY_TOLD,      /* a message was delivered */
	WHY_WAITS,     /* for its group, cluster or environment */
	WHY_SILENCE,   /* a silence holds it */
	WHY_MUTE,      /* a mute time of its test does */
	WHY_DELIVERY,  /* in the outbox, not delivered yet */
	WHY_NOBODY,    /* settled without a message, for the `reason` */
	WHY_ACCEPTED,  /* not announced, as a person or known_changes has accepted it */
	WHY_SILENT,    /* recorded only, for the `reason`, whose word is the verdict's name */
	WHY_CANDIDATE, /* it waits, the same */
	WHY_WITHDRAWN,
	WHY_RECOVERED,   /* before it was announced */
	WHY_CLUSTER,     /* a message of its cluster covers it */
	WHY_ENVIRONMENT, /* an earlier message about its environment covers it */
	WHY_WOULD_TELL,  /* not in the state, or there is no state; announced in the replay */
	WHY_TOO_OLD,     /* as above, but too old for an agent that starts now */
	WHY_ONSET,       /* only the newest points differ; see `onset` */
	WHY_DETECTOR,    /* the detector rejected the place; see `tried` */
	WHY_NOTHING,     /* the detector tried nothing there */
	WHY_ENDED,       /* the series has no more points, which was reported; or it is missing */
	WHY_NO_DATA,     /* the source returned nothing */
	WHY_ENDS,
};

/* How the place was chosen. */
enum why_place { WHY_ASKED, WHY_CHANGE, WHY_NEWEST, WHY_BEFORE, WHY_AFTER };

/* The question, and the state's records of the test. */
struct why_request {
	const char *metric;   /* name of a metric or series, or an identity */
	const char *at;       /* a time or a commit; NULL: not given */
	int64_t now, max_age; /* ms; WHEN_NEVER */
	bool has_state;
	struct record_rows records;           /* of the test and the clusters, with their history */
	struct environment_rows environments; /* that some of the records belong to */
	struct checkpoint_rows checkpoints;
	struct health_rows health; /* of all tests */
	struct silence_rows silences;
	int64_t replayed_since, replayed_until; /* ms: the last point read by the state's replay,
						   inclusive; 0: not a replay, or all */
	const struct config *config;            /* for the groups of the test */
};

struct why {
	const struct test *test;
	const struct series *series; /* NULL: there is nothing to examine, see `absent` */
	const struct detection *detection;
	bool has_state;
	size_t place;
	enum why_place chosen;
	size_t front;  /* the first point that counts */
	size_t points; /* existing points from there on */
	struct findings findings;
	const struct tried *tried; /* near the place, in order of index */
	size_t tried_count, tried_more;
	const struct tried *culprit; /* the entry of `tried` that explains the verdict; or NULL */
	const struct announcement *change;  /* the change found there now; or NULL */
	const struct change_record *record; /* the state's record there; or NULL */
	struct arrival arrival;             /* replayed from the change, else from the place */
	size_t arrival_at;
	bool has_power;
	struct power power;
	const char *reason; /* of WHY_SILENT, WHY_CANDIDATE, WHY_NOBODY: as recorded, or replayed;
			       or NULL */
	int64_t held_until; /* ms, of WHY_CANDIDATE; 0: it is not held */
	const char *proposals; /* by which other series of the test it could be judged: the items
				  of a JSON list */
	struct change onset;   /* with WHY_ONSET: the step to the newest points */
	const struct change_record *undone;  /* that the record ends, if it is silent; or NULL */
	struct strings clusters;             /* groups of `type: cluster` that contain the test */
	const struct change_record *cluster; /* their records there; or NULL */
	const struct silence *silence;       /* that holds the record; or NULL */
	const struct mute_time *mute;        /* that holds it; or NULL */
	int64_t quiet_until;                 /* ms, until when at least one of them does */
	/* The triage of the record, or of its cluster's if that is why it is not announced; NULL if
	 * it is open. */
	const struct triage *said;
	bool lapsed; /* ... but only until a time that has passed */
	const struct known_change
		*known; /* of a change without a record: the entry that accepts it */
	const struct environment_event *environment; /* that the record belongs to; or NULL */
	const struct condition *condition; /* reported for the test, and not over; or NULL */
	const struct vanished *vanished;   /* the end of the series was reported; or NULL */
	int64_t newest;                    /* ms, newest point of the test; */
	int64_t last; /* ... of the series, if it is absent, as far as the state knows; or
			 WHEN_ALWAYS */
	/* For an absent series: its name or identity, the query and its range (WHEN_ALWAYS:
	 * everything), and the source's notice; the texts may be NULL. */
	const char *absent, *question, *notice;
	int64_t since, until;
	enum why_end end;
};

/* Points: how near the place an entry must be to be shown, and to explain the verdict. */
enum { WHY_SHOWN = 25, WHY_NEAR = 10, WHY_MOST = 40 };

/* Everything lives in `arena`, or belongs to the query or the request. Bounded work. Runs on a
 * worker. */
bool why_explain(struct arena *arena, const struct test *test, const struct query *query,
	const struct companions *companions, const struct why_request *request,
	struct scratch *scratch, struct why *out, struct error *error) MUST_USE;

/* Sets the query for the store, and takes the answer, which must outlive the request. */
void why_ask(struct store_list *list, const struct config *config, const struct test *test);
void why_state(struct why_request *request, const struct store_list *list);

/* Sets the time range of the query to the one that the agent would use with these checkpoints. */
void why_query(const struct why_request *request, struct task *task);

/* ` (did you mean "x"?)` if a series or metric has a similar name, else "". */
const char *why_hint(
	const struct test *test, const struct dataset *data, const char *name, struct arena *arena);

/* Whether the name means the series: that of its metric, or one with some of its labels. */
bool why_means(const struct series *series, const char *name);

/*
 * Finds the series that request->metric means, in why->series; NULL if it has no data, with the
 * known reasons. An error names the existing series.
 */
bool why_find(struct arena *arena, const struct query *query, const struct why_request *request,
	struct why *why, struct error *error) MUST_USE;

struct buf;
void why_put_json(struct buf *out, const struct why *why);
void why_put_power(struct buf *out, const struct axis *axis, const struct power *power);

#endif
