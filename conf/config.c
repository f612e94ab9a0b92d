/*
 * Loads the configuration: files to trees, trees to sections, sections to settings, servers,
 * receivers, templates, tests and groups.
 *
 * The files of a folder are merged by section. `tests`, `templates`, `test_groups`, `sources`,
 * `receivers` and `mute_times` are maps to which each file may add; any other section may be in one
 * file only.
 */
#include "conf/config.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/base/database.h"
#include "agent/base/hash.h"
#include "agent/base/transfer.h"
#include "conf/files.h"
#include "conf/load.h"
#include "conf/web_config.h"

const struct field agent_fields[] = {
	OPTION_LIST(struct agent_settings, listen,
		"addresses and ports of the API and the web pages, or unix:/path; public ones "
		"require web_config or run --insecure",
		.initial = "127.0.0.1:9469"),
	OPTION_STRING(struct agent_settings, socket_mode, "0660",
		"mode of a unix:/path socket; whoever may connect is an admin"),
	OPTION_STRING(struct agent_settings, socket_owner, NULL,
		"owner of the socket: user, user:group or :group"),
	OPTION_STRING(struct agent_settings, web_config, NULL,
		"file with users, tokens, trusted proxies and the TLS certificate"),
	OPTION_STRING(struct agent_settings, external_url, NULL,
		"address at which users reach the agent, such as a reverse proxy: "
		"https://hunter.example.com; used for links in messages"),
	OPTION_STRING(struct agent_settings, metrics_listen, NULL,
		"additional address and port for /metrics, /-/healthy and /-/ready only; may be "
		"public"),
	OPTION_STRING(struct agent_settings, state, "/var/lib/hunter-c/state.db",
		"state store: a file, or a database shared by several agents, such as "
		"postgresql://hunter@db1,db2/hunter"),
	OPTION_STRING(struct agent_settings, state_password_file, NULL,
		"file with the password of the state database; default: PGPASSWORD or libpq's "
		"password file (PGPASSFILE)"),
	OPTION_STRING(struct agent_settings, name, NULL,
		"name of the agent among those that share a state; default: the host name"),
	OPTION_DURATION(struct agent_settings, interval, "10m", 1000, (double)INT64_MAX,
		"default interval of tests"),
	OPTION_DURATION(struct agent_settings, evaluation_delay, "0", 0, EVALUATION_DELAY_MAX,
		"ignore points younger than this until a later run, as they may not be final"),
	OPTION_DURATION(struct agent_settings, stale_after, NULL, 1000, (double)INT64_MAX,
		"report a test without new points for this long; default: 3 times the longest of "
		"its last 20 gaps, at least 10 intervals and 3 steps"),
	OPTION_DURATION(struct agent_settings, group_wait, "30s", 0, 86400000,
		"put changes found within this time into one message"),
	OPTION_DURATION(struct agent_settings, group_interval, "0", 0, 86400000,
		"changes join an incident until none has joined it for this long; 0: the test's "
		"interval, at least the points that confirmation may take"),
	OPTION_BOOL(struct agent_settings, announce_withdrawn,
		"retract an announced change that is no longer found, in its message's thread",
		.initial = "true"),
	OPTION_DURATION(struct agent_settings, give_up_after, "24h", 60000, (double)INT64_MAX,
		"maximum time to retry a delivery"),
	OPTION_STRING_AS("commit_url", struct agent_settings, links.commit_url, NULL,
		"page about a commit, for links: https://example.com/app/commit/{commit}"),
	OPTION_STRING_AS("compare_url", struct agent_settings, links.compare_url, NULL,
		"page about a range of commits, for links: "
		"https://example.com/app/compare/{before}...{after}"),
	OPTION_STRING_AS("dashboard", struct agent_settings, links.dashboard, NULL,
		"page that shows a series, for links: "
		"https://example.com/d/{test}?var-region={label.region}&from={from}&to={to}"),
	OPTION_STRING_AS("runbook", struct agent_settings, links.runbook, NULL,
		"runbook page, for links: https://example.com/{test}"),
	OPTION_STRING_AS("owner", struct agent_settings, links.owner, NULL,
		"owner of the tests, shown in messages: team-{label.team}"),
	OPTION_STRING(struct agent_settings, environment, NULL,
		"label or attribute that names where a series was measured: runner, host"),
	OPTION_STRING(struct agent_settings, repository, NULL,
		"local clone of the measured code, to list the commits of a change",
		.flags = FIELD_FOLDER),
	OPTION_DURATION(struct agent_settings, max_age, "14d", 0, (double)INT64_MAX,
		"record but do not announce a change that is older than this when first seen, "
		"unless it is among the newest 100 points of a series seen before"),
	OPTION_DURATION(struct agent_settings, max_silence, "30d", 60000, (double)INT64_MAX,
		"maximum duration of a silence"),
	OPTION_DURATION(struct agent_settings, grace, "10s", 0, 3600000,
		"maximum time to wait for messages in flight at shutdown"),
	OPTION_INT(struct agent_settings, jobs, "0", 0, 1024,
		"worker threads; 0: one for each usable CPU"),
	OPTION_DURATION(struct agent_settings, read_timeout, "5m", 1, 86400000,
		"time limit for reading a file of a test, including the wait for a pipe's writer"),
	OPTION_BYTES(struct agent_settings, max_memory_in_flight, "256MB", 1e6, 1e15,
		"memory limit for responses in flight of all servers; further requests wait"),
	{0},
};

