/* The page's files, which are part of the program: its own, and the plot library. */
#ifndef AGENT_WEB_ASSETS_H
#define AGENT_WEB_ASSETS_H

#include "agent/base/buf.h"
#include "agent/http/server.h"

struct asset {
	const char *name;           /* "page.js" */
	const char *type, *version; /* content type and entity tag */
	const unsigned char *bytes; /* gzip */
	size_t length, plain;       /* bytes compressed, and not */
};

/* Made by packaging/embed.c; ends with one without a name. */
extern const struct asset assets[];

const struct asset *asset_named(const char *name); /* or NULL */

/* Appends the content of the file. */
void asset_put(const struct asset *asset, struct buf *out);

/* Pages, and /assets/NAME; for http_start. */
extern const struct route asset_routes[];

#endif
