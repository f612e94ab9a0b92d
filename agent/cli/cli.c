/*
 * The frame of every command: parse the arguments, set up the log, answer --help and --version,
 * run, and check that the output was written.
 */
#include "agent/cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/base/clock.h"
#include "agent/base/secret.h"
#include "agent/cli/flags.h"
#include "agent/cli/help.h"
#include "agent/io/signals.h"

const char *const cli_outputs[] = {"text", "json", NULL};
const char *const cli_list_outputs[] = {"text", "json", "csv", NULL};

const struct field common_fields[] = {
	OPTION_STRING(struct common_options, config, NULL,
		"the configuration: a file or a folder of files", .alias = "config_file",
		.metavar = "PATH"),
	OPTION_CHOICE(struct common_options, log_level, "info", log_level_names, "log level"),
	OPTION_CHOICE(struct common_options, log_format, "text", log_format_names, "log format"),
	OPTION_BOOL(struct common_options, help, "show this help", .letter = 'h'),
	OPTION_BOOL(struct common_options, version,
		"print the versions of the program and its libraries", .letter = 'V'),
	{0},
};

int exit_code(enum error_kind kind)
{
	switch (kind) {
	case ERROR_NONE: return EXIT_NOTHING;
	case ERROR_USAGE: return EXIT_USAGE;
	case ERROR_DATA: return EXIT_DATA;
	case ERROR_STATE: return EXIT_STATE;
	}
	return EXIT_USAGE;
}

int cli_fail(const struct error *error)
{
	fprintf(stderr, "hunter-c: %s\n", error->text);
	return exit_code(error->kind);
}

int cli_refuse(const char *format, ...)
{
	struct buf text = {0};
	struct error error;
	va_list arguments;

	va_start(arguments, format);
	buf_vprintf(&text, format, arguments);
	va_end(arguments);
	(void)error_set(&error, ERROR_USAGE, "%s", text.data);
	buf_free(&text);
	return cli_fail(&error);
}

const struct verb *cli_verb(const struct cli *cli, const struct verb *verbs)
{
	const struct strings *words = &cli->arguments;

	while (verbs->name &&
		(words->count != 1 + verbs->arguments || strcmp(words->items[0], verbs->name) != 0))
		verbs++;
	return verbs->name ? verbs : NULL;
}

static int print(struct buf *text, FILE *stream, int code)
{
	fwrite(text->data, 1, text->length, stream);
	buf_free(text);
	return code;
}

static int run(struct cli *cli, int argc, char **argv)
{
	struct error error;
	struct buf text = {0};
	field_defaults(common_fields, &cli->common);
	if (!flags_parse(cli, argc, argv, &error)) {
		int code = cli_fail(&error);
		fprintf(stderr, "Try 'hunter-c%s%s --help'.\n", cli->command ? " " : "",
			cli->command ? cli->command->name : "");
		return code;
	}
	if (cli->common.log_format == LOG_FORMAT_TEXT && cli->command && !cli->command->reloads)
		cli->common.log_format = LOG_FORMAT_COMMAND;
	log_setup((enum log_level)cli->common.log_level, (enum log_format)cli->common.log_format,
		stderr);
	if (cli->common.version) {
		help_version(&text);
		return print(&text, stdout, EXIT_NOTHING);
	}
	if (cli->common.help && cli->command) {
		help_command(&text, cli->command);
		return print(&text, stdout, EXIT_NOTHING);
	}
	if (!cli->command) {
		help_overview(&text, cli->commands);
		return cli->common.help ? print(&text, stdout, EXIT_NOTHING)
					: print(&text, stderr, EXIT_USAGE);
	}
	if (!cli->command->reloads)
		signals_hold_hangup(false);
	if (cli->command->misuse && (cli->arguments.count < cli->command->least ||
					    cli->arguments.count > cli->command->most))
		return cli_refuse("%s", cli->command->misuse);
	if (cli->command->configured && !cli_config(cli))
		return EXIT_USAGE;
	return cli->command->run(cli);
}

/* Whether standard output is a pipe whose reader has gone. */
static bool reader_went_away(void)
{
	struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
	return poll(&out, 1, 0) == 1 && (out.revents & POLLERR);
}

/*
 * Output that could not be written is an error, unless the reader closed the pipe. If an earlier
 * write failed, errno still has its value: nothing that can fail comes between it and here.
 */
static int finish_output(int code)
{
	bool flushed = fflush(stdout) == 0;
	if ((flushed && !ferror(stdout)) || reader_went_away())
		return code;
	fprintf(stderr, "hunter-c: cannot write the output: %s\n", strerror(errno));
	return code == EXIT_NOTHING ? EXIT_DATA : code;
}

/*
 * If the caller closed a standard descriptor, the first file opened would get its number, and
 * the log be written into it. The placeholder cannot be read or written, so a failure stays one.
 */
static void hold_standard_descriptors(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF &&
			open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0)
			_exit(EXIT_STATE);
}

int cli_main(int argc, char **argv, const struct command *const *commands)
{
	hold_standard_descriptors();
	setvbuf(stdout, NULL, _IOLBF, 0); /* output to stderr never lands inside a row */
	struct cli cli = {
		.arena = arena_new(),
		.commands = commands,
		.out = stdout,
		.now = clock_wall(),
		.color = isatty(STDOUT_FILENO) && !getenv("NO_COLOR"),
		.progress = isatty(STDERR_FILENO),
	};
	int code = run(&cli, argc, argv);
	if (cli.abandoned)
		cli_leave(code);
	code = finish_output(code);
	config_free(cli.config);
	arena_free(cli.arena);
	return code;
}

void cli_leave(int code)
{
	_exit(finish_output(code));
}

static const char *environment(void *context, const char *name)
{
	(void)context;
	return getenv(name);
}

struct config_source cli_config_source(void)
{
	return (struct config_source){.schema = &cli_schema, .env = environment};
}

struct config *cli_config(struct cli *cli)
{
	struct config_source source = cli_config_source();
	return cli->config ? cli->config : cli_config_from(cli, &source);
}

struct config *cli_config_from(struct cli *cli, const struct config_source *source)
{
	struct error error;
	const char *path;
	struct problems problems = {.arena = cli->arena};
	secret_forbid_dumps();
	if (!config_find(cli->common.config, source, cli->arena, &path, &error)) {
		cli_fail(&error);
		return NULL;
	}
	cli->config = config_load(path, source, &problems);
	for (size_t i = 0; i < problems.count; i++)
		if (!problems.items[i].warning || log_enabled(LEVEL_WARN))
			fprintf(stderr, "%s\n", problems.items[i].text);
	return cli->config;
}
