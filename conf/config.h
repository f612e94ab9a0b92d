/*
 * The configuration: hunter.yaml, checked and resolved.
 *
 * Loading does not stop at the first problem: all are collected with file, line and column. A
 * configuration with an error is not used. Templates, inheritance and the layers of detection
 * options (file, template, test, metric) are resolved here, so that the rest of the program sees
 * plain tests. A configuration is immutable and owned by one arena.
 *
 * This folder depends on no source, notifier or detector: the caller passes their names and option
 * tables as a schema.
 */
#ifndef CONF_CONFIG_H
#define CONF_CONFIG_H

#include <stdint.h>

#include "agent/base/url_template.h"
#include "agent/model/route.h"
#include "agent/model/series.h"
#include "conf/yaml.h"
#include "detectors/confirm.h"
#include "detectors/control.h"
#include "detectors/season.h"

/* Registries of plugins; the first detector is the default. */
struct schema {
	const struct plugin *const *sources, *const *notifiers, *const *detectors;
	const struct field *endpoint_fields;
	/* Names of the events that receivers choose from; as bits 1 << index, the events that a
	 * notifier supports and its default ones. */
	const char *const *events;
	size_t event_count;
	void (*notifier_events)(const struct plugin *notifier, unsigned *able, unsigned *defaults);
	const struct plugin *cluster; /* options of groups of type cluster; NULL: not supported */
	/* Checks the `extract` of a test's `bisect`; NULL: accepts anything. */
	bool (*extract_check)(const char *text, struct error *error);
};

/* Another series by which a series is explained: its load, or a control. */
struct control_rule {
	enum control_mode mode;
	const char *name; /* "TEST/METRIC", as written */
	const struct test *test;
	const char *metric;
};

/* A detector with its resolved options, and the rules by which its candidates are confirmed. */
struct detection {
	const struct plugin *detector;
	const void *options;
	struct confirm_rule confirm;
	double fdr; /* 0: off */
	enum series_kind kind;
	enum season_mode season;
	const struct zone *zone;            /* time zone of seasons; NULL: UTC */
	struct holidays holidays;           /* of that zone */
	const struct control_rule *control; /* or NULL; see control_of */
};

/* An option as text, laid over a detection (the command line's -P, -M, --window, ...). */
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

enum { ROUTES_MOST = 10000, ROUTE_DEPTH_MOST = 20, ROUTE_NAMES_MOST = 10 };

/* Times that recur and in which nothing is announced; see mute.h. */
struct mute_time;
struct mutes {
	const struct mute_time *const *items;
	size_t count;
};

/* How the regressions of a test are bisected: by a command, or by a lab. */
struct bisect_settings {
	const char *run;                 /* a shell command; NULL: a lab makes the runs */
	const void *webhook;             /* options of lab_plugin, where a lab is asked; or NULL */
	const struct plugin *lab_plugin; /* the receiver `webhook` */
	const char *extract;             /* or NULL */
	int64_t timeout;                 /* ms, of a run */
	int64_t workers;
	struct strings worker; /* their command lines, instead of `workers` */
	struct pairs environment;
	int64_t budget; /* ms */
	int64_t max_per_day;
	double confidence;
	const char *lab;  /* one bisection at a time */
	const char *work; /* folder of work trees, or NULL */
	struct strings paths;
};

enum { BISECT_WORKERS = 64 };

/* The control of a test or metric, as written. */
struct control_options {
	const char *explained_by, *relative_to;
};

struct test {
	const char *name;
	const char *file; /* that defines it */
	int line;
	const struct plugin *source;
	const struct server *server; /* NULL for sources without servers */
	const void *options;
	const struct metric *metrics;
	const struct detection *detections; /* one for each metric, in their order */
	size_t metric_count;
	struct detection detection; /* for metrics that the configuration does not name */
	int64_t interval;           /* ms */
	struct strings
		notify; /* receivers, at least one; by default all, else stdout; see `routed` */
	bool routed; /* `notify` is not given: routes decide, and notify has all that they name */
	struct strings tags, annotate;
	struct mutes mute;        /* its own, and those of its groups */
	int64_t evaluation_delay; /* ms: younger points are left to later runs */
	/*
	 * ms without a new point until that is reported; WHEN_NEVER; 0: by the rhythm of the data
	 */
	int64_t stale_after;
	bool allow_empty;   /* an empty result of a query is not an error */
	bool vanished;      /* series that end are reported */
	int64_t max_series; /* watched at most; up to MAX_SERIES */
	int64_t window;     /* ms that a point covers; -1: as the source knows */
	struct url_templates links;
	const char *
		environment; /* label or attribute that names where a point was measured, or NULL */
	const char *run_attribute;            /* groups points into runs; NULL: equal times do */
	const char *hash_attribute;           /* identifies the measured version, or NULL */
	const char *repository;               /* path of a clone of the measured code, or NULL */
	const struct bisect_settings *bisect; /* or NULL */
	const char *watched;     /* the file whose changes start runs (`watch: true`), or NULL */
	const char *unsupported; /* why it cannot run ("bigquery ..."), or NULL */
	/* A hash of the whole test, with its server, its metrics, its receivers' names and what its
	 * templates contribute: equal until any of these changes. It covers secrets, so do not show
	 * it. */
	uint64_t fingerprint;
	/* Options as they are written, of which the members above were made. */
	struct {
		const char *source, *was;
		bool watch;
		struct strings mute;
		struct control_options control;
	} given;
};

