/* /api/v1/changes/ID: the content of a change's page without the plot: the change, the state of its
 * test, and related changes. */
#include <inttypes.h>
#include <string.h>

#include "agent/analysis/announce.h"
#include "agent/base/url_template.h"
#include "agent/model/announcement.h"
#include "agent/model/record_json.h"
#include "agent/report/plot.h"
#include "agent/runtime/silence.h"
#include "agent/web/api.h"

enum { LIMIT = 12 };

/* A plot of the points that are stored with a change, if there are any. */
static void put_plot(struct buf *out, struct arena *arena, const struct change_record *record,
	const struct excerpt *excerpt)
{
	const struct excerpted found = {.record = *record, .excerpt = *excerpt};

	json_put(out, "plot:");
	plot_put_json(out, record_plot(arena, &found));
}

static void put_sibling(struct buf *out, struct arena *arena, const struct related_change *related)
{
	const struct change_record *record = &related->record;
	const struct announcement *item = &record->item;

	json_put(out, "{id: %jd, test: %s, series: %s, branch: %s optional, time: %jd time",
		item->id, item->test, record->series, record->branch, item->time);
	record_put_found(out, item);
	json_put(out,
		"recovered: %jd moment, regression: %d bool, state: %s, triage: %s, "
		"relations: [",
		item->over.time, announcement_verdict(item) > 0, change_state_names[record->state],
		triage_state_names[record->triage.state ? record->triage.state : TRIAGE_OPEN]);
	for (int i = 0; i < RELATIONS; i++)
		if (related->relations >> i & 1)
			json_put(out, "%s", relation_names[i]);
	buf_char(out, ']');
	put_plot(out, arena, record, &related->excerpt);
	buf_char(out, '}');
}

/* A silence that these values select. Long ones make no matcher. */
static void put_matchers(struct buf *out, const char *of, const struct matcher *items, size_t count)
{
	struct buf text = {0};
	bool fits = true;

	for (size_t i = 0; i < count; i++)
		fits = fits && items[i].value && *items[i].value &&
		       strlen(items[i].value) <= MATCHER_VALUE_MOST;
	if (!fits)
		return;
	matchers_print(&(struct matchers){items, count}, &text);
	if (text.length <= MATCHERS_TEXT_MOST)
		json_put(out, "\n{of: %s, matchers: %s}", of, text.data);
	buf_free(&text);
}

static struct matcher equal(const char *name, const char *value)
{
	return (struct matcher){.name = name, .value = value, .operator= MATCHER_EQUAL };
}

static void put_silences(struct buf *out, const struct announcement *item)
{
	struct matcher series[] = {equal("test", item->test), equal("metric", item->metric)};
	struct matcher environment = equal("environment", item->environment);
	struct matcher commit = equal("commit", item->commit_after);

	json_put(out, "matchers: [");
	if (item->members == 0)
		put_matchers(out, "series", series, 2);
	put_matchers(out, item->members ? "cluster" : "test", series, 1);
	put_matchers(out, "environment", &environment, 1);
	put_matchers(out, "commit", &commit, 1);
	buf_char(out, ']');
}

static void put_silence(struct buf *out, const struct silence *silence)
{
	if (!silence) {
		json_put(out, "silence: null");
		return;
	}
	json_put(out,
		"silence: {id: %jd, matchers: %s, until: %jd time, owner: %s, "
		"person: %s, reason: %s}",
		silence->id, silence->matchers, silence_end(silence), silence->owner,
		silence->person, silence->reason);
}

/* The pages of the commit, of the comparison, and of each listed suspect. */
static void put_links(struct buf *out, struct arena *arena, const struct announcement *item)
{
	const struct attribution *suspects = &item->suspects;

	json_put(out, "links: {commit: %s, compare: %s, suspects: [", item->commit_url,
		item->compare_url);
	for (size_t i = 0; i < suspects->listed; i++) {
		struct url_values values = {0};

		if (item->templates && item->values)
			values = *item->values;
		values.commit = suspects->list[i].commit;
		json_put(out, "%s optional",
			item->templates && values.commit
				? url_template_expand(
					  arena, item->templates->commit_url, &values, true)
				: "");
	}
	json_put(out, "]}");
}

