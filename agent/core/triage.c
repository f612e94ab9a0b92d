#include "agent/core/triage.h"

#include <stddef.h>
#include <string.h>

const char *const triage_state_names[TRIAGE_STATES + 1] = {
	[TRIAGE_OPEN] = "open",
	[TRIAGE_ACKNOWLEDGED] = "acknowledged",
	[TRIAGE_EXPECTED] = "expected",
	[TRIAGE_IGNORED] = "ignored",
	[TRIAGE_INFRA] = "infra",
	[TRIAGE_FALSE] = "false",
	[TRIAGE_FIXED] = "fixed",
};

bool triage_state_named(const char *name, enum triage_state *state)
{
	for (int i = TRIAGE_OPEN; i < TRIAGE_STATES; i++)
		if (strcmp(name, triage_state_names[i]) == 0) {
			*state = (enum triage_state)i;
			return true;
		}
	return false;
}

bool triage_is_accepted(enum triage_state state)
{
	return state == TRIAGE_EXPECTED || state == TRIAGE_IGNORED || state == TRIAGE_INFRA ||
	       state == TRIAGE_FALSE;
}

bool triage_passes_gates(enum triage_state state)
{
	return state > TRIAGE_OPEN;
}
