/*
 * Compares the clock with the Date of every server's answer. The server's may be the wrong one,
 * so nothing is refused or corrected; see news_oldest for its use, and health_note.
 */
#include <stdlib.h>

#include "agent/base/when.h"
#include "agent/io/exchange.h"
#include "agent/runtime/agent.h"

enum { TOLERATED = 3600000 /* ms */ };

void agent_compare_clock(struct agent *agent, const char *url, int64_t ahead)
{
	bool wrong = ahead > TOLERATED || ahead < -TOLERATED;

	metrics_set(agent->metrics, METRIC_CLOCK_AHEAD, (double)ahead / 1000, NULL);
	if (wrong && agent->clock_ahead == 0) {
		struct arena *arena = arena_new();
		const char *server = exchange_origin(arena, url);
		char text[WHEN_TEXT];

		log_event(LEVEL_WARN,
			ahead > 0
				? "clock is ahead of a server's: recent changes may be treated as "
				  "old"
				: "clock is behind a server's: old changes may be treated as "
				  "recent",
			LOG_TEXT("server", server ? server : ""),
			LOG_TEXT("difference", when_format_duration(llabs(ahead), text)));
		arena_free(arena);
	} else if (!wrong && agent->clock_ahead != 0) {
		log_message(LEVEL_INFO, "the clock agrees with a server's again");
	}
	agent->clock_ahead = wrong ? ahead : 0;
}
