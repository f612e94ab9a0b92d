/* The loader of hunter.yaml reads the maps; references to the environment are not expanded. */
#include "conf/web_config.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "conf/files.h"
#include "conf/load.h"

enum {
	WEB_BYTES = 1 << 20,
	MOST_NAMES = 1000, /* users, tokens, proxies: each */
	MOST_COST = 15,    /* a bcrypt of 16 takes seconds */
	HASH = 60,
};

static const char *const words[] = {NULL, "anybody", "viewer", "triager", "admin"};

enum role role_parse(const char *word, size_t length)
{
	for (int role = ROLE_VIEWER; role <= ROLE_ADMIN; role++)
		if (strlen(words[role]) == length && strncasecmp(words[role], word, length) == 0)
			return (enum role)role;
	return ROLE_UNSET;
}

const char *role_name(enum role role)
{
	return words[role == ROLE_UNSET ? ROLE_ADMIN : role];
}

static const char *const versions[] = {"TLS12", "TLS13", NULL};
static const char *const roles[] = {"viewer", "triager", "admin", NULL};

const struct field web_tls_fields[] = {
	OPTION_STRING(struct web_config, cert_file, NULL, "certificate chain, PEM",
		.flags = FIELD_REQUIRED),
	OPTION_STRING(struct web_config, key_file, NULL, "private key, PEM, without a passphrase",
		.flags = FIELD_REQUIRED),
	OPTION_DEFAULT(CHOICE, int, "min_version", struct web_config, tls13, "TLS12",
		"minimum TLS version", .choices = versions),
	{0},
};

struct token_options {
	const char *name, *file;
	int role;
};

const struct field web_token_fields[] = {
	OPTION_STRING(struct token_options, name, NULL, "user name of its requests",
		.flags = FIELD_REQUIRED),
	OPTION_STRING(
		struct token_options, file, NULL, "file with the token", .flags = FIELD_REQUIRED),
	OPTION_CHOICE(struct token_options, role, "viewer", roles, "granted role"),
	{0},
};

const struct field web_fields[] = {
	OPTION_LIST(struct web_config, trusted_proxies,
		"addresses and networks whose user_header and role_header are trusted"),
	OPTION_STRING(
		struct web_config, user_header, "X-WEBAUTH-USER", "header with the user's name"),
	OPTION_STRING(struct web_config, role_header, NULL, "header with the user's roles"),
	{0},
};

struct reader {
	struct loader loader;
	struct web_config *config;
};

static void read_map(const struct yaml_node *map, struct reading *reading)
{
	struct unset unset = {0};

	reading->scope.unset = &unset;
	options_read(map, map, reading);
	if (unset.variable)
		loader_error(unset.where, &reading->scope,
			"environment variables are not expanded here");
}

/* A map or list under a key of the file; NULL if it is missing or, after a report, of another
 * kind. */
static const struct yaml_node *part(
	struct reader *reader, const struct yaml_node *root, const char *key, enum yaml_kind kind)
{
	const struct yaml_node *node = yaml_get(root, key);

	if (!node)
		return NULL;
	if (node->kind == kind && node->count <= MOST_NAMES)
		return node;
	problems_add(reader->loader.problems, false, node,
		node->kind == kind ? "%s: more than 1,000 entries"
		: kind == YAML_MAP ? "%s: expected a map"
				   : "%s: expected a list",
		key);
	return NULL;
}

static void read_tls(struct reader *reader, const struct yaml_node *root)
{
	const struct yaml_node *map = part(reader, root, "tls_server_config", YAML_MAP);

	if (map)
		read_map(map, &(struct reading){.scope = {.loader = &reader->loader,
							.kind = "tls_server_config"},
				      .tables = {{web_tls_fields, reader->config}}});
}

/* The cost of a bcrypt hash, or 0. */
static int cost_of(const char *hash)
{
	if (strlen(hash) != HASH || strncmp(hash, "$2", 2) != 0 || !strchr("aby", hash[2]) ||
		hash[3] != '$' || strspn(hash + 4, "0123456789") != 2 || hash[6] != '$' ||
		strspn(hash + 7,
			"./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789") !=
			HASH - 7)
		return 0;
	return (hash[4] - '0') * 10 + hash[5] - '0';
}

