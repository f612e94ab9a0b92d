/*
 * A command: runs a program for each message, which is on its standard input as the webhook's
 * document. Uses: a bisection, a custom page, a chat without a notifier.
 *
 * Exit status 0 means delivered, 75 (EX_TEMPFAIL) retry; any other is final, as is a timeout: a
 * faulty command would fail each time. After a crash of the agent the command is run again, with
 * the same key.
 */
#include <string.h>
#include <sysexits.h>

#include "notifiers/http_json.h"

struct exec_options {
	struct strings command;
	bool shell;
	struct pairs environment;
	int64_t timeout;
};

static const struct field exec_fields[] = {
	OPTION_LIST(struct exec_options, command,
		"program and its arguments; with shell, one string",
		.flags = FIELD_REQUIRED | FIELD_COMMAND),
	OPTION_BOOL(struct exec_options, shell, "run the command with /bin/sh"),
	OPTION_MAP(struct exec_options, environment,
		"environment variables of the command, in addition to PATH, HOME, USER, LOGNAME, "
		"LANG, LC_ALL, TZ and TMPDIR",
		.flags = FIELD_CLOSED),
	OPTION_DURATION(struct exec_options, timeout, "30s", 100, 86400000.0,
		"timeout; then the command and its children are killed"),
	{0},
};

static bool is_variable(const char *name)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
	const char *rest = name + strspn(name, letters);

	return rest > name && !rest[strspn(rest, "0123456789_ABCDEFGHIJKLMNOPQRSTUVWXYZ"
						 "abcdefghijklmnopqrstuvwxyz")];
}

static bool check_command(const struct exec_options *options, struct error *error)
{
	const struct strings *command = &options->command;
	const char *program = command->count > 0 ? command->items[0] : "";

	if (!*program)
		return error_set(error, ERROR_USAGE, "command: it is empty");
	if (options->shell && command->count > 1)
		return error_set(error, ERROR_USAGE, "command: expected a string with shell: true");
	if (options->shell)
		return true;
	if (strchr(program, '/') && *program != '/')
		return error_set(error, ERROR_USAGE,
			"command: \"%.80s\" is neither an absolute path nor the name of a program "
			"in PATH",
			program);
	if (command->count == 1 && strpbrk(program, " \t\n"))
		return error_set(error, ERROR_USAGE,
			"command: \"%.80s\" is a string: use a list, [PROGRAM, ARGUMENT], or add "
			"shell: true",
			program);
	return true;
}

static bool check(const void *context, struct error *error)
{
	const struct exec_options *options = context;
	const struct pairs *environment = &options->environment;

	for (size_t i = 0; i < environment->count; i++)
		if (!is_variable(environment->items[i].key))
			return error_set(error, ERROR_USAGE,
				"environment: \"%.80s\" is not the name of a variable",
				environment->items[i].key);
	return check_command(options, error);
}

static bool render(const struct draft *draft)
{
	return webhook_notifier.render(draft);
}

static enum step run(struct attempt *attempt)
{
	static const char *const shell[] = {"/bin/sh", "-c"};
	const struct exec_options *options = attempt->options;
	size_t count = 0, given = options->command.count;
	const char **command = arena_array(attempt->arena, given + 3, sizeof *command);

	for (size_t i = 0; options->shell && i < 2; i++)
		command[count++] = shell[i];
	for (size_t i = 0; i < given; i++)
		command[count++] = options->command.items[i];
	command[count] = NULL;
	*attempt->next = (struct transfer){.kind = TRANSFER_EXEC,
		.command = command,
		.environment = options->environment,
		.body = attempt->payload,
		.body_length = strlen(attempt->payload),
		.timeout = options->timeout};
	return STEP_TRANSFER;
}

/* "exec: bisect: exit status 3: no such commit" */
static void explain(const struct exec_options *options, const struct reply *reply,
	enum error_kind kind, struct error *error)
{
	const char *program = options->shell ? "sh" : options->command.items[0];
	const char *why = reply->problem ? reply->problem : reply->body ? reply->body : "";

	if (reply->kind == REPLY_ANSWER)
		error_set(error, kind, "exec: %.200s: exit status %d%s%.300s", program,
			reply->status, *why ? ": " : "", why);
	else
		error_set(error, kind, "exec: %.200s: %.300s", program, why);
}

static enum step step(struct attempt *attempt, const struct reply *last)
{
	const struct exec_options *options = attempt->options;
	bool misconfigured;

	attempt->maybe_delivered = MAYBE_DELIVERED_NO;
	if (!last)
		return run(attempt);
	if (last->kind == REPLY_ANSWER && last->status == 0)
		return STEP_DONE;
	misconfigured = last->kind == REPLY_UNREACHABLE && last->status != 0;
	attempt->retry = last->kind == REPLY_ANSWER
				 ? last->status == EX_TEMPFAIL
				 : last->kind == REPLY_UNREACHABLE && !misconfigured;
	explain(options, last, misconfigured ? ERROR_USAGE : ERROR_DATA, attempt->error);
	return STEP_FAILED;
}

const struct notifier exec_notifier = {
	.plugin = {.name = "exec",
		.summary = "run a command with each message on its standard input",
		.fields = exec_fields,
		.options_size = sizeof(struct exec_options),
		.check = check},
	.events = MESSAGES_ALL,
	.defaults = MESSAGES_OF_CHANGES | 1u << MESSAGE_RECOVERED,
	.render = render,
	.step = step,
};
