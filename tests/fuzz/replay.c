/*
 * Runs a fuzz target over files: what libFuzzer does with -runs=0, for compilers that have no
 * libFuzzer.
 *
 * Each argument is a file or a folder of files. A folder without a file in it is an error, so that
 * a corpus that went missing does not pass for one without findings. The bytes are handed over in a
 * block of exactly their size, so that AddressSanitizer sees a read past the end.
 */
#include <dirent.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path, const struct stat *status)
{
	size_t size = (size_t)status->st_size;
	uint8_t *data = malloc(size ? size : 1);
	FILE *file = fopen(path, "rb");

	if (!data || !file || fread(data, 1, size, file) != size) {
		perror(path);
		exit(1);
	}
	fclose(file);
	LLVMFuzzerTestOneInput(data, size);
	free(data);
	return 1;
}

static int replay(const char *path)
{
	struct stat status;
	struct dirent **entries;
	int count, ran = 0;

	if (stat(path, &status) != 0) {
		perror(path);
		exit(1);
	}
	if (!S_ISDIR(status.st_mode))
		return replay_file(path, &status);
	count = scandir(path, &entries, NULL, alphasort);
	for (int i = 0; i < count; i++) {
		char *below = NULL;

		if (entries[i]->d_name[0] != '.' &&
			asprintf(&below, "%s/%s", path, entries[i]->d_name) > 0)
			ran += replay(below);
		free(below);
		free(entries[i]);
	}
	if (count >= 0)
		free(entries);
	if (!ran) {
		fprintf(stderr, "%s: no inputs\n", path);
		exit(1);
	}
	return ran;
}

int main(int argc, char **argv)
{
	int ran = 0;

	for (int i = 1; i < argc; i++)
		ran += replay(argv[i]);
	printf("%d inputs\n", ran);
	return ran > 0 ? 0 : 1;
}