/* Messages do not show the value, which may be a password. */
static bool check_hash(
	const struct yaml_node *value, const struct scope *scope, struct web_user *user)
{
	const char *problem = NULL;

	user->hash = value->kind == YAML_SCALAR ? value->text : "";
	user->cost = cost_of(user->hash);
	if (user->cost == 0)
		problem = "expected a bcrypt hash ($2a$, $2b$ or $2y$), as `htpasswd -nBC 10 NAME` "
			  "prints it";
	else if (user->cost < 4 || user->cost > MOST_COST)
		problem = "the cost of the bcrypt hash must be from 4 to 15";
	if (problem)
		loader_error(value, scope, "%s", problem);
	else if (user->cost < 10)
		loader_warn(
			value, scope, "the cost of the bcrypt hash is below 10: too easy to guess");
	return !problem;
}

static void read_users(struct reader *reader, const struct yaml_node *root)
{
	const struct yaml_node *map = part(reader, root, "basic_auth_users", YAML_MAP);
	struct web_config *config = reader->config;
	struct web_user *users = arena_array(config->arena, map ? map->count : 0, sizeof *users);
	struct stat status;

	for (size_t i = 0; map && i < map->count; i++) {
		const struct yaml_node *key = map->entries[i].key;
		struct scope scope = {
			.loader = &reader->loader, .kind = "basic_auth_users", .name = key->text};
		struct web_user *user = &users[config->user_count];

		loader_check_name(key, &scope, key->text);
		if (strchr(key->text, ':'))
			loader_error(key, &scope, "a name of basic authentication has no colon");
		user->name = key->text;
		config->user_count += check_hash(map->entries[i].value, &scope, user);
	}
	config->users = users;
	/* A reader of the hashes can try passwords without limit. */
	if (map && map->count > 0 && stat(map->file, &status) == 0 && status.st_mode & S_IROTH)
		problems_add(reader->loader.problems, true, map->entries[0].key,
			"basic_auth_users: every user of this machine can read the file, with "
			"the hashes of the passwords");
}

static void read_roles(struct reader *reader, const struct yaml_node *root)
{
	const struct yaml_node *map = part(reader, root, "roles", YAML_MAP);
	struct web_config *config = reader->config;
	struct web_role *given = arena_array(config->arena, map ? map->count : 0, sizeof *given);

	for (size_t i = 0; map && i < map->count; i++) {
		const struct yaml_node *key = map->entries[i].key, *value = map->entries[i].value;
		struct scope scope = {
			.loader = &reader->loader, .kind = "roles", .name = key->text};
		const char *word = value->kind == YAML_SCALAR ? value->text : "";
		enum role role = role_parse(word, strlen(word));

		if (role == ROLE_UNSET)
			loader_error(value, &scope, "expected viewer, triager or admin");
		else if (!yaml_get(yaml_get(root, "basic_auth_users"), key->text) &&
			 config->proxy_count == 0)
			loader_warn(key, &scope, "no such user in basic_auth_users");
		given[config->role_count++] = (struct web_role){key->text, role};
	}
	config->roles = given;
}

static void read_token(
	struct reader *reader, const struct yaml_node *node, struct web_token *tokens)
{
	struct web_config *config = reader->config;
	struct token_options options = {0};
	struct reading reading = {.scope = {.loader = &reader->loader, .kind = "tokens"},
		.tables = {{web_token_fields, &options}}};

	if (!loader_is_kind(node, YAML_MAP, &reading.scope, "a map"))
		return;
	field_defaults(web_token_fields, &options);
	read_map(node, &reading);
	if (!options.name || !options.file)
		return;
	reading.scope.name = options.name;
	loader_check_name(yaml_get(node, "name"), &reading.scope, options.name);
	for (size_t i = 0; i < config->token_count; i++)
		if (strcmp(tokens[i].name, options.name) == 0)
			loader_error(
				yaml_get(node, "name"), &reading.scope, "duplicate token name");
	tokens[config->token_count++] = (struct web_token){.name = options.name,
		.file = loader_beside(&reader->loader, node, options.file),
		.role = (enum role)(ROLE_VIEWER + options.role)};
}

static void read_tokens(struct reader *reader, const struct yaml_node *root)
{
	const struct yaml_node *list = part(reader, root, "tokens", YAML_LIST);
	struct web_token *tokens =
		arena_array(reader->config->arena, list ? list->count : 0, sizeof *tokens);

	for (size_t i = 0; list && i < list->count; i++)
		read_token(reader, list->items[i], tokens);
	reader->config->tokens = tokens;
}