static const char *const merged_sections[] = {
	"tests", "templates", "test_groups", "sources", "receivers", "mute_times"};
enum { MERGED = sizeof merged_sections / sizeof *merged_sections };

/* A map that is built from the entries of several files; each name may occur once. */
struct section {
	struct yaml_entry *entries;
	size_t count;
	struct dict names; /* -> key */
	const struct yaml_node *last;
};

/* The top level of all files: plain sections, and those to which files add. */
struct sections {
	struct loader *loader;
	struct section plain, merged[MERGED];
};

static size_t merged_index(const char *name)
{
	size_t i = 0;
	while (i < MERGED && strcmp(merged_sections[i], name) != 0)
		i++;
	return i;
}

/* Adds an entry; a duplicate is reported with both places. */
static void add_entry(struct loader *loader, struct section *section, const char *kind,
	const struct yaml_entry *entry)
{
	const void **place = dict_place(&section->names, entry->key->text);
	const struct yaml_node *first = *place;
	struct scope scope = {.loader = loader, .kind = kind};
	if (first) {
		loader_error(entry->key, &scope, "\"%.200s\" is already defined at %s:%d",
			entry->key->text, first->file, first->line);
		return;
	}
	*place = entry->key;
	section->entries = arena_grow(
		loader->arena, section->entries, section->count, sizeof *section->entries);
	section->entries[section->count++] = *entry;
}

static void add_names(struct sections *sections, size_t which, const struct yaml_node *map)
{
	struct scope scope = {.loader = sections->loader, .kind = merged_sections[which]};
	if (loader_is_null(map, &scope, NULL))
		return;
	if (map->kind != YAML_MAP) {
		loader_error(map, &scope, "expected a map from names to definitions");
		return;
	}
	sections->merged[which].last = map;
	for (size_t i = 0; i < map->count; i++)
		add_entry(sections->loader, &sections->merged[which], scope.kind, &map->entries[i]);
}

/* The merged section as a map, or NULL if no file has it. */
static const struct yaml_node *merged_map(const struct sections *sections, const char *name)
{
	const struct section *section = &sections->merged[merged_index(name)];
	if (!section->last)
		return NULL;
	struct yaml_node *map = arena_alloc(sections->loader->arena, sizeof *map);
	*map = *section->last;
	map->entries = section->entries;
	map->count = section->count;
	return map;
}

static void add_file(struct sections *sections, const struct yaml_node *root)
{
	if (!loader_is_kind(root, YAML_MAP, &sections->loader->root,
		    "a map of sections: tests, templates, ..."))
		return;
	for (size_t i = 0; i < root->count; i++) {
		size_t which = merged_index(root->entries[i].key->text);
		if (which < MERGED)
			add_names(sections, which, root->entries[i].value);
		else
			add_entry(sections->loader, &sections->plain, "section", &root->entries[i]);
	}
}

/* The file's content, or the text that stands for it. */
static bool read_content(
	const struct loader *loader, const char *file, size_t room, struct buf *content)
{
	for (size_t i = 0; i < loader->source->text_count; i++) {
		const struct config_text *text = &loader->source->texts[i];
		if (strcmp(text->file, file) != 0)
			continue;
		buf_append(content, text->text, text->length);
		return true;
	}
	return config_read_file(file, room, content, loader->problems);
}

