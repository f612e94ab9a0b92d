#include "agent/deliver/pictures.h"

#include <string.h>

#include "agent/analysis/announce.h"
#include "agent/report/plot_draw.h"

enum { WIDTH = 800, HEIGHT = 320 };

bool pictures_wanted(const struct receiver *receiver)
{
	const struct notifier *notifier = notifier_find(receiver->notifier->name);

	return notifier->pictures && notifier->pictures(receiver->options);
}

static void *copy(struct arena *arena, const void *items, size_t size)
{
	return memcpy(arena_alloc(arena, size), items, size);
}

const struct excerpted *pictures_keep(struct arena *arena, const struct excerpted *worst)
{
	struct excerpted *kept;
	size_t n;

	if (!worst)
		return NULL;
	n = worst->excerpt.n;
	kept = arena_alloc(arena, sizeof *kept);
	kept->record = (struct change_record){.item = announce_copy(arena, &worst->record.item),
		.series = arena_strdup(arena, worst->record.series),
		.branch = arena_strdup(arena, worst->record.branch),
		.sign = worst->record.sign,
		.state = worst->record.state,
		.triage = {.state = worst->record.triage.state}};
	kept->excerpt = (struct excerpt){n,
		copy(arena, worst->excerpt.times, n * sizeof *worst->excerpt.times),
		copy(arena, worst->excerpt.values, n * sizeof *worst->excerpt.values)};
	return kept;
}

static bool draw(struct attempt *attempt, struct illustration *out, struct error *error)
{
	const struct plot *plot = record_plot(attempt->arena, attempt->drawn);
	struct buf bytes = {0};
	bool drawn = plot_png(
		plot, &(struct plot_style){.width = WIDTH, .height = HEIGHT}, &bytes, error);

	if (drawn)
		*out = (struct illustration){
			.bytes = copy(attempt->arena, bytes.data, bytes.length),
			.length = bytes.length,
			.width = WIDTH,
			.height = HEIGHT,
			.title = plot->title};
	buf_free(&bytes);
	return drawn;
}

void pictures_offer(struct attempt *attempt, const struct excerpted *worst)
{
	if (!worst)
		return;
	attempt->draw = draw;
	attempt->drawn = worst;
}
