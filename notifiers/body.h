/*
 * A whole message as lines of text: for a terminal, as plain text, Markdown or HTML.
 *
 * Text from outside is cleaned, then escaped as a whole, so no name can become markup, a mention or
 * a link; in Markdown names are code.
 */
#ifndef NOTIFIERS_BODY_H
#define NOTIFIERS_BODY_H

#include "notifiers/text.h"

enum body_mark { BODY_STRONG, BODY_WORSE, BODY_BETTER, BODY_BAD, BODY_GOOD, BODY_MARKS };

enum { BODY_LEVELS = 4 }; /* of indentation: message, test, change, detail */

struct body_style {
	const struct text_style *text;
	/* Writes cleaned text; and a link by its address, which has been checked to be http(s) and
	 * escaped. */
	void (*escape)(struct buf *out, const char *text, size_t length);
	void (*link)(struct buf *out, const char *url);
	const char *begin[BODY_MARKS]; /* NULL: like the first */
	const char *end;
	const char *open[BODY_LEVELS], *close; /* around a line */
	const char *gap;                       /* between parts of a message */
};

extern const struct body_style body_terminal, body_plain, body_markdown, body_html;

/* The message's headline as plain text: "2 regressions in checkout". */
void body_title(struct buf *out, const struct message *message);

/* The message with at most `most` lines for changes (or of a digest's sections); the rest is
 * counted. */
void body_write(struct buf *out, const struct message *message, const struct body_style *style,
	size_t most);

/* The same with as many lines as fit into `bytes`; if not even one does, the title, cut. */
void body_fit(struct buf *out, const struct message *message, const struct body_style *style,
	size_t bytes);

/* The colour of the message's overall tone, 0xrrggbb. */
unsigned body_color(const struct message *message);

/* A message about the current state of an earlier one's changes, with those that are over or
 * triaged marked. In the arena; borrows the changes. */
struct message body_of_announced(
	struct arena *arena, const struct announced_change *changes, size_t count);

/* "expected by ann, owner bob, until 2026-03-01 06:00 UTC: known" */
void text_triage(struct buf *out, const struct triage *triage);

#endif
