/*
 * What the parts of the configuration's loader share. Private to conf/.
 *
 * The loader walks the YAML tree once: agent and detection, servers and receivers, templates,
 * tests, groups. Nothing here fails; what is wrong is reported and the walk goes on, so that all of
 * it is told at once.
 */
#ifndef CONF_LOAD_H
#define CONF_LOAD_H

#include "agent/core/dict.h"
#include "conf/config.h"

/* Merging and group building may write out at most this many values; more is a bomb. */
enum { LOADER_BUDGET = 20000000 };

/* A variable that a value needs and the environment lacks, and the value. */
struct unset {
	const char *variable; /* NULL: none */
	const struct yaml_node *where;
};

/* A server or receiver as declared. */
struct declared_section {
	const struct yaml_node *node;
	struct unset unset;
	bool useless;         /* nobody can be told by it */
	struct server server; /* one of the two */
	struct receiver receiver;
	struct declared_section *next; /* in the file's order */
};

struct noted_control;
struct noted_rename;

struct loader {
	struct arena *arena; /* the configuration's */
	const struct config_source *source;
	struct problems *problems;
	struct config *config;
	struct dict servers, receivers; /* struct declared_section */
	struct declared_section *first_server, *first_receiver, **last_server, **last_receiver;
	struct dict templates; /* struct template, within template_list */
	struct template *template_list;
	size_t template_count;
	struct dict *tests; /* struct test */
	struct noted_control *first_control, **last_control;
	struct noted_rename *first_rename, **last_rename;
	struct strings all_receivers; /* a test's `notify` by default */
	struct dict told;             /* problems, told once though many tests share the value */
	struct dict unexpanded;       /* variables whose `$X` was said to be text */
	const struct yaml_node *csv;  /* Otava's csv options for all tests */
	size_t spent;                 /* of LOADER_BUDGET */
	bool exhausted;               /* nothing more is reported: it would follow from that */
	size_t suggestions;           /* made among many names */
};

/* Whose values are read, for messages: `test "x": metric "p99": detection`, `slack` (no name). */
struct error_context {
	const char *kind, *name, *metric;
	const char *part; /* within it: `detection`, or NULL */
};

/* Reports at a node. The same problem at the same node is told once: tests share the nodes of their
 * templates. */
void loader_report(struct loader *loader, bool warning, const struct yaml_node *where,
	const struct error_context *subject, const char *format, ...) PRINTF_LIKE(5, 6);

/* Reports a name that is empty or has control characters: it goes to terminals, to Slack and into
 * labels. */
void loader_check_name(struct loader *loader, const struct yaml_node *where,
	const struct error_context *subject, const char *name);

/* Reports what a plugin's check says of the options read from `map`, at the option it is about. */
void loader_complain(struct loader *loader, const struct yaml_node *map,
	const struct error_context *subject, const struct error *error);

/* Checks the templates of links that `map` gives. */
void loader_check_links(struct loader *loader, const struct yaml_node *map,
	const struct error_context *subject, const struct url_templates *links);

/* Checks the `environment` that `map` gives. */
void loader_check_environment(struct loader *loader, const struct yaml_node *map,
	const struct error_context *subject, const char *name);

/* Notes the first reason for the agent not to start, in config->missing. */
void loader_note_blocker(struct loader *loader, const struct yaml_node *where,
	const struct error_context *subject, const char *text);

/* Notes the first file of a secret that cannot be read or holds none, in config->unreadable. */
void loader_unreadable(struct loader *loader, const struct yaml_node *where,
	const struct error_context *subject, const char *text);

/* Notes the first variable that is not set where it matters, in config->missing. */
void loader_missing(
	struct loader *loader, const struct error_context *subject, const struct unset *unset);

/* Counts against the budget; false, after a report, if it is spent. */
bool loader_spend(struct loader *loader, size_t values, const struct yaml_node *where);

