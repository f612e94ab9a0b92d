/*
 * Scheduled jobs: what the scheduler runs. There are two kinds, tests (test_run.c) and clusters
 * (cluster.c).
 *
 * A job holds its current configuration and the state between runs. A run owns all its other data.
 * Only the scheduler sets the state of a job.
 */
#ifndef AGENT_MONITOR_SCHEDULED_JOB_H
#define AGENT_MONITOR_SCHEDULED_JOB_H

#include "agent/base/dict.h"
#include "agent/monitor/health.h"
#include "agent/monitor/news.h"
#include "agent/monitor/schedule.h"
#include "agent/monitor/scheduler.h"

enum scheduled_job_state {
	JOB_NEW,     /* not in the schedule: not yet, or another agent runs it */
	JOB_WAITING, /* until it is due */
	JOB_QUEUED,  /* for an on-demand run */
	JOB_HELD,    /* the same; it may not begin yet */
	JOB_RUNNING,
	JOB_RERUN,   /* running, and queued again afterwards */
	JOB_CHANGED, /* the same; it has changed, and the results of this run are dropped */
	JOB_REMOVED, /* running; it is not configured any more: the results are dropped */
	JOB_LOST,    /* running; another agent runs it now: the same */
};

/* The context of all jobs. */
struct run_context {
	struct agent *agent;
	struct expected *expected;
	struct health *health;
	struct scheduler *scheduler;
};

/* The first member of struct monitored_test and struct cluster. */
struct scheduled_job {
	struct schedule_entry entry;
	const struct run_context *context;

	/* Its current configuration. */
	const struct job_kind *kind;
	const char *name;
	int64_t interval;
	int shard;                       /* see agent/fleet/fleet.h */
	uint64_t fingerprint;            /* of its meaning */
	const struct test *const *tests; /* that it reads */
	size_t test_count;

	/* The scheduler's. */
	enum scheduled_job_state state;
	bool on_demand;  /* the run was requested */
	int busy;        /* shard that the run in progress was begun for */
	int64_t started; /* engine_now at the start of the run */
	uint64_t missed;
	struct waiter *waiting, *served;     /* for the next run, and for the current one */
	struct scheduled_job *next, **place; /* in a list of the scheduler */
	/* Writes that no run has followed yet: engine_now of the first and the last. */
	struct {
		int64_t first, last;
		struct scheduled_job *next, **place; /* place: NULL: there are none */
	} written;
};

struct job_kind {
	bool of_test;        /* a run of one test, which may be singly leased */
	int64_t first_after; /* ms that its first run waits for those of other jobs */
	/* Begins a run, which ends by scheduled_job_ended. */
	void (*begin)(struct scheduled_job *job);
	/* Takes over the configuration of `now`, a job of the same name that is freed
	 * afterwards. */
	void (*adopt)(struct scheduled_job *job, struct scheduled_job *now);
	/* Drops the state between runs; the job has changed. No run is in progress. */
	void (*clear)(struct scheduled_job *job);
	/* With a run that is in progress: after the engine was freed. */
	void (*free)(struct scheduled_job *job);
};

/* Whether the results of the run in progress are not wanted any more. */
static inline bool scheduled_job_dropped(const struct scheduled_job *job)
{
	return job->state == JOB_CHANGED || job->state == JOB_REMOVED || job->state == JOB_LOST;
}

/* To be called at the end of a run, which may free the job, begin its next run, or both. The report
 * is passed to waiting requests. */
void scheduled_job_ended(struct scheduled_job *job, const struct run_report *report);

/* The second half of a run: what is known is read, matched with what was found, and the difference
 * is written. */
struct recording {
	struct scheduled_job *job;
	const char *name; /* of the test or group */
	/* Ends the run if its results are not wanted any more; true if it has ended. */
	bool (*unwanted)(void *recording);
	/* Fills `news` from what was found and is `known`. Runs on a worker. */
	void (*match)(void *recording);
	/* `news` is written, if there was anything to write; or the call failed. */
	void (*done)(struct recording *recording, const struct store_call *failed);
	struct news_clock clock;
	struct store_known *known; /* the store's records; NULL: not read, or the store has it */
	struct store_record *news; /* the records to write */
};

/* `first`: the job's first run; `quiet`: nothing can be new, so nothing is read. */
void recording_begin(struct recording *recording, bool first, bool quiet);
void recording_free(struct recording *recording);

/* Series of each test whose smallest detectable change is measured. */
enum { RUN_MEASURED = 5 };

/* A test with its schedule, and its state between runs. */
struct monitored_test {
	struct scheduled_job job;
	const struct test *test; /* of the current configuration */

	char *problem;    /* why the last run failed; NULL: it did not; owned */
	uint64_t notices; /* hash of the last run's notices */
	int64_t last_run; /* wall clock, ms, of the last finished run; 0: none yet */
	int64_t duration; /* ms, of that run */
	/* The engine's clock, ms, when data were first missed while the wall clock was wrong; 0:
	 * they are not. */
	int64_t doubted;
	size_t series, points;         /* of the last successful run */
	int64_t newest;                /* ms, the last point that was read; WHEN_ALWAYS: none */
	double smallest[RUN_MEASURED]; /* see struct scheduler_test */
	size_t measured;
	int64_t measured_at; /* wall clock, ms; 0: not measured */
	/* For a test whose points lie on a grid, after a run that has read the last one possible:
	 * its time, ms; 0: there may be more to read. */
	int64_t read_to;
	int64_t usual;                  /* struct outcome's */
	uint64_t triages;               /* agent_triages when it last looked for news */
	struct store_record *unwritten; /* with an environment: what the last run saw; or NULL */
	struct series_cache *cache; /* NULL: nothing is kept; the run's while one is in progress */
	struct test_run *run;       /* in progress, or NULL */
};

/*
 * A run of a test goes from its source's answer to the records of the store: it fetches the data,
 * detects on a worker, reads the known changes from the store, matches both, records the
 * difference, and passes new changes to the dispatcher. A run that fails changes nothing.
 */
struct scheduled_job *test_job_new(const struct run_context *context, const struct test *test);

/* Writes what the last run of the test saw, unless the state has it. */
void test_job_write(struct scheduled_job *job);

/* Drops it: a newer view is about to be written. */
void test_job_forget_seen(struct scheduled_job *job);

/*
 * A cluster is a group of `type: cluster`, which runs in addition to its tests, and whose findings
 * are announced like changes. `monitored` are the tests that run, by name. NULL: none is in the
 * group.
 *
 * A change of a test is held until the next cluster run that begins after the change was found: if
 * it belongs to a cluster, the cluster's message covers it, otherwise it is announced as usual. If
 * that run fails, the held changes are announced, too.
 */
struct scheduled_job *cluster_job_new(
	const struct run_context *context, const struct group *group, const struct dict *monitored);

/* Fills in the functions of a cluster. */
void cluster_show(const struct scheduled_job *job, struct scheduler_cluster *out);

/* The cluster's decision as a filter of the dispatcher. */
struct decision cluster_judge(const struct scheduled_job *job, const struct change_record *record);

#endif
