/*
 * conf/: every key of every file, in every place that knows it, with every kind of YAML value.
 * Whatever is given is taken or refused with a report that does not repeat itself, and what is
 * taken can be used. The keys are those that tests/names.c prints; the plugins are the program's
 * own.
 */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/base/buf.h"
#include "agent/base/dict.h"
#include "agent/cli/cli.h"
#include "agent/runtime/agent.h"
#include "conf/in_effect.h"
#include "conf/web_config.h"
#include "tests/unit/repeats.h"

enum { BASE = 4 };

static const char *const kinds[] = {"", "~", "null", "''", "' '", "x", "X-Y", "0", "-1", "1e999",
	"99999999999999999999", "true", "1d", "[]", "{}", "[x]", "[~]", "['']", "[[]]", "[[x]]",
	"[{}]", "[{x: y}]", "[{x: ~}]", "[x, x, ~]", "{x: }", "{x: y}", "{x: []}", "{x: [y]}",
	"{x: {}}", "{x: {y: z}}", "{'': ''}", "{x: ~, y: [~], z: {z: ~}}", "\"\\x01\\n\"", "'*'",
	"&a [*a]", "!!binary aGVsbG8=", "'${UNSET}'", "'${'", "'%{'", "'{'", "'http://'", "'['",
	"'99:99'", "['x=y', ',', '!=']"};

/* Keys that are in no table. */
static const char *const other_keys[] = {"agent", "all", "any", "basic_auth_users", "bisect",
	"credentials", "dataset", "delimiter", "detection", "detector", "digest", "inherit", "key",
	"known_changes", "known_changes_files", "metrics", "mute_times", "project_id",
	"query_language", "quote_char", "quotechar", "roles", "routes", "sources", "suffixes",
	"templates", "test_groups", "tests", "times", "tls_server_config", "tokens"};

/* Keys that are none. */
static const char *const no_names[] = {"''", "~", "? [x]", "? {x: y}", "<<"};

/* A map of a file: `base` are the entries without which nothing of it would be read. */
struct place {
	const char *before, *after;
	const char *base[BASE];
	bool web;
};

/* The map's plugin is @. */
static const struct place of_sources[] = {
	{"tests: {t: {", "}}", {"type: @", "file: x", "query: x", "target: x"}, false},
	{"tests: {t: {inherit: i}}\ntemplates: {i: {", "}}", {"type: @", "file: x"}, false},
	{"sources: {s: {", "}}", {"type: @", "url: 'http://x'"}, false},
	{"@: {", "}", {"url: 'http://x'"}, false},
};
static const struct place of_notifiers[] = {
	{"@: {", "}", {"url: 'http://x'"}, false},
	{"receivers: {r: {@: {", "}}}", {"url: 'http://x'"}, false},
	{"@: {url: 'http://x', digest: {", "}}", {"days: monday", "at: '09:00'"}, false},
};
static const struct place of_detectors[] = {
	{"detection: {", "}", {"detector: @"}, false},
	{"tests: {t: {type: csv, file: x, detection: {", "}}}", {"detector: @"}, false},
	{"tests: {t: {type: csv, file: x, metrics: {m: {detection: {", "}}}}}", {"detector: @"},
		false},
	{"detection: {combine: {any: [{", "}, stepfit]}}", {"detector: @"}, false},
};
static const struct place others[] = {
	{"", "", {0}, false},
	{"agent: {", "}", {"state: s.db"}, false},
	{"csv: {", "}", {0}, false},
	{"fallout: {", "}", {0}, false},
	{"bigquery: {", "}", {0}, false},
	{"influxdb: {", "}", {0}, false},
	{"tests: {t: {", "}}", {"type: bigquery", "query: x"}, false},
	{"tests: {t: {", "}}", {"type: influxdb", "query: x"}, false},
	{"tests: {t: {type: csv, file: x, metrics: {m: {", "}, n: {}}}}", {0}, false},
	{"tests: {t: {type: csv, file: x, metrics: [{", "}]}}", {"name: m"}, false},
	{"tests: {t: {type: prometheus, query: x, metrics: {m: {", "}}}}", {0}, false},
	{"tests: {t: {type: graphite, prefix: x, metrics: {m: {", "}}}}", {0}, false},
	{"tests: {t: {type: csv, file: x, csv_options: {", "}}}", {0}, false},
	{"agent: {repository: .}\ntests: {t: {type: csv, file: x, bisect: {", "}}}", {"run: x"},
		false},
	{"detection: {combine: {", "}}", {"all: [edivisive, stepfit]"}, false},
	{"prometheus: {url: 'http://x', headers: {", "}}", {0}, false},
	{"tests: {t: {type: csv, file: x}}\nknown_changes: [{", "}]",
		{"test: t", "time: 2026-01-01", "reason: x"}, false},
	{"routes: {", "}", {"receivers: [stdout]"}, false},
	{"routes: {receivers: [stdout], routes: [{", "}]}", {0}, false},
	{"mute_times: {m: [{", "}]}", {0}, false},
	{"mute_times: {m: [{times: [{", "}]}]}", {"start_time: '01:00'", "end_time: '02:00'"},
		false},
	{"tests: {t: {type: csv, file: x}}\ntest_groups: {g: {", "}}",
		{"type: cluster", "tests: [t]"}, false},
	{"tests: {t: {type: csv, file: x}}\ntest_groups: {g: {", "}}", {"tests: [t]"}, false},
	{"", "", {0}, true},
	{"tls_server_config: {", "}", {"cert_file: a", "key_file: b"}, true},
	{"tokens: [{", "}]", {"name: a", "file: b"}, true},
	{"basic_auth_users: {", "}", {0}, true},
	{"trusted_proxies: ['::1']\nroles: {", "}", {0}, true},
};

