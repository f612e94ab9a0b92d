/*
 * Warnings about configuration that works but is careless: secrets that are short, readable by
 * others or sent in the clear, and connections that allow impersonation. Only `validate` asks for
 * them; each warning is at its option.
 *
 * Options are recognised by name: sources and notifiers share the names.
 */
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/base/buf.h"
#include "agent/base/secret.h"
#include "agent/base/transfer.h"
#include "conf/load.h"

enum { SHORT = 16 }; /* a key or token with fewer bytes can be guessed */

struct caution {
	struct loader *loader;
	const struct yaml_node *map;
	const struct scope *scope;
	const struct field *fields;
	const void *options;
};

static void warn(const struct caution *caution, const char *format, ...) PRINTF_LIKE(2, 3);

/* The text begins with the option's name. */
static void warn(const struct caution *caution, const char *format, ...)
{
	struct error error = {.kind = ERROR_DATA};
	struct buf text = {0};
	va_list arguments;
	va_start(arguments, format);
	buf_vprintf(&text, format, arguments);
	va_end(arguments);
	error_set(&error, ERROR_DATA, "%s", text.data);
	loader_complain(caution->map, caution->scope, &error);
	buf_free(&text);
}

/* The value of a text option, or NULL if it is unset or there is no such option. */
static const char *text_at(const struct caution *caution, const char *name)
{
	const struct field *field = field_find(caution->fields, name);
	bool text = field && (field->type == FIELD_STRING || field->type == FIELD_SECRET);
	return text ? field_text(field, caution->options) : NULL;
}

static bool is_open(const char *path)
{
	struct stat status;
	return stat(path, &status) == 0 && (status.st_mode & S_IROTH) != 0;
}

static void check_length(const struct caution *caution, const char *option, const char *secret)
{
	if (secret_length(secret) > 0 && secret_length(secret) < SHORT)
		warn(caution, "%s: shorter than %d bytes: too easy to guess", option, SHORT);
}

/* True if the value is written in the configuration itself, not taken from the environment. */
static bool stands_in_file(const struct yaml_node *map, const struct field *field)
{
	const struct yaml_node *node = yaml_get(map, field->name);
	if (!node && field->alias)
		node = yaml_get(map, field->alias);
	return node && node->kind == YAML_SCALAR && *node->text && !strchr(node->text, '$') &&
	       is_open(node->file);
}

static void check_secret(const struct caution *caution, const struct field *field)
{
	const char *secret = field_text(field, caution->options);
	if (!secret || strcmp(field->name, "proxy") == 0)
		return;
	if (!(field->flags &
		    FIELD_EMPTY)) /* passwords are chosen by users and checked by servers */
		check_length(caution, field->name, secret);
	if (stands_in_file(caution->map, field))
		warn(caution, "%s: the file is readable by every user", field->name);
}

static void check_file(const struct caution *caution, const struct field *field)
{
	const char *path = field_text(field, caution->options), *content;
	const struct field *secret = field_secret(caution->fields, field);
	bool key = strcmp(field->name, "key_file") == 0 || strcmp(field->name, "sslkey") == 0;
	struct error error;
	if (!path || (!secret && !key))
		return;
	if (is_open(path))
		warn(caution, "%s: every user can read \"%.200s\"", field->name, path);
	if (secret && !(secret->flags & FIELD_EMPTY) &&
		secret_read(caution->loader->arena, field->name, path, &content, &error))
		check_length(caution, field->name, content);
}

static bool is_sent(const struct pair *header)
{
	static const char *const words[] = {"auth", "token", "key", "cookie", "secret"};
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (strcasestr(header->key, words[i]))
			return true;
	return false;
}

