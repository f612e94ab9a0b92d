/*
 * Triage and silences as named texts: the parameters of the API, which commands without an agent
 * use, too. And the answers, as JSON.
 */
#ifndef AGENT_WEB_FORMS_H
#define AGENT_WEB_FORMS_H

#include "agent/base/buf.h"
#include "agent/runtime/silence.h"
#include "agent/store/store.h"

struct config;

/* Changes in one answer; the rest is only counted. */
enum { FORM_CHANGES = 1000 };

/* Parameters, read one after the other: what follows an error is as if it was not given, and the
 * first error stays. */
struct form {
	const char *(*get)(void *context, const char *name); /* NULL: not given */
	void *context;
	struct arena *arena; /* of what is read */
	int64_t now;
	bool failed;
	struct error error; /* ERROR_USAGE: the text names the parameter */
};

void form_fail(struct form *form, const char *format, ...) PRINTF_LIKE(2, 3);

/* The text as it is, not a copy; NULL: not given. */
const char *form_get(const struct form *form, const char *name);

/* true or false; false if it is not given. */
bool form_bool(struct form *form, const char *name);

/* One of the names from the first on, which end with NULL: its index; `usual` if it is not given.
 * And a list of them: bits 1 << index. */
int form_choice(
	struct form *form, const char *name, const char *const *names, int first, int usual);
unsigned form_choices(struct form *form, const char *name, const char *const *names, int first);

/* A date as users write it; `open` if it is not given. */
int64_t form_date(struct form *form, const char *name, int64_t open);

/* A number from `least` to `most`; `usual` if it is not given. */
int64_t form_number(
	struct form *form, const char *name, int64_t least, int64_t most, int64_t usual);

/* An id; 0 if it is not given. `of`: "a change". */
int64_t form_id(struct form *form, const char *name, const char *of);

/* A few words. */
struct strings form_words(struct form *form, const char *name);

/* The person that the request names; `usual` if none. */
const char *form_person(struct form *form, const char *usual);

/* Names of parameters, for the table of routes: of one change, of a selection, of a new silence. */
#define TRIAGE_FORM_OF_ONE "state owner note link until version person dry_run"
#define TRIAGE_FORM TRIAGE_FORM_OF_ONE " ids test commit message incident"
#define SILENCE_FORM "matchers from until for owner reason person"

/* These return whether the form has not failed. Reads state, triage, open, test, incident, since
 * and until, which select changes. */
bool change_form_read(struct form *form, struct change_filter *filter);

/* Reads state, owner, note, link, until, version, ids ("812,815..830"), test, commit, message,
 * incident and dry_run into the call. */
bool triage_form_read(struct form *form, struct store_triage *call);

/* Whether it changes anything; otherwise it only reads. */
bool triage_form_says(const struct store_triage *call);

/* Sets an error with the selection without changes, or the missing ids. */
bool triage_form_nothing(const struct store_triage *call, struct error *error) MUST_USE;

/* Appends "changes": [...] with so many records at most, and the links of the configuration unless
 * it is NULL. */
void records_put_changes(struct buf *out, const struct config *config, struct arena *arena,
	struct record_rows *records, size_t most);

/* Appends {"changes": [...], "changed": 3, "count": 5}, with the links of the configuration unless
 * it is NULL; of a conflict {"error": ..., "changes": [...], ...}. */
void triage_form_answer(struct buf *out, const struct config *config, struct store_triage *call);

/* Reads matchers, from, until or for, owner and reason of a new silence that may last `most` ms.
 * Without an owner it is the actor's, which is already set, as is `now`. */
bool silence_form_read(struct form *form, int64_t most, struct store_silence *call);

/* Matchers in their normal form, in the arena; NULL and an error if they cannot be read. */
const char *form_matchers(const char *text, struct arena *arena, struct error *error);

/* Appends {"silences": [...]} and objects: a silence, with its state at a time ("pending",
 * "active", "over"). */
void silences_put_json(struct buf *out, const struct silence_rows *silences, int64_t now);
void silence_put_json(struct buf *out, const struct silence *silence, int64_t now);

/* The same for a new one, with its reach. */
void silence_put_added(struct buf *out, const struct silence *silence, int64_t now,
	const struct silence_reach *reach);

/* Appends the member "warning" alone: a name in the matchers is unknown, or they match no test. */
void silence_put_warning(struct buf *out, const struct silence_reach *reach);

/* Appends {"audit": [...], "next": ...}. */
void audit_list_put_json(struct buf *out, const struct store_audit *list);

/* Appends {"time": ..., "shared": true, "agents": [...], "shards": {...}}: the live agents, the
 * shards of each, and its delay. `self`: the instance that answers; 0: none. */
void agents_put_json(struct buf *out, const struct store_turn *seen, int64_t self);

#endif
