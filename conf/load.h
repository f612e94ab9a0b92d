/*
 * Shared by the parts of the loader. Private to conf/.
 *
 * The loader walks the YAML tree once: agent and detection, servers and receivers, templates,
 * tests, groups. It reports a problem and continues, so that one run reports all problems.
 */
#ifndef CONF_LOAD_H
#define CONF_LOAD_H

#include "agent/base/dict.h"
#include "conf/config.h"

/*
 * Limit on the values that merging and group building write out: a file that exceeds it is a bomb.
 */
enum { LOADER_BUDGET = 20000000 };

struct loader;

/* A value and a variable that it needs and that is not set. */
struct unset {
	const char *variable; /* NULL: none */
	const struct yaml_node *where;
};

/*
 * The context of messages: a test, metric or section, as in `test "x": metric "p99": detection`, or
 * `slack` (no name).
 */
struct scope {
	struct loader *loader;
	const char *kind, *name, *metric;
	const char *part; /* part of it: `detection`, or NULL */
	/* Notes the first variable that its values need and that is not set; NULL: each is an
	 * error.
	 */
	struct unset *unset;
};

/* A configured server or receiver. */
struct declared_section {
	struct scope scope;
	const struct yaml_node *node;
	struct unset unset;
	bool useless;         /* a receiver that cannot be used */
	bool on_demand;       /* used by commands only */
	struct server server; /* one of the two is used */
	struct receiver receiver;
	struct declared_section *next; /* in the file's order */
};

struct noted_control;
struct noted_rename;
struct known_change;

struct loader {
	struct scope root;   /* for problems of no section */
	struct arena *arena; /* of the configuration */
	const struct config_source *source;
	struct problems *problems;
	struct config *config;
	struct dict servers, receivers; /* -> struct declared_section */
	struct declared_section *first_server, *first_receiver, **last_server, **last_receiver;
	struct dict templates; /* -> struct template, in template_list */
	struct template *template_list;
	size_t template_count;
	struct dict mute_times; /* -> struct mute_time, in mute_list */
	struct mute_time *mute_list;
	size_t mute_count;
	struct dict *tests; /* -> struct test */
	struct noted_control *first_control, **last_control;
	struct noted_rename *first_rename, **last_rename;
	struct strings all_receivers;   /* default of a test's `notify` */
	const struct yaml_node *routes; /* the section, or NULL */
	struct dict *written;           /* config->written, while it grows; or NULL */
	struct dict reported;           /* problems reported so far: many tests can share a value */
	bool in_command;                /* a `$X` belongs to the command, not to us */
	struct dict unexpanded;         /* variables whose `$X` has been reported as not expanded */
	struct known_change *known_changes; /* config->known_changes, while it grows */
	const struct yaml_node *csv;        /* Otava's csv options for all tests */
	size_t spent;                       /* of LOADER_BUDGET */
	bool exhausted; /* the budget is spent: further problems would be consequences and are not
			   reported */
	size_t suggestions; /* made so far among many names */
};

/* Reports a problem at a node. The same problem at the same node is reported once, since tests
 * share the nodes of their templates. */
void loader_error(const struct yaml_node *where, const struct scope *scope, const char *format, ...)
	PRINTF_LIKE(3, 4);
void loader_warn(const struct yaml_node *where, const struct scope *scope, const char *format, ...)
	PRINTF_LIKE(3, 4);

/* Whether a list or a map has no value (`tags:`, ~ or null), which is ignored with a warning;
 * `name` is its key, or NULL if that is the subject. */
bool loader_is_null(const struct yaml_node *node, const struct scope *scope, const char *name);

/* Whether the node is of that kind; reports "expected ..." if not. */
bool loader_is_kind(const struct yaml_node *node, enum yaml_kind kind, const struct scope *scope,
	const char *expected);

/* Reports a name that is empty or has control characters: names go to terminals, Slack and labels.
 */
void loader_check_name(const struct yaml_node *where, const struct scope *scope, const char *name);

/* Reports the error of a plugin's check of the options of `map`, at the option that it names. */
void loader_complain(
	const struct yaml_node *map, const struct scope *scope, const struct error *error);

