/*
 * manual: fills the man pages and the shell completion from the option tables.
 *
 * Options are declared once, in tables of struct field. The templates beside this file hold the
 * prose; a line "@NAME" is replaced by the generated part of that name:
 *
 *     manual hunter-c.1.in > hunter-c.1
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "agent/analysis/shapes.h"
#include "agent/base/buf.h"
#include "agent/base/transfer.h"
#include "agent/cli/help.h"
#include "agent/commands/commands.h"
#include "agent/store/store.h"
#include "conf/known_changes.h"
#include "detectors/combine.h"
#include "detectors/confirm.h"
#include "detectors/detector.h"
#include "detectors/fdr.h"
#include "notifiers/notifier.h"
#include "sources/source.h"

/* Escapes text for roff: dashes can be copied, and no text is taken for a request. */
static void put_text(const char *text, size_t length)
{
	if (length && (*text == '.' || *text == '\''))
		fputs("\\&", stdout);
	for (const char *end = text + length; text < end; text++) {
		if (*text == '-')
			fputs("\\-", stdout);
		else if (*text == '\\')
			fputs("\\e", stdout);
		else
			putchar(*text);
	}
}

static void put(const char *text)
{
	put_text(text, strlen(text));
}

static void put_sentence(const struct field *field)
{
	putchar('\n');
	put(field->help);
	if (field->flags & FIELD_REQUIRED) {
		fputs(" (required)", stdout);
	} else if (field->initial && field->type != FIELD_BOOL) {
		fputs(" (default ", stdout);
		put(field->initial);
		putchar(')');
	}
	puts(".");
}

/* "-P, --p-value P", the part up to the value in bold. */
static void put_flag(const struct field *field)
{
	struct buf flag = {0};
	help_flag(&flag, field);
	const char *name = strstr(flag.data, "--");
	size_t length = (size_t)(name - flag.data) + strcspn(name, " ");
	fputs(".TP\n\\fB", stdout);
	put_text(flag.data, length);
	fputs("\\fR", stdout);
	put(flag.data + length);
	put_sentence(field);
	buf_free(&flag);
}

/* "p_value: P". */
static void put_key(const struct field *field)
{
	struct buf flag = {0};
	help_flag(&flag, field);
	const char *name = strstr(flag.data, "--");
	const char *value = name + strcspn(name, " ");
	fputs(".TP\n\\fB", stdout);
	put(field->name);
	fputs("\\fR: ", stdout);
	if (field->type == FIELD_BOOL)
		fputs("true|false", stdout);
	else if (field->type == FIELD_MAP)
		fputs("{NAME: VALUE, ...}", stdout);
	else
		put(value + (*value == ' '));
	put_sentence(field);
	buf_free(&flag);
}

static void put_fields(const struct field *fields, void (*put_one)(const struct field *))
{
	for (; fields && fields->name; fields++)
		if (!(fields->flags & FIELD_HIDDEN))
			put_one(fields);
}

/* Empty lines separate paragraphs; lines that begin with a blank are examples. */
static void put_details(const char *details)
{
	bool example = false;
	fputs(".PP\n", stdout);
	for (const char *line = details; *line;) {
		size_t length = strcspn(line, "\n");
		if (length && (*line == ' ') != example) {
			example = !example;
			puts(example ? ".PP\n.nf" : ".fi\n.PP");
		}
		if (length)
			put_text(line, length);
		else
			fputs(".PP", stdout);
		putchar('\n');
		line += length + (line[length] == '\n');
	}
	if (example)
		puts(".fi");
}

/* A subsection with its summary as a sentence. */
static void put_heading(const char *name, const char *rest, const char *summary)
{
	fputs(".SS ", stdout);
	put(name);
	if (rest) {
		putchar(' ');
		put(rest);
	}
	printf("\n%c", toupper((unsigned char)*summary));
	put(summary + 1);
	puts(".");
}

