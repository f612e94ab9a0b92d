/*
 * Flags may stand before and behind the command's arguments; the common ones also before the
 * command. `--` ends them. A flag that takes a value takes the next word whatever it looks like, so
 * that `--since -10m` works.
 */
#include "agent/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/core/when.h"
#include "agent/help.h"

const struct field common_fields[] = {
	{.name = "config",
		.alias = "config_file",
		.type = FIELD_STRING,
		.offset = offsetof(struct common_options, config),
		.metavar = "PATH",
		.help = "the configuration, a file or a folder of files"},
	{.name = "log_level",
		.type = FIELD_CHOICE,
		.offset = offsetof(struct common_options, log_level),
		.initial = "info",
		.choices = log_level_names,
		.help = "what to log on stderr"},
	{.name = "log_format",
		.type = FIELD_CHOICE,
		.offset = offsetof(struct common_options, log_format),
		.initial = "text",
		.choices = log_format_names,
		.help = "how to log it"},
	{.name = "help",
		.type = FIELD_BOOL,
		.offset = offsetof(struct common_options, help),
		.letter = 'h',
		.help = "show this help"},
	{.name = "version",
		.type = FIELD_BOOL,
		.offset = offsetof(struct common_options, version),
		.letter = 'V',
		.help = "show the version and those of the libraries"},
	{0},
};

const struct field detection_flag_fields[] = {
	{.name = "p_value",
		.type = FIELD_STRING,
		.offset = offsetof(struct detection_flags, p_value),
		.letter = 'P',
		.metavar = "P",
		.help = "significance a change point needs, for all metrics"},
	{.name = "magnitude",
		.type = FIELD_STRING,
		.offset = offsetof(struct detection_flags, magnitude),
		.letter = 'M',
		.metavar = "M",
		.help = "size a change needs, relative: 0.05 is 5%"},
	{.name = "window",
		.type = FIELD_STRING,
		.offset = offsetof(struct detection_flags, window),
		.metavar = "N",
		.help = "points a window has"},
	{.name = "detector",
		.type = FIELD_STRING,
		.offset = offsetof(struct detection_flags, detector),
		.metavar = "NAME",
		.help = "the detector, for all metrics"},
	{.name = "profile",
		.type = FIELD_STRING,
		.offset = offsetof(struct detection_flags, profile),
		.metavar = "default|otava",
		.help = "the detector's variant: our own, or index-exact with Apache Otava"},
	{.name = "orig_edivisive",
		.type = FIELD_BOOL,
		.offset = offsetof(struct detection_flags, orig_edivisive),
		.help = "the original e-divisive with its permutation test, without windows"},
	{0},
};

size_t detection_flag_settings(const struct detection_flags *flags, struct setting *out)
{
	size_t count = 0;
	if (flags->orig_edivisive)
		out[count++] = (struct setting){"detector", "edivisive_permutation"};
	if (flags->detector)
		out[count++] = (struct setting){"detector", flags->detector};
	if (flags->profile)
		out[count++] = (struct setting){"profile", flags->profile};
	if (flags->window)
		out[count++] = (struct setting){"window", flags->window};
	if (flags->p_value)
		out[count++] = (struct setting){"p_value", flags->p_value};
	if (flags->magnitude)
		out[count++] = (struct setting){"magnitude", flags->magnitude};
	return count;
}

void detection_flag_error(struct error *error)
{
	size_t length = strcspn(error->text, ":");
	char name[32];
	if (error->text[length] != ':' || length >= sizeof name)
		return;
	memcpy(name, error->text, length);
	name[length] = '\0';
	if (!field_find(detection_flag_fields, name))
		return;
	for (size_t i = 0; i < length; i++)
		error->text[i] = error->text[i] == '_' ? '-' : error->text[i];
	error_prefix(error, "--");
}

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

/* A flag that was found: its field and the options struct it belongs to. */
struct target {
	const struct field *field;
	void *options;
};

