/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: a user who takes all that there is to be had meets a limit, gets the error that verbs users
 * know, and nobody else notices. Method: for each resource a hostile user with several sessions
 * takes until it is refused, beside an honest pair and a third user; what the engine lists as its
 * use is compared with the limit, and is gone with the last session.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rcd_bytes.h"
#include "rcd_mr.h"
#include "rcd_qp.h"
#include "rcd_tap.h"
#include "takers.h"

#define HOSTILE       65534
#define THIRD         65533
#define EPHEMERAL     28232 /**< ports 32768..60999 of each space */
#define TIMEWAIT_MS   1000  /**< at least, of a connection that has ended */
#define HOSTILE_ENTRY "\"uid\":65534,\"clients\""
#define EVERYBODY     "\"of\":\"all\""

static struct rig rig;

/* Of each resource a session has less than a user, and two sessions have more. */
static const char small[] = "[engine]\nsocket_mode = 0666\nclients = 32\n[quota]\n"
			    "uid_cm_connections = 18\ncm_connections = 12\n"
			    "uid_shared_bytes = 2500M\nshared_bytes = 1G\nuid_qps = 50\nqps = 32\n"
			    "uid_window_bytes = 5G\nwindow_bytes = 3G\nuid_srqs = 50\nsrqs = 32\n"
			    "uid_queue_bytes = 24M\nqueue_bytes = 16M\nuid_cqs = 50\ncqs = 32\n"
			    "uid_descriptors = 34\ndescriptors = 20\nuid_xrcds = 20\nxrcds = 12\n"
			    "uid_mappings = 1000\nmappings = 600\nuid_cm_ids = 50\ncm_ids = 32\n"
			    "uid_cq_slots = 48K\ncq_slots = 32K\nuid_groups = 50\ngroups = 32\n"
			    "uid_dm_bytes = 12M\ndm_bytes = 8M\nuid_cm_ports = 40\ncm_ports = 24\n"
			    "uid_mrs = 50\nmrs = 32\nuid_pds = 50\npds = 32\n"
			    "uid_ahs = 50\nahs = 32\n";

static void
start(const char *text)
{
	rig_start_text(&rig, text, true);
}

static const struct exhaustion {
	const char *resource;
	int (*take)(struct taker *taker);
	int err;
	long long step; /**< most that one request takes */
} exhaustions[] = {
	{ "descriptors", take_descriptor, -EMFILE, 1 },
	{ "descriptors", take_mem, -EMFILE, 1 },
	{ "mappings", take_mappings, -ENOMEM, 66 },
	{ "window_bytes", take_addresses, -ENOMEM, 512 << 20 },
	{ "shared_bytes", take_shared, -ENOMEM, 256 << 20 },
	{ "queue_bytes", take_bytes, -ENOMEM, 4 << 20 },
	{ "dm_bytes", take_dm, -ENOMEM, 1 << 20 },
	{ "qps", take_qp, -ENOMEM, 1 },
	{ "cqs", take_cq, -ENOMEM, 1 },
	{ "cq_slots", take_slots, -ENOMEM, 4096 },
	{ "srqs", take_srq, -ENOMEM, 1 },
	{ "xrcds", take_xrcd, -ENOMEM, 1 },
	{ "mrs", take_null_mr, -ENOMEM, 1 },
	{ "mrs", take_mw, -ENOMEM, 1 },
	{ "pds", take_pd, -ENOMEM, 1 },
	{ "ahs", take_ah, -ENOMEM, 1 },
	{ "cm_ids", take_cm_id, -ENOMEM, 1 },
	{ "cm_ports", take_cm_port, -EADDRNOTAVAIL, 1 },
	{ "cm_connections", take_cm_connection, -ENOMEM, 1 },
	{ "groups", take_group, -ENOMEM, 1 },
};

/** What the hostile user tells: how many it got in its first session, in all, and the error. */
struct told {
	long long first;
	long long all;
	int err;
};