static void put_commands(void)
{
	for (const struct command *const *each = commands; *each; each++) {
		put_heading((*each)->name, (*each)->arguments, (*each)->summary);
		if ((*each)->details)
			put_details((*each)->details);
		for (const struct option_part *part = (*each)->parts; part && part->fields; part++)
			put_fields(part->fields, put_flag);
	}
}

static void put_common(void)
{
	put_fields(common_fields, put_flag);
}

static void put_plugin(const char *name, const char *summary, const struct field *fields)
{
	put_heading(name, NULL, summary);
	put_fields(fields, put_key);
}

static void put_sources(void)
{
	for (size_t i = 0; sources[i]; i++)
		put_plugin(sources[i]->name, sources[i]->summary, sources[i]->fields);
}

static void put_servers(void)
{
	for (size_t i = 0; sources[i]; i++)
		if (sources[i]->server_size)
			put_plugin(
				sources[i]->name, sources[i]->summary, sources[i]->server_fields);
}

static void put_notifiers(void)
{
	put_fields(receiver_fields, put_key);
	put_heading("digest", NULL, "keys of a receiver's digest");
	put_fields(digest_fields, put_key);
	put_heading("bisect", NULL, "keys of a test's bisect");
	put_fields(test_bisect_fields, put_key);
	put_heading("routes", NULL, "keys of a route");
	put_fields(route_fields, put_key);
	for (size_t i = 0; notifiers[i]; i++)
		put_plugin(notifiers[i]->name, notifiers[i]->summary, notifiers[i]->fields);
}

static void put_detectors(void)
{
	for (size_t i = 0; detectors[i]; i++)
		put_plugin(detectors[i]->name, detectors[i]->summary, detectors[i]->fields);
}

static void put_endpoint(void)
{
	put_fields(endpoint_fields, put_key);
}

static void put_belief(void)
{
	put_fields(confirm_fields, put_key);
	put_fields(fdr_fields, put_key);
	put_fields(season_fields, put_key);
}

static void put_agent(void)
{
	put_fields(agent_fields, put_key);
}

static void put_mute(void)
{
	put_fields(mute_fields, put_key);
}

static void put_known_changes(void)
{
	put_fields(known_change_fields, put_key);
}

static void put_cluster(void)
{
	put_fields(shape_fields, put_key);
}

static void put_version(void)
{
	puts(".ds version " HUNTER_VERSION);
}

/* From here on: parts of the completion script. */
static void put_dashed(const char *name)
{
	fputs(" --", stdout);
	for (; *name; name++)
		putchar(*name == '_' ? '-' : *name);
}

static void put_flag_word(const struct field *field)
{
	put_dashed(field->name);
	if (field->letter)
		printf(" -%c", field->letter);
}

static void put_command_words(void)
{
	fputs("\tlocal commands='", stdout);
	for (const struct command *const *each = commands; *each; each++)
		printf("%s%s", each == commands ? "" : " ", (*each)->name);
	fputs("'\n\tlocal flags='", stdout);
	put_fields(common_fields, put_flag_word);
	puts("'");
}

static void put_flag_words(void)
{
	for (const struct command *const *each = commands; *each; each++) {
		printf("\t%s) flags+='", (*each)->name);
		for (const struct option_part *part = (*each)->parts; part && part->fields; part++)
			put_fields(part->fields, put_flag_word);
		puts("' ;;");
	}
}

static void put_word(const char *word, bool first)
{
	printf("%s%s", first ? "" : " ", word);
}

static void put_choices(const struct field *field)
{
	for (size_t i = 0; field && field->choices && field->choices[i]; i++)
		put_word(field->choices[i], i == 0);
}

/* The known values of a flag. */
static void put_known(const struct field *field)
{
	if (field->type == FIELD_CHOICE)
		put_choices(field);
	else if (strcmp(field->name, "profile") == 0)
		put_choices(field_find(detector_find("edivisive")->plugin.fields, "profile"));
	else if (strcmp(field->name, "state") == 0)
		for (size_t i = 1; i < CHANGE_STATES; i++)
			put_word(change_state_names[i], i == 1);
	else if (strcmp(field->name, "detector") == 0)
		for (size_t i = 0; detectors[i]; i++)
			if (detectors[i] !=
				&combine_detector.plugin) /* which is the key `combine` */
				put_word(detectors[i]->name, i == 0);
}