static struct target find_flag(struct cli *cli, const char *name, char letter)
{
	const struct field *tables[16] = {common_fields};
	void *options[16] = {&cli->common};
	size_t count = 1;
	const struct option_part *part = cli->command ? cli->command->parts : NULL;
	for (; part && part->fields && count < 16; part++, count++) {
		tables[count] = part->fields;
		options[count] = (char *)cli->options + part->offset;
	}
	for (size_t i = 0; i < count; i++) {
		if (name && field_find(tables[i], name))
			return (struct target){field_find(tables[i], name), options[i]};
		for (const struct field *field = tables[i]; letter && field->name; field++)
			if (field->letter == letter)
				return (struct target){field, options[i]};
	}
	return (struct target){0};
}

static bool unknown_flag(const struct cli *cli, const char *word, struct error *error)
{
	const char *name = word + strspn(word, "-");
	const char *near = field_suggest_name(name, common_fields);
	const struct option_part *part = cli->command ? cli->command->parts : NULL;
	for (; part && part->fields; part++)
		if (field_suggest_name(name, part->fields))
			near = field_suggest_name(name, part->fields);
	error_set(error, ERROR_USAGE, "unknown option %.80s", word);
	size_t length = strlen(error->text);
	if (near && word[1] == '-') {
		snprintf(error->text + length, sizeof error->text - length, " (did you mean --%s?)",
			near);
		for (char *c = error->text + length; *c; c++)
			*c = *c == '_' ? '-' : *c;
	}
	return false;
}

/* Parses the value under the flag's own spelling, so that the message says --p-value. */
static bool set_flag(struct cli *cli, const struct target *target, const char *spelling,
	const char *value, struct error *error)
{
	struct field field = *target->field;
	field.name = spelling;
	return field_parse(&field, target->options, value, cli->arena, error);
}

static bool missing_value(const char *spelling, struct error *error)
{
	return error_set(error, ERROR_USAGE, "%.80s needs a value", spelling);
}

/* "--name", "--name=value", "--no-name"; *used is set if the next word was its value. */
static bool long_flag(
	struct cli *cli, const char *word, const char *next, bool *used, struct error *error)
{
	const char *equals = strchr(word, '=');
	char *name = equals ? arena_strndup(cli->arena, word, (size_t)(equals - word))
			    : arena_strdup(cli->arena, word);
	struct target target = find_flag(cli, name + 2, 0);
	if (!target.field && strncmp(name, "--no-", 5) == 0 && !equals) {
		target = find_flag(cli, name + 5, 0);
		if (target.field && target.field->type == FIELD_BOOL)
			return set_flag(cli, &target, name, "false", error);
	}
	if (!target.field)
		return unknown_flag(cli, name, error);
	if (equals)
		return set_flag(cli, &target, name, equals + 1, error);
	if (target.field->type == FIELD_BOOL)
		return set_flag(cli, &target, name, "true", error);
	if (!next)
		return missing_value(name, error);
	*used = true;
	return set_flag(cli, &target, name, next, error);
}

/* "-P 0.01", "-P0.01", "-h". */
static bool short_flag(
	struct cli *cli, const char *word, const char *next, bool *used, struct error *error)
{
	struct target target = find_flag(cli, NULL, word[1]);
	const char spelling[3] = {'-', word[1], '\0'};
	if (!target.field)
		return unknown_flag(cli, word, error);
	if (target.field->type == FIELD_BOOL) {
		if (word[2])
			return unknown_flag(cli, word, error);
		return set_flag(cli, &target, spelling, "true", error);
	}
	if (word[2])
		return set_flag(cli, &target, spelling, word + 2, error);
	if (!next)
		return missing_value(spelling, error);
	*used = true;
	return set_flag(cli, &target, spelling, next, error);
}

static const struct command *find_command(const char *name)
{
	for (const struct command *const *command = commands; *command; command++)
		if (strcmp((*command)->name, name) == 0)
			return *command;
	return NULL;
}

