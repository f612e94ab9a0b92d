/*
 * From a change point to news: when is a change that was found believed?
 *
 * A series that is watched grows, and what is found at its end may be gone with the next points. So
 * a change is a candidate until this rule holds for it. Of earlier passes the rule needs to know
 * only how many points followed the change when it was first found.
 */
#ifndef DETECTORS_CONFIRM_H
#define DETECTORS_CONFIRM_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/core/change.h"
#include "agent/core/field.h"

struct confirm_options {
	const char *confirm; /* "auto", "off", "8 points" */
};

extern const struct field confirm_fields[];

enum confirm_mode {
	CONFIRM_AUTO,   /* overwhelming evidence at once, weaker evidence after more points */
	CONFIRM_OFF,    /* whatever is found, at once */
	CONFIRM_POINTS, /* once that many points follow it */
};

struct confirm_rule {
	enum confirm_mode mode;
	size_t points;
	size_t least; /* by CONFIRM_AUTO: points of the new level, however strong the evidence */
};

/* Reads the option's text: `confirm: "soon" is neither auto, off nor a number of points`. */
bool confirm_parse(const char *text, struct confirm_rule *rule, struct error *error) MUST_USE;

/*
 * Is the change, as it was found now, news? `first_count` points followed it when it was first
 * found: a candidate that is lost and found again begins anew. What once held for a change need not
 * hold again: the caller remembers it.
 */
bool confirm_holds(
	const struct confirm_rule *rule, const struct change *change, size_t first_count);

#endif