/* Checks the link templates of `map`. */
void loader_check_links(
	const struct yaml_node *map, const struct scope *scope, const struct url_templates *links);

/* Checks the `environment` of `map`. */
void loader_check_environment(
	const struct yaml_node *map, const struct scope *scope, const char *name);

/* Notes the first reason why the agent must not start, in config->missing. */
void loader_note_blocker(
	const struct yaml_node *where, const struct scope *scope, const char *text);

/* Notes the first secret's file that is unreadable or empty, in config->unreadable. */
void loader_unreadable(const struct yaml_node *where, const struct scope *scope, const char *text);

/* Notes the unset variable as the scope asks. */
void loader_unset(const struct yaml_node *where, const struct scope *scope, const char *variable);

/* Notes the first unset variable that prevents the start, in config->missing. */
void loader_missing(const struct scope *scope, const struct unset *unset);

/* Charges the budget; false, after a report, if it is spent. */
bool loader_spend(struct loader *loader, size_t values, const struct yaml_node *where);

/* Notes that the value comes from that text of the file, if it is another one: config_written. */
void loader_written(struct loader *loader, const char *value, const struct yaml_node *where);

/*
 * The scalar's text with its references expanded (reference.h; with `dollar` also `$X`); `$${`
 * becomes `${`. *missing is set to the first variable that is unset and has no default. Malformed
 * references are reported.
 */
const char *loader_expand(
	struct loader *loader, const struct yaml_node *where, bool dollar, const char **missing);

/* The name that a key spells. */
const char *loader_name(struct loader *loader, const struct yaml_node *key);

/* The environment variable, or NULL. */
const char *loader_variable(const struct loader *loader, const char *name);

/* Sets the fields from the environment variables that are set (field_variables). An invalid value
 * is a warning at `where`: the variable may be meant for another program. */
void loader_set_variables(const struct field *fields, void *options, const struct yaml_node *where,
	const struct scope *scope);

/* The path with a leading `~/` replaced by $HOME. */
const char *loader_path(struct loader *loader, const char *text, const char **missing);

/* The path; a relative one from the folder of the file in which the value stands. */
const char *loader_beside(struct loader *loader, const struct yaml_node *value, const char *text);

/* How the keys of a map are read. */
struct option_table {
	const struct field *fields; /* NULL: no table */
	void *options;              /* initialised to the defaults by the caller */
};

enum { READING_TABLES = 4 };

struct reading {
	struct scope scope;
	struct option_table tables[READING_TABLES];
	const char *const *other_keys;    /* keys read elsewhere, NULL-terminated; or NULL */
	const char *const *harmless_keys; /* ignored keys: a warning if in `own`, else silent */
	const struct yaml_node *own;      /* the map without inherited entries, or NULL */
	const char *type;                 /* with `own`: type of the test */
	bool lenient;                     /* unknown keys are warnings */
	bool dollar;                      /* `$X` is expanded */
};

/*
 * Reads the values of `map` (or NULL) into the tables' options. Reports unknown keys, invalid
 * values and missing required keys (at `where`). Values with unset variables stay at their
 * defaults; see loader_unset.
 */
void options_read(
	const struct yaml_node *map, const struct yaml_node *where, const struct reading *reading);

/* The same where a variable that is not set is an error; false if one is not. */
bool options_read_all(const struct yaml_node *map, const struct reading *reading);

/* ` (did you mean "x"?)` among `count` names, or "". Limited to a number of calls where there are
 * many names. loader_hint_in: among the names of structs of `size` bytes, each its first member. */
const char *loader_hint(
	struct loader *loader, const char *word, const char *const *names, size_t count);
const char *loader_hint_in(
	struct loader *loader, const char *word, const void *items, size_t count, size_t size);

/* Whether the name is one of these, which end with NULL. */
bool is_listed(const char *const *names, const char *name);

/* The text of a STRING or SECRET; and the secret for whose file the field is (`token` of
 * `token_file`), or NULL. */
const char *field_text(const struct field *field, const void *options);
const struct field *field_secret(const struct field *fields, const struct field *file);
bool field_is_file(const struct field *field); /* NAME_file */

/* services.c: reads agent, server (`prometheus`, `sources`) and receiver (`slack`, `receivers`)
 * sections. True if the section is known. */
