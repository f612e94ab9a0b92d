/*
 * The constants of the rule `auto` (docs/design/algorithms.md section 5) were chosen from the
 * measured trade-off between delay and alarms that are retracted (docs/design/accuracy.md).
 */
#include "detectors/confirm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_POINTS = 1000, MORE = 4, LEAST = 5, LEAST_OF_SERVICE = 3 };

const struct field confirm_fields[] = {
	OPTION_STRING(struct confirm_options, confirm, "auto",
		"when a change is confirmed: auto, off (at once), or a number of points",
		.metavar = "RULE"),
	{0},
};

bool confirm_parse(const char *text, struct confirm_rule *rule, struct error *error)
{
	char *end;
	*rule = (struct confirm_rule){.mode = CONFIRM_AUTO};
	if (strcmp(text, "auto") == 0)
		return true;
	rule->mode = CONFIRM_OFF;
	if (strcmp(text, "off") == 0)
		return true;
	rule->mode = CONFIRM_POINTS;
	long points = strtol(text, &end, 10);
	bool unit = *end == '\0' || strcmp(end, " points") == 0 || strcmp(end, " point") == 0;
	if (end == text || !unit || points < 1 || points > MOST_POINTS)
		return error_set(error, ERROR_USAGE,
			"confirm: \"%s\" is neither auto, off nor a number of points from 1 to %d",
			text, MOST_POINTS);
	rule->points = (size_t)points;
	return true;
}

bool confirm_holds(const struct confirm_rule *rule, const struct change *change, size_t first_count,
	bool service)
{
	size_t after = change->count_after, least = service ? LEAST_OF_SERVICE : LEAST;
	if (rule->mode != CONFIRM_AUTO)
		return rule->mode == CONFIRM_OFF || after >= rule->points;
	/* From `least` points on if p is far below what chance produces with so few points before;
	 * else when MORE points have followed since the change was found, or CONFIRM_ENOUGH in all.
	 */
	double limit = 1e-3 * pow(10, -80 / (double)change->count_before);
	return (change->pvalue < limit && after >= least) || after >= first_count + MORE ||
	       after >= CONFIRM_ENOUGH;
}

size_t confirm_most(const struct confirm_rule *rule)
{
	size_t points = rule->mode == CONFIRM_AUTO ? CONFIRM_ENOUGH : rule->points;

	return points > LEAST_OF_SERVICE ? points : LEAST_OF_SERVICE;
}
