/* SPDX-License-Identifier: ISC */
/*
 * Runs a fuzz target without libFuzzer on its checked-in inputs: tests/fuzz/seeds/NAME and, where a past crash left
 * one, tests/fuzz/regressions/NAME, NAME being the program's own without `replay_fuzz_`. With arguments: on those
 * files. Each input is copied to the heap at its exact size, so that AddressSanitizer sees a read past its end.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* For the message after a crash: which input was it? */
static void
replay_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	if (f == NULL || fseek(f, 0, SEEK_END) != 0) {
		perror(path);
		exit(EXIT_FAILURE);
	}
	long size = ftell(f);
	rewind(f);
	uint8_t *data = malloc(size > 0 ? (size_t)size : 1);
	if (data == NULL || fread(data, 1, (size_t)size, f) != (size_t)size) {
		perror(path);
		exit(EXIT_FAILURE);
	}
	fclose(f);
	printf("%s\n", path);
	fflush(stdout);
	LLVMFuzzerTestOneInput(data, (size_t)size);
	free(data);
}

static int
replay_folder(const char *kind, const char *name)
{
	char path[4096];
	struct dirent **entries;
	int n_files = 0;
	snprintf(path, sizeof(path), "tests/fuzz/%s/%s", kind, name);
	int n = scandir(path, &entries, NULL, alphasort);
	for (int i = 0; i < n; i++) {
		if (entries[i]->d_name[0] != '.') {
			snprintf(path, sizeof(path), "tests/fuzz/%s/%s/%s", kind, name, entries[i]->d_name);
			replay_file(path);
			n_files++;
		}
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
	return n_files;
}

int
main(int argc, char **argv)
{
	if (argc > 1) {
		for (int i = 1; i < argc; i++)
			replay_file(argv[i]);
		return EXIT_SUCCESS;
	}
	const char *own_name = strstr(argv[0], "replay_fuzz_");
	if (own_name == NULL)
		return EXIT_FAILURE;
	const char *name = own_name + strlen("replay_fuzz_");
	int n_seeds = replay_folder("seeds", name);
	int n_regressions = replay_folder("regressions", name);
	if (n_seeds == 0) {
		fprintf(stderr, "no input in tests/fuzz/seeds/%s (run from the top folder)\n", name);
		return EXIT_FAILURE;
	}
	/* One test a target, and one for each crash of the past; the number of seeds says nothing. */
	printf("%d passed, 0 failed\n", 1 + n_regressions);
	return EXIT_SUCCESS;
}
