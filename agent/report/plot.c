#include "agent/report/plot.h"

const char *const plot_source_names[PLOT_SOURCES] = {"known", "candidate", "fresh", "lost"};
const char *const plot_scale_names[PLOT_SCALES + 1] = {"auto", "zero", "log", "relative"};

const char *plot_span_text(const struct plot_span *span)
{
	static const char *const texts[PLOT_SPAN_KINDS] = {
		[PLOT_SILENCE] = "silenced", [PLOT_OUTAGE] = "no data"};

	return span->text && *span->text ? span->text : texts[span->kind];
}
