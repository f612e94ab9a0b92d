/*
 * The terminal as a receiver: the grouped message as text.
 *
 * Messages are rendered once, with colours, and stored so in the outbox. Colours are removed when
 * printing to something other than a terminal. No other escape sequences can occur (buf_clean), so
 * removing everything from ESC to 'm' suffices.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/base/when.h"
#include "notifiers/body.h"
#include "notifiers/notifier.h"

enum { LINES_MOST = 1000 };
enum print { PRINT_PLAIN, PRINT_DATED, PRINT_NOTHING };
enum color { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

struct stdout_options {
	int color, print;
};

static const char *const colors[] = {"auto", "always", "never", NULL};

static const char *const prints[] = {"plain", "dated", "nothing", NULL};

static const struct field stdout_fields[] = {
	OPTION_CHOICE(
		struct stdout_options, color, "auto", colors, "coloured text; auto: on a terminal"),
	OPTION_CHOICE(struct stdout_options, print, "plain", prints,
		"print messages, with or without time, or nothing"),
	{0},
};

static bool render(const struct draft *draft)
{
	body_write(draft->payload, draft->message, &body_terminal, LINES_MOST);
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

static enum step step(struct attempt *attempt, const struct reply *last)
{
	const struct stdout_options *options = attempt->options;
	bool color = options->color == COLOR_ALWAYS ||
		     (options->color == COLOR_AUTO && isatty(STDOUT_FILENO));
	struct buf text = {0};
	char made[WHEN_TEXT];

	if (options->print == PRINT_NOTHING)
		return STEP_DONE;
	if (last)
		return last->kind == REPLY_ANSWER
			       ? STEP_DONE
			       : notifier_fail(attempt, true, ERROR_STATE, last->problem);
	if (options->print == PRINT_DATED)
		buf_printf(&text, "[%s]\n", when_format(attempt->made, made));
	if (color)
		buf_text(&text, attempt->payload);
	else
		strip_colors(attempt->payload, &text);
	*attempt->next = (struct transfer){.kind = TRANSFER_STDOUT,
		.body = arena_strndup(attempt->arena, text.data ? text.data : "", text.length)};
	buf_free(&text);
	attempt->next->body_length = strlen(attempt->next->body);
	return STEP_TRANSFER;
}

const struct notifier stdout_notifier = {
	.plugin = {.name = "stdout",
		.summary = "print messages on standard output",
		.fields = stdout_fields,
		.options_size = sizeof(struct stdout_options)},
	.events = MESSAGES_ALL,
	.defaults = MESSAGES_OF_CHANGES | 1u << MESSAGE_RECOVERED | 1u << MESSAGE_NOTICE |
		    1u << MESSAGE_HEARTBEAT,
	.brief = true,
	.render = render,
	.step = step,
};