/* True if requests carry one of the section's secrets; a webhook's key only signs. */
static bool sends_secret(const struct caution *caution, const struct endpoint *endpoint)
{
	static const char *const names[] = {"password", "password_file", "bearer_token",
		"bearer_token_file", "bot_token", "bot_token_file", "routing_key",
		"routing_key_file"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (text_at(caution, names[i]))
			return true;
	for (size_t i = 0; endpoint && i < endpoint->headers.count; i++)
		if (is_sent(&endpoint->headers.items[i]))
			return true;
	return endpoint && endpoint->url && transfer_url_has_user(endpoint->url);
}

static bool is_plain(const char *url)
{
	return url && strncasecmp(url, "http://", 7) == 0 && !transfer_url_is_local(url);
}

/* Whether the address of a webhook alone grants access to it. */
static bool is_secret_url(const struct caution *caution)
{
	return field_find(caution->fields, "url_file") != NULL;
}

static void check_plain(const struct caution *caution, const struct endpoint *endpoint)
{
	static const char *const addresses[] = {"url", "api_url"};
	if (is_plain(text_at(caution, "webhook_url")))
		warn(caution, "webhook_url: a secret sent without TLS: use https://");
	if (is_secret_url(caution) && is_plain(text_at(caution, "url")))
		warn(caution, "url: a secret sent without TLS: use https://");
	for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++)
		if (is_plain(text_at(caution, addresses[i])) && sends_secret(caution, endpoint))
			warn(caution,
				"%s: sends a token or password to another host without TLS: use "
				"https://",
				addresses[i]);
}

/* The word chosen for the option, or NULL if there is none of that name. */
static const char *choice_at(const struct caution *caution, const char *name)
{
	const struct field *field = field_find(caution->fields, name);
	if (!field || field->type != FIELD_CHOICE)
		return NULL;
	return field->choices[*(
		const int *)(const void *)((const char *)caution->options + field->offset)];
}

static void check_mail(const struct caution *caution, const struct endpoint *endpoint)
{
	const char *url = endpoint ? endpoint->url : NULL, *tls = choice_at(caution, "tls");
	if (!url || !transfer_url_is_mail(url) || transfer_url_is_local(url) || !tls ||
		strcmp(tls, "none") != 0)
		return;
	if (endpoint->username || endpoint->bearer_token || endpoint->bearer_token_file ||
		transfer_url_has_user(url))
		warn(caution, "tls: none sends the password to another host without TLS");
}

/* PostgreSQL: without a check of the certificate's name, a man in the middle can answer. */
static void check_ssl(const struct caution *caution)
{
	const char *host = text_at(caution, "hostname"), *mode = choice_at(caution, "sslmode");
	if (!mode)
		return;
	host = host && *host ? host : loader_variable(caution->loader, "PGHOST");
	if (!host || !*host || *host == '/' || transfer_host_is_local(host, strlen(host)))
		return;
	if (strcmp(mode, "default") == 0)
		mode = text_at(caution, "sslrootcert")
			       ? "verify-full"
			       : loader_variable(caution->loader, "PGSSLMODE");
	if (!mode || strcmp(mode, "verify-full") != 0)
		warn(caution, "sslmode: the server can be impersonated without verify-full");
}

void caution_options(const struct yaml_node *map, const struct scope *scope,
	const struct field *fields, const void *options, const struct endpoint *endpoint)
{
	const struct caution caution = {scope->loader, map, scope, fields, options};
	for (const struct field *field = fields; field && field->name; field++) {
		if (field->type == FIELD_SECRET)
			check_secret(&caution, field);
		else if (field->type == FIELD_STRING)
			check_file(&caution, field);
	}
	if (is_secret_url(&caution) && stands_in_file(map, &(struct field){.name = "url"}))
		warn(&caution, "url: a secret in a file readable by every user");
	check_plain(&caution, endpoint);
	check_mail(&caution, endpoint);
	check_ssl(&caution);
	if (endpoint && endpoint->insecure_skip_verify &&
		field_find(fields, "insecure_skip_verify"))
		warn(&caution, "insecure_skip_verify: another program can impersonate this server; "
			       "name the certificate to trust in ca_file");
}

static bool others_write(const char *path)
{
	struct stat status;
	if (stat(path, &status) != 0)
		return false;
	return (status.st_mode & S_IWOTH) || (status.st_uid != 0 && status.st_uid != geteuid());
}

/* Other users could put a file of their own there, and the caller's program would use it. */
void caution_found(const char *path, struct problems *problems)
{
	if (others_write(".") || others_write(path))
		problems_add_file(problems, true, path, 0, 0,
			"file or folder writable by other users: give the configuration with "
			"--config");
}