/** A hostile user, who keeps what it took until it is told to go. */
struct hostile {
	struct told told;
	pid_t pid;
	int stop;
};

static struct told
take_all(const void *arg)
{
	static struct taker takers[3];
	const struct exhaustion *what = arg;
	struct told told = { .err = what->err };

	for (int i = 0; i < 3 && told.err == what->err; i++) {
		/* The user's limit may be in the way already. */
		if (taker_open(&takers[i], rig.socket) != 0)
			break;
		while ((told.err = what->take(&takers[i])) == 0)
			told.all++;
		if (i == 0)
			told.first = told.all;
	}
	return told;
}

/* Connections without another word count, too. */
static struct told
take_connections(const void *arg)
{
	static struct rcd_client clients[64];
	struct told told = { .err = 0 };

	(void)arg;
	while (told.all < 64) {
		told.err = rcd_client_connect(&clients[told.all], rig.socket);
		if (told.err != 0)
			break;
		told.all++;
	}
	return told;
}

static struct hostile
hostile_start(struct told (*take)(const void *arg), const void *arg)
{
	struct hostile hostile;
	int up[2], down[2];

	MUST(pipe(up) == 0 && pipe(down) == 0);
	fflush(stdout);
	hostile.pid = fork();
	if (hostile.pid == 0) {
		struct told told;
		char byte;

		close(down[1]);
		MUST(setgid(HOSTILE) == 0 && setuid(HOSTILE) == 0);
		told = take(arg);
		MUST(write(up[1], &told, sizeof(told)) == sizeof(told));
		_exit(read(down[0], &byte, 1) != 0);
	}
	close(up[1]);
	close(down[0]);
	MUST(hostile.pid > 0 && read(up[0], &hostile.told, sizeof(hostile.told)) > 0);
	close(up[0]);
	hostile.stop = down[1];
	return hostile;
}

static void
hostile_end(struct hostile hostile)
{
	close(hostile.stop);
	waitpid(hostile.pid, NULL, 0);
}

/* Memory that needs no copies, which other users' processes can't always have. @return its file */
static int
shared_memory(struct node *node, uint64_t len)
{
	struct rcd_cl_mr_attr attr = {
		.pd = node->pd, .access = RCD_ACCESS_LOCAL_WRITE | RCD_ACCESS_REMOTE, .len = len
	};
	int fd = memfd_create("t", 0);

	MUST(fd >= 0 && ftruncate(fd, (off_t)len) == 0);
	node->memory = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	MUST(node->memory != MAP_FAILED);
	node->memory_len = len;
	attr.addr = node->memory;
	attr.start = (uintptr_t)node->memory;
	MUST(rcd_cl_mr_reg(&node->client, &attr, &node->mr) == 0);
	return fd;
}

/* A third user's work: transfers, and one of each object. @return whether it succeeded */
static int
third_works(void)
{
	static struct taker taker;
	struct rcd_cq_slot slot;
	struct node a, b;
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		MUST(setgid(THIRD) == 0 && setuid(THIRD) == 0);
		node_open(&a, rig.socket, "roce0", RCD_QP_RC);
		node_open(&b, rig.socket, "roce1", RCD_QP_RC);
		shared_memory(&a, 65536);
		shared_memory(&b, 65536);
		node_join(&a, &b, RCD_QP_RC, 1);
		MUST(node_write(&a, &b, RCD_WR_RDMA_WRITE, 0, 65536, 1) == 0);
		MUST(node_wait(&a, &slot, FOREVER_MS) == RCD_WC_SUCCESS);
		node_close(&a);
		node_close(&b);
		MUST(taker_open(&taker, rig.socket) == 0);
		for (size_t i = 0; i < RCD_ARRAY_COUNT(exhaustions); i++)
			MUST(exhaustions[i].take(&taker) == 0);
		_exit(0);
	}
	MUST(pid > 0 && waitpid(pid, &status, 0) == pid);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Nothing of a resource is left but what who asks has. A whole quota takes its time to go. */
