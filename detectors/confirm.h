/*
 * When a change point is confirmed, so that it can be announced.
 *
 * A series grows, and a change found at its end may disappear with the next points. So a change is
 * a candidate until this rule holds for it. All that the rule needs of earlier runs is the number
 * of points that followed the change when it was first found.
 */
#ifndef DETECTORS_CONFIRM_H
#define DETECTORS_CONFIRM_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/base/field.h"
#include "agent/model/change.h"

struct confirm_options {
	const char *confirm; /* "auto", "off", "8 points" */
};

extern const struct field confirm_fields[];

enum confirm_mode {
	CONFIRM_AUTO,   /* strong evidence at once, weaker evidence after more points */
	CONFIRM_OFF,    /* every change at once */
	CONFIRM_POINTS, /* once that many points follow */
};

enum {
	CONFIRM_ENOUGH = 24
}; /* points: a change that so many follow was there before the first run */

struct confirm_rule {
	enum confirm_mode mode;
	size_t points;
};

/* Parses the option's text; an invalid text is an error. */
bool confirm_parse(const char *text, struct confirm_rule *rule, struct error *error) MUST_USE;

/*
 * Whether the change, as found now, is confirmed. `first_count` points followed it when it was
 * first found; a candidate that is lost and found again starts anew. A confirmed change need not
 * satisfy the rule again: the caller remembers it. For CONFIRM_AUTO even the strongest evidence
 * needs five points on the new level, as a recovery does; three in a `service`, where precedents
 * (detectors/precedent.h) decide how long to wait.
 */
bool confirm_holds(const struct confirm_rule *rule, const struct change *change, size_t first_count,
	bool service);

/* How many points may follow a change by the time it is confirmed, if it can be seen in the first
 * of them; a few at least. */
size_t confirm_most(const struct confirm_rule *rule);

#endif
