/*
 * The detection flags, the same for every command that detects: -P, -M, --window, --detector,
 * --combine, --profile, --orig-edivisive, --season, --zone, --holidays. They override the detection
 * settings of each metric.
 */
#ifndef AGENT_CLI_DETECTION_FLAGS_H
#define AGENT_CLI_DETECTION_FLAGS_H

#include "conf/config.h"

struct detection_flags {
	const char *detector, *combine, *profile, *window, *p_value, *magnitude, *season, *zone,
		*holidays;
	bool orig_edivisive;
};

extern const struct field detection_flag_fields[];

/* Fails (ERROR_USAGE) on flags that contradict each other. */
bool detection_flags_check(const struct detection_flags *flags, struct error *error) MUST_USE;

enum { DETECTION_FLAG_SETTINGS = 10 }; /* at most, of all flags together */

/* The flags that were given, as settings. Returns their number. */
size_t detection_flag_settings(
	const struct detection_flags *flags, struct setting out[DETECTION_FLAG_SETTINGS]);

/* If the error begins with the name of such an option ("p_value: "), replaces it by the flag's
 * ("--p-value: "). */
void detection_flag_error(struct error *error);

#endif
