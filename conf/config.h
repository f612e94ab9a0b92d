/*
 * The configuration: what hunter.yaml says, checked, resolved and ready to use.
 *
 * Loading never stops at the first problem; all are collected with file, line and column. A
 * configuration with an error is not used. Templates, inheritance and the layers of detection
 * options (file, template, test, metric) are resolved here, so the rest of the program sees plain
 * tests. The configuration lives in one arena and does not change.
 *
 * This folder knows neither sources nor notifiers nor detectors: it is handed their names and
 * option tables as a schema.
 */
#ifndef CONF_CONFIG_H
#define CONF_CONFIG_H

#include <stdint.h>

#include "agent/core/field.h"
#include "agent/core/series.h"
#include "agent/core/url_template.h"
#include "conf/yaml.h"
#include "detectors/confirm.h"
#include "detectors/control.h"
#include "detectors/season.h"

/* A source, notifier or detector as far as the configuration needs to know it. */
struct plugin {
	const char *name;
	const struct field
		*fields; /* sources, detectors: a test's options; notifiers: the section's */
	size_t options_size;
	const struct field
		*server_fields; /* sources: of the section or of an entry of `sources:` */
	size_t server_size;
	/*
	 * What the fields cannot say, or NULL: of a test's, a receiver's or a detector's options,
	 * and of a test's together with its metrics. A text that begins with "OPTION: " is told at
	 * that option. ERROR_USAGE is an error. ERROR_DATA is a warning; a receiver is then left
	 * out.
	 */
	bool (*check)(const void *options, struct error *error);
	bool (*check_metrics)(const void *options, const struct metric *metrics, size_t count,
		struct error *error);
	bool endpoint; /* server (sources) or section (notifiers) also takes endpoint_fields, at
			  offset 0 */
};

/* Arrays end with a plugin without a name; the first detector is the default. */
struct schema {
	const struct plugin *sources, *notifiers, *detectors;
	const struct field *endpoint_fields;
	const struct plugin *cluster; /* options of groups of type cluster; NULL: there are none */
};

/* Another series by which one is judged: its load, or a control. */
struct control_rule {
	enum control_mode mode;
	const char *name; /* "TEST/METRIC", as it is written */
	const struct test *test;
	const char *metric;
};

/* A detector and its options, resolved, and what makes the agent believe in what it finds. */
struct detection {
	const struct plugin *detector;
	const void *options;
	struct confirm_rule confirm;
	double fdr; /* 0: off */
	enum season_mode season;
	const struct zone *zone;            /* of cycles; NULL: UTC */
	const struct control_rule *control; /* or NULL; see control_of */
};

/* An option as text, to be laid over a detection (the command line's -P, -M, --window, ...). */
struct setting {
	const char *name, *value;
};

struct dict;

struct server {
	const char *name; /* "prometheus" for the section of that name, "eu" for an entry of
			     `sources:` */
	const struct plugin *source;
	const void *options;
};

struct receiver {
	const char *name; /* as tests' `notify:` names it */
	const struct plugin *notifier;
	const void *options;
	bool heartbeat;       /* it gets a sign of life once a week */
	uint64_t fingerprint; /* of all that it means but that; see struct test */
};

struct test {
	const char *name;
	const char *file; /* where it is defined */
	int line;
	const struct plugin *source;
	const struct server *server; /* NULL for sources without one */
	const void *options;
	const struct metric *metrics;
	const struct detection *detections; /* one for each metric, same order */
	size_t metric_count;
	struct detection detection; /* for metrics that the configuration does not name */
	int64_t interval;           /* ms */
	struct strings notify; /* receivers, at least one: by default all sections', else stdout */
	struct strings tags, annotate;
	int64_t evaluation_delay; /* ms: younger points are left for later runs */
	/* ms without a newer point, until that is told; WHEN_NEVER; 0: by the data's rhythm */
	int64_t stale_after;
	bool allow_empty;   /* a query that gives no series is no problem */
	bool vanished;      /* its series that have ended are told */
	int64_t max_series; /* that are watched; at most MAX_SERIES */
	int64_t window;     /* ms; how far back a point tells of, -1: as the source knows */
	struct url_templates links;
	const char *environment;    /* the label or attribute that says where it ran, or NULL */
	const char *run_attribute;  /* groups points into runs; NULL: their time does */
	const char *hash_attribute; /* of what was measured, or NULL */
	const char *watched;        /* the file whose writes are runs (`watch: true`), or NULL */
	const char *unsupported;    /* why it cannot be run ("bigquery ..."), or NULL */
	/* A hash of all that it means, with its server, its metrics, its receivers' names and what
	 * templates gave: equal as long as nothing of it changes. Secrets are in it, so it is not
	 * to be shown. */
	uint64_t fingerprint;
};

/* What a group of `type: cluster` has besides its tests. */
struct cluster_settings {
	const void *options; /* of schema->cluster */
	int64_t interval;    /* ms */
	struct strings notify;
	uint64_t fingerprint; /* of all that it means, with its tests; see struct test */
};

/* A test, or a metric of it, had another name. */
struct rename {
	const char *test, *metric; /* metric: NULL, it is the test */
	const char *was;
};

