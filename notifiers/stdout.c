/*
 * The terminal as a receiver: the grouped message as text.
 *
 * Messages are rendered once, with colours, and stored so in the outbox. Colours are removed when
 * printing to something other than a terminal. No other escape sequences can occur (text_clean), so
 * removing everything from ESC to 'm' suffices.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/core/when.h"
#include "notifiers/digest.h"

#define BOLD "\033[1m"
#define RED "\033[31m"
#define GREEN "\033[32m"
#define PLAIN "\033[0m"

enum { ITEMS_MAX = 1000, NAME_MAX_CHARS = 200, TEXT_MAX_CHARS = 1000 };
enum print { PRINT_PLAIN, PRINT_DATED, PRINT_NOTHING };
enum color { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

struct stdout_options {
	int color, print;
};

static const char *const colors[] = {"auto", "always", "never", NULL};

static const char *const prints[] = {"plain", "dated", "nothing", NULL};

static const struct field stdout_fields[] = {
	OPTION_CHOICE(struct stdout_options, color, "auto", colors,
		"colour the text: auto does it on a terminal"),
	OPTION_CHOICE(struct stdout_options, print, "plain", prints,
		"print each message, or the time it was made before it, or nothing"),
	{0},
};

static bool destinations(
	const void *options, struct arena *arena, struct strings *out, struct error *error)
{
	static const char *const terminal[] = {""};

	(void)options, (void)arena, (void)error;
	*out = (struct strings){.items = terminal, .count = 1};
	return true;
}

/* "      dashboard: https://grafana.example/d/shop", "      owner of p99: team-pay" */
static void render_page(
	enum page which, const char *text, const struct announcement *of, struct buf *out)
{
	if (!text)
		return;
	buf_printf(out, "      %s", page_names[which]);
	if (of) {
		buf_text(out, " of ");
		text_clean(out, of->metric, NAME_MAX_CHARS);
	}
	buf_text(out, ": ");
	if (which == PAGE_OWNER)
		text_clean(out, text, NAME_MAX_CHARS);
	else
		buf_text(out, text);
	buf_char(out, '\n');
}

static void render_help(const struct announcement *const *items, size_t count, struct buf *out)
{
	struct digest_pages pages = digest_pages(items, count);

	for (enum page which = 0; which < PAGES; which++) {
		render_page(which, pages.common[which], NULL, out);
		render_page(which, pages.own[which], pages.worst, out);
	}
}

static void render_range(const struct announcement *item, struct buf *out)
{
	const char *before, *after, *likely = announcement_likely(item);
	struct buf attributes = {0}, place = {0}, suspects = {0};

	text_place(&place, item, &text_plain);
	if (place.length > 0)
		buf_printf(out, "      %s\n", place.data);
	buf_free(&place);
	announcement_range(item, &before, &after);
	text_suspects(&suspects, item, &text_plain);
	if (before || after) {
		buf_text(out, "      ");
		if (before || !item->suspects.known) {
			text_clean(out, before ? before : "?", NAME_MAX_CHARS);
			buf_text(out, " .. ");
		}
		text_clean(out, after ? after : "?", NAME_MAX_CHARS);
		if (suspects.length > 0)
			buf_printf(out, ", %s", suspects.data);
		if (likely) {
			buf_text(out, ", most likely ");
			text_clean(out, likely, NAME_MAX_CHARS);
		}
		buf_char(out, '\n');
	} else if (suspects.length > 0) {
		buf_printf(out, "      %s\n", suspects.data);
	}
	buf_free(&suspects);
	text_attributes(&attributes, item);
	if (attributes.length > 0)
		buf_printf(out, "      %s\n", attributes.data);
	buf_free(&attributes);
	if (item->compare_url || item->commit_url)
		buf_printf(out, "      %s\n",
			item->compare_url ? item->compare_url : item->commit_url);
}

/* Crowds have no levels. */
static void render_crowd(const struct announcement *item, const char *color, struct buf *out)
{
	text_crowd(out, item, &text_plain);
	buf_text(out, color);
	if (announcement_extras(item)->folded)
		text_spread(out, &item->change);
	else
		text_percent(out, &item->change);
	text_basis(out, item);
	buf_text(out, PLAIN);
	text_crowd_shared(out, item, &text_plain);
}