enum { ANY = 3 }; /* words that are tried where any name will do */

struct sweep {
	char path[64]; /* of a file whose content is given otherwise */
	struct strings words;
	size_t names;      /* of the words; the others are none */
	size_t known;      /* names in places that know them */
	struct dict wrong; /* keys that the last file reported as unknown */
	struct arena *arena;
};

static const char *no_variable(void *context, const char *name)
{
	(void)context, (void)name;
	return NULL;
}

static void use_config(const struct config *config, struct arena *arena)
{
	const struct options_in_effect *sections;
	const struct test *const *tests;
	struct error error;
	size_t count;

	assert_true(config_select(config, &(struct strings){0}, arena, &tests, &count, &error));
	for (size_t i = 0; i < config->test_count; i++)
		test_in_effect(config, &cli_schema, &config->tests[i], arena, &sections);
	for (size_t i = 0; i < config->receiver_count; i++)
		assert_non_null(config->receivers[i].name);
}

static void use_web_config(const struct web_config *config)
{
	assert_true(*config->user_header && (!config->role_header || *config->role_header));
	assert_true(!config->cert_file == !config->key_file);
	for (size_t i = 0; i < config->user_count; i++)
		assert_true(*config->users[i].name && *config->users[i].hash);
	for (size_t i = 0; i < config->token_count; i++)
		assert_true(*config->tokens[i].name && *config->tokens[i].file);
	for (size_t i = 0; i < config->role_count; i++)
		web_config_role(config, config->roles[i].name);
}

/* Notes the key that the problem is about if it is an unknown one. */
static void note_unknown(struct sweep *sweep, const char *problem)
{
	static const char unknown[] = "unknown key \"";
	const char *key = strstr(problem, unknown);

	if (!key)
		return;
	key += sizeof unknown - 1;
	key = arena_strndup(sweep->arena, key, strcspn(key, "\""));
	*dict_place(&sweep->wrong, key) = key;
}

/* Loads and uses the text, and notes the keys that are unknown. */
static void load(struct sweep *sweep, bool web, const struct buf *text)
{
	struct arena *arena = arena_new();
	struct problems problems = {.arena = arena};
	struct config_text content = {sweep->path, text->data, text->length};
	struct config_source source = {.schema = &cli_schema,
		.env = no_variable,
		.cautious = true,
		.texts = &content,
		.text_count = 1};
	struct web_config *users = NULL;
	struct config *config = NULL;

	sweep->wrong = (struct dict){.arena = sweep->arena};
	if (web)
		users = web_config_parse(sweep->path, text->data, text->length, &problems);
	else
		config = config_load(sweep->path, &source, &problems);
	if ((users || config) == (problems.errors > 0))
		fail_msg("neither read nor refused: %s", text->data);
	if (users)
		use_web_config(users);
	if (config)
		use_config(config, arena);
	for (size_t i = 0; i < problems.count; i++) {
		if (repeats(problems.items[i].text))
			fail_msg("repeats itself: %s", problems.items[i].text);
		note_unknown(sweep, problems.items[i].text);
	}
	web_config_free(users);
	config_free(config);
	arena_free(arena);
}

/* Puts the plugin's name where there is an @. */
static void put(struct buf *out, const char *text, const char *plugin)
{
	for (; *text; text++)
		if (*text == '@')
			buf_text(out, plugin);
		else
			buf_char(out, *text);
}

/* Ends the map with the entries of `base`, without one of that key. */
static void write_base(
	struct buf *out, const struct place *place, const char *plugin, const char *key)
{
	size_t length = strlen(key);

	for (size_t i = 0; i < BASE && place->base[i]; i++)
		if (strncmp(place->base[i], key, length) != 0 || place->base[i][length] != ':') {
			buf_text(out, ", ");
			put(out, place->base[i], plugin);
		}
	buf_text(out, place->before[0] ? place->after : "}");
	buf_char(out, '\n');
}

static void try_value(struct sweep *sweep, const struct place *place, const char *plugin,
	const char *key, const char *value)
{
	struct buf text = {0};

	put(&text, place->before, plugin);
	buf_printf(&text, "%s%s: %s", place->before[0] ? "" : "{", key, value);
	write_base(&text, place, plugin, key);
	load(sweep, place->web, &text);
	buf_free(&text);
}

