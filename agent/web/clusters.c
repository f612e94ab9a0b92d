/* /api/v1/clusters: the cluster groups with their last rounds, in order of their names, in pages.
 */
#include <string.h>

#include "agent/web/api.h"

enum { LIMIT = 20, MOST = 100 };

struct listing {
	const char *group; /* or NULL */
	struct api_page page;
	struct buf *out;
};

static void put_round(struct buf *out, const struct cluster_round *round)
{
	json_put(out,
		"ended: %jd time, duration_seconds: %jd seconds, problem: %s optional, "
		"tests: %zu, failed_tests: %zu, series: %zu, left_out: %zu, "
		"points: %zu, k: %zu, found: %zu, new: %zu",
		round->ended, round->duration, round->problem, round->tests, round->failed,
		round->series, round->left_out, round->points, round->k, round->found,
		round->fresh);
}

static void put_shapes(struct buf *out, const struct cluster_shapes *shapes)
{
	if (!shapes) {
		json_put(out, "last: null");
		return;
	}
	json_put(out, "last: {times: [%s json]", shapes->times);
	put_round(out, &shapes->round);
	json_put(out, "clusters: [");
	for (size_t i = 0; i < shapes->count; i++)
		json_put(out, "\n{change: %jd id, %s json}", shapes->items[i].change,
			shapes->items[i].json);
	json_put(out, "]}");
}

static void put_cluster(struct buf *out, const struct scheduler_cluster *state)
{
	json_put(out,
		"\n{name: %s, tests: %zu, interval_seconds: %jd seconds, "
		"running: %d bool, failing: %d bool, next_run: %jd time",
		state->group->name, state->tests, state->interval, state->running, state->failing,
		state->next_due);
	put_shapes(out, state->rounds->shapes);
	json_put(out, "rounds: [");
	for (size_t i = 0; i < state->rounds->count; i++) {
		json_put(out, "\n{number: %zu", i);
		put_round(out, &state->rounds->items[i]);
		buf_char(out, '}');
	}
	json_put(out, "]}");
}

static void list_cluster(void *context, const struct scheduler_cluster *state)
{
	struct listing *listing = context;
	const char *name = state->group->name;

	if (listing->group && strcmp(listing->group, name) != 0)
		return;
	if (api_page_lists(&listing->page, name))
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
	json_put(out, "{groups: [");
	scheduler_each_cluster(api_of(request)->scheduler, list_cluster, &listing);
	api_page_end(&listing.page, out);
	buf_char(out, '}');
	http_send(request, 200);
}