static void
gone(const char *resource)
{
	bool asks = strcmp(resource, "descriptors") == 0 || strcmp(resource, "clients") == 0;
	uint64_t end = now_ms() + FOREVER_MS;
	long long limit;

	while (use_of(&rig, EVERYBODY, resource, &limit) != asks && now_ms() < end)
		usleep(1000);
	CU_ASSERT_EQUAL(use_of(&rig, EVERYBODY, resource, &limit), asks);
}

/* But connections, which outlive who had them by a second, on the user's account. */
static void
nothing_left(void)
{
	CU_ASSERT(rig_contexts(&rig, 0, FOREVER_MS));
	gone("clients");
	for (size_t i = 0; i < RCD_ARRAY_COUNT(exhaustions); i++)
		if (strcmp(exhaustions[i].resource, "cm_connections") != 0)
			gone(exhaustions[i].resource);
}

static void
each_resource(void)
{
	start(small);
	for (size_t i = 0; i < RCD_ARRAY_COUNT(exhaustions); i++) {
		const struct exhaustion *what = &exhaustions[i];
		struct honest honest = honest_start(&rig);
		struct hostile hostile = hostile_start(take_all, what);
		const struct told *told = &hostile.told;
		long long limit = -1;
		long long used = use_of(&rig, HOSTILE_ENTRY, what->resource, &limit);
		int full = used <= limit && used + what->step > limit;

		if (told->err != what->err || !full || told->first == told->all)
			printf("# %s: error %d, %lld then %lld, used %lld of %lld\n",
				what->resource, told->err, told->first, told->all, used, limit);
		CU_ASSERT_EQUAL(told->err, what->err);
		/* One session has less than the user; three have no more than the user. */
		CU_ASSERT(told->first < told->all);
		CU_ASSERT(full);
		CU_ASSERT(third_works());
		hostile_end(hostile);
		CU_ASSERT_EQUAL(honest_end(honest), 0);
		nothing_left();
		if (i % 4 == 3) /* the third user's add up */
			gone("cm_connections");
	}
	gone("cm_connections");
	CU_ASSERT_EQUAL(rig_stop(&rig, FOREVER_MS), 0);
}

/* The others go on while somebody has taken all there is; then it goes, and all with it. */
static void
others_work(const struct hostile *hostile)
{
	CU_ASSERT(third_works());
	CU_ASSERT_EQUAL(honest_end(honest_start(&rig)), 0);
	hostile_end(*hostile);
	nothing_left();
	CU_ASSERT_EQUAL(rig_stop(&rig, FOREVER_MS), 0);
}

static void
too_many_connections(void)
{
	struct hostile hostile;

	start(small);
	hostile = hostile_start(take_connections, NULL);
	CU_ASSERT_EQUAL(hostile.told.err, -EUSERS);
	CU_ASSERT(hostile.told.all >= 16 && hostile.told.all <= 24);
	others_work(&hostile);
}

/* Who comes, asks for connections and goes has them still, until the peers know. */
static void
connections_outlive(void)
{
	const struct exhaustion what = { "cm_connections", take_cm_connection, -ENOMEM, 1 };
	struct hostile hostile;
	long long limit, left;
	uint64_t begin, took;
	int tries = 0;

	start(small);
	CU_ASSERT_EQUAL(honest_end(honest_start(&rig)), 0);
	do {
		hostile = hostile_start(take_all, &what);
		CU_ASSERT_EQUAL(hostile.told.err, -ENOMEM);
		CU_ASSERT_EQUAL(use_of(&rig, HOSTILE_ENTRY, "cm_connections", &limit), 18);
		begin = now_ms();
		hostile_end(hostile);
		CU_ASSERT(rig_contexts(&rig, 0, FOREVER_MS));
		left = use_of(&rig, HOSTILE_ENTRY, "cm_connections", &limit);
		took = now_ms() - begin;
		gone("cm_connections");
		CU_ASSERT(use_of(&rig, HOSTILE_ENTRY, "qps", &limit) <= 0);
		/* They end after a second, which a busy machine may not give the question. */
	} while (took >= TIMEWAIT_MS && ++tries < 10);
	if (took < TIMEWAIT_MS) {
		CU_ASSERT_EQUAL(left, 18);
	} else {
		rcd_tap_skip("this machine is too busy to look in time");
	}
	CU_ASSERT_EQUAL(rig_stop(&rig, FOREVER_MS), 0);
}

