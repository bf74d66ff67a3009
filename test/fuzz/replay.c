/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: what a fuzzer once found stays found, on machines without clang. Method: feeds every file
 * of the folders given as arguments to a fuzz target, each from a heap block of its exact size.
 */
#include <fts.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int
replay_file(const char *path, size_t size)
{
	FILE *file = fopen(path, "rb");
	uint8_t *data = malloc(size);
	int failed = file == NULL || data == NULL || fread(data, 1, size, file) != size;

	if (failed)
		fprintf(stderr, "replay: can't read %s\n", path);
	else
		LLVMFuzzerTestOneInput(data, size);
	free(data);
	if (file != NULL)
		fclose(file);
	return failed;
}

int
main(int argc, char **argv)
{
	FTS *fts = argc > 1 ? fts_open(argv + 1, FTS_PHYSICAL, NULL) : NULL;
	unsigned int count = 0;
	FTSENT *entry;

	while (fts != NULL && (entry = fts_read(fts)) != NULL) {
		if (entry->fts_info != FTS_F)
			continue;
		if (replay_file(entry->fts_accpath, (size_t)entry->fts_statp->st_size) != 0)
			return 1;
		count++;
	}
	if (fts != NULL)
		fts_close(fts);
	printf("1..1\n%s 1 - %u inputs\n", count > 0 ? "ok" : "not ok", count);
	return count > 0 ? 0 : 1;
}