/* A pattern for each flag with a value: 'COMMAND --flag') words='known values' ;; */
static void put_value_words(const char *command, const struct field *fields)
{
	for (; fields->name; fields++) {
		if (fields->type == FIELD_BOOL)
			continue;
		printf("\t'%s", command);
		put_dashed(fields->name);
		if (fields->alias) {
			printf("' | '%s", command);
			put_dashed(fields->alias);
		}
		if (strcmp(fields->name, "test") == 0) {
			puts("') lists=list-tests ;;");
			continue;
		}
		fputs("') words='", stdout);
		put_known(fields);
		puts("' ;;");
	}
}

static void put_values(void)
{
	put_value_words("", common_fields);
	for (const struct command *const *each = commands; *each; each++) {
		put_value_words((*each)->name, common_fields);
		for (const struct option_part *part = (*each)->parts; part && part->fields; part++)
			put_value_words((*each)->name, part->fields);
	}
}

/* The words of a first argument such as "check|backup FILE|prune". */
static void put_verbs(const char *arguments)
{
	char pattern[256] = "", words[256] = "";
	for (const char *at = arguments; *at; at += strcspn(at, "|"), at += *at == '|') {
		int length = (int)strcspn(at, " |]");
		size_t end = strlen(words);
		snprintf(words + end, sizeof words - end, "%s%.*s", end ? " " : "", length, at);
		end = strlen(pattern);
		snprintf(pattern + end, sizeof pattern - end, "%s%.*s", end ? "|" : "", length, at);
	}
	printf("[[ \" ${COMP_WORDS[*]:0:COMP_CWORD} \" =~ ' '(%s)' ' ]] || words='%s'", pattern,
		words);
}

/* The arguments of each command: its own words, tests or groups; else files or none. */
static void put_argument_words(void)
{
	for (const struct command *const *each = commands; *each; each++) {
		const char *arguments = (*each)->arguments;
		if (!arguments)
			continue;
		printf("\t\t\t%s) ", (*each)->name);
		if (islower((unsigned char)arguments[*arguments == '[']))
			put_verbs(arguments + (*arguments == '['));
		else
			printf("lists='%s%s'", strstr(arguments, "GROUP") ? "list-groups " : "",
				strstr(arguments, "TEST") ? "list-tests" : "");
		puts(" ;;");
	}
}

static const struct {
	const char *name;
	void (*put)(void);
} parts[] = {
	{"@version", put_version},
	{"@commands", put_commands},
	{"@common", put_common},
	{"@agent", put_agent},
	{"@known", put_known_changes},
	{"@cluster", put_cluster},
	{"@mute", put_mute},
	{"@endpoint", put_endpoint},
	{"@sources", put_sources},
	{"@servers", put_servers},
	{"@notifiers", put_notifiers},
	{"@detectors", put_detectors},
	{"@belief", put_belief},
	{"@command-words", put_command_words},
	{"@flag-words", put_flag_words},
	{"@value-words", put_values},
	{"@argument-words", put_argument_words},
};

/* False if a line begins with '@' and names no part. */
static bool put_line(const char *line)
{
	if (line[0] != '@') {
		fputs(line, stdout);
		return true;
	}
	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
		size_t length = strlen(parts[i].name);
		if (strncmp(line, parts[i].name, length) == 0 && line[length] == '\n') {
			parts[i].put();
			return true;
		}
	}
	fprintf(stderr, "manual: unknown part %s", line);
	return false;
}

int main(int argc, char **argv)
{
	char line[4096];
	FILE *template = argc == 2 ? fopen(argv[1], "r") : NULL;
	if (!template) {
		fprintf(stderr, "usage: manual TEMPLATE\n");
		return 2;
	}
	bool good = true;
	while (good && fgets(line, sizeof line, template))
		good = put_line(line);
	good = good && !ferror(template);
	fclose(template);
	return good && fflush(stdout) == 0 ? 0 : 1;
}
