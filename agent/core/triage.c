#include "agent/core/triage.h"

#include <math.h>
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

enum triage_state triage_at(const struct triage *triage, int64_t now)
{
	bool expired = triage->until != 0 && triage->until <= now;

	return expired || triage->state == 0 ? TRIAGE_OPEN : triage->state;
}

/* The interval's end that lies farther from 0; the size itself if unknown. */
static double far_end(double size, double low, double high)
{
	double end = size < 0 ? low : high;

	return isnan(end) ? size : end;
}

static double near_end(double size, double low, double high)
{
	return far_end(size, high, low);
}

bool triage_outgrown(const struct triage *accepted, const struct change *change)
{
	double was = accepted->size, is = change->size, least, most;

	if (isnan(was) || isnan(is))
		return isnan(was) != isnan(is);
	most = far_end(was, accepted->size_low, accepted->size_high);
	least = near_end(is, change->size_low, change->size_high);
	if (was < 0)
		return is < most && least < was;
	return is > most && least > was;
}