/* By default: how a limit ends what is taken is seen above. */
static void
all_ports(void)
{
	long long total = -1, user = -1;
	struct hostile hostile;

	start("[engine]\nsocket_mode = 0666\n");
	hostile = hostile_start(take_connections, NULL);
	use_of(&rig, EVERYBODY, "cm_ports", &total);
	use_of(&rig, HOSTILE_ENTRY, "cm_ports", &user);
	CU_ASSERT(total > 0 && total <= EPHEMERAL);
	CU_ASSERT(user > 0 && user < EPHEMERAL * 3 / 4);
	others_work(&hostile);
}

/* Each is looked at for the next, and for each request that comes to the port. */
static void
shared_port(void)
{
	static struct taker taker;
	uint16_t port = 0;
	uint32_t id, last = 0;
	int count = 0;

	start("[engine]\nsocket_mode = 0666\n");
	MUST(taker_open(&taker, rig.socket) == 0);
	while (count < 5000 && share_cm_port(&taker, &port, &id) == 0) {
		last = id;
		count++;
	}
	CU_ASSERT_EQUAL(count, 1024);
	CU_ASSERT_EQUAL(share_cm_port(&taker, &port, &id), -EADDRINUSE);
	MUST(rcd_client_call(&taker.node.client, RCD_CTRL_CM_DESTROY,
		     &(struct rcd_ctrl_handle){ .handle = last }, NULL, NULL, NULL) == 0);
	CU_ASSERT_EQUAL(share_cm_port(&taker, &port, &id), 0);
	rcd_client_close(&taker.node.client);
	nothing_left();
	CU_ASSERT_EQUAL(rig_stop(&rig, FOREVER_MS), 0);
}

/* With all limits as they are by default. */
static void
default_limits(const struct exhaustion *what)
{
	struct hostile hostile;

	start("[engine]\nsocket_mode = 0666\n");
	hostile = hostile_start(take_all, what);
	CU_ASSERT_EQUAL(hostile.told.err, what->err);
	others_work(&hostile);
}

static void
all_descriptors(void)
{
	static const struct exhaustion what = { "descriptors", take_mem, -EMFILE, 1 };

	default_limits(&what);
}

static int
take_gigabytes(struct taker *taker)
{
	return share_file(taker, UINT64_C(2) << 30);
}

/* Whoever writes there first makes the page, the engine too: no more than the machine has. */
static void
all_memory(void)
{
	static const struct exhaustion what = { "shared_bytes", take_gigabytes, -ENOMEM, 1 };
	uint64_t ram = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	struct hostile hostile;

	start("[engine]\nsocket_mode = 0666\n");
	hostile = hostile_start(take_all, &what);
	CU_ASSERT_EQUAL(hostile.told.err, what.err);
	CU_ASSERT((uint64_t)hostile.told.all << 31 < ram);
	others_work(&hostile);
}

