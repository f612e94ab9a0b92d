/* /api/v1/clusters: the cluster groups with their last rounds, in order of their names, in pages.
 */
#include <string.h>

#include "agent/base/when.h"
#include "agent/web/api.h"

enum { LIMIT = 20, MOST = 100 };

struct listing {
	const char *group; /* or NULL */
	struct api_page page;
	struct buf *out;
};

static void put_round(struct buf *out, const struct cluster_round *round)
{
	json_put_time(out, "ended", round->ended);
	json_put_seconds(out, "duration_seconds", round->duration);
	json_put_text(out, "problem", *round->problem ? round->problem : NULL);
	json_put_count(out, "tests", round->tests);
	json_put_count(out, "failed_tests", round->failed);
	json_put_count(out, "series", round->series);
	json_put_count(out, "left_out", round->left_out);
	json_put_count(out, "points", round->points);
	json_put_count(out, "k", round->k);
	json_put_count(out, "found", round->found);
	json_put_count(out, "new", round->fresh);
}

static void put_shapes(struct buf *out, const struct cluster_shapes *shapes)
{
	if (!shapes) {
		buf_text(out, ", \"last\": null");
		return;
	}
	buf_printf(out, ",\n   \"last\": {\"times\": [%s]", shapes->times);
	put_round(out, &shapes->round);
	buf_text(out, ", \"clusters\": [");
	for (size_t i = 0; i < shapes->count; i++) {
		json_line(out);
		buf_char(out, '{');
		json_put_id(out, "change", shapes->items[i].change);
		buf_printf(out, ", %s}", shapes->items[i].json);
	}
	buf_text(out, "]}");
}

static void put_cluster(struct buf *out, const struct scheduler_cluster *state)
{
	json_open(out, "name", state->group->name);
	json_put_count(out, "tests", state->tests);
	json_put_seconds(out, "interval_seconds", state->interval);
	json_put_bool(out, "running", state->running);
	json_put_bool(out, "failing", state->failing);
	json_put_time(out, "next_run", state->next_due);
	put_shapes(out, state->rounds->shapes);
	buf_text(out, ",\n   \"rounds\": [");
	for (size_t i = 0; i < state->rounds->count; i++) {
		buf_printf(out, "%s\n    {\"number\": %zu", i ? "," : "", i);
		put_round(out, &state->rounds->items[i]);
		buf_char(out, '}');
	}
	buf_text(out, "]}");
}

static void list_cluster(void *context, const struct scheduler_cluster *state)
{
	struct listing *listing = context;
	const char *name = state->group->name;

	if (listing->group && strcmp(listing->group, name) != 0)
		return;
	if (api_page_lists(&listing->page, name, listing->out))
		put_cluster(listing->out, state);
}

void api_get_clusters(struct http_request *request)
{
	struct buf *out = &request->buffer;
	struct form form = api_form(request, request->arena);
	struct listing listing = {.group = form_get(&form, "group"),
		.page = api_page_begin(&form, LIMIT, MOST),
		.out = out};

	if (api_wrong(request, &form))
		return;
	buf_text(out, "{\"groups\": [");
	scheduler_each_cluster(api_of(request)->scheduler, list_cluster, &listing);
	api_page_end(&listing.page, out);
	buf_text(out, "}\n");
	http_send(request, 200);
}