/*
 * The scalar's text with references (reference.h; with `dollar` also `$X`) replaced; `$${` stands
 * for `${`. *missing is set to the first variable that is not set and has no default. Reports what
 * is no reference.
 */
const char *loader_expand(
	struct loader *loader, const struct yaml_node *where, bool dollar, const char **missing);

/* The environment variable, or NULL. */
const char *loader_variable(const struct loader *loader, const char *name);

/* Sets the fields that have a variable which is set (field_variables); what cannot be read is a
 * warning at `where`: the variable may be meant for another program. */
void loader_set_variables(struct loader *loader, const struct field *fields, void *options,
	const struct yaml_node *where, const struct error_context *subject);

/* The path with a `~/` at its beginning replaced by $HOME. */
const char *loader_path(struct loader *loader, const char *text, const char **missing);

/* How a map's keys are read. */
struct option_table {
	const struct field *fields; /* NULL: no table */
	void *options;              /* set to the defaults by the caller */
};

enum { READING_TABLES = 4 };

struct reading {
	struct error_context subject;
	struct option_table tables[READING_TABLES];
	const char *const *other_keys;    /* read elsewhere, NULL-terminated; or NULL */
	const char *const *harmless_keys; /* ignored: a warning in `own`, else without a word */
	const struct yaml_node *own;      /* the map without what it inherits, or NULL */
	const char *type;                 /* with `own`: the test's */
	bool lenient;                     /* unknown keys are warnings */
	bool dollar;                      /* `$X` is expanded */
};

/*
 * Reads the values of `map` (or NULL) into the tables' options. Reports unknown keys, bad values
 * and required keys that are absent (at `where`). Values with variables that are not set are left
 * at their defaults; the first is returned.
 */
struct unset options_read(struct loader *loader, const struct yaml_node *map,
	const struct yaml_node *where, const struct reading *reading);

/* " (did you mean "x"?)" among `count` names, or "". A bounded number of times where there are many
 * names. */
const char *loader_hint(
	struct loader *loader, const char *word, const char *const *names, size_t count);

/* services.c: the sections agent, prometheus and its like, sources, slack and its like. True if the
 * section is known. */
bool services_section(struct loader *loader, const struct yaml_entry *section);
void services_sources(struct loader *loader, const struct yaml_node *map);
void services_finish(struct loader *loader);

/* caution.c: warns of careless options of a section by one of its tables; `endpoint` is the
 * section's, or NULL. services_caution does so for all sections. */
struct endpoint;
void caution_options(struct loader *loader, const struct yaml_node *map,
	const struct error_context *subject, const struct field *fields, const void *options,
	const struct endpoint *endpoint);
void services_caution(struct loader *loader);

/* detection.c: lays a `detection:` value (a map, or the layers that templates gave) over `base`.
 * The first variable that is not set is noted in *unset, if there is none yet. */
struct detection detection_read(struct loader *loader, const struct yaml_node *node,
	const struct error_context *subject, const struct detection *base, struct unset *unset);
struct detection detection_default(const struct schema *schema, struct arena *arena);

/* One map laid over `base`, and what its detector's check says, told at the last of the maps.
 * detection_belief_keys, NULL-terminated, are those that no detector has. */
extern const char *const detection_belief_keys[];
struct detection detection_layer(struct loader *loader, const struct yaml_node *map,
	const struct error_context *subject, const struct detection *base, struct unset *unset);
void detection_check(struct loader *loader, const struct yaml_node *last,
	const struct error_context *subject, const struct detection *detection,
	const struct unset *unset);
const struct plugin *detection_plugin(const struct schema *schema, const char *name);

/* controls.c: notes what a test or a metric says of controls, `base` being its test's or NULL, and
 * returns its rule; those that were noted are looked up when all tests are there. */
struct control_options {
	const char *explained_by, *relative_to;
};

const struct control_rule *control_note(struct loader *loader, const struct yaml_node *map,
	const struct error_context *subject, const struct control_options *options,
	const struct control_rule *base);
