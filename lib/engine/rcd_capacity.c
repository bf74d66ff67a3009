/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The sizes of what clients share, from the kernel.
 */
#include "rcd_capacity.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "rcd_closer.h"
#include "rcd_away.h"
#include "rcd_cma_port.h"
#include "rcd_guard.h"
#include "rcd_limits.h"
#include "rcd_lport.h"
#include "rcd_thread.h"

/** Descriptors kept for requests on their way, and administration. */
#define DESCRIPTORS_OWN 128

/** And behind them what users may have above the total, with one message more. */
#define DESCRIPTORS_KEPT (DESCRIPTORS_OWN + RCD_CLOSER_OVER + RCD_CLOSER_MESSAGE)

/**
 * Of a device in another network namespace, which has most: its first sockets; and for each lcore a
 * queue's, and the epoll of that queue, which lcores sleep by (drivers/net/udp).
 */
#define DESCRIPTORS_DEV   RCD_AWAY_FDS
#define DESCRIPTORS_LCORE (RCD_AWAY_FDS + 1)

/** For devices no more than this part is kept: clients need some, too. */
#define DESCRIPTORS_PART 4

/*
 * Of the machine's memory, without hugepages: the sixteenth of each total that is root's comes on
 * top of what is kept.
 */
#define MEMORY_PARTS  16
#define MEMORY_KEPT   1 /**< for the engine, the kernel, and the rest of the machine */
#define MEMORY_QUEUES 2 /**< the others are for memory that clients share */

/** Mappings kept for devices, threads, the heap and faults. */
#define MAPPINGS_KEPT 4096

/** Mappings of a process where the kernel does not say: what it begins with. */
#define MAPPINGS_UNKNOWN 65530

/** Connections kept for requests that no listener is charged for yet. */
#define REQUESTS_KEPT 16

#define HUGEPAGES       "/sys/kernel/mm/hugepages/hugepages-2048kB/"
#define HUGEPAGES_LARGE "/sys/kernel/mm/hugepages/hugepages-1048576kB/"

static uint64_t
capacity_read_number(const char *path)
{
	unsigned long long number = 0;
	FILE *file = fopen(path, "r");

	if (file == NULL)
		return 0;
	if (fscanf(file, "%llu", &number) != 1)
		number = 0;
	fclose(file);
	return number;
}

static uint64_t
capacity_count_mappings(void)
{
	FILE *file = fopen("/proc/self/maps", "r");
	uint64_t count = 0;
	int byte;

	while (file != NULL && (byte = fgetc(file)) != EOF)
		count += byte == '\n';
	if (file != NULL)
		fclose(file);
	return count;
}

static uint64_t
capacity_count_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	uint64_t count = 0;

	while (dir != NULL && readdir(dir) != NULL)
		count++;
	if (dir != NULL)
		closedir(dir);
	return count;
}

/* What is left of a number; 1 rather than 0, which would be without end. */
static uint64_t
capacity_left(uint64_t all, uint64_t kept)
{
	return all > kept ? all - kept : 1;
}

/* What devices may come to have, as far as a small limit has room for that. */
static uint64_t
capacity_of_devices(uint64_t limit, uint32_t lcores)
{
	uint64_t most = RCD_DEVS_MAX * (DESCRIPTORS_DEV + (uint64_t)DESCRIPTORS_LCORE * lcores);

	return most < limit / DESCRIPTORS_PART ? most : limit / DESCRIPTORS_PART;
}

static uint64_t
capacity_descriptors(uint32_t lcores)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return 1;
	if (limit.rlim_cur < limit.rlim_max) {
		struct rlimit more = { .rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max };

		if (setrlimit(RLIMIT_NOFILE, &more) == 0)
			limit = more;
	}
	if (limit.rlim_cur == RLIM_INFINITY)
		return 0;
	return capacity_left(limit.rlim_cur,
		capacity_count_descriptors() + DESCRIPTORS_KEPT +
			capacity_of_devices(limit.rlim_cur, lcores));
}

/* The machine's memory, but what hugepages have of it. */
static uint64_t
capacity_memory(void)
{
	uint64_t ram = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);

	return capacity_left(ram,
		(capacity_read_number(HUGEPAGES "nr_hugepages") << 21) +
			(capacity_read_number(HUGEPAGES_LARGE "nr_hugepages") << 30));
}

/*
 * What can come to be there in memory that is shared: as adapters, which keep all of it present, no
 * more than the machine has beside queues; unless somebody who knows better wants more for a user.
 */
static uint64_t
capacity_shared(uint64_t ram, uint64_t user)
{
	uint64_t part = ram / MEMORY_PARTS * (MEMORY_PARTS - MEMORY_KEPT - MEMORY_QUEUES);

	return user > part / 2 ? user * 2 : part;
}

/* Addresses for regions, of one kind or the other: whichever has less. */
static uint64_t
capacity_window(void)
{
	uintptr_t start;
	size_t shared, copied;

	rcd_guard_window(RCD_GUARD_SHARED, &start, &shared);
	rcd_guard_window(RCD_GUARD_COPIED, &start, &copied);
	return shared < copied ? shared : copied;
}

void
rcd_capacity_measure(
	uint32_t clients, uint32_t lcores, const struct rcd_quota *user, struct rcd_quota *total)
{
	uint64_t huge = capacity_read_number(HUGEPAGES "free_hugepages");
	uint64_t reserved = capacity_read_number(HUGEPAGES "resv_hugepages");
	uint64_t mappings = capacity_read_number("/proc/sys/vm/max_map_count");
	uint64_t ram = capacity_memory();

	RCD_ON_CONTROL();
	*total = (struct rcd_quota){
		.clients = clients,
		.descriptors = capacity_descriptors(lcores),
		.mappings = capacity_left(mappings > 0 ? mappings : MAPPINGS_UNKNOWN,
			capacity_count_mappings() + MAPPINGS_KEPT),
		.window_bytes = capacity_window(),
		.shared_bytes = capacity_shared(ram, user->shared_bytes),
		.queue_bytes = ram / MEMORY_PARTS * MEMORY_QUEUES,
		/* There is always something left for queues. */
		.dm_bytes = ram / MEMORY_PARTS * MEMORY_QUEUES / 2,
		/* Half of what is free: the next engine starts, and others have some. */
		.hugepages = capacity_left((huge > reserved ? huge - reserved : 0) / 2, 0),
		.qps = RCD_QP_SLOTS - RCD_QPNS_RESERVED,
		.cqs = 1u << 18,
		.cq_slots = 1u << 28,
		.srqs = 1u << 16,
		.xrcds = 1024,
		.mrs = 1u << 20,
		.pds = 1u << 16,
		.ahs = RCD_AHS_MAX,
		.groups = RCD_MCAST_GROUPS,
		.cm_ids = 1u << 18,
		/*
		 * Of all spaces together no more than one has: wherever users take theirs, none
		 * is ever without a free port.
		 */
		.cm_ports = RCD_CMA_EPHEMERAL_COUNT,
		/* A request has one before its listener is charged for it. */
		.cm_connections = RCD_CMA_CONNECTIONS - REQUESTS_KEPT,
		.cm_events = 1u << 19,
		.neighbours = RCD_NEIGHS_MAX,
	};
}
