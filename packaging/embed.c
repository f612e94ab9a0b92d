/*
 * Embeds files in the program: prints a C file with each of them, compressed, as agent/web/assets.h
 * declares it. Run at build time: embed NAME=FILE...
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { MOST = 4 << 20 };

static void fail(const char *file, const char *why)
{
	fprintf(stderr, "embed: %s: %s\n", file, why);
	exit(1);
}

static size_t read_file(const char *path, unsigned char *out)
{
	FILE *file = fopen(path, "rb");
	size_t length;

	if (!file)
		fail(path, "cannot be opened");
	length = fread(out, 1, MOST, file);
	if (ferror(file) || length == MOST)
		fail(path, "cannot be read, or is too large");
	fclose(file);
	return length;
}

/* As gzip; without name and time, so that the same files give the same program. */
static size_t compress_file(const char *path, unsigned char *in, size_t length, unsigned char *out)
{
	z_stream stream = {.next_in = in, .avail_in = (unsigned)length};

	stream.next_out = out;
	stream.avail_out = MOST;
	if (deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY) != Z_OK ||
		deflate(&stream, Z_FINISH) != Z_STREAM_END)
		fail(path, "cannot be compressed");
	deflateEnd(&stream);
	return stream.total_out;
}

static void print_bytes(size_t index, const unsigned char *bytes, size_t length)
{
	printf("static const unsigned char bytes_%zu[] = {", index);
	for (size_t i = 0; i < length; i++)
		printf("%u%s", bytes[i], i % 24 == 23 ? ",\n" : ",");
	printf("};\n\n");
}

/* FNV-1a: distinguishes versions of a file. */
static uint64_t hash(const unsigned char *bytes, size_t length)
{
	uint64_t sum = 14695981039346656037u;

	for (size_t i = 0; i < length; i++)
		sum = (sum ^ bytes[i]) * 1099511628211u;
	return sum;
}

static const char *type_of(const char *name)
{
	static const char *const types[][2] = {{".html", "text/html; charset=utf-8"},
		{".css", "text/css; charset=utf-8"}, {".js", "text/javascript; charset=utf-8"},
		{".svg", "image/svg+xml"}};
	const char *end = strrchr(name, '.');

	for (size_t i = 0; end && i < sizeof types / sizeof *types; i++)
		if (strcmp(end, types[i][0]) == 0)
			return types[i][1];
	fail(name, "its type is unknown");
	return NULL;
}

int main(int argc, char **argv)
{
	static unsigned char in[MOST], out[MOST];

	printf("/* Made by packaging/embed.c. */\n#include \"agent/web/assets.h\"\n\n");
	char **rows = calloc((size_t)argc, sizeof *rows);

	for (int i = 1; rows && i < argc; i++) {
		char *file = strchr(argv[i], '=');

		if (!file)
			fail(argv[i], "NAME=FILE is needed");
		*file++ = '\0';
		size_t plain = read_file(file, in), packed = compress_file(file, in, plain, out);

		print_bytes((size_t)i, out, packed);
		rows[i] = malloc(512 + strlen(argv[i]));
		if (!rows[i])
			abort();
		sprintf(rows[i], "\t{\"%s\", \"%s\", \"\\\"%016llx\\\"\", bytes_%d, %zu, %zu},\n",
			argv[i], type_of(argv[i]), (unsigned long long)hash(in, plain), i, packed,
			plain);
	}
	printf("const struct asset assets[] = {\n");
	for (int i = 1; rows && i < argc; i++) {
		fputs(rows[i], stdout);
		free(rows[i]);
	}
	printf("\t{0},\n};\n");
	free(rows);
	return fflush(stdout) ? 1 : 0;
}
