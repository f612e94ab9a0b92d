/*
 * All pages are the same file; its script shows the page that the address names. Files are sent
 * compressed as they are to clients that accept it, which all browsers do.
 */
#include "agent/web/assets.h"

#include <assert.h>
#include <string.h>

#include "agent/http/request.h"

/* The policy of pages: nothing inline, nothing from other hosts. */
static const char policy[] =
	"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
	"connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'";

const struct asset *asset_named(const char *name)
{
	for (const struct asset *asset = assets; asset->name; asset++)
		if (strcmp(asset->name, name) == 0)
			return asset;
	return NULL;
}

void asset_put(const struct asset *asset, struct buf *out)
{
	bool whole = http_unpack(asset->bytes, asset->length, SIZE_MAX, out);

	assert(whole);
	(void)whole;
}

static void answer_with(struct http_request *request, const struct asset *asset)
{
	struct http_answer answer = {.type = asset->type, .etag = asset->version, .policy = policy};

	if (request->gzips) {
		answer.encoding = "gzip";
		answer.fixed = asset->bytes;
		answer.fixed_length = asset->length;
	} else {
		asset_put(asset, &answer.body);
	}
	http_answer(request, &answer);
}

static void get_page(struct http_request *request)
{
	answer_with(request, asset_named("page.html"));
}

static void get_asset(struct http_request *request)
{
	const struct asset *asset = asset_named(request->rest);

	if (asset)
		answer_with(request, asset);
	else
		http_fail(request, 404, "there is no file \"%.100s\"", request->rest);
}

const struct route asset_routes[] = {
	{"/assets/", HTTP_READ, ROLE_ANYBODY, 0, "*", get_asset},
	{"/", HTTP_READ, ROLE_VIEWER, 0, "*", get_page},
	{"/change/*", HTTP_READ, ROLE_VIEWER, 0, "*", get_page},
	{"/explore", HTTP_READ, ROLE_VIEWER, 0, "*", get_page},
	{"/clusters", HTTP_READ, ROLE_VIEWER, 0, "*", get_page},
	{"/tests", HTTP_READ, ROLE_VIEWER, 0, "*", get_page},
	{"/silences", HTTP_READ, ROLE_VIEWER, 0, "*", get_page},
	{"/status", HTTP_READ, ROLE_VIEWER, 0, "*", get_page},
	{"/agents", HTTP_READ, ROLE_VIEWER, 0, "*", get_page},
	{0},
};