static void read_files(struct sections *sections, const char *path)
{
	struct loader *loader = sections->loader;
	struct strings files;
	size_t room = CONFIG_BYTES_MAX;
	if (!config_files(path, loader->arena, &files, loader->problems))
		return;
	for (size_t i = 0; i < files.count; i++) {
		struct buf content = {.secret = true};
		const struct yaml_node *root = NULL;
		size_t errors = loader->problems->errors;
		if (read_content(loader, files.items[i], room, &content)) {
			room -= content.length < room ? content.length : room;
			root = yaml_parse(loader->arena, files.items[i],
				content.data ? content.data : "", content.length, loader->problems);
			if (!root && loader->problems->errors == errors)
				problems_add_file(loader->problems, true, files.items[i], 0, 0,
					"the file is empty");
		}
		buf_free(&content);
		if (root)
			add_file(sections, root);
	}
}

/* SQLite takes an empty name, ":memory:" and "file:...?mode=memory" for databases that end with the
 * process: each start would announce everything again. From here on the state's address has the
 * password file. */
static void check_state(
	const struct yaml_node *map, const struct scope *scope, struct agent_settings *agent)
{
	const char *state = agent->state, *file = agent->state_password_file;
	const struct yaml_node *where = yaml_get(map, "state_password_file");

	if (!*state || strcmp(state, ":memory:") == 0 || strncasecmp(state, "file:", 5) == 0)
		loader_error(yaml_get(map, "state"), scope,
			"state: expected the path of a persistent file");
	if (file && database_is(state)) {
		services_check_secret(where, scope, "state_password_file", file);
		agent->state = database_with_password_file(scope->loader->arena, state, file);
	} else if (file) {
		loader_error(
			where, scope, "state_password_file: no effect, as the state is a file");
	}
}

enum { LISTEN_MOST = 8, NAME_MOST = 200 };

static void check_address(
	const struct yaml_node *map, const struct scope *scope, const char *key, const char *listen)
{
	const char *colon = strrchr(listen, ':');
	char *end = NULL;
	unsigned long port =
		colon && colon[1] >= '0' && colon[1] <= '9' ? strtoul(colon + 1, &end, 10) : 65536;

	if (port > 65535 || *end)
		loader_error(yaml_get(map, key), scope,
			"%s: \"%.80s\": expected an address and a port, like 127.0.0.1:9469", key,
			listen);
}

static void check_listen(
	const struct yaml_node *map, const struct scope *scope, const struct strings *listen)
{
	const struct yaml_node *where = yaml_get(map, "listen");

	if (listen->count == 0 || listen->count > LISTEN_MOST)
		loader_error(where, scope, "listen: expected 1 to %d addresses", LISTEN_MOST);
	for (size_t i = 0; i < listen->count; i++) {
		if (strncmp(listen->items[i], "unix:", 5) != 0)
			check_address(map, scope, "listen", listen->items[i]);
		else if (listen->items[i][5] != '/')
			loader_error(where, scope,
				"listen: \"%.80s\": expected an absolute path, like "
				"unix:/run/hunter-c/api.sock",
				listen->items[i]);
	}
}

static bool has_socket(const struct strings *listen)
{
	for (size_t i = 0; i < listen->count; i++)
		if (strncmp(listen->items[i], "unix:", 5) == 0)
			return true;
	return false;
}

/* Who can open the socket is an admin. */
static void check_socket(
	const struct yaml_node *map, const struct scope *scope, const struct agent_settings *agent)
{
	const char *mode = agent->socket_mode;
	size_t length = strspn(mode, "01234567");

	if (mode[length] || length < 3 || length > 4 || (length == 4 && *mode != '0'))
		loader_error(yaml_get(map, "socket_mode"), scope,
			"socket_mode: \"%.80s\": expected an octal mode, like 0660", mode);
	else if (mode[length - 1] != '0' && has_socket(&agent->listen))
		loader_warn(yaml_get(map, "socket_mode"), scope,
			"socket_mode: %.4s makes every user of this machine an admin "
			"through the socket: use 0660, and socket_owner for a group",
			mode);
	for (size_t i = 0; i < 2 && !has_socket(&agent->listen); i++) {
		const char *key = i == 0 ? "socket_mode" : "socket_owner";

		if (yaml_get(map, key))
			loader_error(yaml_get(map, key), scope,
				"%s: no effect without a unix: address in listen", key);
	}
}

