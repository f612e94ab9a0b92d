/* A change that was accepted in review: an entry of `known_changes` (conf/known_changes.h). */
#ifndef AGENT_MODEL_KNOWN_CHANGE_H
#define AGENT_MODEL_KNOWN_CHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The author of the triage of what entries cover. */
#define KNOWN_CHANGES_PERSON "known_changes"

enum { KNOWN_COMMIT_LEAST = 4 }; /* digits that can stand for a whole commit */

struct known_change {
	const char *test, *metric; /* names or shell patterns; metric NULL: any */
	const char *commit;        /* or the beginning of it; NULL: any */
	int64_t from, to; /* ms, both included: a moment or a day; WHEN_ALWAYS, WHEN_NEVER: any */
	int direction;    /* 1 up, -1 down, 0 either */
	double at_most;   /* percent; 0: of any size */
	const char *reason;
	int64_t until;    /* ms: counts before it; WHEN_NEVER */
	const char *file; /* where it stands */
	int line, column;
};

/* Whether it is fewer hexadecimal digits than an entry may have. */
static inline bool known_commit_is_short(const char *commit)
{
	size_t digits = strspn(commit, "0123456789abcdefABCDEF");

	return digits > 0 && digits < KNOWN_COMMIT_LEAST && commit[digits] == '\0';
}

#endif
