/*
 * The command line: commands, their option tables, help and exit codes.
 *
 * A command is a struct of agent/commands/: its name, the option tables it takes and a function.
 * Flags are parsed by the same struct field tables as YAML, so a flag's name, default, range and
 * help are declared once. Results go to cli->out, the log to stderr.
 */
#ifndef AGENT_CLI_CLI_H
#define AGENT_CLI_CLI_H

#include <stdio.h>

#include "agent/base/arena.h"
#include "agent/base/field.h"
#include "agent/base/log.h"
#include "conf/config.h"

/* The contract with CI jobs; if several apply, 2 takes precedence over 1 over 3. */
enum exit_code {
	EXIT_NOTHING = 0,     /* nothing found, no errors */
	EXIT_REGRESSIONS = 1, /* `regressions`, `analyze --fail-on-regression` */
	EXIT_USAGE = 2,       /* wrong flags or configuration */
	EXIT_DATA = 3,        /* some data unavailable */
	EXIT_STATE = 4,       /* state file or port unavailable */
};

/* Values of --output: of commands that print a list, by cli_list_outputs; of others, by
 * cli_outputs. */
enum cli_output { OUTPUT_TEXT, OUTPUT_JSON, OUTPUT_CSV };

extern const char *const cli_outputs[], *const cli_list_outputs[]; /* end with NULL */

/* Options every command takes. */
struct common_options {
	const char *config; /* --config, --config-file */
	int log_level, log_format;
	bool help, version;
};

extern const struct field common_fields[];

/* The clock, the environment and the streams, passed in by main. */
struct cli {
	struct arena *arena;                   /* lives as long as the command */
	const struct command *const *commands; /* all, in the order of --help; ends with NULL */
	const struct command *command;
	struct common_options common;
	void *options;            /* of command->options_size */
	struct strings arguments; /* non-flag arguments */
	struct config *config;    /* set by cli_config; freed after the command */
	FILE *out;
	int64_t now;    /* ms */
	bool color;     /* out is a terminal and NO_COLOR is not set */
	bool progress;  /* stderr is a terminal */
	bool abandoned; /* a worker is stuck and uses the configuration: free nothing */
};

/* A part of a command's options: a table and the offset of its struct in the command's options. */
struct option_part {
	const struct field *fields;
	size_t offset;
};

struct command {
	const char *name;
	const char *arguments;           /* for the usage line: "[TEST|GROUP...]" */
	const char *summary;             /* one line */
	const char *details;             /* paragraphs for --help and the man page, or NULL */
	const struct option_part *parts; /* ends with a part without fields */
	size_t options_size;
	const char *misuse; /* the error unless there are `least` to `most` arguments; or NULL */
	size_t least, most;
	bool configured; /* the configuration is loaded first */
	bool reloads;    /* handles SIGHUP, which stays blocked until then */
	int (*run)(struct cli *cli);
};

/* A command whose first argument is one of several verbs, each with so many arguments. */
struct verb {
	const char *name;
	size_t arguments;
	int (*run)(struct cli *cli);
};

/* The verb of the command line; NULL: none of them. They end with one without a name. */
const struct verb *cli_verb(const struct cli *cli, const struct verb *verbs);

/* Parses argv and runs one of the commands; returns the exit code. */
int cli_main(int argc, char **argv, const struct command *const *commands);

/* Flushes the output and ends the process, without waiting for other threads. */
_Noreturn void cli_leave(int code);

/* Prints "hunter-c: text" on stderr and returns the exit code of the error's kind. */
int cli_fail(const struct error *error);
int exit_code(enum error_kind kind);
/* The same of wrong usage: returns EXIT_USAGE. */
int cli_refuse(const char *format, ...) PRINTF_LIKE(1, 2);

/*
 * Finds and loads the configuration of --config and prints its problems; cli_config does once. NULL
 * after an error, which was printed; the exit code is then EXIT_USAGE. It lives as long as the
 * command, unless that takes it over by setting cli->config to NULL.
 */
struct config *cli_config(struct cli *cli);
struct config *cli_config_from(struct cli *cli, const struct config_source *source);

/* The input of config_load: the schema of this binary and the environment. */
struct config_source cli_config_source(void);

/* The ending of a noun behind a number: "s" unless it is one. */
static inline const char *cli_plural(size_t count)
{
	return count == 1 ? "" : "s";
}

/* The schema of this binary: all registered sources, notifiers and detectors. */
extern const struct schema cli_schema;

#endif
