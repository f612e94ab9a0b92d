/*
 * Shrinks answers: gzip, and a version (ETag) that gives 304 to a client that has the answer
 * already. A large answer is hashed and compressed on a worker, so as not to block the loop.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "agent/base/hash.h"
#include "agent/http/request.h"
#include "agent/io/engine.h"

enum {
	LEAST = 1 << 10,      /* bytes: smaller ones are a packet or two anyway */
	AT_ONCE = 32 << 10,   /* bytes that are compressed on the loop */
	LEVEL = 4,            /* a third of the time of zlib's usual 6, JSON becomes 5% larger */
	GZIP = 16 + MAX_WBITS /* selects gzip in zlib */
};

/* On a worker, or waiting for one. */
struct pack {
	struct http_request *request; /* NULL: its client is gone */
	struct http_answer answer;
	bool gzips;
	uint64_t version;
	struct pack *next, **link;
};

static bool gzip(struct buf *text)
{
	struct buf out = {0};
	z_stream stream = {0};

	if (text->length > UINT32_MAX ||
		deflateInit2(&stream, LEVEL, Z_DEFLATED, GZIP, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return false;
	buf_reserve(&out, deflateBound(&stream, text->length));
	stream.next_in = (Bytef *)text->data;
	stream.avail_in = (uInt)text->length;
	stream.next_out = (Bytef *)out.data;
	stream.avail_out = (uInt)(out.capacity - 1);
	bool whole = deflate(&stream, Z_FINISH) == Z_STREAM_END;
	out.length = stream.total_out;
	deflateEnd(&stream);
	if (!whole) {
		buf_free(&out);
		return false;
	}
	out.data = realloc(out.data, out.length + 1); /* its client may take it late */
	out.capacity = out.length + 1;
	if (!out.data)
		abort(); /* out of memory */
	out.data[out.length] = '\0';
	buf_free(text);
	*text = out;
	return true;
}

bool http_unpack(const void *packed, size_t length, size_t most, struct buf *out)
{
	z_stream stream = {.next_in = (Bytef *)(uintptr_t)packed, .avail_in = (uInt)length};
	int state = Z_OK;

	if (inflateInit2(&stream, GZIP) != Z_OK)
		abort(); /* out of memory */
	while (state == Z_OK && out->length <= most) {
		buf_reserve(out, AT_ONCE);
		stream.next_out = (Bytef *)out->data + out->length;
		stream.avail_out = AT_ONCE;
		state = inflate(&stream, Z_NO_FLUSH);
		out->length += AT_ONCE - stream.avail_out;
		if (state == Z_STREAM_END && stream.avail_in > 0)
			state = inflateReset(&stream);
	}
	inflateEnd(&stream);
	buf_append(out, "", 0); /* a NUL */
	return state == Z_STREAM_END && out->length <= most;
}

static uint64_t version_of(const struct buf *body)
{
	return hash_add(HASH_START, body->data, body->length);
}

static void set_version(struct http_request *request, struct http_answer *answer, uint64_t version)
{
	if (!request->posted && !answer->etag)
		answer->etag = arena_printf(request->arena, "W/\"%016" PRIx64 "\"", version);
}

static void work(void *context)
{
	struct pack *pack = context;

	pack->version = version_of(&pack->answer.body);
	if (pack->gzips && gzip(&pack->answer.body))
		pack->answer.encoding = "gzip";
}

static void forget(struct pack *pack)
{
	*pack->link = pack->next;
	if (pack->next)
		pack->next->link = pack->link;
	buf_free(&pack->answer.body);
	free(pack);
}

static void packed(void *context)
{
	struct pack *pack = context;
	struct http_request *request = pack->request;

	if (request) {
		request->pack = NULL;
		set_version(request, &pack->answer, pack->version);
		http_request_answer(request, &pack->answer);
	}
	forget(pack);
}

void http_pack_leave(struct http_request *request)
{
	if (request->pack)
		request->pack->request = NULL;
	request->pack = NULL;
}

void http_packs_free(struct http *http)
{
	while (http->packs)
		forget(http->packs);
}

bool http_pack(struct http_request *request, struct http_answer *answer)
{
	struct http *http = request->http;
	const char *type = answer->type;
	bool whole = answer->status == 0 || answer->status == MHD_HTTP_OK;
	bool text = !type || strncmp(type, "text/", 5) == 0 || strncmp(type, "image/svg", 9) == 0;
	struct pack *pack;

	if (!whole || !text || answer->fixed || answer->encoding || answer->body.length < LEAST)
		return false;
	if (answer->body.length <= AT_ONCE) {
		set_version(request, answer, version_of(&answer->body));
		if (request->gzips && !http_is_known(request, answer->etag) && gzip(&answer->body))
			answer->encoding = "gzip";
		return false;
	}
	pack = memory_new(1, sizeof *pack);
	*pack = (struct pack){.request = request,
		.answer = *answer,
		.gzips = request->gzips,
		.next = http->packs,
		.link = &http->packs};
	answer->body = (struct buf){0};
	if (pack->next)
		pack->next->link = &pack->next;
	http->packs = pack;
	request->pack = pack;
	engine_compute(http->engine, work, packed, pack);
	return true;
}
