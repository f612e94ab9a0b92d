/*
 * The file of `agent.web_config`: users of the API, and the certificate. It has the form of
 * Prometheus' web configuration, with its `basic_auth_users` and, of `tls_server_config`,
 * cert_file, key_file and min_version, and keys of its own: roles, tokens, trusted_proxies,
 * user_header, role_header. Any other key is an error.
 */
#ifndef CONF_WEB_CONFIG_H
#define CONF_WEB_CONFIG_H

#include "agent/base/field.h"
#include "agent/base/network.h"
#include "conf/yaml.h"

/* Permissions; each role includes those before it. */
enum role {
	ROLE_UNSET, /* of a route: as ROLE_ADMIN, so that nothing is open by mistake */
	ROLE_ANYBODY,
	ROLE_VIEWER,  /* read */
	ROLE_TRIAGER, /* and triage changes */
	ROLE_ADMIN,   /* and run tests, reload the configuration */
};

/* A word's role; ROLE_UNSET: not viewer, triager or admin. */
enum role role_parse(const char *word, size_t length);
const char *role_name(enum role role);

struct web_user {
	const char *name, *hash; /* bcrypt */
	int cost;                /* of the hash */
};

struct web_token {
	const char *name, *file;
	enum role role;
};

struct web_role {
	const char *name;
	enum role role;
};

struct web_config {
	struct arena *arena;
	const char *cert_file, *key_file; /* both or none: no TLS */
	int tls13;                        /* 1: TLS 1.3 only */
	const struct web_user *users;
	size_t user_count;
	const struct web_token *tokens;
	size_t token_count;
	const struct web_role *roles;
	size_t role_count;
	const struct network *proxies;
	size_t proxy_count;
	const char *user_header, *role_header;
	struct strings trusted_proxies; /* as written */
};

/* The keys of the file, of its tls_server_config and of a token. */
extern const struct field web_fields[], web_tls_fields[], web_token_fields[];

/* Reads the file; NULL after an error. Problems, warnings included, are added to *problems,
 * whose arena the caller sets. Paths in the file are relative to it. The caller owns the result
 * until web_config_free, which accepts NULL. */
struct web_config *web_config_read(const char *path, struct problems *problems);
struct web_config *web_config_parse(
	const char *path, const char *text, size_t length, struct problems *problems);
void web_config_free(struct web_config *config);

/* The role given to a user; by default viewer. */
enum role web_config_role(const struct web_config *config, const char *user);

/* Whether anybody can sign in: otherwise only the certificate is configured. */
bool web_config_signs_in(const struct web_config *config);

#endif
