#include "agent/commands/commands.h"

const struct command *const commands[] = {
	&run_command,
	&replay_command,
	&regressions_command,
	&analyze_command,
	&cluster_command,
	&detect_command,
	&evaluate_command,
	&list_tests_command,
	&list_groups_command,
	&list_metrics_command,
	&validate_command,
	&remove_annotations_command,
	&changes_command,
	&triage_command,
	&silence_command,
	&route_command,
	&why_command,
	&store_command,
	NULL,
};