bool services_section(struct loader *loader, const struct yaml_entry *section);
void services_sources(struct loader *loader, const struct yaml_node *map);
void services_receivers(struct loader *loader, const struct yaml_node *map);
void services_finish(struct loader *loader);

/* Checks the address, headers and secrets of options that begin with a struct endpoint, read from
 * `map`. */
void services_check_endpoint(const struct yaml_node *map, const struct scope *scope,
	const struct plugin *plugin, void *options);

/* Warns if a secret's file cannot be read or has none. */
void services_check_secret(const struct yaml_node *where, const struct scope *scope,
	const char *option, const char *path);

/* bisect.c: the `bisect` of a test, or NULL. */
const struct bisect_settings *bisect_read(
	const struct yaml_node *map, const struct scope *scope, const struct test *test);

/* receivers.c: the options of all receivers, and their effect on this one; `digest` is the key of
 * `map` that is read there. */
struct receiver_options {
	int heartbeat;
	struct strings events;
	int64_t remind_after;
};

void receiver_settle(const struct yaml_node *map, const struct scope *scope,
	const struct receiver_options *options, struct receiver *receiver);

/* The item of a list with that value, for messages; or the list. */
const struct yaml_node *loader_item(
	const struct loader *loader, const struct yaml_node *list, const char *value);

/* The events in `events` of `map`, which must be among `able`, as bits. */
unsigned events_read(const struct yaml_node *map, const struct scope *scope,
	const struct strings *given, unsigned able);

/* routes.c: reads the section, once the receivers are known; all_receivers are then those that
 * routes name. Frees the compiled form. */
void routes_read(struct loader *loader);
void routes_free(const struct config *config);

/* Makes the topics of the tests, groups and receivers. */
void topics_make(struct config *config);

/* Reports that no receiver has the name. */
void receiver_report_unknown(const struct yaml_node *where, const struct scope *scope,
	const char *key, const char *name);

/* caution.c: warns of careless options of a section, given its options and tables; `endpoint` is
 * the section's, or NULL. services_caution does so for all sections. */
struct endpoint;
void caution_options(const struct yaml_node *map, const struct scope *scope,
	const struct field *fields, const void *options, const struct endpoint *endpoint);
void services_caution(struct loader *loader);

/* detection.c: lays a `detection:` value (a map, or the layers of templates) over `base`. */
struct detection detection_read(
	const struct yaml_node *node, const struct scope *scope, const struct detection *base);
struct detection detection_default(const struct schema *schema, struct arena *arena);

/* The keys that belong to no detector, NULL-terminated; and their values as texts, NULL for the
 * default. */
enum { DETECTION_BELIEFS = 6 };
extern const char *const detection_belief_keys[DETECTION_BELIEFS + 1];
void detection_beliefs(const struct detection *detection, struct arena *arena,
	const char *texts[DETECTION_BELIEFS]);

/* Lays one map over `base`; an error of the detector's check is reported at the last map. */
struct detection detection_layer(
	const struct yaml_node *map, const struct scope *scope, const struct detection *base);
void detection_check(
	const struct yaml_node *last, const struct scope *scope, const struct detection *detection);

/* controls.c: notes the control of a test or metric and returns its rule; `base` is the test's for
 * a metric, or NULL. Noted rules are resolved when all tests are known. */
const struct control_rule *control_note(const struct yaml_node *map, const struct scope *scope,
	const struct control_options *options, const struct control_rule *base);
void controls_read(struct loader *loader);

/* The options that lead to the rule, which may be NULL. */
struct control_options control_options_of(const struct control_rule *rule);

/* Notes that the test or metric had the name `was` (or NULL); renames_read checks them all when the
 * tests are known. */
void rename_note(const struct yaml_node *map, const struct scope *scope, const char *was);
void renames_read(struct loader *loader);

/* known_changes.c: the entries of a list; those of the files that patterns name; those of a file.
 */
void known_changes_read(struct loader *loader, const struct yaml_node *list);
void known_changes_read_files(struct loader *loader, const struct yaml_node *patterns);
void known_changes_read_file(struct loader *loader, const char *path);

/* combine.c: the detector of this name and the key that selects it. Both forms set the options of
 * that detector; errors of the text form begin with "combine: ". */
