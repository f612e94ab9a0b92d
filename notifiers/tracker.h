/*
 * Issue trackers: the common part of GitHub, GitLab and Jira.
 *
 * A message is an issue, or a comment on the commit that it suspects (`on: commit`); one that
 * continues an earlier message is a comment on its issue. Every text ends with a mark, "hunter-c
 * KEY open 0": the key of the delivery, by which it is found after a lost answer; whether any of it
 * is open; and how often that has changed. Text that users write below the mark stays.
 *
 * When all of an issue is over, or some change is open again, it gets a comment. Its mark,
 * "hunter-c KEY said N", is looked up first, so that repeated steps write it once; then the issue
 * is written with the new N. With `close` an issue is closed when all is over, its comments
 * included, and opened again when it is not.
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
	TRACKER_COMMIT,   /* looks up a commit and its full name */
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
#define TRACKER_TOKEN(of, help)                                                                    \
	OPTION_ROW(SECRET, const char *, "token", of, common.token, help),                         \
		OPTION_STRING_AS("token_file", of, common.token_file, NULL,                        \
			"file with the token, read at each use")
#define TRACKER_LABELS(of)                                                                         \
	OPTION_ROW(LIST, struct strings, "labels", of, common.labels, "labels of new issues"),     \
		OPTION_ROW(BOOL, bool, "close", of, common.close,                                  \
			"close an issue when all of it is over, and reopen it when it is not")
#define TRACKER_ASSIGNEES(of)                                                                      \
	OPTION_ROW(LIST, struct strings, "assignees", of, common.assignees,                        \
		"assignees of new issues, by login")
#define TRACKER_ON(of)                                                                             \
	OPTION_ROW(CHOICE, int, "on", of, common.on,                                               \
		"what a message becomes: an issue, or a comment on the suspected commit (an "      \
		"issue if none)",                                                                  \
		.initial = "issue", .choices = tracker_on_names)

/*
 * A request: its path, and the one for a commit or its comment if that differs, below the address
 * and `home`; with %i issue, %r commit, %c comment, %k key, %p page, and %s, which `put_search`
 * writes.
 */
struct tracker_call {
	const char *method, *path[2];
};

struct tracker {
	const struct tracker_call *calls; /* by enum tracker_ask */
	const char *url;                  /* default address, or NULL */
	struct pairs headers;
	/* Appends the path of the repository, project or API that all requests begin with. */
	void (*home)(struct buf *path, const void *options);
	void (*put_search)(struct buf *path, const struct tracker_request *request,
		const struct attempt *attempt);
	/* Body of a request that is not a GET; released after use. */
	json_t *(*body)(const struct tracker_request *request, const void *options);
	const struct body_style *style;
	size_t title, text;              /* bytes that they may have */
	const char *hide_from, *hide_to; /* around a mark */
	unsigned page;                   /* items of a full page */
	/* Optional: ms until TRACKER_LIST finds a new issue. */
	int64_t (*lag)(const void *options);
	bool moves; /* the state of an issue changes by TRACKER_MOVE */
	/* Optional: the array of an answer that is none itself. */
	const json_t *(*list)(const json_t *answer, enum tracker_ask ask);
	/* An item of it, or of an answer that is one. */
	bool (*item)(const json_t *value, enum tracker_ask ask, struct arena *arena,
		struct tracker_item *out);
};

/* Checks the address, which may have a default, and the token, which may have to be there. */
bool tracker_check(
	const struct tracker_options *options, bool needs_token, struct error *error) MUST_USE;

/* For `render`, and for `step`, of notifiers whose `shape` is a struct tracker. */
bool tracker_render(const struct draft *draft);
enum step tracker_step(struct attempt *attempt, const struct reply *last);

enum {
	TRACKER_EVENTS = MESSAGES_OF_CHANGES | 1u << MESSAGE_REMINDER,
	TRACKER_SPACING = 1500, /* ms between issues; GitHub takes 80 a minute */
};

/* The number, or text, as text in the arena; NULL if it is neither. */
const char *tracker_id(struct arena *arena, const json_t *value);

/* An array of labels or assignees for a new issue; NULL for any other request, or without any. */
json_t *tracker_array(const struct tracker_request *request, const struct strings *texts);

#endif