/* A file is counted once, however many parts of it are shared, and however they lie. */
static void
parts_of_a_file(void)
{
	static const uint64_t parts[][2] = { { 0, 8 }, { 4, 8 }, { 0, 8 }, { 64, 4 }, { 6, 1 } };
	static const long long charged[] = { 8, 12, 12, 28, 29 };
	static struct taker taker;
	uint32_t handles[RCD_ARRAY_COUNT(parts)];
	long long limit, before;

	start("[engine]\nsocket_mode = 0666\n");
	MUST(taker_open(&taker, rig.socket) == 0);
	taker.fd = memfd_create("parts", MFD_CLOEXEC);
	before = use_of(&rig, EVERYBODY, "shared_bytes", &limit);
	for (size_t i = 0; i < RCD_ARRAY_COUNT(parts); i++) {
		MUST(mem_add_part(&taker, parts[i][0] * HUGE, parts[i][1] * HUGE, &handles[i]) ==
			0);
		CU_ASSERT_EQUAL(use_of(&rig, EVERYBODY, "shared_bytes", &limit) - before,
			charged[i] * (long long)HUGE);
	}
	for (size_t i = 0; i < RCD_ARRAY_COUNT(parts); i++)
		MUST(rcd_client_call(&taker.node.client, RCD_CTRL_MEM_DEL,
			     &(struct rcd_ctrl_handle){ .handle = handles[i] }, NULL, NULL,
			     NULL) == 0);
	CU_ASSERT_EQUAL(use_of(&rig, EVERYBODY, "shared_bytes", &limit), before);
	rcd_client_close(&taker.node.client);
	nothing_left();
	CU_ASSERT_EQUAL(rig_stop(&rig, FOREVER_MS), 0);
}

static int
take_terabytes(struct taker *taker)
{
	uint32_t handle;
	int err = mem_add(taker, UINT64_C(1) << 40, &handle);

	for (uint64_t len = UINT64_C(1) << 39; err == -ENOMEM && len >= HUGE; len /= 2)
		err = mem_add(taker, len, &handle);
	return err;
}

static void
all_addresses(void)
{
	static const struct exhaustion what = { "window_bytes", take_terabytes, -ENOMEM, HUGE };
	struct hostile hostile;

	start("[engine]\nsocket_mode = 0666\n[quota]\nuid_shared_bytes = 16T\n");
	hostile = hostile_start(take_all, &what);
	CU_ASSERT_EQUAL(hostile.told.err, what.err);
	others_work(&hostile);
}

/* Null regions have no memory, and no addresses. */
static void
null_regions(void)
{
	static struct taker taker;
	long long limit, used;

	start("[engine]\nsocket_mode = 0666\n");
	MUST(taker_open(&taker, rig.socket) == 0);
	used = use_of(&rig, EVERYBODY, "window_bytes", &limit);
	for (int i = 0; i < 3000; i++)
		MUST(take_null_mr(&taker) == 0);
	CU_ASSERT_EQUAL(use_of(&rig, EVERYBODY, "window_bytes", &limit), used);
	CU_ASSERT(third_works());
	rcd_client_close(&taker.node.client);
	nothing_left();
	CU_ASSERT_EQUAL(rig_stop(&rig, FOREVER_MS), 0);
}

/* Whatever took the last descriptor, who connects is told so, again and again. */
static void
refused_without_descriptors(void)
{
	enum {
		CONNECTS = 40
	};
	static struct rcd_client clients[CONNECTS];
	struct rlimit limit, none = { 0, 0 };
	int refused = 0;
	char path[64], target[64];

	start("[engine]\nsocket_mode = 0666\n");
	MUST(prlimit(rig.pid, RLIMIT_NOFILE, NULL, &limit) == 0);
	none.rlim_max = limit.rlim_max;
	/* It has all below the first that is free. */
	do
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)rig.pid, (int)none.rlim_cur++);
	while (readlink(path, target, sizeof(target)) > 0);
	none.rlim_cur--;
	MUST(prlimit(rig.pid, RLIMIT_NOFILE, &none, NULL) == 0);
	/* The connection that asked whether it is up may still be ending. */
	for (int i = 0; i < CONNECTS; i++) {
		int err = rcd_client_connect(&clients[i], rig.socket);

		CU_ASSERT(err == 0 || err == -EUSERS);
		refused += err == -EUSERS;
	}
	CU_ASSERT(refused >= CONNECTS - 8);
	for (int i = 0; i < CONNECTS; i++)
		rcd_client_close(&clients[i]);
	MUST(prlimit(rig.pid, RLIMIT_NOFILE, &limit, NULL) == 0);
	CU_ASSERT_EQUAL(honest_end(honest_start(&rig)), 0);
	CU_ASSERT_EQUAL(rig_stop(&rig, FOREVER_MS), 0);
}

