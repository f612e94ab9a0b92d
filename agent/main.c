/*
 * SIGHUP reloads the agent, and ends any other command. One that arrives before the agent
 * handles it must not end it: so if "run" is among the arguments it is blocked as soon as the
 * program is loaded, before the libraries' initializers, which take milliseconds. The arguments
 * are parsed later: any other command unblocks it.
 */
#include <string.h>

#include "agent/commands/commands.h"
#include "agent/io/signals.h"

static void hold_hangups(int argc, char **argv, char **environment)
{
	(void)environment;
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "run") == 0)
			signals_hold_hangup(true);
}

typedef void initializer(int argc, char **argv, char **environment);
static initializer *const first __attribute__((section(".preinit_array"), used)) = hold_hangups;

int main(int argc, char **argv)
{
	return cli_main(argc, argv, commands);
}
