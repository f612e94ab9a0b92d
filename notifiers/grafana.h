/*
 * Annotations for the commands that write or remove them without an agent.
 */
#ifndef NOTIFIERS_GRAFANA_H
#define NOTIFIERS_GRAFANA_H

#include "notifiers/notifier.h"

/* The annotations of a test, or of all tests, shall be those of the items. */
struct grafana_job {
	const char *test; /* NULL: all */
	int64_t from, to; /* ms: annotations outside are left alone; WHEN_ALWAYS and WHEN_NEVER:
			     none is */
	const struct announcement *items;
	size_t count;
	bool counts;  /* only count existing ones */
	bool removes; /* also remove the agent's */
};

/* The result of a job. */
struct grafana_result {
	size_t found, created, changed, removed;
};

/* Writes the payload of an attempt with grafana_notifier; reads the receipt that it ends with. */
void grafana_put_job(struct buf *payload, const void *options, const struct grafana_job *job);
bool grafana_read_receipt(const char *receipt, struct grafana_result *result) MUST_USE;

/* The most annotations that a job sees; if it found as many, there may be more. */
enum { GRAFANA_MOST = 10000 };

#endif
