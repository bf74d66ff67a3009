/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Which library a process gets where Rocade is the default: Rocade's, or in a DPDK program the
 * system's own. DPDK's drivers for mlx4, mlx5 and mana drive their NICs through rdma-core and its
 * kernel devices, which Rocade has not; and the engine is itself such a program.
 *
 * This library has the name and the symbols of the system's, and none of its code: it loads one of
 * the two as it is loaded, and each function jumps there. ROCADE_VERBS=rocade or =system chooses
 * instead. A program that loads DPDK after this library gets Rocade's.
 */
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rcd_choice.h"

/** In place of a function that the chosen library does not have: there is nothing to return. */
static void
choice_missing(void)
{
	fprintf(stderr, "rocade: %s: a function was called that the library in use does not have\n",
		rcd_choice_file);
	abort();
}

static int
choice_is_eal(struct dl_phdr_info *info, size_t size, void *found)
{
	const char *name = info->dlpi_name;
	const char *file = name != NULL ? strrchr(name, '/') : NULL;

	(void)size;
	if (file != NULL && strncmp(file, "/librte_eal.so", 14) == 0)
		*(bool *)found = true;
	return 0;
}

/** With DPDK's libraries, or with DPDK inside: such programs export its symbols to drivers. */
static bool
choice_in_dpdk(void)
{
	bool found = dlsym(RTLD_DEFAULT, "rte_eal_init") != NULL;

	if (!found)
		dl_iterate_phdr(choice_is_eal, &found);
	return found;
}

static bool
choice_wants_system(void)
{
	const char *wish = secure_getenv("ROCADE_VERBS");

	if (wish != NULL && strcmp(wish, "system") == 0)
		return true;
	if (wish != NULL && strcmp(wish, "rocade") == 0)
		return false;
	if (wish != NULL && *wish != '\0')
		fprintf(stderr, "rocade: ROCADE_VERBS is %s: it can be rocade or system\n", wish);
	return choice_in_dpdk();
}

/** Rocade's library of the same name is one folder up from this one. */
static void *
choice_load_rocade(void)
{
	char path[PATH_MAX];
	Dl_info self;

	if (dladdr(rcd_choice_target, &self) == 0 || self.dli_fname == NULL)
		return NULL;
	const char *slash = strrchr(self.dli_fname, '/');
	int folder_len = slash != NULL ? (int)(slash - self.dli_fname) : 1;
	const char *folder = slash != NULL ? self.dli_fname : ".";
	int len = snprintf(path, sizeof(path), "%.*s/../%s", folder_len, folder, rcd_choice_file);

	if (len < 0 || (size_t)len >= sizeof(path))
		return NULL;
	return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

/** Before any other constructor of who needs this library: drivers register in theirs. */
static void __attribute__((constructor)) choice_make(void)
{
	void *library = NULL;

	if (!choice_wants_system()) {
		library = choice_load_rocade();
		if (library == NULL) {
			const char *why = dlerror();
			fprintf(stderr, "rocade: the system's %s is used: %s\n", rcd_choice_file,
				why != NULL ? why : "Rocade's is not there");
		}
	}
	if (library == NULL)
		library = dlopen(rcd_choice_system, RTLD_NOW | RTLD_LOCAL);
	if (library == NULL)
		fprintf(stderr, "rocade: there is no %s: %s\n", rcd_choice_file, dlerror());
	for (size_t i = 0; i < rcd_choice_count; i++) {
		const struct rcd_choice_symbol *symbol = &rcd_choice_symbol[i];
		void *target =
			library != NULL ? dlvsym(library, symbol->name, symbol->version) : NULL;

		if (symbol->object == NULL)
			rcd_choice_target[i] =
				target != NULL ? target : (void *)(uintptr_t)choice_missing;
		else if (target != NULL && target != symbol->object)
			memcpy(symbol->object, target, symbol->size);
	}
}
