/* Plots on the terminal, for the commands that draw them. */
#ifndef AGENT_COMMANDS_PLOT_H
#define AGENT_COMMANDS_PLOT_H

#include "agent/cli/cli.h"
#include "agent/report/plot.h"

/* Prints the plot as wide as the terminal, with colours if it has them. */
void plot_print(const struct cli *cli, const struct plot *plot);

#endif
