/*
 * Names of written data: the body of POST /api/v1/arrived, as JSON or as lines.
 *
 * JSON: {"graphite": ["web.cpu"], "prometheus": ["up{job=\"a\"}"], "files": ["/var/a.csv"],
 * "tests": ["web"]}, each of them optional. A line is one of the words
 * graphite, prometheus, file and test, and a name: "graphite web.cpu". If all names are of one
 * kind, given elsewhere, the words are left out. Behind a path of Graphite the rest of the line
 * does not count, so that it may be one of the protocol of carbon.
 */
#ifndef AGENT_WEB_ARRIVED_H
#define AGENT_WEB_ARRIVED_H

#include "agent/monitor/readers.h"

enum arrived_kind {
	ARRIVED_ANY,
	ARRIVED_GRAPHITE,
	ARRIVED_PROMETHEUS,
	ARRIVED_FILE,
	ARRIVED_TEST,
};

struct arrived {
	struct found_readers readers;
	size_t names, unread; /* how many there were, and were of no test */
};

/* Adds the tests that read what the body names. It is changed while it is read, and a NUL follows
 * it. An ERROR_USAGE says where it is malformed. */
bool arrived_read(struct arrived *out, char *body, size_t length, enum arrived_kind kind,
	struct error *error) MUST_USE;

#endif
