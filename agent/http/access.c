/*
 * Requests are judged in this order: the socket's user, the header of a trusted proxy, the
 * Authorization header. A password that was right before is found in memory; any other is checked
 * on a worker.
 *
 * Failures slow down attempts for the same name from the same address, and then all attempts from
 * that address that need a worker. Unknown names count like existing ones, so that pauses reveal
 * nothing.
 */
#include "agent/http/access.h"

#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/base/clock.h"
#include "agent/base/hash.h"
#include "agent/base/log.h"
#include "agent/base/secret.h"
#include "agent/base/sha256.h"
#include "agent/base/utf8.h"
#include "agent/http/authorization.h"
#include "agent/http/passwords.h"
#include "agent/http/throttle.h"
#include "agent/http/tls.h"
#include "agent/runtime/metrics.h"

enum {
	LOOK_EVERY = 1000,   /* ms between two checks of the files */
	RETRY_EVERY = 10000, /* ms, if the changed files could not be used */
	SHORT_TOKEN = 16,
	FREE_OF_NAME = 3, /* failures without a pause */
	FREE_OF_ADDRESS = 20,
	LONGEST_NAME = 200,
	MOST_HOPS = 16, /* of X-Forwarded-For */
};

/* The policy of the files. */
struct policy {
	struct web_config *config;
	unsigned char (*digests)[SHA256_BYTES]; /* of the tokens */
	struct tls *tls;
	int cost;       /* the highest of the users' hashes; 0: no users */
	uint64_t files; /* hash of the files' states, as they were before they were read */
};

struct access {
	struct access_options options;
	char *path;
	struct policy *policy; /* NULL: there is no file */
	bool tls;
	uint64_t tried; /* hash of the files' states when they could not be used last */
	int64_t looked, read;
	char *problem; /* why the files could not be used last, or NULL */
	struct passwords *passwords;
	struct throttle names, addresses; /* names: as tried from an address */
	struct hash_key key;
};

static void policy_free(struct policy *policy)
{
	if (!policy)
		return;
	tls_release(policy->tls);
	web_config_free(policy->config);
	free(policy);
}

/* Logs the warnings; an error names the first one. */
static bool read_config(struct policy *policy, const char *path, struct error *error)
{
	struct problems problems = {.arena = arena_new()};
	const char *first = NULL;

	policy->config = web_config_read(path, &problems);
	for (size_t i = 0; i < problems.count; i++)
		if (!problems.items[i].warning)
			first = first ? first : problems.items[i].text;
		else if (policy->config)
			log_event(LEVEL_WARN, "web configuration",
				LOG_TEXT("problem", problems.items[i].text));
	if (!policy->config)
		(void)error_set(error, ERROR_USAGE, "%s", first ? first : "cannot be read");
	if (!policy->config && problems.errors > 1)
		(void)error_prefix(error, "%zu errors, the first: ", problems.errors);
	arena_free(problems.arena);
	return policy->config != NULL;
}

static bool read_token(struct policy *policy, size_t index, struct error *error)
{
	const struct web_token *token = &policy->config->tokens[index];
	struct arena *arena = arena_new();
	struct stat status;
	const char *secret;
	bool good = secret_read(arena, "tokens", token->file, &secret, error);

	if (good && (strlen(secret) > AUTHORIZATION_BYTES || strpbrk(secret, " \t")))
		good = error_set(error, ERROR_USAGE,
			"tokens %s: a token has at most 4096 bytes and no spaces", token->file);
	if (good && strlen(secret) < SHORT_TOKEN)
		good = error_set(error, ERROR_USAGE,
			"tokens %s: expected at least %d characters per token", token->file,
			SHORT_TOKEN);
	if (good && stat(token->file, &status) == 0 && status.st_mode & S_IROTH)
		log_event(LEVEL_WARN, "web configuration is readable by every user of this machine",
			LOG_TEXT("file", token->file));
	if (good)
		sha256(secret, strlen(secret), policy->digests[index]);
	arena_free(arena);
	return good;
}

static bool read_files(struct policy *policy, struct error *error)
{
	const struct web_config *config = policy->config;

	for (size_t i = 0; i < config->user_count; i++)
		if (config->users[i].cost > policy->cost)
			policy->cost = config->users[i].cost;
	policy->digests = arena_array(config->arena, config->token_count, SHA256_BYTES);
	for (size_t i = 0; i < config->token_count; i++)
		if (!read_token(policy, i, error))
			return false;
	if (config->cert_file)
		policy->tls = tls_new(config->cert_file, config->key_file, config->tls13, error);
	return !config->cert_file || policy->tls;
}

