#include "notifiers/slack/receipt.h"

#include <stdlib.h>
#include <string.h>

#include "agent/base/arena.h"

enum { WORDS = 4 };

struct slack_receipt slack_receipt_read(struct arena *arena, const char *text)
{
	char *rest = arena_strdup(arena, text ? text : "");
	const char *words[WORDS];

	for (size_t i = 0; i < WORDS; i++)
		words[i] = strtok_r(rest, " ", &rest);
	if (!words[0])
		return (struct slack_receipt){0};
	return (struct slack_receipt){.thread = words[0],
		.posts = words[1] ? strtoul(words[1], NULL, 10) : 1,
		.stamp = words[2],
		.channel = words[3]};
}

/* Words of a server: a blank within would split them. */
static bool is_word(const char *text)
{
	return text && *text && !strchr(text, ' ');
}

const char *slack_receipt(struct arena *arena, const struct slack_receipt *receipt)
{
	if (!is_word(receipt->stamp) || !is_word(receipt->channel))
		return arena_printf(arena, "%s %zu", receipt->thread, receipt->posts);
	return arena_printf(arena, "%s %zu %s %s", receipt->thread, receipt->posts, receipt->stamp,
		receipt->channel);
}
