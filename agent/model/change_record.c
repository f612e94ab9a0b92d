#include "agent/model/change_record.h"

#include <string.h>

const char *const event_names[EVENT_KINDS] = {
	[EVENT_FOUND] = "found",
	[EVENT_CONFIRMED] = "confirmed",
	[EVENT_MOVED] = "moved",
	[EVENT_WITHDRAWN] = "withdrawn",
	[EVENT_RETURNED] = "returned",
	[EVENT_ANNOUNCED] = "announced",
	[EVENT_RECOVERED] = "recovered",
	[EVENT_GROWN] = "grown",
	[EVENT_CORRECTED] = "corrected",
	[EVENT_TRIAGED] = "triaged",
	[EVENT_REOPENED] = "reopened",
	[EVENT_SILENCED] = "silenced",
	[EVENT_SILENCE_ENDED] = "silence ended",
	[EVENT_RUN] = "run",
	[EVENT_RELOADED] = "reloaded",
	[EVENT_BISECTION_ASKED] = "bisection asked",
	[EVENT_BISECTION_ENDED] = "bisection ended",
	[EVENT_BISECTION_CANCELLED] = "bisection cancelled",
};

const char *const change_state_names[CHANGE_STATES + 1] = {
	[CHANGE_CONFIRMED] = "confirmed",
	[CHANGE_MOVED] = "moved",
	[CHANGE_WITHDRAWN] = "withdrawn",
	[CHANGE_CANDIDATE] = "candidate",
	[CHANGE_RECOVERED] = "recovered",
};

const char *const notify_state_names[NOTIFY_COUNT] = {
	[NOTIFY_SILENT] = "silent",
	[NOTIFY_PENDING] = "pending",
	[NOTIFY_QUEUED] = "queued",
	[NOTIFY_HELD] = "held",
};

void record_told(struct arena *arena, struct change_record *record, const char *receiver)
{
	size_t count = record->told.count;
	const char **items = arena_array(arena, count + 1, sizeof *items);

	if (count > 0)
		memcpy(items, record->told.items, count * sizeof *items);
	items[count] = receiver;
	record->told = (struct strings){items, count + 1};
}

void record_by_clock(struct change_record *record, int64_t now)
{
	struct triage *triage = &record->triage;

	if (triage->until == 0 || triage->until > now)
		return;
	triage->state = TRIAGE_OPEN;
	triage->until = 0;
}
