/*
 * Access control: identifies the sender of a request by the file of agent.web_config (see
 * conf/web_config.h), and keeps that file, its certificate and its tokens up to date.
 *
 * A Unix socket's peer is a user of this machine and may do everything: the mode of its file
 * controls who may connect. Elsewhere a user signs in by password or token, or a trusted proxy
 * names the user. Without any way to sign in everybody may do everything, so then only this machine
 * may connect. For the loop's thread.
 */
#ifndef AGENT_HTTP_ACCESS_H
#define AGENT_HTTP_ACCESS_H

#include "agent/base/arena.h"
#include "agent/http/peer.h"
#include "conf/web_config.h"

struct access;
struct engine;
struct metrics;
struct password_check;
struct tls;

struct http_person {
	const char *name; /* "ann", the name of a token, or "local": not signed in */
	const char *from; /* "192.0.2.7", behind a trusted proxy the client's; or "uid 1000" */
	enum role role;
	bool unproven; /* not authenticated: a request may give another name */
};

struct access_options {
	struct engine *engine;
	struct metrics *metrics;
	const char *path;     /* of the file, or NULL */
	int64_t (*now)(void); /* ms; NULL: the monotonic clock */
};

/* NULL and ERROR_USAGE if the file, or one that it names, cannot be used. */
struct access *access_new(const struct access_options *options, struct error *error);
void access_free(struct access *access); /* after the engine; accepts NULL */

/* The configuration, until the files are looked at again; NULL: there is none, or no access. */
const struct web_config *access_config(const struct access *access);

/* The certificate in use, or NULL: no TLS. Whether there is TLS does not change. */
struct tls *access_tls(struct access *access);

/* Rereads changed files; done on use as well, once a second. An unusable version is logged and the
 * previous one stays. Returns the reason, valid until the next call; else NULL. */
const char *access_reload(struct access *access);

enum access_outcome { ACCESS_GRANTED, ACCESS_REFUSED, ACCESS_PENDING };

/* A sign-in: the request's credentials, and the decision. The texts must live until it is made. */
struct sign_in {
	struct access *access;
	struct arena *arena;
	struct peer peer;
	const char *authorization, *user, *roles; /* headers, or NULL */
	const char *forwarded;                    /* X-Forwarded-For, the last one, or NULL */
	bool relayed;                             /* it has a header that proxies add */
	/* Called with GRANTED or REFUSED after PENDING. */
	void (*decided)(struct sign_in *sign_in, enum access_outcome outcome);
	void *context;

	struct http_person person; /* if granted */
	int status;                /* if refused */
	const char *problem;
	int64_t retry_after;          /* seconds; 0: does not matter */
	struct password_check *check; /* if pending */
	unsigned char
		client[NETWORK_ADDRESS]; /* the peer's address or, behind a proxy, its client's */
	uint64_t name_key, client_key;   /* the key that failures are counted by */
};

enum access_outcome access_sign_in(struct sign_in *sign_in);

/* The client is gone: drops a pending check, if there is one. */
void access_abandon(struct sign_in *sign_in);

#endif
