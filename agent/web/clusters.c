/* /api/v1/clusters: the cluster groups with their last rounds, in order of their names, in pages.
 */
#include <inttypes.h>
#include <math.h>
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

static void put_members(struct buf *out, const struct round_shape *shape)
{
	json_put_count(out, "members", shape->count);
	buf_text(out, ", \"first_members\": [");
	for (size_t i = 0; i < shape->member_count; i++) {
		json_open(out, "test", shape->members[i].test);
		json_put_text(out, "series", shape->members[i].series);
		buf_char(out, '}');
	}
	buf_text(out, "], \"shared\": [");
	for (size_t i = 0; i < shape->label_count; i++) {
		json_open(out, "label", shape->labels[i].text);
		json_put_number(out, "share", shape->labels[i].share);
		json_put_number(out, "overall", shape->labels[i].overall);
		buf_char(out, '}');
	}
	buf_char(out, ']');
}

static void put_shape(
	struct buf *out, const struct cluster_shapes *shapes, const struct round_shape *shape)
{
	buf_char(out, '{');
	json_put_id(out, "change", shape->change > 0 ? shape->change : 0);
	json_put_time(out, "time", shape->time);
	buf_printf(out, ", \"sign\": %d, \"direction\": %d", shape->sign, shape->direction);
	json_put_bool(out, "worse", shape->sign * shape->direction < 0);
	json_put_number(out, "strength", fabs(shape->regression));
	json_put_number(out, "size", shape->size);
	json_put_text(out, "commit_before", shape->commit_before);
	json_put_text(out, "commit_after", shape->commit_after);
	json_put_text(out, "version_before", shape->version_before);
	json_put_text(out, "version_after", shape->version_after);
	put_members(out, shape);
	buf_text(out, ", \"centroid\": [");
	for (size_t i = 0; i < shapes->point_count; i++)
		buf_printf(out, "%s%.3f", i ? "," : "", (double)shape->centroid[i]);
	buf_text(out, "]}");
}

static void put_shapes(struct buf *out, const struct cluster_shapes *shapes)
{
	if (!shapes) {
		buf_text(out, ", \"last\": null");
		return;
	}
	buf_text(out, ",\n   \"last\": {\"times\": [");
	for (size_t i = 0; i < shapes->point_count; i++)
		buf_printf(out, "%s%" PRId64, i ? "," : "", shapes->times[i]);
	buf_char(out, ']');
	put_round(out, &shapes->round);
	buf_text(out, ", \"clusters\": [");
	for (size_t i = 0; i < shapes->count; i++) {
		json_line(out);
		put_shape(out, shapes, &shapes->items[i]);
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