/* "p99: +24% [21, 27]  3.17e+07 --> 3.94e+07 ns" */
static void render_single(const struct announcement *item, const char *color, struct buf *out)
{
	text_clean(out, item->metric, NAME_MAX_CHARS);
	buf_printf(out, ": %s", color);
	text_size(out, &item->change);
	text_basis(out, item);
	text_accepted(out, item);
	buf_text(out, PLAIN "  ");
	text_levels(out, &item->change, "-->");
	if (item->unit) {
		buf_char(out, ' ');
		text_clean(out, item->unit, NAME_MAX_CHARS);
	}
	text_course(out, item, &text_plain);
}

/* The worst changes of a crowd, and how to list the others. */
static void render_members(const struct announcement *item, const char *color, struct buf *out)
{
	size_t shown = item->members < CROWD_WORST ? item->members : CROWD_WORST;

	for (size_t i = 0; i < shown; i++) {
		buf_text(out, "      ");
		render_single(announcement_extras(item)->folded[i], color, out);
		buf_char(out, '\n');
	}
	buf_text(out, "      ");
	text_crowd_rest(out, item, shown, &text_plain);
	buf_text(out, ": ");
	text_command(out, item);
	buf_text(out, " lists all\n");
}

/* "    p99: +24% [21, 27]  3.17e+07 --> 3.94e+07 ns  regression" */
static void render_item(const struct announcement *item, struct buf *out)
{
	int verdict = announcement_verdict(item);
	const char *color = verdict > 0 ? RED : verdict < 0 ? GREEN : BOLD;

	buf_text(out, "    ");
	if (item->members > 0)
		render_crowd(item, color, out);
	else
		render_single(item, color, out);
	if (item->over.time != 0) {
		buf_text(out, ", ");
		text_recovery(out, item);
	}
	buf_text(out, verdict > 0 ? "  regression\n" : verdict < 0 ? "  improvement\n" : "\n");
	if (announcement_extras(item)->folded)
		render_members(item, color, out);
}

static void render_test(const struct announcement *item, struct buf *out)
{
	buf_text(out, "  " BOLD);
	text_clean(out, item->test, NAME_MAX_CHARS);
	buf_text(out, PLAIN);
	if (announcement_extras(item)->common) {
		buf_char(out, ' ');
		text_clean(out, announcement_extras(item)->common, NAME_MAX_CHARS);
	}
	buf_char(out, '\n');
}

/* "15 regressions in checkout, pay since 2021-07-02 00:00:00 +0000" */
static void render_head(const struct message *message, struct buf *out)
{
	char when[WHEN_TEXT];

	const struct environment_event *event = message->environment;

	if (message->summary) {
		text_summary(out, message, &text_plain);
		buf_char(out, '\n');
	}
	buf_text(out, BOLD);
	if (event) {
		text_environment(out, event, &text_plain);
		buf_printf(out, " since %s, ", when_format(event->time, when));
		text_elsewhere(out, event);
		text_early(out, message);
		buf_text(out, PLAIN "\n");
		return;
	}
	text_what(out, message, &text_plain);
	buf_printf(out, " since %s" PLAIN "\n", when_format(message_since(message), when));
	if (message->kind == MESSAGE_UPDATED)
		buf_printf(out, "more change points of %s\n",
			when_format(message->more_of->time, when));
}

/* "prometheus 2021-07-02 00:00:00 +0000", when it began or ended; below it the problem. */
static void render_notice(const struct notice *notice, struct buf *out)
{
	char when[WHEN_TEXT];

	buf_text(out, notice->recovered ? BOLD GREEN : BOLD RED);
	text_clean(out, notice->subject, NAME_MAX_CHARS);
	buf_printf(out, PLAIN "  %s\n    ",
		when_format(notice->ended ? notice->ended : notice->time, when));
	text_clean(out, notice->text, TEXT_MAX_CHARS);
	buf_text(out, "\n\n");
}

/* "    p99: back to 100 ms after 3 h  (+24%  100 --> 124 ms)" */
static void render_end(const struct announcement *item, struct buf *out)
{
	int verdict = announcement_verdict(item);

	buf_text(out, "    ");
	if (announcement_extras(item)->folded)
		text_crowd(out, item, &text_plain);
	else
		text_clean(out, item->metric, NAME_MAX_CHARS);
	buf_printf(out, "%s%s", announcement_extras(item)->folded ? "" : ": ",
		verdict > 0 ? GREEN : BOLD);
	text_recovery(out, item);
	buf_text(out, PLAIN "  (");
	if (announcement_extras(item)->folded) {
		text_spread(out, &item->change);
		text_crowd_shared(out, item, &text_plain);
		buf_text(out, ")\n");
		return;
	}
	text_percent(out, &item->change);
	buf_text(out, "  ");
	text_levels(out, &item->change, "-->");
	buf_text(out, ")\n");
}

