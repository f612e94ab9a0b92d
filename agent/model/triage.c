#include "agent/model/triage.h"

#include <math.h>
#include <string.h>

#define NORMAL_95 1.96

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

bool triage_is_foreign(enum triage_state state)
{
	return triage_is_accepted(state) && state != TRIAGE_EXPECTED;
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

void triage_measure(struct triage *triage, const struct change *change)
{
	/* How far single values lie from their level, in percent: those before and after it
	 * together. */
	double before = change->stddev_before / change->mean_before;
	double after = change->stddev_after / change->mean_after;
	double spread = 100 * NORMAL_95 * sqrt(before * before + after * after);

	spread = isfinite(spread) ? spread : 0;
	triage->size = change->size;
	triage->size_low = isnan(change->size_low) ? change->size - spread : change->size_low;
	triage->size_high = isnan(change->size_high) ? change->size + spread : change->size_high;
}

bool triage_outgrown(const struct triage *accepted, const struct change *change)
{
	struct triage now;

	triage_measure(&now, change);
	if (isnan(accepted->size) || isnan(now.size))
		return isnan(accepted->size) != isnan(now.size);
	if (accepted->size < 0)
		return now.size < fmin(accepted->size, accepted->size_low) &&
		       now.size_high < accepted->size;
	return now.size > fmax(accepted->size, accepted->size_high) &&
	       now.size_low > accepted->size;
}