static bool is_header(const char *name)
{
	static const char *const taken[] = {
		"Authorization", "Host", "Origin", "Content-Length", "X-Forwarded-For"};
	size_t length =
		strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_");

	for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
		if (strcasecmp(name, taken[i]) == 0)
			return false;
	return length > 0 && name[length] == '\0';
}

static void check_header(struct reader *reader, const struct yaml_node *root, const char *key,
	const char *name, const char *other)
{
	const struct yaml_node *where = yaml_get(root, key);

	if (!where || !name) /* not given, or reported */
		return;
	if (!is_header(name) || (other && strcasecmp(name, other) == 0))
		problems_add(reader->loader.problems, false, where,
			"%s: \"%.80s\" is not allowed as the name of this header", key, name);
	else if (reader->config->proxy_count == 0)
		problems_add(reader->loader.problems, true, where,
			"%s: no effect without trusted_proxies", key);
}

static void read_top(struct reader *reader, const struct yaml_node *root)
{
	static const char *const others[] = {
		"tls_server_config", "basic_auth_users", "roles", "tokens", NULL};
	struct web_config *config = reader->config;
	const struct strings *given = &config->trusted_proxies;
	struct network *networks;
	struct error error;

	field_defaults(web_fields, config);
	field_defaults(web_tls_fields, config);
	read_map(root, &(struct reading){.scope = reader->loader.root,
			       .tables = {{web_fields, config}},
			       .other_keys = others});
	config->proxies = networks = arena_array(config->arena, given->count, sizeof *networks);
	for (size_t i = 0; i < given->count; i++)
		if (network_parse(given->items[i], &networks[i], &error))
			config->proxy_count++;
		else
			problems_add(reader->loader.problems, false,
				yaml_get(root, "trusted_proxies"), "trusted_proxies: %s",
				error.text);
	check_header(reader, root, "user_header", config->user_header, config->role_header);
	check_header(reader, root, "role_header", config->role_header, config->user_header);
}

/* Access never depends on a default: a key without a value is an error. */
static void refuse_nulls(struct problems *problems, const struct yaml_node *node, const char *name)
{
	for (size_t i = 0; i < node->count; i++)
		if (node->kind == YAML_MAP)
			refuse_nulls(problems, node->entries[i].value, node->entries[i].key->text);
		else
			refuse_nulls(problems, node->items[i], name);
	if (yaml_is_null(node))
		problems_add(problems, false, node, "%.80s: a value is missing", name);
}

struct web_config *web_config_parse(
	const char *path, const char *text, size_t length, struct problems *problems)
{
	static const struct config_source source = {0};
	struct arena *arena = arena_new();
	struct reader reader = {.config = arena_alloc(arena, sizeof *reader.config),
		.loader = {.root = {.loader = &reader.loader},
			.arena = arena,
			.source = &source,
			.problems = problems,
			.reported = {.arena = arena},
			.unexpanded = {.arena = arena}}};
	size_t errors = problems->errors;
	const struct yaml_node *root;

	arena_holds_secrets(arena);
	reader.config->arena = arena;
	root = yaml_parse(arena, arena_strdup(arena, path), text, length, problems);
	if (root)
		refuse_nulls(problems, root, "the file");
	if (root && root->kind != YAML_MAP) {
		problems_add(problems, false, root, "expected a map");
	} else if (root && problems->errors == errors) {
		read_top(&reader, root);
		read_tls(&reader, root);
		read_users(&reader, root);
		read_roles(&reader, root);
		read_tokens(&reader, root);
	} else if (problems->errors == errors) {
		problems_add_file(problems, false, path, 0, 0, "the file is empty");
	}
	if (problems->errors == errors)
		return reader.config;
	arena_free(arena);
	return NULL;
}

struct web_config *web_config_read(const char *path, struct problems *problems)
{
	struct buf content = {.secret = true};
	struct web_config *config = NULL;

	if (config_read_file(path, WEB_BYTES, &content, problems))
		config = web_config_parse(
			path, content.data ? content.data : "", content.length, problems);
	buf_free(&content);
	return config;
}

void web_config_free(struct web_config *config)
{
	if (config)
		arena_free(config->arena);
}

enum role web_config_role(const struct web_config *config, const char *user)
{
	for (size_t i = 0; i < config->role_count; i++)
		if (strcmp(config->roles[i].name, user) == 0)
			return config->roles[i].role;
	return ROLE_VIEWER;
}

bool web_config_signs_in(const struct web_config *config)
{
	return config->user_count + config->token_count + config->proxy_count > 0;
}