static uint64_t add_file(uint64_t hash, const char *path)
{
	struct stat status = {0};

	if (!path || stat(path, &status) != 0)
		return hash_add(hash, "", 1);
	const int64_t state[] = {(int64_t)status.st_dev, (int64_t)status.st_ino, status.st_size,
		status.st_mtim.tv_sec, status.st_mtim.tv_nsec, status.st_ctim.tv_nsec};

	return hash_add(hash, state, sizeof state);
}

/* The files that the web configuration names. */
static uint64_t add_others(uint64_t hash, const struct web_config *config)
{
	hash = add_file(hash, config->cert_file);
	hash = add_file(hash, config->key_file);
	for (size_t i = 0; i < config->token_count; i++)
		hash = add_file(hash, config->tokens[i].file);
	return hash;
}

/* A file that changes while it is read differs from its state before, and is read again. */
static struct policy *policy_read(const char *path, struct error *error)
{
	struct policy *policy = memory_new(1, sizeof *policy);

	policy->files = add_file(HASH_START, path);
	if (read_config(policy, path, error)) {
		policy->files = add_others(policy->files, policy->config);
		if (read_files(policy, error))
			return policy;
	}
	error->kind = ERROR_USAGE;
	policy_free(policy);
	return NULL;
}

static int64_t now_of(const struct access *access)
{
	return access->options.now ? access->options.now() : clock_monotonic();
}

struct access *access_new(const struct access_options *options, struct error *error)
{
	struct access *access = memory_new(1, sizeof *access);

	access->options = *options;
	access->names.free = FREE_OF_NAME;
	access->addresses.free = FREE_OF_ADDRESS;
	access->key = hash_key_new();
	access->passwords = passwords_new(options->engine);
	access->looked = now_of(access);
	if (!options->path)
		return access;
	access->path = memory_strdup(options->path);
	access->options.path = access->path;
	access->policy = policy_read(access->path, error);
	if (!access->policy) {
		access_free(access);
		return NULL;
	}
	access->tls = access->policy->tls != NULL;
	return access;
}

void access_free(struct access *access)
{
	if (!access)
		return;
	passwords_free(access->passwords);
	policy_free(access->policy);
	free(access->problem);
	free(access->path);
	free(access);
}

/* Changes that require a restart are refused. */
static bool read_again(struct access *access, struct error *error)
{
	struct policy *next = policy_read(access->path, error);

	if (!next)
		return false;
	if (web_config_signs_in(access->policy->config) && !web_config_signs_in(next->config))
		(void)error_set(
			error, ERROR_USAGE, "removing the last way to sign in requires a restart");
	else if (access->tls != (next->tls != NULL))
		(void)error_set(error, ERROR_USAGE, "%s TLS requires a restart",
			access->tls ? "disabling" : "enabling");
	else {
		policy_free(access->policy);
		access->policy = next;
		return true;
	}
	policy_free(next);
	return false;
}

const char *access_reload(struct access *access)
{
	struct error error;
	uint64_t files;
	int64_t now = now_of(access);

	access->looked = now;
	if (!access->policy)
		return NULL;
	files = add_others(add_file(HASH_START, access->path), access->policy->config);
	if (files == access->policy->files) {
		free(access->problem);
		access->problem = NULL;
		return NULL;
	}
	if (files == access->tried && now - access->read < RETRY_EVERY)
		return access->problem;
	access->tried = files;
	access->read = now;
	if (read_again(access, &error)) {
		free(access->problem);
		access->problem = NULL;
		log_answer(
			LEVEL_INFO, "web configuration reloaded", LOG_TEXT("file", access->path));
	} else if (!access->problem || strcmp(access->problem, error.text) != 0) {
		free(access->problem);
		access->problem = memory_strdup(error.text);
		log_answer(LEVEL_ERROR, "web configuration not reloaded, keeping the previous one",
			LOG_TEXT("problem", error.text));
	}
	return access->problem;
}

static const struct policy *policy_now(struct access *access)
{
	if (access->policy && now_of(access) - access->looked >= LOOK_EVERY)
		(void)access_reload(access);
	return access->policy;
}

const struct web_config *access_config(const struct access *access)
{
	return access && access->policy ? access->policy->config : NULL;
}

struct tls *access_tls(struct access *access)
{
	const struct policy *policy = access->tls ? policy_now(access) : NULL;

	return policy ? policy->tls : NULL;
}

static void count(const struct access *access, const char *reason)
{
	if (access->options.metrics)
		metrics_add(access->options.metrics, METRIC_AUTHENTICATION_FAILURES, 1, reason);
}

