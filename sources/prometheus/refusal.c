/*
 * Limits are known by the words of the servers: Prometheus, Thanos, Mimir and VictoriaMetrics have
 * statuses of their own for them. Proxies in front of them have pages for theirs, of which only
 * statuses that are about load and size are read.
 */
#include "sources/prometheus/refusal.h"

#include <string.h>

#include "sources/http_error.h"

const char *refusal_words(const char *said)
{
	const char *request = strstr(said, "requestURI: ");
	const char *end = request ? strstr(request, "; ") : NULL;
	return end && strncmp(said, "remoteAddr: ", 12) == 0 ? end + 2 : said;
}

bool refusal_too_much(const struct reply *reply, const char *said)
{
	static const char *const words[] = {"too many samples", "exceeded maximum resolution",
		"exceeds the limit", "-search.max", "max-query-length", "timed out", "timeout"};
	if (reply->kind == REPLY_TOO_BIG)
		return true;
	if (reply->kind != REPLY_ANSWER || reply->status < 400 || reply->status == 401 ||
		reply->status == 403 || reply->status == 429)
		return false;
	if (reply->status == 413 || reply->status == 504)
		return true;
	if (reply->status != 503 && http_error_is_page(reply))
		return false;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (strstr(said, words[i]))
			return true;
	return false;
}

const char *refusal_advice(enum request_mode how, const struct reply *reply, const char *said)
{
	bool raw = how != REQUEST_GRID;
	if (refusal_too_much(reply, said))
		return raw ? ": shorten range, or narrow query"
			   : ": shorten range, raise step, or narrow query";
	if (reply->status == 400 && raw && !strstr(said, "HTTPS server"))
		return " (without step the query must be a selector, as its raw samples are read: "
		       "add step to the test)";
	if (reply->status == 404 && how == REQUEST_EXPORT)
		return ": it was taken for VictoriaMetrics; set flavor: prometheus if it is none";
	return NULL;
}