static void render_recovered(const struct message *message, struct buf *payload)
{
	struct digest digest = digest_of(message);
	const struct announcement *last = NULL;
	char when[WHEN_TEXT];

	buf_text(payload, BOLD);
	if (message->environment)
		text_recoveries(payload, message);
	else
		buf_text(payload, "recovered");
	buf_text(payload, PLAIN "\n");
	for (size_t i = 0; i < digest.message.count; i++) {
		const struct announcement *item = &digest.message.items[i];

		if (!last || last->over.time != item->over.time)
			buf_printf(payload, "\n%s\n", when_format(item->over.time, when));
		if (!last || last->over.time != item->over.time ||
			strcmp(last->test, item->test) != 0)
			render_test(item, payload);
		render_end(item, payload);
		last = item;
	}
	buf_char(payload, '\n');
	digest_free(&digest);
}

static void render_changes(const struct message *message, struct buf *payload)
{
	struct digest digest = digest_of(message);
	size_t lines = digest.message.count, count = lines < ITEMS_MAX ? lines : ITEMS_MAX, left;
	const struct announcement **items = memory_new(lines, sizeof *items);
	const struct announcement *last = NULL;
	size_t first = 0;
	char when[WHEN_TEXT];

	message_by_weight(&digest.message, items);
	message_arrange(items, count);
	render_head(message, payload);
	for (size_t i = 0; i < count; i++) {
		const struct announcement *item = items[i];
		bool new_time = !last || last->time != item->time;
		bool new_test = new_time || strcmp(last->test, item->test) != 0;

		if (last && (new_test || !announcement_same_range(last, item))) {
			render_range(last, payload);
			render_help(items + first, i - first, payload);
			first = i;
		}
		if (new_time)
			buf_printf(payload, "\n%s\n", when_format(item->time, when));
		if (new_test)
			render_test(item, payload);
		render_item(item, payload);
		last = item;
	}
	if (last) {
		render_range(last, payload);
		render_help(items + first, count - first, payload);
	}
	left = message->count - digest_changes(items, count);
	if (left > 0)
		buf_printf(payload,
			"\n%zu more change points are left out; hunter-c changes lists them\n",
			left);
	buf_char(payload, '\n');
	free(items);
	digest_free(&digest);
}

static bool render(const struct message *message, const void *options, const char *destination,
	struct buf *payload, struct error *error)
{
	(void)options, (void)destination, (void)error;
	switch (message->kind) {
	case MESSAGE_NEW:
	case MESSAGE_UPDATED: render_changes(message, payload); break;
	case MESSAGE_RECOVERED: render_recovered(message, payload); break;
	case MESSAGE_RETRACTION:
	case MESSAGE_NOTICE: render_notice(message->notice, payload); break;
	}
	return true;
}

static void strip_colors(const char *text, struct buf *out)
{
	const char *escape;

	for (; (escape = strchr(text, '\033')); text = escape + 1) {
		buf_append(out, text, (size_t)(escape - text));
		escape = strchr(escape, 'm');
		if (!escape)
			return;
	}
	buf_text(out, text);
}

static enum step step(struct attempt *attempt, const struct reply *last, struct transfer *next,
	struct error *error)
{
	const struct stdout_options *options = attempt->options;
	bool color = options->color == COLOR_ALWAYS ||
		     (options->color == COLOR_AUTO && isatty(STDOUT_FILENO));
	struct buf text = {0};
	char made[WHEN_TEXT];

	if (options->print == PRINT_NOTHING)
		return STEP_DONE;
	if (last) {
		if (last->kind == REPLY_ANSWER)
			return STEP_DONE;
		attempt->retry = true;
		attempt->retry_after = -1;
		error_set(error, ERROR_STATE, "stdout: %s", last->problem);
		return STEP_FAILED;
	}
	if (options->print == PRINT_DATED)
		buf_printf(&text, "[%s]\n", when_format(attempt->made, made));
	if (color)
		buf_text(&text, attempt->payload);
	else
		strip_colors(attempt->payload, &text);
	*next = (struct transfer){.kind = TRANSFER_STDOUT,
		.body = arena_strndup(attempt->arena, text.data ? text.data : "", text.length)};
	buf_free(&text);
	next->body_length = strlen(next->body);
	return STEP_TRANSFER;
}

const struct notifier stdout_notifier = {
	.plugin = {.name = "stdout",
		.summary = "print messages on standard output",
		.fields = stdout_fields,
		.options_size = sizeof(struct stdout_options)},
	.destinations = destinations,
	.render = render,
	.step = step,
};
