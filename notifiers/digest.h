/*
 * Shortens a message for people without losing information.
 *
 * Changes of many series of one metric that moved alike at one time are folded into one line, a
 * crowd, with its own statistics and its worst changes. Label text that all series of a test share
 * is not repeated for each. Programs get every change with its full name.
 */
#ifndef NOTIFIERS_DIGEST_H
#define NOTIFIERS_DIGEST_H

#include "agent/model/message.h"

/*
 * A crowd has at least CROWD_LEAST changes: of the same test and the same metric except for labels,
 * with the same unit, kind, direction, basis and sign, whose times are within CROWD_TOLERANCE
 * points of the earliest. A change of outlying size has a line of its own: more than four robust
 * standard deviations, and more than a quarter, from the median.
 */
enum { CROWD_LEAST = 5, CROWD_TOLERANCE = 5 };

/* How many changes of a crowd are listed, worst first. */
enum { CROWD_WORST = 3 };

struct digest {
	struct arena *arena;
	/*
	 * The message with fewer items. A change's name is cut; `common` has the part cut
	 * off. A crowd is an announcement with `folded` and `members`; its metric has no
	 * labels, and `shared` is the label of most of its series. Its size is the median, with
	 * size_low and size_high enclosing 95% of the sizes. Its time is the most frequent one, its
	 * range that of the change at that time with the narrowest place; everything else is that
	 * of the worst.
	 */
	struct message message;
};

/* Borrows the message; free the digest with digest_free. */
struct digest digest_of(const struct message *message);
void digest_free(struct digest *digest);

/* The agent's page about a change, pages about a test's changes, and their owner. */
enum page { PAGE_CHANGE, PAGE_DASHBOARD, PAGE_RUNBOOK, PAGE_OWNER, PAGES };

extern const char *const page_names[PAGES];

/* `common`: pages that all items share; `own`: where they differ, those of the worst; else NULL. */
struct digest_pages {
	const char *common[PAGES], *own[PAGES];
	const struct announcement *worst;
};

/* For items of a digest. Templates of a crowd are expanded with the common labels of its series and
 * with a range that covers all their times. */
struct digest_pages digest_pages(const struct announcement *const *items, size_t count);

/* The number of changes that the items represent. */
size_t digest_changes(const struct announcement *const *items, size_t count);

#endif
