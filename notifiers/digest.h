/*
 * A message as people read it: shorter than what it holds, and nothing lost.
 *
 * Changes of many series of one metric that moved alike at one time are one line, a crowd, with
 * numbers of its own and its worst. What the names of all series of a test have in common is not
 * repeated in each. Programs get each change with its whole name.
 */
#ifndef NOTIFIERS_DIGEST_H
#define NOTIFIERS_DIGEST_H

#include "notifiers/text.h"

/*
 * A crowd has at least so many changes: of the same test and the same metric but for its labels,
 * the same unit, kind, direction and way up, judged by the same other series, whose times are
 * within so many points of the earliest. One whose size lies apart from theirs has a line of its
 * own: more than four robust standard deviations from their median, and more than a quarter of it.
 */
enum { CROWD_LEAST = 5, CROWD_TOLERANCE = 5 };

/* How many of a crowd are listed, worst first. */
enum { CROWD_WORST = 3 };

struct digest {
	struct arena *arena;
	/*
	 * The message with fewer items. A change has its name cut, and in extras->common what was
	 * cut. A crowd is an announcement with extras->folded and `members`; its metric is without
	 * labels, `shared` says what most of its series have. Its size is the median, and between
	 * size_low and size_high are 95% of them. Its time is that of most, its range that of the
	 * one at that time whose place is known best; else it is as the worst.
	 */
	struct message message;
};

/* Borrows the message. Free it with digest_free. */
struct digest digest_of(const struct message *message);
void digest_free(struct digest *digest);

/* The pages about a test's changes and whose they are. */
enum page { PAGE_DASHBOARD, PAGE_RUNBOOK, PAGE_OWNER, PAGES };

extern const char *const page_names[PAGES];

/* What is the same for all, and where it is not, what the worst has, if anything; else NULL. */
struct digest_pages {
	const char *common[PAGES], *own[PAGES];
	const struct announcement *worst;
};

/* Of items of a digest. Templates of a crowd are filled with what its series share, and times with
 * all of them between. */
struct digest_pages digest_pages(const struct announcement *const *items, size_t count);

/* How many changes the items stand for. */
size_t digest_changes(const struct announcement *const *items, size_t count);

#endif
