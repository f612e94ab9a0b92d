/*
 * Flags may precede and follow the command's arguments; the common ones also precede the
 * command. `--` ends them. A flag with a value takes the next word whatever it looks like, so
 * that `--since -10m` works.
 */
#include "agent/cli/flags.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A flag's field and the options struct it belongs to. */
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

/* Parses the value under the flag's own spelling, so that the error says --p-value. */
static bool set_flag(struct cli *cli, const struct target *target, const char *spelling,
	const char *value, struct error *error)
{
	struct field field = *target->field;
	field.name = spelling;
	if (!value[strspn(value, field.type == FIELD_LIST ? " ," : " ")])
		return error_set(error, ERROR_USAGE, "%.80s is empty", spelling);
	return field_parse(&field, target->options, value, cli->arena, error);
}

static bool missing_value(const char *spelling, struct error *error)
{
	return error_set(error, ERROR_USAGE, "%.80s needs a value", spelling);
}

/* A value is forgotten more often than it looks like a flag; --name=--value means one that does. */
static bool is_flag(struct cli *cli, const char *word)
{
	return strncmp(word, "--", 2) == 0 &&
	       find_flag(cli, arena_strndup(cli->arena, word + 2, strcspn(word + 2, "=")), 0).field;
}

/* "--name", "--name=value", "--no-name"; *used is set to the number of following words that are
 * its values. */
static bool long_flag(
	struct cli *cli, const char *word, char *const *next, int *used, struct error *error)
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
	if (!*next || is_flag(cli, *next))
		return missing_value(name, error);
	*used = 1;
	if (!set_flag(cli, &target, name, *next, error))
		return false;
	while (target.field->flags & FIELD_MANY && next[*used] && next[*used][0] != '-')
		if (!set_flag(cli, &target, name, next[(*used)++], error))
			return false;
	return true;
}

/* "-P 0.01", "-P0.01", "-h". */
static bool short_flag(
	struct cli *cli, const char *word, char *const *next, int *used, struct error *error)
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
	if (!*next || is_flag(cli, *next))
		return missing_value(spelling, error);
	*used = 1;
	return set_flag(cli, &target, spelling, *next, error);
}

static const struct command *find_command(const struct command *const *commands, const char *name)
{
	for (const struct command *const *command = commands; *command; command++)
		if (strcmp((*command)->name, name) == 0)
			return *command;
	return NULL;
}

static const char *environment(void *context, const char *name)
{
	(void)context;
	return getenv(name);
}

/* "help" is not a command of its own: `help analyze` is `analyze --help`. */
static bool choose_command(struct cli *cli, const char *name, struct error *error)
{
	const char *names[64];
	size_t count = 0;
	if (strcmp(name, "help") == 0) {
		cli->common.help = true;
		return true;
	}
	cli->command = find_command(cli->commands, name);
	if (cli->command) {
		cli->options = arena_alloc(cli->arena, cli->command->options_size);
		const struct option_part *part = cli->command->parts;
		for (; part && part->fields; part++) {
			void *options = (char *)cli->options + part->offset;
			field_defaults(part->fields, options);
			if (!field_variables(
				    part->fields, options, environment, NULL, cli->arena, error))
				return false;
		}
		return true;
	}
	for (; cli->commands[count] && count < 64; count++)
		names[count] = cli->commands[count]->name;
	error_set(error, ERROR_USAGE, "unknown command \"%.80s\"", name);
	return field_hint(error, name, names, count);
}

bool flags_parse(struct cli *cli, int argc, char **argv, struct error *error)
{
	const char **arguments = arena_array(cli->arena, (size_t)argc, sizeof *arguments);
	size_t count = 0;
	bool flags = true;
	for (int i = 1; i < argc; i++) {
		const char *word = argv[i];
		int used = 0;
		if (flags && strcmp(word, "--") == 0) {
			flags = false;
		} else if (flags && word[0] == '-' && word[1]) {
			bool is_long = word[1] == '-';
			if (!(is_long ? long_flag : short_flag)(
				    cli, word, argv + i + 1, &used, error))
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
