/*
 * From what was found in a test to what the store shall write.
 */
#ifndef AGENT_NEWS_H
#define AGENT_NEWS_H

#include "agent/analyze.h"
#include "agent/news/store.h"

/* How the change points of one pass differ from what is known. */
struct news_tally {
	size_t fresh, silent, moved, withdrawn, returned;
};

/*
 * Fills `request` (STORE_RECORD) with new records and updates. `known` are the test's records
 * as STORE_KNOWN gives them, in its order. A change older than `oldest` (ms) is recorded as
 * NEWS_SILENT. Everything is copied to the request's arena. For a worker, as it looks at each
 * point.
 */
struct news_tally news_find(const struct analysis *analysis, const char *branch,
	const struct record *known, size_t known_count, int64_t now, int64_t oldest,
	struct store_request *request);

#endif