void controls_read(struct loader *loader);

/* Notes that the subject, a test or a metric, had the name `was` (or NULL); renames_read looks at
 * all of them when the tests are known. */
void rename_note(struct loader *loader, const struct yaml_node *map,
	const struct error_context *subject, const char *was);
void renames_read(struct loader *loader);

/* combine.c: the detector of this name and the key that stands for it. Both forms set the options
 * of that detector; errors of the text begin with "combine: ". */
#define DETECTION_COMBINE "combine"
void combine_read(struct loader *loader, const struct yaml_node *value,
	const struct error_context *subject, const struct plugin *detector, void *options,
	struct unset *unset);
bool combine_parse(const struct schema *schema, const struct plugin *detector, const char *text,
	struct arena *arena, void *options, struct error *error) MUST_USE;

/* A list of `detection:` maps that templates and test contributed, in the order of laying them. */
bool detection_is_layers(const struct yaml_node *node);
const struct yaml_node *detection_layers(
	struct arena *arena, const struct yaml_node *below, const struct yaml_node *above);

/* templates.c: reads the section; then what a test is with all it inherits, or NULL after a report.
 */
void templates_read(struct loader *loader, const struct yaml_node *map);
const struct yaml_node *templates_resolve(
	struct loader *loader, const char *name, const struct yaml_node *test);

/*
 * fingerprint.c: adds options, or a text (or NULL), to a fingerprint and, without secrets, to the
 * configuration's hash; then all of a test that is resolved, or of a receiver.
 */
void fingerprint_fields(struct loader *loader, uint64_t *fingerprint, const struct field *fields,
	const void *options);
void fingerprint_text(struct loader *loader, uint64_t *fingerprint, const char *text);
void fingerprint_test(struct loader *loader, struct test *test);
void fingerprint_list(struct loader *loader, uint64_t *fingerprint, const struct strings *list);
void fingerprint_receiver(struct loader *loader, struct receiver *receiver);

/* test_source.c: the source of this name (NULL: this binary has none); a test's type, given or that
 * of its server (NULL after a report); its server, named or the only one, or why there is none. */
const struct plugin *test_source_find(const struct loader *loader, const char *name);
const char *test_type_read(
	struct loader *loader, const struct yaml_node *map, const struct error_context *subject);
void test_server_find(struct loader *loader, const struct yaml_node *map,
	const struct error_context *subject, const char *name, struct test *test);

/* tests.c, metrics.c, groups.c, cluster.c */
void tests_read(struct loader *loader, const struct yaml_node *map);
struct unset metrics_read(
	struct loader *loader, const struct yaml_node *map, const char *type, struct test *test);
void groups_read(struct loader *loader, const struct yaml_node *map);

/* Who is told, given in `map` as `notify:`: names of receivers, all of them if there are none. */
struct strings notify_read(struct loader *loader, const struct yaml_node *map,
	const struct error_context *subject, const struct strings *given);

/* A group that is a map: its settings, and the list of its tests or NULL after a report. */
struct cluster_settings *cluster_read(struct loader *loader, const struct yaml_node *map,
	const struct error_context *subject, const struct yaml_node **tests);

/* What Hunter and Otava know: kinds of tests and sections, for those this binary has no plugin for.
 * kinds.c */
struct compat_type {
	const char *name;
	const char *const *keys;     /* NULL-terminated */
	const char *const *required; /* NULL-terminated */
	const char *never;           /* why it will never be run, or NULL: not by this version */
};

/* Reports where the kind's keys have a map or a list for a value, or a value for a list. */
void kind_check(struct loader *loader, const struct compat_type *kind, const struct yaml_node *map,
	const struct error_context *subject);

const struct compat_type *kind_find(const char *name);    /* of tests, or NULL */
const struct compat_type *kind_section(const char *name); /* of sections, or NULL */
extern const char *const kind_all_keys[];                 /* of tests, all kinds together */

#endif
