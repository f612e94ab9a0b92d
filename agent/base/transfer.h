/*
 * A request to a server, described as data.
 *
 * Sources and notifiers do no I/O: they yield a struct transfer and are called again with its
 * struct reply. The engine carries transfers out (HTTP and SMTP by libcurl) with the limits and
 * credentials of the endpoint. Tests and fuzzers play the server with the same structs.
 */
#ifndef AGENT_BASE_TRANSFER_H
#define AGENT_BASE_TRANSFER_H

#include <stdint.h>

#include "agent/base/field.h"

enum step { STEP_TRANSFER, STEP_DONE, STEP_FAILED };

enum transfer_kind { TRANSFER_HTTP, TRANSFER_SMTP, TRANSFER_STDOUT, TRANSFER_EXEC };

/* Which redirects are followed; never from https to http. */
enum redirects { REDIRECTS_SAME_HOST, REDIRECTS_ANY, REDIRECTS_NONE };

/* Where and how to reach a server: the options shared by all HTTP sources and notifiers
 * (endpoint_fields). */
struct endpoint {
	const char *url;
	const char *shown;  /* instead of it: as in the file, where a variable is a part of it; or
			       NULL */
	const char *socket; /* the Unix socket to connect to, instead of the URL's host; or NULL */
	const char *username, *password, *password_file;
	const char *bearer_token, *bearer_token_file;
	struct pairs headers;
	const char *ca_file, *cert_file, *key_file;
	const char *server_name; /* expected in the certificate, or NULL: the URL's host */
	bool insecure_skip_verify;
	const char *proxy; /* its URL, "none", or NULL: from the environment */
	struct strings no_proxy;
	int redirects;                    /* enum redirects */
	int64_t connect_timeout, timeout; /* ms */
	int64_t retry_for;                /* ms after the first failure; see engine_submit */
	int64_t max_concurrent;
	int64_t max_body;   /* bytes of an answer, unpacked */
	int64_t max_points; /* of one of a source's series; 0: no limit */
};

extern const struct field endpoint_fields[];

/* Checks beyond those of single fields: options that exclude or require each other, and the syntax
 * of URLs. The text names the option and contains no secret. */
bool endpoint_check(const struct endpoint *endpoint, struct error *error) MUST_USE;

/* A message for TRANSFER_SMTP. Addresses are bare: "ann@example.com". */
struct mail {
	const char *from;
	struct strings to;
	struct pairs headers;    /* ASCII without line breaks; long ones are folded at blanks */
	const char *text, *html; /* UTF-8, alternatives */
	const char *picture;     /* PNG that the HTML shows by its id, or NULL */
	size_t picture_length;
	const char *picture_id; /* "change@example.com" */
	bool starttls;          /* required on smtp://, otherwise not used there */
};

/* Options of a command that differ from the default (agent/io/execution.h). */
struct command_options {
	const char *folder; /* its current folder, or NULL: this program's */
	bool inherits;      /* it gets all variables of this program */
	bool keeps_end;     /* of too much output the end is kept rather than the beginning */
	bool whole_group;   /* processes left in the background are ended, too */
	bool cancellable;   /* execution_cancel works */
	int log;            /* a file that gets all that it prints; 0: none */
	size_t most_log;    /* bytes: of more, the middle is left out */
};

struct transfer {
	enum transfer_kind kind;
	const struct endpoint *endpoint; /* borrowed from the configuration */
	const char *method;              /* "GET", "POST" */
	const char *url;                 /* complete, without credentials */
	struct pairs headers;            /* in addition to the endpoint's */
	const char *body; /* POST body, the text for stdout, or a command's input; borrowed from the
			     job's arena */
	size_t body_length;
	const char *const *command; /* of TRANSFER_EXEC: a program and its arguments, then NULL */
	struct pairs environment; /* its variables besides PATH, HOME and the like; their values are
				     masked in its output */
	struct pairs plain;       /* more, which are not masked; a value of NULL removes one */
	size_t most_output;       /* bytes of output to keep; 0: a line */
	const struct command_options *options; /* of TRANSFER_EXEC, or NULL */
	const struct mail *mail;               /* of TRANSFER_SMTP, with endpoint and url */
	const char *bearer; /* a secret for this transfer only (Slack's token), or NULL */
	bool once;          /* the engine's: it may have an effect, so it must not be sent twice */
	int64_t timeout;    /* ms, a command's; else the engine's: a retry has less time; 0: the
			       endpoint's */
};

