/*
 * Brackets and quotes alone determine where an item ends. In malformed JSON that may be the wrong
 * place, but then jansson, which parses the item, rejects it.
 */
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

/* Skips the rest of a string, to the end if it is unterminated. */
static void skip_string(struct scan *scan)
{
	while (scan->at < scan->end && !scan_take(scan, '"'))
		scan->at += *scan->at == '\\' && scan->end - scan->at > 1 ? 2 : 1;
}

/* Skips to the comma or bracket after the item, or to the end. */
static void skip_item(struct scan *scan)
{
	size_t open = 0;
	while (scan->at < scan->end) {
		char c = *scan->at;
		if (open == 0 && (c == ',' || c == ']'))
			return;
		open += c == '[' || c == '{';
		open -= open > 0 && (c == ']' || c == '}');
		scan->at++;
		if (c == '"')
			skip_string(scan);
	}
}

static bool read_item(struct list *list, graphite_item *take, void *context)
{
	const char *from = list->scan.at;
	json_error_t problem;
	skip_item(&list->scan);
	size_t length = (size_t)(list->scan.at - from);
	list->count++;
	if (length > GRAPHITE_ITEM_MAX)
		return error_set(list->error, ERROR_DATA,
			"not an answer of Graphite's %s API: item %zu is larger than %d bytes",
			list->api, list->count, GRAPHITE_ITEM_MAX);
	json_t *item = json_loadb(from, length, JSON_ALLOW_NUL | JSON_DECODE_ANY, &problem);
	struct scan lax = {.at = from, .end = list->scan.at, .lax = true};
	if (!item && scan_value(&lax) && scan_end(&lax)) {
		(*list->unusable)++;
		return true;
	}
	if (!item)
		return error_set(list->error, ERROR_DATA,
			"not an answer of Graphite's %s API: item %zu: %s", list->api, list->count,
			problem.text);
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
			if (!read_item(&list, take, context))
				return false;
		} while (scan_take(scan, ','));
		if (!scan_take(scan, ']'))
			return fail(&list, "the list has no end");
	}
	scan_space(scan);
	return scan->at == scan->end || fail(&list, "unexpected text after the list");
}