/* The one of that name. */
struct search {
	const char *name;
	struct buf *out;
	bool found;
};

static void put_state(void *context, const struct scheduler_test *state)
{
	struct search *search = context;
	struct buf *out = search->out;

	if (search->found || strcmp(state->test->name, search->name) != 0)
		return;
	search->found = true;
	json_put(out,
		"source: %s optional, interval_seconds: %jd seconds, bisects: %d bool, "
		"running: %d bool, failing: %d bool, stale: %d bool, problem: %s, "
		"last_run: %jd moment, next_run: %jd time",
		state->test->server ? state->test->server->name : "", state->test->interval,
		state->test->bisect != NULL, state->running, state->failing, state->stale,
		state->problem, state->last_run, state->next_due);
}

static void put_test(struct buf *out, const struct api *api, const char *name)
{
	const struct config *config = api->agent->config;
	const struct group *group = config_group(config, name);
	bool cluster = group && group->cluster;

	if (!cluster && !config_test(config, name)) {
		json_put(out, "test: null");
		return;
	}
	json_put(out, "test: {kind: %s", cluster ? "cluster" : "test");
	if (!cluster)
		scheduler_each(api->scheduler, put_state, &(struct search){name, out, false});
	buf_char(out, '}');
}

static void put_story(struct buf *out, const struct api *api, struct store_story *story)
{
	struct change_record *record = &story->records.items[0];
	const struct agent *agent = api->agent;

	announce_links(story->call.arena, agent->config, record);
	json_put(out, "{change:");
	record_put_json(out, record);
	put_plot(out, story->call.arena, record, &story->excerpt);
	put_links(out, story->call.arena, &record->item);
	put_test(out, api, record->item.test);
	json_put(out, "last_point: %jd time, ended: %jd time", story->last_point, story->ended);
	put_silence(out, silence_of(agent->config, &story->silences, record, story->now));
	put_silences(out, &record->item);
	json_put(out, "cluster: %jd id, siblings: [", story->cluster);
	for (size_t i = 0; i < story->related_count; i++) {
		json_line(out);
		put_sibling(out, story->call.arena, &story->related[i]);
	}
	json_put(out, "], siblings_total: %zu}", story->related_total);
}

static void told(struct store_story *story)
{
	struct http_request *request = story->call.context;

	if (api_failed(request, &story->call))
		return;
	if (story->records.count == 0 && story->pruned)
		http_fail(request, 404, "change %" PRId64 " was settled and pruned", story->change);
	else if (story->records.count == 0)
		http_fail(request, 404, "there is no change %" PRId64, story->change);
	else {
		api_hide(request, story->call.arena, &story->records);
		put_story(&request->buffer, api_of(request), story);
		http_send(request, 200);
	}
	store_call_free(&story->call);
}

/* Copies, as the configuration may be another one before the store has looked. */
static void list_clusters(const struct config *config, struct store_story *story)
{
	struct arena *arena = story->call.arena;
	struct store_cluster *clusters = arena_array(arena, config->group_count, sizeof *clusters);

	story->clusters = clusters;
	for (size_t i = 0; i < config->group_count; i++) {
		const struct group *group = &config->groups[i];
		const char **names;

		if (!group->cluster)
			continue;
		names = arena_array(arena, group->count, sizeof *names);
		for (size_t j = 0; j < group->count; j++)
			names[j] = arena_strdup(arena, group->tests[j]->name);
		clusters[story->cluster_count++] = (struct store_cluster){
			arena_strdup(arena, group->name), {names, group->count}};
	}
}

void api_get_change(struct http_request *request)
{
	struct store_story *story = store_story_new(told, request);
	struct form form = api_form(request, story->call.arena);

	story->change = request->id;
	story->now = form.now;
	story->limit = (size_t)form_number(&form, "limit", 1, STORE_RELATED_MOST, LIMIT);
	list_clusters(api_of(request)->agent->config, story);
	api_ask(request, &form, &story->call);
}