static bool in_base(const struct place *place, const char *key)
{
	bool found = false;

	for (size_t i = 0; i < BASE && place->base[i]; i++)
		found = found || strncmp(place->base[i], key, strlen(key)) == 0;
	return found;
}

/* Loads a file with all names, so that sweep->wrong has most of those that the place does not
 * know. */
static void try_names(struct sweep *sweep, const struct place *place, const char *plugin)
{
	struct buf text = {0};
	const char *comma = place->before[0] ? "" : "{";

	put(&text, place->before, plugin);
	for (size_t i = 0; i < sweep->names; i++)
		if (!in_base(place, sweep->words.items[i])) {
			buf_printf(&text, "%s%s: x", comma, sweep->words.items[i]);
			comma = ", ";
		}
	write_base(&text, place, plugin, "?");
	load(sweep, place->web, &text);
	buf_free(&text);
}

static void sweep_place(struct sweep *sweep, const struct place *place, const char *plugin)
{
	struct dict unknown;
	size_t left = SIZE_MAX;

	try_value(sweep, place, plugin, "no_such_key", "x");
	if (!dict_get(&sweep->wrong, "no_such_key"))
		left = ANY;
	try_names(sweep, place, plugin);
	unknown = sweep->wrong;
	for (size_t i = 0; i < sweep->words.count; i++) {
		const char *word = sweep->words.items[i];
		bool known = !dict_get(&unknown, word) && (i >= sweep->names || left > 0);

		for (size_t k = 0; k < sizeof kinds / sizeof *kinds && known; k++) {
			try_value(sweep, place, plugin, word, kinds[k]);
			known = !dict_get(&sweep->wrong, word);
		}
		sweep->known += known && i < sweep->names;
		left -= known && i < sweep->names;
	}
}

/* In each place some plugin has keys. */
static void sweep_plugins(struct sweep *sweep, const struct plugin *const *plugins,
	const struct place *places, size_t count)
{
	for (size_t k = 0; k < count; k++) {
		size_t before = sweep->known;

		for (size_t i = 0; plugins[i]; i++)
			sweep_place(sweep, &places[k], plugins[i]->name);
		assert_true(sweep->known > before);
	}
}

/* The last word before a colon, or behind the one of "word of the configuration". */
static const char *name_of(struct arena *arena, char *line)
{
	static const char section[] = "word of the configuration: ";
	char *colon = strchr(line, ':'), *space;

	line[strcspn(line, "\n")] = '\0';
	if (strncmp(line, section, sizeof section - 1) == 0)
		return arena_strdup(arena, line + sizeof section - 1);
	if (!colon ||
		(strncmp(line, "key of ", 7) != 0 && strncmp(line, "option of detector ", 19) != 0))
		return NULL;
	*colon = '\0';
	space = strrchr(line, ' ');
	return arena_strdup(arena, space + 1);
}

static struct strings read_words(struct arena *arena)
{
	FILE *file = popen(HUNTER_NAMES, "r");
	struct dict seen = {.arena = arena};
	const char **words = NULL;
	char line[1024];
	size_t count = 0;

	assert_non_null(file);
	while (fgets(line, sizeof line, file)) {
		const char *word = name_of(arena, line);

		if (!word || dict_get(&seen, word))
			continue;
		*dict_place(&seen, word) = word;
		words = arena_grow(arena, words, count, sizeof *words);
		words[count++] = word;
	}
	assert_int_equal(pclose(file), 0);
	for (size_t i = 0; i < sizeof other_keys / sizeof *other_keys; i++) {
		words = arena_grow(arena, words, count, sizeof *words);
		words[count++] = other_keys[i];
	}
	for (size_t i = 0; i < sizeof no_names / sizeof *no_names; i++) {
		words = arena_grow(arena, words, count, sizeof *words);
		words[count++] = no_names[i];
	}
	return (struct strings){words, count};
}

static void test_every_key_with_every_kind_of_value(void **state)
{
	struct arena *arena = arena_new();
	struct sweep sweep = {.path = "/tmp/hunter-config-kinds-XXXXXX", .arena = arena};
	int descriptor = mkstemp(sweep.path);

	(void)state;
	assert_true(descriptor >= 0 && close(descriptor) == 0);
	sweep.words = read_words(arena);
	sweep.names = sweep.words.count - sizeof no_names / sizeof *no_names;
	sweep_plugins(
		&sweep, cli_schema.sources, of_sources, sizeof of_sources / sizeof *of_sources);
	sweep_plugins(&sweep, cli_schema.notifiers, of_notifiers,
		sizeof of_notifiers / sizeof *of_notifiers);
	sweep_plugins(&sweep, cli_schema.detectors, of_detectors,
		sizeof of_detectors / sizeof *of_detectors);
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		sweep_place(&sweep, &others[i], "");
	unlink(sweep.path);
	arena_free(arena);
	print_message("%zu keys in their places, %zu kinds of value each\n", sweep.known,
		sizeof kinds / sizeof *kinds);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_key_with_every_kind_of_value)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
