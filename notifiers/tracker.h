/*
 * Issue trackers: the common part of GitHub, GitLab and Jira.
 *
 * A message is an issue, or a comment on the commit that it suspects (`on: commit`); one that
 * continues an earlier message is a comment on its issue. Every text ends with a mark, "hunter-c
 * KEY open 0": the key of the delivery, by which it is found after a lost answer; whether any of it
 * is open; and how often that has changed. Text that users write below the mark stays.
 *
 * When all of an issue is over, or something is open again, a comment says so. Its mark, "hunter-c
 * KEY said N", is looked up first, so that repeated steps write it once; then the issue is written
 * with the new N. With `close` an issue is closed when all is over, its comments included, and
 * opened again when it is not.
 *
 * A tracker implements requests and answers; the logic is here.
 */
#ifndef NOTIFIERS_TRACKER_H
#define NOTIFIERS_TRACKER_H

#include <jansson.h>

#include "notifiers/body.h"
#include "notifiers/http_json.h"

enum tracker_ask {
	TRACKER_LIST,     /* issues that may have the key, by pages, newest first */
	TRACKER_CREATE,   /* an issue: title and text */
	TRACKER_READ,     /* an issue */
	TRACKER_WRITE,    /* its text, unless NULL, and its state */
	TRACKER_COMMENTS, /* on an issue or commit, by pages */
	TRACKER_COMMENT,  /* a new one: text */
	TRACKER_EDIT,     /* a comment: text */
	TRACKER_COMMIT,   /* whether there is such a commit, and its full name */
	TRACKER_WAYS,     /* the transitions of an issue, where its state needs one */
	TRACKER_MOVE,     /* such a transition */
	TRACKER_HOME,     /* the repository or project */
};

enum tracker_state { TRACKER_KEEP, TRACKER_OPEN, TRACKER_CLOSED };

/* An issue, perhaps with a comment, or a commit, perhaps with a comment; by ids, else NULL. */
struct tracker_target {
	const char *issue, *commit, *comment;
};

struct tracker_request {
	enum tracker_ask ask;
	struct tracker_target target;
	unsigned page; /* from 1 */
	const char *key, *title, *text;
	const char *way;          /* of TRACKER_MOVE: a item of TRACKER_WAYS */
	enum tracker_state state; /* of TRACKER_WRITE */
	bool bare;                /* without labels and assignees, which were refused */
	bool other;               /* by the other address, where TRACKER_LIST has two */
};

/* An issue, comment, commit or transition of an answer; its strings are in the arena. */
struct tracker_item {
	const char *id, *text; /* text: NULL if it has none */
	/* Of a transition: whether it closes; whether it makes the issue like a new one. */
	bool closed, fresh;
};

enum tracker_on { TRACKER_ON_ISSUE, TRACKER_ON_COMMIT };

/* The options of each tracker begin with these. */
struct tracker_options {
	struct endpoint endpoint;
	const char *token, *token_file;
	struct strings labels, assignees;
	const char *assignee; /* where there is only one */
	bool close;
	int on; /* enum tracker_on */
};

extern const char *const tracker_on_names[];

/* Rows of them for a struct whose member `common` they are. */
#define TRACKER_TOKEN(of, help_)                                                                   \
	{.name = "token",                                                                          \
		.type = FIELD_SECRET,                                                              \
		.offset = offsetof(of, common.token),                                              \
		.help = (help_)},                                                                  \
	{                                                                                          \
		.name = "token_file", .type = FIELD_STRING,                                        \
		.offset = offsetof(of, common.token_file),                                         \
		.help = "file with the token, read at each use"                                    \
	}
#define TRACKER_LABELS(of)                                                                         \
	{.name = "labels",                                                                         \
		.type = FIELD_LIST,                                                                \
		.offset = offsetof(of, common.labels),                                             \
		.help = "labels of new issues"},                                                   \
	{                                                                                          \
		.name = "close", .type = FIELD_BOOL, .offset = offsetof(of, common.close),         \
		.help = "close an issue when all of it is over, and open it again when it is not"  \
	}
#define TRACKER_ASSIGNEES(of, help_)                                                               \
	{                                                                                          \
		.name = "assignees", .type = FIELD_LIST, .offset = offsetof(of, common.assignees), \
		.help = (help_)                                                                    \
	}
#define TRACKER_ON(of)                                                                             \
	{                                                                                          \
		.name = "on", .type = FIELD_CHOICE, .offset = offsetof(of, common.on),             \
		.initial = "issue", .choices = tracker_on_names,                                   \
		.help = "what a message becomes: an issue, or a comment on the suspected commit "  \
			"(an issue if none)"                                                       \
	}

struct tracker {
	const struct body_style *style;
	size_t title, text;              /* bytes that they may have */
	const char *hide_from, *hide_to; /* around a mark */
	unsigned page;                   /* items of a full page */
	/* Optional: ms until TRACKER_LIST finds what is new. */
	int64_t (*lag)(const void *options);
	bool moves; /* the state of an issue changes by TRACKER_MOVE */
	/* Sets `next` by tracker_send. */
	void (*ask)(const struct tracker_request *request, struct attempt *attempt);
	/* The array of an answer, or NULL; and an item of it, or of an answer that is one. */
	const json_t *(*list)(const json_t *answer, enum tracker_ask ask);
	bool (*item)(const json_t *value, enum tracker_ask ask, struct arena *arena,
		struct tracker_item *out);
};

/* Checks the address, which may have a default, and the token, which may have to be there. */
bool tracker_check(
	const struct tracker_options *options, bool needs_token, struct error *error) MUST_USE;

/* For `render`, and for `step`, of notifiers whose `shape` is a struct tracker. */
void tracker_render(
	const struct tracker *tracker, const struct message *message, struct buf *payload);
enum step tracker_step(struct attempt *attempt, const struct reply *last);

enum {
	TRACKER_EVENTS = MESSAGES_OF_CHANGES | 1u << MESSAGE_REMINDER,
	TRACKER_SPACING = 1500, /* ms between issues; GitHub takes 80 a minute */
};

/* The request with that JSON, which is released, or NULL, to `base` and `path`. */
void tracker_send(struct attempt *attempt, const char *method, const char *base, const char *path,
	json_t *body, struct pairs headers);

/* The number, or text, as text in the arena; NULL if it is neither. */
const char *tracker_id(struct arena *arena, const json_t *value);

/* An array of the texts. */
json_t *tracker_array(const struct strings *texts);

#endif
