/*
 * A token takes precedence over user and password, and a transfer's own token over the
 * endpoint's. The URL's user info counts if the options name no user.
 */
#include "agent/io/credentials.h"

#include <stdlib.h>
#include <string.h>

#include "agent/base/buf.h"
#include "agent/base/secret.h"

/* The handle and the secrets set on it. */
struct credentials {
	CURL *easy;
	struct arena *arena;
	struct strings *secrets;
};

static bool set_bearer(
	const struct credentials *to, const char *option, const char *bearer, struct error *error)
{
	if (!secret_check(option, bearer, error))
		return false;
	bearer = arena_strndup(to->arena, bearer, secret_length(bearer));
	curl_easy_setopt(to->easy, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
	curl_easy_setopt(to->easy, CURLOPT_XOAUTH2_BEARER, bearer);
	strings_add(to->secrets, to->arena, bearer);
	return true;
}

static void add_user_secrets(const struct credentials *to, const char *user, const char *password)
{
	const char *both = arena_printf(to->arena, "%s:%s", user, password);
	struct buf encoded = {0};

	strings_add(to->secrets, to->arena, password);
	buf_base64(&encoded, both, strlen(both));
	strings_add(to->secrets, to->arena, buf_keep(&encoded, to->arena));
}

static void set_basic(const struct credentials *to, const char *user, const char *password)
{
	curl_easy_setopt(to->easy, CURLOPT_USERNAME, user);
	curl_easy_setopt(to->easy, CURLOPT_PASSWORD, password);
	add_user_secrets(to, user, arena_strdup(to->arena, password));
}

/* User and password within an address, in the arena; false: it has none. */
static bool find_user(
	const struct credentials *to, const char *url, const char **user, const char **password)
{
	CURLU *parts = curl_url();
	char *found[2] = {NULL, NULL};
	if (curl_url_set(parts, CURLUPART_URL, url,
		    CURLU_GUESS_SCHEME | CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK) {
		curl_url_get(parts, CURLUPART_USER, &found[0], CURLU_URLDECODE);
		curl_url_get(parts, CURLUPART_PASSWORD, &found[1], CURLU_URLDECODE);
	}
	*user = arena_strdup(to->arena, found[0] ? found[0] : "");
	*password = arena_strdup(to->arena, found[1] ? found[1] : "");
	bool any = found[0] || found[1];
	curl_free(found[0]);
	curl_free(found[1]);
	curl_url_cleanup(parts);
	return any;
}

static bool set_user(
	const struct credentials *to, const struct endpoint *endpoint, struct error *error)
{
	const char *password = endpoint->password, *user = endpoint->username;
	curl_easy_setopt(to->easy, CURLOPT_HTTPAUTH, CURLAUTH_BASIC);
	if (!user) {
		if (endpoint->url && find_user(to, endpoint->url, &user, &password))
			set_basic(to, user, password);
		return true;
	}
	if (!password && endpoint->password_file &&
		!secret_read(to->arena, "password_file", endpoint->password_file, &password, error))
		return false;
	set_basic(to, user, password ? password : "");
	return true;
}

/* Sets the token, or user and password. */
static bool set_identity(const struct credentials *to, const struct transfer *transfer,
	bool trusted, struct error *error)
{
	const struct endpoint *endpoint = transfer->endpoint;
	const char *bearer;
	if (transfer->bearer)
		return set_bearer(to, "the token", transfer->bearer, error);
	if (!trusted)
		return true;
	if (endpoint->bearer_token)
		return set_bearer(to, "bearer_token", endpoint->bearer_token, error);
	if (!endpoint->bearer_token_file)
		return set_user(to, endpoint, error);
	return secret_read(to->arena, "bearer_token_file", endpoint->bearer_token_file, &bearer,
		       error) &&
	       set_bearer(to, "bearer_token_file", bearer, error);
}

static bool add_headers(struct curl_slist **list, struct arena *arena, const struct pairs *headers,
	struct error *error)
{
	for (size_t i = 0; i < headers->count; i++) {
		const struct pair *pair = &headers->items[i];
		const char *value = pair->value ? pair->value : "";
		if (!*pair->key || strpbrk(pair->key, "\r\n: \t") || strpbrk(value, "\r\n"))
			return error_set(error, ERROR_DATA,
				"header \"%s\" has a line break, or a colon or space in its name",
				pair->key);
		const char *line = *value ? arena_printf(arena, "%s: %s", pair->key, value)
					  : arena_printf(arena, "%s;", pair->key);
		*list = curl_slist_append(*list, line);
	}
	return true;
}

bool credentials_set(CURL *easy, struct arena *arena, const struct transfer *transfer, bool trusted,
	struct curl_slist **headers, struct strings *secrets, struct error *error)
{
	const struct endpoint *endpoint = transfer->endpoint;
	const struct credentials to = {easy, arena, secrets};
	static const char *const variables[] = {
		"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"};

	arena_holds_secrets(arena);
	if (!set_identity(&to, transfer, trusted, error))
		return false;
	/* libcurl takes a proxy's user and password from its address, and the address from the
	 * process's environment at each request, regardless of the environment handed to the
	 * program. So the process's environment is read here, for the variables that apply to http
	 * and https. */
	for (size_t i = 0; i < (endpoint->proxy ? 1 : sizeof variables / sizeof *variables); i++) {
		const char *url = endpoint->proxy ? endpoint->proxy : getenv(variables[i]);
		const char *user, *password;
		if (url && find_user(&to, url, &user, &password))
			add_user_secrets(&to, user, password);
	}
	/* The whole value of a header, and the part after the scheme of an Authorization. A value
	 * as short as a tenant number is not a secret. */
	for (size_t i = 0; trusted && i < endpoint->headers.count; i++) {
		const char *value = endpoint->headers.items[i].value;
		const char *blank = value ? strchr(value, ' ') : NULL;
		if (value && strlen(value) >= SECRET_SHORTEST)
			strings_add(secrets, arena, value);
		if (blank)
			strings_add(secrets, arena, blank + 1);
	}
	if (trusted && endpoint->cert_file) {
		curl_easy_setopt(easy, CURLOPT_SSLCERT, endpoint->cert_file);
		curl_easy_setopt(easy, CURLOPT_SSLKEY, endpoint->key_file);
	}
	if ((trusted && !add_headers(headers, arena, &endpoint->headers, error)) ||
		!add_headers(headers, arena, &transfer->headers, error))
		return false;
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, *headers);
	return true;
}

void credentials_forget(CURL *easy)
{
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, NULL);
	curl_easy_setopt(easy, CURLOPT_USERNAME, NULL);
	curl_easy_setopt(easy, CURLOPT_PASSWORD, NULL);
	curl_easy_setopt(easy, CURLOPT_XOAUTH2_BEARER, NULL);
	curl_easy_setopt(easy, CURLOPT_SSLCERT, NULL);
	curl_easy_setopt(easy, CURLOPT_SSLKEY, NULL);
}
