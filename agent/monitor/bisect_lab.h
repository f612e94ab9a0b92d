/*
 * Asks a lab to make a run: a request as the receiver `webhook` sends it, with the run as its body.
 */
#ifndef AGENT_MONITOR_BISECT_LAB_H
#define AGENT_MONITOR_BISECT_LAB_H

#include "agent/base/buf.h"
#include "agent/bisect/bisection.h"
#include "agent/runtime/agent.h"

struct lab_request {
	int64_t bisection, change;
	const char *test, *metric, *lab, *repository, *commit; /* commit: full id */
	struct bisect_run run;
	size_t candidates;
	int64_t timeout;          /* ms */
	const char *external_url; /* of the agent, or NULL */
};

/* Appends the document. */
void lab_request_put(struct buf *out, const struct lab_request *request);

/* What a lab can answer, as it is stored: "measured 12.5", "untestable", "failed: no device". */
struct lab_answer {
	enum bisect_outcome outcome;
	double value;
	const char *problem; /* or NULL; borrowed from the text */
};

/* The words of the outcomes that a lab can tell, NULL-terminated: "measured" ... */
extern const char *const lab_outcomes[];

/* False: it is none. */
bool lab_answer_parse(const char *text, struct lab_answer *out);

/* Sends it; `done` is called later with NULL if the lab took it, or why not. Copies what it needs.
 * What is returned lasts until `done`, and is to be freed only if the engine was freed before. */
struct lab_asking;
typedef void lab_asked(void *context, uint64_t run, const struct error *error);
struct lab_asking *lab_ask(struct agent *agent, struct config_ref *config_ref, const void *webhook,
	const struct lab_request *request, lab_asked *done, void *context);
void lab_asking_free(struct lab_asking *asking); /* accepts NULL */

#endif
