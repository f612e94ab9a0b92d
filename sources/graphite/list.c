#include "sources/graphite/list.h"

#include <string.h>

#include "agent/base/scan.h"

struct list {
	struct scan scan;
	const char *api, *noun;
	size_t count;     /* items so far */
	size_t *unusable; /* of these */
	struct error *error;
};

static bool fail(const struct list *list, const char *problem)
{
	return error_set(list->error, ERROR_DATA, "not an answer of Graphite's %s API: %s",
		list->api, problem);
}

static bool read_item(struct list *list, graphite_item *take, void *context)
{
	struct scan *scan = &list->scan, lax = {.at = scan->at, .end = scan->end, .lax = true};
	size_t left = (size_t)(scan->end - scan->at);
	size_t most = left < GRAPHITE_ITEM_MAX ? left : GRAPHITE_ITEM_MAX;
	json_error_t problem;
	json_t *item = json_loadb(scan->at, most,
		JSON_ALLOW_NUL | JSON_DECODE_ANY | JSON_DISABLE_EOF_CHECK, &problem);
	list->count++;
	if (!item && scan_value(&lax) && lax.at - scan->at > GRAPHITE_ITEM_MAX)
		return error_set(list->error, ERROR_DATA,
			"not an answer of Graphite's %s API: item %zu is larger than %d bytes",
			list->api, list->count, GRAPHITE_ITEM_MAX);
	if (!item && !lax.problem) {
		scan->at = lax.at;
		(*list->unusable)++;
		return true;
	}
	if (!item)
		return error_set(list->error, ERROR_DATA,
			"not an answer of Graphite's %s API: item %zu: %s", list->api, list->count,
			problem.text);
	scan->at += problem.position;
	bool good = take(context, item);
	json_decref(item);
	return good || error_set(list->error, ERROR_DATA,
			       "not an answer of Graphite's %s API: item %zu is not a valid %s",
			       list->api, list->count, list->noun);
}

bool graphite_list_read(const char *text, size_t length, const char *api, const char *noun,
	graphite_item *take, void *context, size_t *unusable, struct error *error)
{
	struct list list = {{.at = text, .end = text + length}, api, noun, 0, unusable, error};
	struct scan *scan = &list.scan;
	scan_space(scan);
	if (!scan_take(scan, '['))
		return fail(&list, "it is not a list");
	scan_space(scan);
	if (!scan_take(scan, ']')) {
		do {
			scan_space(scan);
			if (!read_item(&list, take, context))
				return false;
			scan_space(scan);
		} while (scan_take(scan, ','));
		if (!scan_take(scan, ']'))
			return fail(&list, "the list has no end");
	}
	scan_space(scan);
	return scan->at == scan->end || fail(&list, "unexpected text after the list");
}