/* A mail server's answer. */
enum mail_stage {
	MAIL_GREETING,
	MAIL_HELLO,
	MAIL_TLS,
	MAIL_LOGIN,
	MAIL_SENDER,
	MAIL_RECIPIENTS,
	MAIL_CONTENT,
};

/* A recipient that the server has refused; index into mail.to. */
struct mail_refusal {
	size_t recipient;
	int status;
	const char *words;
};

enum reply_kind {
	REPLY_ANSWER,      /* the server answered: status, headers, body are set */
	REPLY_UNREACHABLE, /* nothing was sent: no address, connection refused, TLS failed */
	REPLY_AMBIGUOUS,   /* sent, but no complete answer: timeout or reset after sending */
	REPLY_TOO_BIG,     /* the body exceeds endpoint.max_body */
};

struct reply {
	enum reply_kind kind;
	int status; /* HTTP status of an answer; a command's, see execution.h; of mail, the code */
	int cut_status;           /* of an incomplete or oversized answer; 0: none received */
	int64_t retry_after;      /* ms from Retry-After, -1 if missing or malformed */
	bool dated;               /* the answer has a Date: */
	int64_t ahead;            /* ms by which this machine's clock is ahead of the server's */
	const char *content_type; /* or NULL */
	const char *body;         /* NUL after length bytes; freed by the engine after the step */
	size_t length;
	bool open_ended;        /* only the end of the connection marked its end: it may be cut */
	int64_t took;           /* microseconds on the wire */
	struct strings secrets; /* that were sent: must not be shown with the answer */
	/* The unconfigured host that answered, or NULL. It got no credentials, and the engine
	 * makes sure that its words are not shown. */
	const char *redirected;
	const char *barred;  /* the host of a forbidden redirect (endpoint.redirects), or NULL */
	const char *problem; /* the failure, for the user, if there is no answer; the error output
				of a command; no secrets */
	/*
	 * Of TRANSFER_SMTP: the step that was answered. Without an answer, MAIL_TLS or MAIL_LOGIN
	 * if the server does not offer that, else MAIL_GREETING. If the mail was accepted (status
	 * 250), some recipients may have been refused.
	 */
	enum mail_stage stage;
	const struct mail_refusal *refusals;
	size_t refusal_count;
};

/* Whether the text before an @ may be a password with an unencoded /, ? or #; such an @ may as
 * well belong to the path. */
bool transfer_url_ambiguous(const char *url);

/* Whether it begins with http:// or https://, in any letter case. */
bool transfer_url_is_http(const char *url);

/* Why a text is not a valid http or https URL, or NULL: "it must begin with ..." */
const char *transfer_url_problem(const char *url);

/* The same of smtp:// and smtps://. */
bool transfer_url_is_mail(const char *url);
const char *transfer_mail_url_problem(const char *url);

/* Whether a host, or that of a URL, is this machine by name or address; whether a URL contains a
 * user. */
bool transfer_host_is_local(const char *host, size_t length);
bool transfer_url_is_local(const char *url);
bool transfer_url_has_user(const char *url);

/*
 * Scheme, host, port and path of `url` without user info, query and fragment, for messages; into
 * the arena. Only the scheme if it is ambiguous.
 */
const char *transfer_safe_url(struct arena *arena, const char *url);

/* The same for a request to the endpoint (or NULL), with its address as in the file. */
const char *transfer_shown_url(
	struct arena *arena, const struct endpoint *endpoint, const char *url);

/*
 * `base` (with or without a trailing slash) and `path` joined, without the base's user info, query
 * and fragment; percent-encoding of a query value into a buf.
 */
const char *transfer_join_url(struct arena *arena, const char *base, const char *path);
void transfer_encode(struct buf *out, const char *text);

#endif