static enum access_outcome grant(struct sign_in *sign_in, const char *name, enum role role)
{
	sign_in->person.name = arena_strdup(sign_in->arena, name);
	sign_in->person.role = role;
	return ACCESS_GRANTED;
}

static enum access_outcome refuse(struct sign_in *sign_in, int status, const char *problem)
{
	sign_in->status = status;
	sign_in->problem = problem;
	return ACCESS_REFUSED;
}

static enum access_outcome refuse_for(
	struct sign_in *sign_in, int64_t pause, const char *reason, const char *problem)
{
	count(sign_in->access, reason);
	sign_in->retry_after = (pause + 999) / 1000;
	return refuse(sign_in, MHD_HTTP_TOO_MANY_REQUESTS, problem);
}

static bool is_proxy(const struct web_config *config, const unsigned char *address)
{
	for (size_t i = 0; i < config->proxy_count; i++)
		if (network_has(&config->proxies[i], address))
			return true;
	return false;
}

/* The last address of X-Forwarded-For that is not a trusted proxy's: those before it are claimed by
 * the client. */
static void follow_forwarded(const struct web_config *config, struct sign_in *sign_in)
{
	char *text = arena_strdup(sign_in->arena, sign_in->forwarded);
	unsigned char address[NETWORK_ADDRESS];

	for (int hops = text ? 0 : MOST_HOPS; hops < MOST_HOPS; hops++) {
		char *comma = strrchr(text, ','), *entry = comma ? comma + 1 : text;

		entry += strspn(entry, " \t");
		entry[strcspn(entry, " \t")] = '\0';
		if (!network_address(entry, address))
			return;
		memcpy(sign_in->client, address, sizeof address);
		if (!is_proxy(config, address) || !comma)
			return;
		*comma = '\0';
	}
}

static enum access_outcome by_proxy(const struct web_config *config, struct sign_in *sign_in)
{
	const char *user = sign_in->user, *list = sign_in->roles ? sign_in->roles : "";
	enum role role = ROLE_UNSET; /* the highest that the header lists */

	while (*list) {
		size_t length = strcspn(list, ", \t");
		enum role one = role_parse(list, length);

		role = one > role ? one : role;
		list += length;
		list += strspn(list, ", \t");
	}
	if (!*user || strlen(user) > LONGEST_NAME || !utf8_is_shown(user, ""))
		return refuse(
			sign_in, MHD_HTTP_BAD_REQUEST, "the proxy's user name is empty or invalid");
	if (role == ROLE_UNSET)
		role = web_config_role(config, sign_in->user);
	return grant(sign_in, sign_in->user, role);
}

static enum access_outcome fail(struct sign_in *sign_in, const char *reason)
{
	struct access *access = sign_in->access;
	int64_t now = now_of(access);
	unsigned failures = throttle_failed(&access->names, sign_in->name_key, now);

	(void)throttle_failed(&access->addresses, sign_in->client_key, now);
	count(access, reason);
	if (failures == FREE_OF_NAME + 1)
		log_event(LEVEL_WARN, "repeated sign-in failures",
			LOG_TEXT("from", sign_in->person.from), LOG_TEXT("reason", reason));
	return refuse(sign_in, MHD_HTTP_UNAUTHORIZED, "wrong name, password or token");
}

static enum access_outcome slow_down(struct sign_in *sign_in, int64_t pause)
{
	return refuse_for(sign_in, pause, "slowed", "too many failed attempts to sign in: wait");
}

static enum access_outcome by_token(
	const struct policy *policy, struct sign_in *sign_in, const char *secret)
{
	const struct web_token *found = NULL;
	unsigned char digest[SHA256_BYTES];
	int64_t pause;

	sha256(secret, strlen(secret), digest);
	for (size_t i = 0; i < policy->config->token_count; i++)
		if (secret_same(policy->digests[i], digest, sizeof digest))
			found = &policy->config->tokens[i];
	/* The holder of the token is not slowed down by failed guesses of other clients, and does
	 * not reset their pauses. */
	if (found)
		return grant(sign_in, found->name, found->role);
	pause = throttle_pause(&sign_in->access->names, sign_in->name_key, now_of(sign_in->access));
	return pause > 0 ? slow_down(sign_in, pause) : fail(sign_in, "token");
}

static void checked(void *context, bool right)
{
	struct sign_in *sign_in = context;
	enum access_outcome outcome;

	sign_in->check = NULL;
	/* The files may have changed meanwhile; the password is now remembered. */
	outcome = right ? access_sign_in(sign_in) : fail(sign_in, "password");
	if (outcome != ACCESS_PENDING)
		sign_in->decided(sign_in, outcome);
}

