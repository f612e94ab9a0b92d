/*
 * The ranges of these flags are the detector's, so their text goes through the detector's table;
 * its errors are rewritten to name the flag.
 */
#include "agent/cli/detection_flags.h"

#include <string.h>

static const char original[] = "edivisive_permutation";

const struct field detection_flag_fields[] = {
	OPTION_STRING(struct detection_flags, p_value, NULL,
		"significance level of a change point, for all metrics", .letter = 'P',
		.metavar = "P"),
	OPTION_STRING(struct detection_flags, magnitude, NULL,
		"minimum relative size of a change; 0.05 is 5%", .letter = 'M', .metavar = "M"),
	OPTION_STRING(
		struct detection_flags, window, NULL, "window length in points", .metavar = "N"),
	OPTION_STRING(struct detection_flags, detector, NULL, "detector for all metrics",
		.metavar = "NAME"),
	OPTION_STRING(struct detection_flags, combine, NULL,
		"vote of several detectors: \"2 within 5: edivisive, kernel(penalty=2), modes\"; "
		"any or all instead of the number",
		.metavar = "HOW"),
	OPTION_STRING(struct detection_flags, profile, NULL,
		"variant of the detector: hunter-c's own, or results identical to Apache Otava",
		.metavar = "default|otava"),
	OPTION_STRING(struct detection_flags, season, NULL,
		"daily and weekly cycles to remove before detection",
		.metavar = "auto|none|day|week"),
	OPTION_STRING(struct detection_flags, zone, NULL,
		"time zone of the cycles, such as Europe/Berlin", .metavar = "ZONE"),
	OPTION_STRING(struct detection_flags, holidays, NULL,
		"holidays, treated as Sundays: dates, or files with one date per line",
		.metavar = "DATE|FILE,..."),
	OPTION_BOOL(struct detection_flags, orig_edivisive,
		"the original e-divisive with its permutation test, without windows"),
	{0},
};

bool detection_flags_check(const struct detection_flags *flags, struct error *error)
{
	if (!flags->orig_edivisive || !flags->detector || strcmp(flags->detector, original) == 0)
		return true;
	return error_set(error, ERROR_USAGE,
		"--orig-edivisive and --detector %.80s are mutually exclusive", flags->detector);
}

size_t detection_flag_settings(
	const struct detection_flags *flags, struct setting out[DETECTION_FLAG_SETTINGS])
{
	size_t count = 0;

	_Static_assert(sizeof detection_flag_fields / sizeof *detection_flag_fields - 1 ==
			       DETECTION_FLAG_SETTINGS,
		"one for each flag");
	if (flags->orig_edivisive)
		out[count++] = (struct setting){"detector", original};
	for (const struct field *field = detection_flag_fields; field->name; field++) {
		const char *value = NULL;
		if (field->type == FIELD_STRING)
			memcpy(&value, (const char *)flags + field->offset, sizeof value);
		if (value)
			out[count++] = (struct setting){field->name, value};
	}
	return count;
}

void detection_flag_error(struct error *error)
{
	size_t length = strcspn(error->text, ":");
	char name[32];
	if (error->text[length] != ':' || length >= sizeof name)
		return;
	memcpy(name, error->text, length);
	name[length] = '\0';
	if (!field_find(detection_flag_fields, name))
		return;
	for (size_t i = 0; i < length; i++)
		error->text[i] = error->text[i] == '_' ? '-' : error->text[i];
	error_prefix(error, "--");
}
