/* Who has done what. */
#ifndef AGENT_MODEL_AUDIT_H
#define AGENT_MODEL_AUDIT_H

#include <stdint.h>

/* Who does something, from where: "10.1.2.3", "unix socket", "Slack #perf", "command line". */
struct actor {
	const char *person, *origin;
};

/* A row of the audit log: what a person, or the agent itself, has changed. The log is also the
 * history of triage. */
struct audit_entry {
	int64_t id, time; /* ms */
	struct actor actor;
	const char *action;  /* "triage", "reopen", "silence", "end silence", "run", "reload" */
	int64_t change;      /* id; 0: it is about none */
	const char *subject; /* what it is about, or NULL */
	const char *detail;  /* or NULL */
};

#endif
