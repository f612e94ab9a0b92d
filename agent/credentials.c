/*
 * A token wins over user and password, a transfer's own token over the endpoint's. The URL's user
 * info counts where the options name no user.
 */
#include "agent/credentials.h"

#include <string.h>

#include "agent/core/secret.h"

static bool find_bearer(struct arena *arena, const struct transfer *transfer, bool trusted,
	const char **bearer, struct error *error)
{
	const struct endpoint *endpoint = transfer->endpoint;
	*bearer = transfer->bearer;
	if (*bearer || !trusted)
		return true;
	*bearer = endpoint->bearer_token;
	if (*bearer || !endpoint->bearer_token_file)
		return true;
	return secret_read(arena, "bearer_token_file", endpoint->bearer_token_file, bearer, error);
}

/* User and password within the endpoint's URL, where it has them. */
static void set_user_of_url(CURL *easy, const char *url)
{
	CURLU *parts = curl_url();
	char *user = NULL, *password = NULL;
	if (url && curl_url_set(parts, CURLUPART_URL, url, 0) == CURLUE_OK) {
		if (curl_url_get(parts, CURLUPART_USER, &user, CURLU_URLDECODE) == CURLUE_OK)
			curl_easy_setopt(easy, CURLOPT_USERNAME, user);
		if (curl_url_get(parts, CURLUPART_PASSWORD, &password, CURLU_URLDECODE) ==
			CURLUE_OK)
			curl_easy_setopt(easy, CURLOPT_PASSWORD, password);
	}
	curl_free(user);
	curl_free(password);
	curl_url_cleanup(parts);
}

static bool set_user(
	CURL *easy, struct arena *arena, const struct endpoint *endpoint, struct error *error)
{
	const char *password = endpoint->password;
	curl_easy_setopt(easy, CURLOPT_HTTPAUTH, CURLAUTH_BASIC);
	if (!endpoint->username) {
		set_user_of_url(easy, endpoint->url);
		return true;
	}
	if (!password && endpoint->password_file &&
		!secret_read(arena, "password_file", endpoint->password_file, &password, error))
		return false;
	curl_easy_setopt(easy, CURLOPT_USERNAME, endpoint->username);
	curl_easy_setopt(easy, CURLOPT_PASSWORD, password ? password : "");
	return true;
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
	struct curl_slist **headers, struct error *error)
{
	const struct endpoint *endpoint = transfer->endpoint;
	const char *bearer;
	if (!find_bearer(arena, transfer, trusted, &bearer, error))
		return false;
	if (bearer) {
		curl_easy_setopt(easy, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
		curl_easy_setopt(easy, CURLOPT_XOAUTH2_BEARER, bearer);
	} else if (trusted && !set_user(easy, arena, endpoint, error)) {
		return false;
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