/* The settings of a group of `type: cluster` beyond its tests. */
struct cluster_settings {
	const void *options; /* of schema->cluster */
	int64_t interval;    /* ms */
	struct strings notify;
	bool routed; /* see struct test */
	struct mutes mute;
	uint64_t fingerprint; /* of the group and its tests; see struct test */
};

/* The former name of a test or metric. */
struct known_change;

struct rename {
	const char *test, *metric; /* metric: NULL for a test */
	const char *was;
};

struct group {
	const char *name;
	const struct test *const *tests; /* nested groups are resolved */
	size_t count;
	const struct cluster_settings *cluster; /* NULL: a plain list of tests */
};

enum { MAX_SERIES = 100000 };              /* per test */
#define EVALUATION_DELAY_MAX 31536000000.0 /* ms, a year */
#define WINDOW_MAX 31536000000.0           /* ms, a year */

struct agent_settings {
	struct strings listen;                  /* host:port, or unix:/path */
	const char *socket_mode, *socket_owner; /* of unix:/path; owner: or NULL */
	const char *web_config;                 /* path, or NULL; see web_config.h */
	const char *external_url;               /* or NULL */
	const char *metrics_listen;             /* host:port, or NULL */
	const char *state; /* a path, or an address (agent/base/database.h); "${NAME}" if that
			      variable is not set */
	const char *state_password_file, *name; /* of a shared state; or NULL */
	int64_t interval, group_wait, max_age;  /* ms; WHEN_NEVER */
	int64_t group_interval; /* ms; 0: derived from the intervals and steps of the tests */
	bool announce_withdrawn;
	int64_t evaluation_delay, stale_after; /* defaults for tests */
	int64_t give_up_after;                 /* ms; WHEN_NEVER */
	int64_t max_silence;                   /* ms; WHEN_NEVER */
	int64_t grace;                         /* ms */
	int64_t jobs;                          /* worker threads; 0: one for each usable CPU */
	int64_t read_timeout;                  /* ms */
	int64_t max_memory_in_flight;          /* bytes of responses */
	struct url_templates links;            /* defaults for tests */
	const char *environment;               /* default for tests, or NULL */
	const char *repository;                /* the same */
};

extern const struct field agent_fields[];
extern const struct field receiver_fields[]; /* fields of every receiver's section */
extern const struct field digest_fields[];   /* keys of its `digest` */

/* Keys of a test, of a metric and of a group of type cluster, besides those of the plugin. */
extern const struct field test_fields[], metric_fields[], group_fields[];

/* Keys of a test's `bisect`, besides those of the receiver `webhook`. */
extern const struct field test_bisect_fields[];

/* Keys of a route. */
extern const struct field route_fields[];

/* Keys of an interval of a mute time, besides `times`, and of an entry of that. */
extern const struct field mute_fields[], mute_clock_fields[];

struct config {
	struct arena *arena;
	const char *path;
	struct agent_settings agent;
	struct detection detection; /* the default of tests */
	const struct test *tests;   /* in the file's order */
	size_t test_count;
	const struct rename *renames; /* tests first */
	size_t rename_count;
	const struct group *groups;
	size_t group_count;
	const struct known_change *known_changes; /* see known_changes.h */
	size_t known_change_count;
	const struct server *servers;
	size_t server_count;
	const struct receiver *receivers; /* those of sections and of `receivers`, and stdout */
	size_t receiver_count;
	const struct notify_route *routes; /* the root; NULL: all receivers get everything */
	size_t route_count;                /* without the root */
	const struct receiver *idle;       /* valid, but without a destination of their own */
	size_t idle_count;
	/*
	 * "hunter.yaml:9:10: slack: ${SLACK_BOT_TOKEN} is not set": the first variable that a test,
	 * a server in use or a receiver lacks, or the first receiver that is unusable for another
	 * reason; else NULL. Such tests are unsupported, such receivers left out, and the agent
	 * does not start.
	 */
	const char *missing;
	/* The same for the first secret's file that is unreadable or empty; only a warning at the
	 * start. */
	const char *unreadable;
	uint64_t hash; /* of everything but secrets */
	/* For config_test, config_group and config_topic. */
	const struct dict *test_names, *group_names, *topics;
	const struct dict *written; /* for config_written */
};

