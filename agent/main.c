/*
 * SIGHUP reloads the agent, and ends any other command. One that comes before the agent listens for
 * it must not end it: so where "run" is among the words it is blocked as soon as the loader has the
 * program in place, before the libraries' initializers, which take milliseconds. What the words
 * mean turns out later: who is not the agent lets it through again.
 */
#include <string.h>

#include "agent/commands/commands.h"
#include "agent/engine/signals.h"

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
