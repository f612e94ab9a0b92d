/*
 * Why there was no answer, in words that a person can act on.
 */
#ifndef AGENT_CLIENT_PROBLEM_H
#define AGENT_CLIENT_PROBLEM_H

#include <curl/curl.h>

#include "agent/core/arena.h"
#include "agent/core/transfer.h"

struct problem {
	CURL *easy;
	CURLcode code;
	const char *message; /* libcurl's own, or "" */
	const struct endpoint *endpoint;
	const char *here; /* the origin that was asked */
	bool sent;        /* the request was, or part of it */
	bool body_too_big, head_too_big;
};

/* A sentence that names the origin and holds no secret; into the arena. */
const char *problem_explain(const struct problem *problem, struct arena *arena);

#endif