/* The user's bcrypt hash, or NULL. */
static const char *hash_of(const struct web_config *config, const char *name)
{
	for (size_t i = 0; i < config->user_count; i++)
		if (strcmp(config->users[i].name, name) == 0)
			return config->users[i].hash;
	return NULL;
}

static enum access_outcome by_password(
	const struct policy *policy, struct sign_in *sign_in, const struct authorization *given)
{
	struct access *access = sign_in->access;
	struct password_claim claim = {.user = given->user,
		.password = given->secret,
		.hash = hash_of(policy->config, given->user),
		.cost = policy->cost,
		.origin = sign_in->client_key};
	int64_t pause = throttle_pause(&access->addresses, sign_in->client_key, now_of(access));

	if (policy->cost == 0)
		return fail(sign_in, "password"); /* there are no users */
	if (pause > 0 && !passwords_know(access->passwords, &claim))
		return slow_down(sign_in, pause);
	switch (passwords_check(access->passwords, &claim, checked, sign_in, &sign_in->check)) {
	case PASSWORD_CHECKING: return ACCESS_PENDING;
	case PASSWORD_BUSY: return refuse_for(sign_in, 1, "busy", "too many concurrent sign-ins");
	case PASSWORD_RIGHT:
	default: break;
	}
	throttle_succeeded(&access->names, sign_in->name_key);
	return grant(sign_in, given->user, web_config_role(policy->config, given->user));
}

static enum access_outcome by_authorization(const struct policy *policy, struct sign_in *sign_in)
{
	struct access *access = sign_in->access;
	struct authorization given;
	const char *name;
	uint64_t both[2];
	int64_t pause;

	if (!authorization_parse(sign_in->authorization, sign_in->arena, &given)) {
		count(access, "malformed");
		return refuse(sign_in, MHD_HTTP_UNAUTHORIZED,
			"the Authorization header is neither Basic nor Bearer, or malformed");
	}
	/* An address; for IPv6 its /56 network, the usual size of a customer's. */
	sign_in->client_key = hash_keyed(access->key, sign_in->client,
		network_is_v4(sign_in->client) ? NETWORK_ADDRESS : 56 / 8);
	/* A name, as tried from there; no user's name has a colon. */
	name = given.user ? given.user : "token:";
	both[0] = sign_in->client_key;
	both[1] = hash_keyed(access->key, name, strlen(name));
	sign_in->name_key = hash_keyed(access->key, both, sizeof both);
	if (!given.user)
		return by_token(policy, sign_in, given.secret);
	pause = throttle_pause(&access->names, sign_in->name_key, now_of(access));
	return pause > 0 ? slow_down(sign_in, pause) : by_password(policy, sign_in, &given);
}

enum access_outcome access_sign_in(struct sign_in *sign_in)
{
	struct access *access = sign_in->access;
	const struct policy *policy = policy_now(access);
	bool proxy =
		!sign_in->peer.local && policy && is_proxy(policy->config, sign_in->peer.address);

	sign_in->check = NULL;
	sign_in->retry_after = 0;
	memcpy(sign_in->client, sign_in->peer.address, sizeof sign_in->client);
	if (proxy)
		follow_forwarded(policy->config, sign_in);
	sign_in->person.from = sign_in->peer.local ? peer_text(&sign_in->peer, sign_in->arena)
						   : network_text(sign_in->client, sign_in->arena);
	/* A proxy in front of the socket would make everybody an admin. */
	if (sign_in->peer.local && sign_in->relayed)
		return refuse(sign_in, MHD_HTTP_FORBIDDEN,
			"a proxy must use a TCP address of agent.listen, and be one of "
			"trusted_proxies: users of the socket are admins");
	sign_in->person.unproven =
		sign_in->peer.local || !policy || !web_config_signs_in(policy->config);
	if (sign_in->person.unproven)
		return grant(sign_in,
			sign_in->peer.local ? peer_user(&sign_in->peer, sign_in->arena) : "local",
			ROLE_ADMIN);
	if (proxy && sign_in->user)
		return by_proxy(policy->config, sign_in);
	if (!proxy && (sign_in->user || sign_in->roles)) {
		count(access, "header");
		sign_in->user = sign_in->roles = NULL;
	}
	if (sign_in->authorization)
		return by_authorization(policy, sign_in);
	if (policy->config->user_count + policy->config->token_count == 0)
		return refuse(sign_in, MHD_HTTP_FORBIDDEN, "sign in at the proxy");
	return refuse(sign_in, MHD_HTTP_UNAUTHORIZED, "sign in");
}

void access_abandon(struct sign_in *sign_in)
{
	if (sign_in->check)
		passwords_abandon(sign_in->check);
	sign_in->check = NULL;
}
