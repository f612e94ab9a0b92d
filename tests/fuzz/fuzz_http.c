/*
 * What a request says, of any bytes: the first tells what the rest is. Parameters that are taken
 * are the known ones, each once, as text; a liking lies between 0 and 1; whoever is let in asked by
 * an address or a name of this machine; credentials are text.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/network.h"
#include "agent/http/authorization.h"
#include "agent/http/head.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
	if (!good)
		abort();
}

static void try_query(const char *text, size_t size)
{
	static const char names[] = "test group since until limit";
	struct arena *arena = arena_new();
	struct http_query query = {0};
	struct error error;

	if (http_query_parse(arena, text, size, names, HTTP_VALUE, &query, &error))
		for (size_t i = 0; i < query.count; i++) {
			check(strlen(query.items[i].value) <= HTTP_VALUE);
			check(http_query_get(&query, query.items[i].name) == query.items[i].value);
		}
	else
		check(error.kind == ERROR_USAGE && error.text[0]);
	arena_free(arena);
}

static void try_accept(const char *text)
{
	struct arena *arena = arena_new();
	double quality = http_quality(arena, text, "application/openmetrics-text", "1.0.0");

	check(quality == -1 || (quality >= 0 && quality <= 1));
	arena_free(arena);
}

/* Three headers, a line each. */
static void try_guard(char *text)
{
	struct http_claim claim = {.posted = true, .names = {"perfbox", NULL}};
	struct error error;

	claim.host = strsep(&text, "\n");
	claim.origin = strsep(&text, "\n");
	claim.site = text;
	if (http_guard(&claim, &error))
		check(!claim.host || !strstr(claim.host, ".example"));
}

/* Credentials are text; a password may hold anything but a NUL. */
static void try_authorization(const char *text)
{
	struct arena *arena = arena_new();
	struct authorization given;

	if (authorization_parse(text, arena, &given)) {
		check(strlen(given.secret) <= AUTHORIZATION_BYTES);
		check(!given.user || (*given.user && !strchr(given.user, ':')));
		check(!given.user || !strpbrk(given.user, "\r\n\t"));
		check(given.user || (*given.secret && !strpbrk(given.secret, " \t\r\n")));
	}
	arena_free(arena);
}

/* A network has its own address. */
static void try_network(const char *text)
{
	struct network network;
	struct error error;

	if (network_parse(text, &network, &error)) {
		check(network.bits >= 1 && network.bits <= 128);
		check(network_has(&network, network.address));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	char *text = malloc(size);
	check(text != NULL);
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	if (data[0] == 'q')
		try_query(text, size - 1);
	else if (data[0] == 'a')
		try_accept(text);
	else if (data[0] == 'h')
		try_authorization(text);
	else if (data[0] == 'n')
		try_network(text);
	else
		try_guard(text);
	free(text);
	return 0;
}