static void
all_mappings(void)
{
	static const struct exhaustion what = { "mappings", take_mappings, -ENOMEM, 66 };

	default_limits(&what);
}

/* Registered memory goes when its owner has all the mappings that it may have. */
static struct told
lose_memory(const void *arg)
{
	static struct taker taker;
	static struct node peer;
	struct told told = { .err = 0 };
	struct node *node = &taker.node;
	struct rcd_cq_slot slot;
	int fd;

	(void)arg;
	MUST(taker_open(&taker, rig.socket) == 0);
	node_open(node, rig.socket, "roce0", RCD_QP_RC);
	node_open(&peer, rig.socket, "roce1", RCD_QP_RC);
	shared_memory(&peer, 4 * HUGE);
	fd = shared_memory(node, 4 * HUGE);
	node_join(node, &peer, RCD_QP_RC, 1);
	MUST(mem_add(&taker, HUGE, &taker.mem) == 0);
	while (take_mappings(&taker) == 0)
		told.first++;
	MUST(ftruncate(fd, 0) == 0);
	MUST(node_write(&peer, node, RCD_WR_RDMA_WRITE, HUGE + 4096, 64, 1) == 0);
	told.err = node_wait(&peer, &slot, FOREVER_MS);
	told.all = told.first + 1;
	return told;
}

static void
fault_at_the_limit(void)
{
	struct honest honest;
	struct hostile hostile;
	uint64_t end;

	start("[engine]\nsocket_mode = 0666\n");
	honest = honest_start(&rig);
	hostile = hostile_start(lose_memory, NULL);
	CU_ASSERT(hostile.told.first > 100);
	end = now_ms() + FOREVER_MS;
	while (rig_engine(&rig, "client_bad_memory") < 1 && now_ms() < end)
		usleep(1000);
	CU_ASSERT_EQUAL(rig_engine(&rig, "client_bad_memory"), 1);
	CU_ASSERT_EQUAL(honest_end(honest), 0);
	others_work(&hostile);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		{ "S17 each resource ends for a user, however many sessions", each_resource },
		{ "S17 connections of CM are charged for until they are gone",
			connections_outlive },
		{ "S17 connections of one user leave some to others", too_many_connections },
		{ "H4 ports of one user leave some to others", all_ports },
		{ "H4 identifiers that share a port end", shared_port },
		{ "S15 descriptors of one user leave some to others", all_descriptors },
		{ "S15 without a descriptor clients are refused", refused_without_descriptors },
		{ "S6 mappings of one user leave some to others", all_mappings },
		{ "S6 memory goes at the limit of mappings", fault_at_the_limit },
		{ "H5 memory of one user leaves some to others", all_memory },
		{ "H5 parts of a file count once", parts_of_a_file },
		{ "S7 addresses of one user leave some to others", all_addresses },
		{ "S7 null regions take no addresses", null_regions },
	};

	struct rlimit few = { 1024, 1024 };

	if (geteuid() != 0) {
		printf("1..0 # SKIP other users' processes take root\n");
		return 0;
	}
	/* The engines' too: as on a machine that gives a service few. */
	MUST(setrlimit(RLIMIT_NOFILE, &few) == 0);
	return rcd_tap_run("quota", tests, RCD_ARRAY_COUNT(tests));
}
