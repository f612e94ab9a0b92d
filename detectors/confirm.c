/*
 * The rule `auto` is read off the measured frontier between delay and alarms that are taken back
 * (docs/accuracy.md).
 */
#include "detectors/confirm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_POINTS = 1000 };

const struct field confirm_fields[] = {
	{.name = "confirm",
		.type = FIELD_STRING,
		.offset = offsetof(struct confirm_options, confirm),
		.initial = "auto",
		.metavar = "RULE",
		.help = "when a change is believed and announced: auto, off (at once), or after so "
			"many points"},
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
	size_t runs)
{
	if (rule->mode == CONFIRM_OFF)
		return true;
	if (rule->mode == CONFIRM_POINTS)
		return change->count_after >= rule->points;
	(void)first_count;
	(void)runs;
	return change->pvalue < 1e-4 || change->count_after >= 8;
}