/* Its host is compared with browsers' headers, so it must be plain. */
static void check_external(const struct yaml_node *map, const struct scope *scope, const char *url)
{
	const char *host = strstr(url, "://");
	const char *problem = transfer_url_problem(url);

	if (!problem && (!host || (strncasecmp(url, "http", 4) != 0)))
		problem = "expected an address that begins with https:// or http://";
	if (!problem && strcspn(host + 3, "@") < strcspn(host + 3, "/?#"))
		problem = "it contains a user name";
	if (problem)
		loader_error(yaml_get(map, "external_url"), scope, "external_url: %s", problem);
}

static void read_agent(struct loader *loader, const struct yaml_node *map)
{
	struct agent_settings *agent = &loader->config->agent;
	struct unset unset = {0};
	struct reading reading = {.scope = {.loader = loader, .kind = "agent", .unset = &unset},
		.tables = {{agent_fields, agent}}};
	if (yaml_is_null(map) || !loader_is_kind(map, YAML_MAP, &reading.scope, "a map"))
		return;
	options_read(map, map, &reading);
	if (unset.variable) {
		const struct yaml_node *state = yaml_get(map, "state");
		const char *missing = NULL;

		loader_missing(&reading.scope, &unset);
		/* A command must not use the default state instead. */
		if (state && state->kind == YAML_SCALAR)
			(void)loader_expand(loader, state, false, &missing);
		if (missing)
			agent->state = arena_printf(loader->arena, "${%s}", missing);
	}
	check_state(map, &reading.scope, agent);
	/* The name appears in pages, messages and metrics. */
	if (agent->name && (!*agent->name || strlen(agent->name) > NAME_MOST ||
				   strpbrk(agent->name, "\r\n\t")))
		loader_error(yaml_get(map, "name"), &reading.scope,
			"name: expected 1 to %d bytes in one line", NAME_MOST);
	loader_check_links(map, &reading.scope, &agent->links);
	loader_check_environment(map, &reading.scope, agent->environment);
	check_listen(map, &reading.scope, &agent->listen);
	check_socket(map, &reading.scope, agent);
	if (agent->external_url)
		check_external(map, &reading.scope, agent->external_url);
	if (agent->metrics_listen)
		check_address(map, &reading.scope, "metrics_listen", agent->metrics_listen);
}

/* Whether the words differ by one edit: a letter missing, added or replaced, or two swapped. */
static bool one_slip(const char *a, const char *b)
{
	size_t m = strlen(a), n = strlen(b), i = 0;
	while (a[i] && a[i] == b[i])
		i++;
	if (m > n)
		return m == n + 1 && strcmp(a + i + 1, b + i) == 0;
	if (m < n)
		return n == m + 1 && strcmp(a + i, b + i + 1) == 0;
	if (i == m || strcmp(a + i + 1, b + i + 1) == 0)
		return true;
	return a[i] == b[i + 1] && a[i + 1] == b[i] && strcmp(a + i + 2, b + i + 2) == 0;
}

static void read_detection(struct loader *loader, const struct yaml_node *node)
{
	loader->config->detection = detection_read(node, &loader->root, &loader->config->detection);
}

static void note_routes(struct loader *loader, const struct yaml_node *node)
{
	loader->routes = node;
}

static const struct {
	const char *name;
	void (*read)(struct loader *loader, const struct yaml_node *node);
} single_sections[] = {{"agent", read_agent}, {"detection", read_detection},
	{"routes", note_routes}, {"known_changes", known_changes_read},
	{"known_changes_files", known_changes_read_files}};
enum { SINGLE = sizeof single_sections / sizeof *single_sections };

/*
 * A near miss of one of our sections is an error: all that it configures would be lost. In Hunter's
 * files any unknown section passes without a word, so a near miss of one of Hunter's is a warning.
 */