#define DETECTION_COMBINE "combine"
void combine_read(const struct yaml_node *value, const struct scope *scope,
	const struct plugin *detector, void *options);
bool combine_parse(const struct schema *schema, const struct plugin *detector, const char *text,
	struct arena *arena, void *options, struct error *error) MUST_USE;

/* A list of the `detection:` maps of templates and test, in the order in which they apply. */
bool detection_is_layers(const struct yaml_node *node);
const struct yaml_node *detection_layers(
	struct arena *arena, const struct yaml_node *below, const struct yaml_node *above);

/* templates.c: reads the section; a test with all that it inherits, or NULL after a report. */
void templates_read(struct loader *loader, const struct yaml_node *map);
const struct yaml_node *templates_resolve(
	struct loader *loader, const char *name, const struct yaml_node *test);

/*
 * fingerprint.c: adds options, or a text (or NULL), to a fingerprint (or NULL) and, without
 * secrets, to the configuration's hash; the fingerprint of a resolved test, or of a receiver.
 */
void fingerprint_fields(struct loader *loader, uint64_t *fingerprint, const struct field *fields,
	const void *options);
void fingerprint_text(struct loader *loader, uint64_t *fingerprint, const char *text);
void fingerprint_test(struct loader *loader, struct test *test);
void fingerprint_list(struct loader *loader, uint64_t *fingerprint, const struct strings *list);
void fingerprint_receiver(struct loader *loader, struct receiver *receiver);

/* tests.c, metrics.c, groups.c */
void tests_read(struct loader *loader, const struct yaml_node *map);
void metrics_read(const struct yaml_node *map, const struct scope *scope, const char *type,
	struct test *test);
void groups_read(struct loader *loader, const struct yaml_node *map);

/* tests.c, metrics.c: the options of a loaded test, or of one of its metrics, for test_fields and
 * metric_fields: as they are in effect, and as they would be by default. In the arena. */
struct own_options {
	const void *given, *usual;
};
struct own_options test_options_of(
	const struct config *config, const struct test *test, struct arena *arena);
struct own_options metric_options_of(
	const struct config *config, const struct test *test, size_t at, struct arena *arena);
/* renames.c: the former name of a test, or of its metric, or NULL. */
const char *former_name(const struct config *config, const char *test, const char *metric);

/* The receivers in `notify` of `map`, by default all receivers, or those of routes: *routed. */
struct strings notify_read(const struct yaml_node *map, const struct scope *scope,
	const struct strings *given, bool *routed);

/*
 * mute_times.c: reads the section; the mute times in `mute` of `map`, whose names are `given`;
 * those of a test with those of a group of it. When all have been read, mute_times_check warns of
 * unused ones.
 */
bool mute_clock(const char *text, int64_t *out);      /* "22:00" in minutes; at most "24:00" */
bool mute_weekdays(const char *text, unsigned *days); /* "mon", "friday:monday": adds bits */
void mute_times_read(struct loader *loader, const struct yaml_node *map);
struct mutes mutes_read(
	const struct yaml_node *map, const struct scope *scope, const struct strings *given);
struct mutes mutes_add(struct loader *loader, const struct mutes *mutes, const struct mutes *more,
	const struct yaml_node *where);
void mute_times_check(struct loader *loader);

/* kinds.c: types of tests and sections that Hunter and Otava have and this binary may have no
 * plugin for. */
struct compat_type {
	const char *name;
	const char *const *keys;     /* NULL-terminated */
	const char *const *required; /* NULL-terminated */
	const char *never; /* why it is out of scope for good, or NULL: not in this version */
};

/* Reports a map or list where the type has a single value, and the reverse. */
void kind_check(
	const struct compat_type *kind, const struct yaml_node *map, const struct scope *scope);

const struct compat_type *kind_find(const char *name);    /* of a test, or NULL */
const struct compat_type *kind_section(const char *name); /* of a section, or NULL */
enum { COMPAT_SECTIONS = 8 };
extern const struct compat_type kind_sections[COMPAT_SECTIONS + 1]; /* ends without a name */
extern const char *const kind_all_keys[];                           /* of tests of all types */

#endif
