/*
 * Triage and silences as named texts: the parameters of the API, which commands without an agent
 * use, too. And the answers, as JSON.
 */
#ifndef AGENT_WEB_FORMS_H
#define AGENT_WEB_FORMS_H

#include "agent/base/buf.h"
#include "agent/notify/silence.h"
#include "agent/store/store.h"

struct config;

/* Changes in one answer; the rest is only counted. */
enum { FORM_CHANGES = 1000 };

/* A parameter's text; NULL: not given. */
typedef const char *form_get(void *context, const char *name);

/* A parameter that is true or false; false if it is not given. */
bool form_bool(const char *text, const char *name, bool *out, struct error *error) MUST_USE;

/* One of the names, which end with NULL: its index; *out stays as it is if it is not given. And a
 * list of those from the first on: bits 1 << index. */
bool form_choice(const char *text, const char *name, const char *const *names, int *out,
	struct error *error) MUST_USE;
bool form_choices(const char *text, const char *name, const char *const *names, int first,
	unsigned *out, struct error *error) MUST_USE;

/* A date as users write it; `open` if it is not given. */
bool form_date(const char *text, const char *name, int64_t now, int64_t open, int64_t *out,
	struct error *error) MUST_USE;

/* Names of parameters, for the table of routes: of one change, of a selection, of a new silence. */
#define TRIAGE_FORM_OF_ONE "state owner note link until version person dry_run"
#define TRIAGE_FORM TRIAGE_FORM_OF_ONE " ids test commit message incident"
#define SILENCE_FORM "matchers from until for owner reason person"

/* Reads state, triage, open, test, incident, since and until, which select changes; copies lie in
 * the arena. */
bool change_form_read(form_get *get, void *context, int64_t now, struct arena *arena,
	struct change_filter *filter, struct error *error) MUST_USE;

/*
 * Reads state, owner, note, link, until, version, ids ("812,815..830"), test, commit,
 * message, incident and dry_run into the call, whose `now` and actor are the caller's; copies lie
 * in its arena. ERROR_USAGE: the text names the parameter.
 */
bool triage_form_read(
	form_get *get, void *context, struct store_triage *call, struct error *error) MUST_USE;

/* Whether it changes anything; otherwise it only reads. */
bool triage_form_says(const struct store_triage *call);

/* Sets an error with the selection without changes, or the missing ids. */
bool triage_form_nothing(const struct store_triage *call, struct error *error) MUST_USE;

/* Appends {"changes": [...], "changed": 3, "count": 5}, with the links of the configuration unless
 * it is NULL; of a conflict {"error": ..., "changes": [...], ...}. */
void triage_form_answer(struct buf *out, const struct config *config, struct store_triage *call);

/*
 * Reads matchers, from, until or for, owner and reason of a new silence that may last `most` ms.
 * Without an owner it is the actor's, which is already set.
 */
bool silence_form_read(form_get *get, void *context, int64_t most, struct store_silence *call,
	struct error *error) MUST_USE;

/* Whether it can be the name of a person. */
bool actor_check(const char *person, struct error *error) MUST_USE;

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
