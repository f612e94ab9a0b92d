/*
 * validate: all that is wrong with the configuration, and what it comes to. Nothing is fetched.
 */
#include <string.h>

#include "agent/commands.h"
#include "agent/core/buf.h"
#include "agent/core/secret.h"
#include "conf/dict.h"

enum { OUTPUT_TEXT, OUTPUT_JSON };

struct validate_options {
	int output;
};

static const char *const outputs[] = {"text", "json", NULL};

static const struct field validate_fields[] = {
	{.name = "output",
		.type = FIELD_CHOICE,
		.offset = offsetof(struct validate_options, output),
		.initial = "text",
		.choices = outputs,
		.help = "how to print what was found"},
	{0},
};

static const struct option_part parts[] = {{validate_fields, 0}, {0}};

/* What the configuration has, or why it cannot be used. */
struct verdict {
	const char *path;
	const struct config *config; /* NULL: there are errors */
	const struct problems *problems;
	size_t warnings, unsupported;
};

static const char *plural(size_t count)
{
	return count == 1 ? "" : "s";
}

/* Why tests cannot be run, each reason once. */
static void print_reasons(const struct verdict *verdict, FILE *out)
{
	const struct config *config = verdict->config;
	struct dict reasons = {.arena = config->arena};
	size_t *counts = arena_array(config->arena, config->test_count, sizeof *counts);
	for (size_t i = 0; i < config->test_count; i++) {
		if (!config->tests[i].unsupported)
			continue;
		const void **place = dict_place(&reasons, config->tests[i].unsupported);
		if (!*place)
			*place = &counts[i];
		counts[(const size_t *)*place - counts]++;
	}
	for (size_t i = 0; i < config->test_count; i++)
		if (counts[i] > 0)
			fprintf(out, "%s: %zu test%s cannot be run: %s\n", verdict->path, counts[i],
				plural(counts[i]), config->tests[i].unsupported);
}

static void print_text(const struct verdict *verdict, FILE *out)
{
	const struct problems *problems = verdict->problems;
	const struct config *config = verdict->config;
	for (size_t i = 0; i < problems->count; i++)
		fprintf(out, "%s\n", problems->items[i].text);
	if (config)
		print_reasons(verdict, out);
	if (config && config->missing)
		fprintf(out, "%s: the agent will not start\n", config->missing);
	fprintf(out, "%s: ", verdict->path);
	if (config)
		fprintf(out, "OK, %zu test%s, %zu group%s", config->test_count,
			plural(config->test_count), config->group_count,
			plural(config->group_count));
	else
		fprintf(out, "%zu error%s", problems->errors, plural(problems->errors));
	if (verdict->unsupported > 0)
		fprintf(out, ", %zu of the tests cannot be run", verdict->unsupported);
	if (verdict->warnings > 0)
		fprintf(out, ", %zu warning%s", verdict->warnings, plural(verdict->warnings));
	fputc('\n', out);
}

static void print_unsupported(const struct config *config, struct buf *json)
{
	bool first = true;
	for (size_t i = 0; config && i < config->test_count; i++) {
		const struct test *test = &config->tests[i];
		if (!test->unsupported)
			continue;
		buf_text(json, first ? "\n    {\"test\": " : ",\n    {\"test\": ");
		buf_json_text(json, test->name);
		buf_text(json, ", \"reason\": ");
		buf_json_text(json, test->unsupported);
		buf_char(json, '}');
		first = false;
	}
}

static void print_json(const struct verdict *verdict, FILE *out)
{
	const struct problems *problems = verdict->problems;
	const struct config *config = verdict->config;
	struct buf json = {0};
	buf_text(&json, "{\n  \"config\": ");
	buf_json_text(&json, verdict->path);
	buf_printf(&json, ",\n  \"valid\": %s,\n  \"problems\": [", config ? "true" : "false");
	for (size_t i = 0; i < problems->count; i++) {
		buf_printf(&json, "%s\n    {\"severity\": \"%s\", \"text\": ", i ? "," : "",
			problems->items[i].warning ? "warning" : "error");
		buf_json_text(&json, problems->items[i].text);
		buf_char(&json, '}');
	}
	buf_printf(&json,
		"],\n  \"errors\": %zu,\n  \"warnings\": %zu,\n  \"missing\": ", problems->errors,
		verdict->warnings);
	buf_json_text(&json, config ? config->missing : NULL);
	buf_text(&json, ",\n  \"unsupported\": [");
	print_unsupported(config, &json);
	buf_printf(&json, "],\n  \"tests\": %zu,\n  \"groups\": %zu\n}\n",
		config ? config->test_count : 0, config ? config->group_count : 0);
	fwrite(json.data, 1, json.length, out);
	buf_free(&json);
}

static int validate(struct cli *cli)
{
	const struct validate_options *options = cli->options;
	struct error error;
	struct problems problems = {.arena = cli->arena};
	struct config_source source = cli_config_source(cli);
	source.cautious = true;
	struct verdict verdict = {.problems = &problems};
	if (cli->arguments.count > 0) {
		error_set(&error, ERROR_USAGE,
			"validate takes no arguments; name the file by --config");
		return cli_fail(&error);
	}
	if (!config_find(cli->common.config, &source, cli->arena, &verdict.path, &error))
		return cli_fail(&error);
	secret_forbid_dumps();
	if (!cli->common.config && strcmp(verdict.path, "hunter.yaml") == 0)
		caution_found(verdict.path, &problems);
	struct config *config = config_load(verdict.path, &source, &problems);
	verdict.config = config;
	for (size_t i = 0; i < problems.count; i++)
		verdict.warnings += problems.items[i].warning;
	for (size_t i = 0; config && i < config->test_count; i++)
		verdict.unsupported += config->tests[i].unsupported != NULL;
	if (options->output == OUTPUT_JSON)
		print_json(&verdict, cli->out);
	else
		print_text(&verdict, cli->out);
	config_free(config);
	return config ? EXIT_NOTHING : EXIT_USAGE;
}

const struct command validate_command = {
	.name = "validate",
	.summary = "Check the configuration",
	.details =
		"Reads the configuration, prints every problem with file, line and column, and a "
		"summary. Nothing is fetched and no server is asked. It also warns of what works "
		"and is careless: secrets that are short, that others can read or that are sent "
		"without TLS, and servers whose certificate is not checked. The exit code is 2 if "
		"there is an error; warnings alone give 0.",
	.parts = parts,
	.options_size = sizeof(struct validate_options),
	.run = validate,
};