struct group {
	const char *name;
	const struct test *const *tests; /* groups within groups are resolved */
	size_t count;
	const struct cluster_settings *cluster; /* NULL: a list of tests */
};

enum { MAX_SERIES = 100000 };              /* of one test */
#define EVALUATION_DELAY_MAX 31536000000.0 /* ms, a year */
#define WINDOW_MAX 31536000000.0           /* ms, a year */

struct agent_settings {
	const char *listen;         /* host:port */
	const char *metrics_listen; /* the same, or NULL */
	const char *state;
	int64_t interval, group_wait, max_age; /* ms; WHEN_NEVER */
	int64_t group_interval;                /* ms; 0: by intervals and steps of the tests */
	bool announce_withdrawn;
	int64_t evaluation_delay, stale_after; /* of tests that have none of their own */
	int64_t give_up_after;                 /* ms; WHEN_NEVER */
	int64_t grace;                         /* ms */
	int64_t jobs;                          /* worker threads, 0: one for each CPU it may use */
	int64_t read_timeout;                  /* ms */
	int64_t max_memory_in_flight;          /* bytes, of answers */
	struct url_templates links;            /* of tests that have none of their own */
	const char *environment;               /* the same */
};

extern const struct field agent_fields[];
extern const struct field receiver_fields[]; /* of all receivers' sections */

/* What a test, a metric and a group of type cluster may say besides the keys of its plugin. */
extern const struct field test_fields[], metric_fields[], group_fields[];

struct config {
	struct arena *arena;
	const char *path;
	struct agent_settings agent;
	struct detection detection; /* the file's default */
	const struct test *tests;   /* in the file's order */
	size_t test_count;
	const struct rename *renames; /* those of tests first */
	size_t rename_count;
	const struct group *groups;
	size_t group_count;
	const struct server *servers;
	size_t server_count;
	const struct receiver *receivers; /* those of sections, and stdout */
	size_t receiver_count;
	const struct receiver *idle; /* that can tell nobody unless they are told whom */
	size_t idle_count;
	/*
	 * "hunter.yaml:9:10: slack: ${SLACK_BOT_TOKEN} is not set", if a test, a server in use or a
	 * receiver lacks a variable, or a receiver cannot be used for another reason, else NULL.
	 * Such tests are unsupported and such receivers left out; the agent does not start.
	 */
	const char *missing;
	/* The same for a file of a secret that cannot be read now or is empty, which is a warning
	 * at the start. */
	const char *unreadable;
	uint64_t hash;                               /* of all that it says but secrets */
	const struct dict *test_names, *group_names; /* for config_test and config_group */
};

/* getenv, passed in so that tests need not touch the environment. */
typedef const char *config_env(void *context, const char *name);

struct config_source {
	const struct schema *schema;
	config_env *env;
	void *env_context;
	/* For a replay: stdout is the only receiver, whatever is configured, and all tests'
	 * interval is this one, unless it is 0. */
	bool stdout_only;
	bool cautious;    /* also reports what works and is careless, see caution.c */
	int64_t interval; /* ms */
};

/*
 * Loads the file or folder. Returns NULL if there was an error; the problems (also warnings) are in
 * *problems, whose arena the caller sets. The caller owns the configuration until config_free.
 */
struct config *config_load(
	const char *path, const struct config_source *source, struct problems *problems);
void config_free(struct config *config);

/* Where the configuration is: `flag` if given, else $HUNTER_CONFIG, $OTAVA_CONFIG, ./hunter.yaml,
 * ... An error names all. */
bool config_find(const char *flag, const struct config_source *source, struct arena *arena,
	const char **path, struct error *error) MUST_USE;

/* Warns of a configuration that config_find found in this folder if others can write there. */
void caution_found(const char *path, struct problems *problems);

const struct test *config_test(const struct config *config, const char *name);
const struct group *config_group(const struct config *config, const char *name);

/* The names under which changes are known: all tests' and clusters'. Copies. */
struct strings config_topics(const struct config *config, struct arena *arena);

/* Of a topic: who is told and how often it is looked at; NULL and 0 if it is not configured. */
const struct strings *config_notify(const struct config *config, const char *topic);
int64_t config_interval(const struct config *config, const char *topic);

/* The tests of the names (tests, groups, or shell patterns) in the order asked, each once; none:
 * all. */
bool config_select(const struct config *config, const struct strings *names, struct arena *arena,
	const struct test *const **tests, size_t *count, struct error *error) MUST_USE;

/* `base` with the settings laid over it; naming another detector drops the base's options. */
bool detection_overlay(const struct schema *schema, const struct detection *base,
	const struct setting *settings, size_t count, struct arena *arena, struct detection *out,
	struct error *error) MUST_USE;

/* By which other series a metric of the test with that detection is judged, or NULL: what a test
 * says of all its metrics does not hold for the one that it names. */
const struct control_rule *control_of(
	const struct test *test, const struct detection *detection, const char *metric);
extern const char *const control_keys[]; /* by mode: "explained_by", "relative_to" */

/* The detections that one of `combine` is made of, and how many of them have to agree; 0 for any
 * other. `out` has room for COMBINE_MOST (detectors/combine.h). */
size_t combine_members(
	const struct schema *schema, const struct detection *detection, struct detection *out);
size_t combine_need(const struct detection *detection);

#endif