static bool choose_command(struct cli *cli, const char *name, struct error *error)
{
	const char *names[64];
	size_t count = 0;
	cli->command = find_command(name);
	if (cli->command) {
		cli->options = arena_alloc(cli->arena, cli->command->options_size);
		const struct option_part *part = cli->command->parts;
		for (; part && part->fields; part++)
			field_defaults(part->fields, (char *)cli->options + part->offset);
		return true;
	}
	for (; commands[count] && count < 64; count++)
		names[count] = commands[count]->name;
	const char *near = field_suggest(name, names, count);
	return error_set(error, ERROR_USAGE, "unknown command \"%.80s\"%s%s%s", name,
		near ? " (did you mean \"" : "", near ? near : "", near ? "\"?)" : "");
}

static bool parse_words(struct cli *cli, int argc, char **argv, struct error *error)
{
	const char **arguments = arena_array(cli->arena, (size_t)argc, sizeof *arguments);
	size_t count = 0;
	bool flags = true;
	for (int i = 1; i < argc; i++) {
		const char *word = argv[i];
		const char *next = i + 1 < argc ? argv[i + 1] : NULL;
		bool used = false;
		if (flags && strcmp(word, "--") == 0) {
			flags = false;
		} else if (flags && word[0] == '-' && word[1]) {
			bool is_long = word[1] == '-';
			if (!(is_long ? long_flag : short_flag)(cli, word, next, &used, error))
				return false;
		} else if (cli->command) {
			arguments[count++] = word;
		} else if (!choose_command(cli, word, error)) {
			return false;
		}
		i += used;
	}
	cli->arguments = (struct strings){arguments, count};
	return true;
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
	if (argc == 2 && strcmp(argv[1], "help") == 0)
		argv[1] = (char[]){"--help"};
	field_defaults(common_fields, &cli->common);
	if (!parse_words(cli, argc, argv, &error)) {
		int code = cli_fail(&error);
		fprintf(stderr, "Try 'hunter-c%s%s --help'.\n", cli->command ? " " : "",
			cli->command ? cli->command->name : "");
		return code;
	}
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
		help_overview(&text);
		return cli->common.help ? print(&text, stdout, EXIT_NOTHING)
					: print(&text, stderr, EXIT_USAGE);
	}
	return cli->command->run(cli);
}

static int64_t wall_clock(void)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* What could not be written was not told; a reader that went away does not want to be told. */
static int finish_output(int code)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return code;
	if (errno == EPIPE)
		return code;
	fprintf(stderr, "hunter-c: cannot write the output: %s\n", strerror(errno));
	return code == EXIT_NOTHING || code == EXIT_REGRESSIONS ? EXIT_DATA : code;
}

int cli_main(int argc, char **argv)
{
	struct cli cli = {
		.arena = arena_new(),
		.out = stdout,
		.now = wall_clock(),
		.color = isatty(STDOUT_FILENO) && !getenv("NO_COLOR"),
		.progress = isatty(STDERR_FILENO),
	};
	int code = finish_output(run(&cli, argc, argv));
	arena_free(cli.arena);
	return code;
}

static const char *environment(void *context, const char *name)
{
	(void)context;
	return getenv(name);
}

static void print_problems(const struct problems *problems)
{
	for (size_t i = 0; i < problems->count; i++)
		if (!problems->items[i].warning || log_enabled(LEVEL_WARN))
			fprintf(stderr, "%s\n", problems->items[i].text);
}

struct config_source cli_config_source(struct cli *cli)
{
	return (struct config_source){.schema = cli_schema(cli->arena), .env = environment};
}

struct config *cli_config(struct cli *cli)
{
	struct error error;
	const char *path;
	struct config_source source = cli_config_source(cli);
	struct problems problems = {.arena = cli->arena};
	if (!config_find(cli->common.config, &source, cli->arena, &path, &error)) {
		cli_fail(&error);
		return NULL;
	}
	struct config *config = config_load(path, &source, &problems);
	print_problems(&problems);
	return config;
}