/* A text that stands for a file's content. */
struct config_text {
	const char *file, *text;
	size_t length;
};

/* getenv, as a parameter so that tests need not change the environment. */
typedef const char *config_env(void *context, const char *name);

struct config_source {
	const struct schema *schema;
	config_env *env;
	void *env_context;
	/* For a replay: stdout becomes the only receiver, and `interval`, unless 0, replaces the
	 * interval of all tests. */
	bool stdout_only;
	bool cautious;    /* also reports careless settings: caution.c */
	int64_t interval; /* ms */
	struct strings
		known_changes; /* files of known changes, beside those of the configuration */
	const struct config_text *texts; /* read instead of these files */
	size_t text_count;
};

/*
 * Loads the file or folder. Returns NULL after an error; problems, warnings included, are in
 * *problems, whose arena the caller sets. The caller owns the configuration until config_free.
 */
struct config *config_load(
	const char *path, const struct config_source *source, struct problems *problems);
void config_free(struct config *config);

/* The text of an option's value as it is in the file, before `${X}` was expanded in `value`, as the
 * variables may be secrets: for display. `value` itself is a string of an option, no copy of one;
 * it is returned if nothing was expanded. */
const char *config_written(const struct config *config, const char *value);

/* Finds the configuration: `flag` if given, else $HUNTER_CONFIG, $OTAVA_CONFIG, ./hunter.yaml, ...
 * The error lists all places. */
bool config_find(const char *flag, const struct config_source *source, struct arena *arena,
	const char **path, struct error *error) MUST_USE;

/* Warns if other users can write to the configuration that config_find found, or to its folder. */
void caution_found(const char *path, struct problems *problems);

const struct test *config_test(const struct config *config, const char *name);
const struct group *config_group(const struct config *config, const char *name);
/* The configured metric of that name, or NULL. */
const struct metric *test_metric(const struct test *test, const char *name);

/* The names under which changes are recorded: those of all tests and clusters. Copies. */
struct strings config_topics(const struct config *config, struct arena *arena);

/* The receivers and the interval of a topic; NULL and 0 if it is not configured. */
const struct strings *config_notify(const struct config *config, const char *topic);
int64_t config_interval(const struct config *config, const char *topic);

/* What routes know of a topic; NULL: it is not configured. */
const struct route_topic *config_topic(const struct config *config, const char *topic);

struct routing config_routing(const struct config *config);

/* The groups of a topic; a cluster is its own. */
struct strings config_groups(const struct config *config, const char *topic);

/* Whether routes select the receivers of a topic. */
bool config_routed(const struct config *config, const char *topic);

/* The mute times of a topic; NULL if it is not configured. */
const struct mutes *config_mutes(const struct config *config, const char *topic);

/* The tests that the names (of tests, groups, or shell patterns) select, each once and in the order
 * given; all tests if there are no names. */
bool config_select(const struct config *config, const struct strings *names, struct arena *arena,
	const struct test *const **tests, size_t *count, struct error *error) MUST_USE;

/* The days that a list with commas names: dates, and files with a date a line. */
bool holidays_parse(
	struct arena *arena, const char *texts, struct holidays *out, struct error *error) MUST_USE;

/*
 * `base` with the settings laid over it; a setting that names another detector drops the base's
 * options.
 */
bool detection_overlay(const struct schema *schema, const struct detection *base,
	const struct setting *settings, size_t count, struct arena *arena, struct detection *out,
	struct error *error) MUST_USE;

/* The detection as text, "edivisive(window=30, confirm=8 points)": the options that are not the
 * detector's defaults, and further settings. Detections with the same text, controls aside, are the
 * same. */
const char *detection_text(
	const struct schema *schema, const struct detection *detection, struct arena *arena);

/* The control of a metric of the test, or NULL. A control of the whole test does not apply to the
 * metric that it names. */
const struct control_rule *control_of(
	const struct test *test, const struct detection *detection, const char *metric);
extern const char *const control_keys[]; /* by mode: "explained_by", "relative_to" */

/* The members of a `combine` detection and the number that must agree; 0 for any other detector.
 * `out` has room for COMBINE_MOST (detectors/combine.h). */
size_t combine_members(
	const struct schema *schema, const struct detection *detection, struct detection *out);
size_t combine_need(const struct detection *detection);

#endif
