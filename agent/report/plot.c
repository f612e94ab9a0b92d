#include "agent/report/plot.h"

const char *const plot_source_names[PLOT_SOURCES] = {"known", "candidate", "fresh", "lost"};
const char *const plot_scale_names[PLOT_SCALES + 1] = {"auto", "zero", "log", "relative"};