static void report_section(struct loader *loader, const struct yaml_node *key)
{
	const struct schema *schema = loader->source->schema;
	const char *names[2 * PLUGIN_NAMES + MERGED + SINGLE + COMPAT_SECTIONS];
	size_t count = plugin_names(schema->sources, true, names);
	bool near = false;

	/* x-NAME and .NAME hold anchors for other parts of the file. */
	if (strncmp(key->text, "x-", 2) == 0 || key->text[0] == '.')
		return;
	count += plugin_names(schema->notifiers, false, names + count);
	for (size_t i = 0; i < MERGED; i++)
		names[count++] = merged_sections[i];
	for (size_t i = 0; i < SINGLE; i++)
		names[count++] = single_sections[i].name;
	for (size_t i = 0; i < COMPAT_SECTIONS; i++)
		names[count++] = kind_sections[i].name;
	for (size_t i = 0; i < count && !near; i++)
		near = !kind_section(names[i]) && one_slip(key->text, names[i]);
	(near ? loader_error : loader_warn)(key, &loader->root, "unknown section \"%.80s\"%s",
		key->text, loader_hint(loader, key->text, names, count));
}

static void read_sections(struct loader *loader, const struct sections *sections)
{
	for (size_t i = 0; i < sections->plain.count; i++) {
		const struct yaml_entry *section = &sections->plain.entries[i];
		size_t at = 0;

		while (at < SINGLE && strcmp(section->key->text, single_sections[at].name) != 0)
			at++;
		if (at < SINGLE)
			single_sections[at].read(loader, section->value);
		else if (!services_section(loader, section))
			report_section(loader, section->key);
	}
}

static struct config *new_config(const char *path)
{
	struct arena *arena = arena_new();
	struct config *config = arena_alloc(arena, sizeof *config);
	arena_holds_secrets(arena);
	config->arena = arena;
	config->path = arena_strdup(arena, path);
	config->hash = HASH_START;
	field_defaults(agent_fields, &config->agent);
	return config;
}

static void read_all(struct loader *loader)
{
	struct sections sections = {.loader = loader, .plain.names.arena = loader->arena};
	for (size_t i = 0; i < MERGED; i++)
		sections.merged[i].names.arena = loader->arena;
	read_files(&sections, loader->config->path);
	read_sections(loader, &sections);
	for (size_t i = 0; i < loader->source->known_changes.count; i++)
		known_changes_read_file(loader, loader->source->known_changes.items[i]);
	uint64_t settings = HASH_START;
	fingerprint_fields(loader, &settings, agent_fields, &loader->config->agent);
	services_sources(loader, merged_map(&sections, "sources"));
	services_receivers(loader, merged_map(&sections, "receivers"));
	services_finish(loader);
	routes_read(loader);
	templates_read(loader, merged_map(&sections, "templates"));
	mute_times_read(loader, merged_map(&sections, "mute_times"));
	tests_read(loader, merged_map(&sections, "tests"));
	controls_read(loader);
	renames_read(loader);
	groups_read(loader, merged_map(&sections, "test_groups"));
	topics_make(loader->config);
	if (loader->source->cautious && loader->problems->errors == 0) {
		services_caution(loader);
		mute_times_check(loader);
	}
	if (loader->source->cautious && loader->config->agent.web_config)
		web_config_free(
			web_config_read(loader->config->agent.web_config, loader->problems));
}

struct config *config_load(
	const char *path, const struct config_source *source, struct problems *problems)
{
	struct config *config = new_config(path);
	struct dict *tests = arena_alloc(config->arena, sizeof *tests);
	struct dict *written = arena_alloc(config->arena, sizeof *written);
	struct loader loader = {.root = {.loader = &loader},
		.arena = config->arena,
		.source = source,
		.problems = problems,
		.config = config,
		.servers = {.arena = config->arena},
		.receivers = {.arena = config->arena},
		.templates = {.arena = config->arena},
		.mute_times = {.arena = config->arena},
		.reported = {.arena = config->arena},
		.unexpanded = {.arena = config->arena}};
	tests->arena = written->arena = config->arena;
	loader.tests = tests;
	config->written = loader.written = written;
	loader.last_server = &loader.first_server;
	loader.last_receiver = &loader.first_receiver;
	loader.last_control = &loader.first_control;
	loader.last_rename = &loader.first_rename;
	config->test_names = tests;
	config->detection = detection_default(source->schema, config->arena);
	read_all(&loader);
	problems_finish(problems);
	if (problems->errors == 0)
		return config;
	config_free(config);
	return NULL;
}

void config_free(struct config *config)
{
	if (!config)
		return;
	routes_free(config);
	arena_free(config->arena);
}
