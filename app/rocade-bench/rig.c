/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What the traffic needs: an engine with two devices, its control thread, workers; a session for
 * each end on each lcore, with memory and connected queue pairs.
 */
#include <errno.h>
#include <rte_cycles.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench.h"
#ifdef ROCADE_NET_IMPAIR
#include "rcd_pmd_impair.h"
#endif

#define MEMORY_MAX (UINT64_C(64) << 20) /**< of one end; more queue pairs share it */
#define QKEY       0x1234
#define HUGE_PAGE  (UINT64_C(2) << 20)

static const char *const dev_names[2] = { "bench0", "bench1" };
static const char *const dev_addrs[2] = { "10.77.0.1/24", "10.77.0.2/24" };

static int
rig_say(int err, const char *what)
{
	fprintf(stderr, "rocade-bench: %s: %s\n", what, strerror(-err));
	return err;
}

static void *
rig_control_main(void *arg)
{
	struct bench *bench = arg;

	while (!__atomic_load_n(&bench->control_stop, __ATOMIC_ACQUIRE)) {
		struct bench_errand *errand =
			__atomic_exchange_n(&bench->errand, NULL, __ATOMIC_ACQUIRE);

		if (errand != NULL) {
			errand->fn(bench->engine, errand->arg);
			__atomic_store_n(&errand->done, 1, __ATOMIC_RELEASE);
		}
		rcd_engine_step(bench->engine, 100);
	}
	return NULL;
}

void
bench_control_call(struct bench *bench, void (*fn)(struct rcd_engine *engine, void *arg), void *arg)
{
	struct bench_errand errand = { .fn = fn, .arg = arg };

	__atomic_store_n(&bench->errand, &errand, __ATOMIC_RELEASE);
	rcd_engine_wake(bench->engine);
	while (!__atomic_load_n(&errand.done, __ATOMIC_ACQUIRE))
		usleep(100);
}

static int
rig_add_devices(struct bench *bench)
{
	char error[512] = "";

	for (int i = 0; i < 2; i++) {
		struct rcd_dev_conf conf = {
			.attach = RCD_ATTACH_WIRE,
			.addr_count = 1,
			.no_shortcut = true,
			.sack = (enum rcd_sack_use)bench->opts.sack,
		};

		snprintf(conf.name, sizeof(conf.name), "%s", dev_names[i]);
		snprintf(conf.target, sizeof(conf.target), "%s", dev_names[1 - i]);
		snprintf(conf.impair, sizeof(conf.impair), "%s", bench->opts.impair);
		snprintf(conf.cc, sizeof(conf.cc), "%s", bench->opts.cc);
		if (bench->opts.ports[i][0] != '\0') {
			conf.attach = RCD_ATTACH_PORT;
			snprintf(conf.target, sizeof(conf.target), "%s", bench->opts.ports[i]);
		}
		if (rcd_addr_parse(dev_addrs[i], &conf.addrs[0]) != 0 ||
			rcd_engine_dev_add(bench->engine, &conf, error, sizeof(error)) != 0) {
			fprintf(stderr, "rocade-bench: %s\n", error);
			return -ENODEV;
		}
	}
	for (int i = 0; i < 2; i++)
		if (rcd_engine_dev_port(bench->engine, dev_names[i], &bench->port_ids[i]) != 0)
			return -ENODEV;
	return 0;
}

static int
rig_start_workers(struct bench *bench)
{
	uint32_t engine_lcores = rcd_engine_lcore_count(bench->engine);
	unsigned int lcore_id;
	int err = 0;

	RTE_LCORE_FOREACH_WORKER(lcore_id) {
		uint32_t index = bench->worker_count;
		struct bench_worker *worker = &bench->workers[index];

		if (err != 0 || index == bench_opts_workers(&bench->opts))
			break;
		*worker = (struct bench_worker){
			.bench = bench,
			.index = index,
			.lcore = rcd_engine_lcore(bench->engine, index),
		};
		if (index < engine_lcores)
			err = rcd_engine_launch(bench->engine, index, bench_worker_main, worker);
		else
			err = rte_eal_remote_launch(bench_worker_main, worker, lcore_id);
		bench->worker_count += err == 0;
	}
	return err;
}

/* Which worker drives a part: the one of its lcore, or the application's that goes with it. */
static void
rig_assign(struct bench *bench)
{
	uint32_t engine_lcores = rcd_engine_lcore_count(bench->engine);

	for (uint32_t side = 0; side < 2; side++) {
		for (uint32_t i = 0; i < bench->part_count; i++) {
			uint32_t lcore = (side * bench->part_count + i) % engine_lcores;
			uint32_t at = lcore + (bench->opts.client == BENCH_SHM ? engine_lcores : 0);
			struct bench_worker *worker = &bench->workers[at];

			worker->parts[worker->part_count++] = &bench->parts[side][i];
		}
	}
}

int
bench_rig_init(struct bench *bench)
{
	struct rcd_engine_conf conf;
	uint32_t workers = bench_opts_workers(&bench->opts);
	char error[512] = "";
	int err;

	if (rte_lcore_count() < workers + 1) {
		fprintf(stderr,
			"rocade-bench: needs %u lcores besides the main one, and EAL has %u\n",
			workers, rte_lcore_count() - 1);
		return -EINVAL;
	}
	rcd_engine_conf_init(&conf);
	snprintf(bench->socket, sizeof(bench->socket), "/tmp/rocade-bench.%d", (int)getpid());
	snprintf(conf.socket, sizeof(conf.socket), "%s", bench->socket);
	conf.socket_mode = 0600;
	conf.idle = RCD_IDLE_POLL;
	conf.lcores = bench->opts.client == BENCH_SHM ? workers / 2 : workers;
	conf.quota.queue_bytes = UINT64_C(8) << 30;
#ifdef ROCADE_NET_IMPAIR
	conf.impair_set = rcd_pmd_impair_set;
#endif
	bench->engine = rcd_engine_create(&conf, error, sizeof(error));
	if (bench->engine == NULL) {
		fprintf(stderr, "rocade-bench: %s\n", error);
		return -ENOMEM;
	}
	bench->part_count = bench->opts.lcores_per_side == 0 ? 1 : bench->opts.lcores_per_side;
	for (int side = 0; side < 2; side++) {
		bench->parts[side] = aligned_alloc(
			RCD_CACHE_LINE, bench->part_count * sizeof(struct bench_part));
		if (bench->parts[side] == NULL)
			return -ENOMEM;
		memset(bench->parts[side], 0, bench->part_count * sizeof(struct bench_part));
	}
	err = rig_start_workers(bench);
	if (err != 0)
		return rig_say(err, "workers");
	rig_assign(bench);
	err = rig_add_devices(bench);
	if (err != 0)
		return err;
	err = -pthread_create(&bench->control, NULL, rig_control_main, bench);
	if (err != 0)
		return rig_say(err, "control thread");
	bench->control_runs = true;
	return 0;
}

void
bench_rig_fini(struct bench *bench)
{
	if (bench->control_runs)
		bench_rig_disconnect(bench);
	__atomic_store_n(&bench->control_stop, 1, __ATOMIC_RELEASE);
	if (bench->control_runs) {
		rcd_engine_wake(bench->engine);
		pthread_join(bench->control, NULL);
	}
	__atomic_store_n(&bench->quit, 1, __ATOMIC_RELEASE);
	rcd_engine_destroy(bench->engine);
	rte_eal_mp_wait_lcore();
	for (int side = 0; side < 2; side++)
		free(bench->parts[side]);
}

/* Hugepages where there are some, so that nobody measures the TLB. */
static int
rig_make_memory(struct bench_part *part)
{
	struct rcd_cl_mr_attr attr = { .pd = part->pd,
		.access = RCD_ACCESS_LOCAL_WRITE | RCD_ACCESS_REMOTE };
	struct bench *bench = part->bench;
	uint64_t stride = (bench->size_room + RCD_GRH_LEN + 63) & ~UINT64_C(63);
	uint64_t areas = part->qp_count;
	int fd;

	if (areas * 2 * stride > MEMORY_MAX)
		areas = MEMORY_MAX / (2 * stride) > 0 ? MEMORY_MAX / (2 * stride) : 1;
	part->memory_len = (2 * areas * stride + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
	for (int huge = 1; huge >= 0; huge--) {
		fd = memfd_create("rocade-bench", MFD_CLOEXEC | (huge ? MFD_HUGETLB : 0));
		if (fd < 0 || ftruncate(fd, (off_t)part->memory_len) != 0)
			part->memory = MAP_FAILED;
		else
			part->memory = mmap(NULL, part->memory_len, PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_POPULATE, fd, 0);
		if (fd >= 0)
			close(fd);
		if (part->memory != MAP_FAILED)
			break;
	}
	if (part->memory == MAP_FAILED) {
		part->memory = NULL;
		return -ENOMEM;
	}
	memset(part->memory, 0, part->memory_len);
	for (uint32_t i = 0; i < part->qp_count; i++) {
		uint64_t at = (uintptr_t)part->memory + (i % areas) * stride;

		part->qps[i].tx_addr = at;
		part->qps[i].rx_addr = at + areas * stride;
	}
	attr.addr = part->memory;
	attr.len = part->memory_len;
	attr.start = (uintptr_t)part->memory;
	return rcd_cl_mr_reg(&part->client, &attr, &part->mr);
}

/* The IPv4 address that rig_add_devices() gave. */
static int
rig_find_gid(struct bench_part *part)
{
	static const uint8_t prefix[] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 77 };
	struct rcd_ctrl_index_req req = { .index = 0 };
	int err = rcd_client_call(&part->client, RCD_CTRL_GIDS, &req, &part->gids, NULL, NULL);

	for (uint32_t i = 0; err == 0 && i < part->gids.count; i++) {
		if (memcmp(part->gids.gids[i].raw, prefix, sizeof(prefix)) == 0) {
			part->gid_index = i;
			return 0;
		}
	}
	return err != 0 ? err : -EADDRNOTAVAIL;
}

static int
rig_open_device(struct bench *bench, struct bench_part *part, uint32_t side)
{
	int err = rcd_client_connect(&part->client, bench->socket);

	if (err != 0)
		return err;
	part->open = true;
	for (uint32_t i = 0; err == 0; i++) {
		struct rcd_ctrl_index_req req = { .index = i };

		err = rcd_client_call(
			&part->client, RCD_CTRL_DEVICE, &req, &part->device, NULL, NULL);
		if (err == 0 && strcmp(part->device.name, dev_names[side]) == 0)
			break;
	}
	if (err == 0)
		err = rcd_client_open(&part->client, part->device.index);
	part->client.yield = bench->opts.yield && bench->opts.client == BENCH_SHM;
	return err == 0 ? rig_find_gid(part) : err;
}

static int
rig_make_qps(struct bench *bench, struct bench_part *part)
{
	bool receives = bench->opts.op == BENCH_SEND || bench->opts.op == BENCH_WRITE_IMM;
	struct rcd_ctrl_qp_req req = {
		.pd = part->pd,
		.type = bench->opts.service,
		.send_cq = part->cq.handle,
		.recv_cq = part->cq.handle,
		.srq = RCD_CTRL_NO_HANDLE,
		.sq_depth = bench->opts.depth,
		.rq_depth = receives ? 2 * bench->opts.depth : 1,
		.max_send_sge = bench->opts.sges,
		.max_recv_sge = 1,
		.max_inline = bench->opts.inline_max,
	};

	part->receives =
		receives && (!part->requester || bench->opts.bidirectional || bench->opts.latency);
	for (uint32_t i = 0; i < part->qp_count; i++) {
		int err = rcd_cl_qp_create(&part->client, &req, &part->qps[i].cl);

		if (err != 0)
			return err;
	}
	return 0;
}

static int
rig_open_part(struct bench *bench, uint32_t side, uint32_t index)
{
	struct bench_part *part = &bench->parts[side][index];
	struct rcd_ctrl_cq_req cq = { .channel = RCD_CTRL_NO_HANDLE };
	struct rcd_ctrl_handle pd;
	uint64_t depth;
	int err;

	memset(part, 0, sizeof(*part));
	part->bench = bench;
	part->peer = &bench->parts[1 - side][index];
	part->requester = side == 0 || bench->opts.bidirectional;
	part->qp_count = bench->opts.qps / bench->part_count;
	if (part->qp_count == 0)
		part->qp_count = 1;
	part->qps = calloc(part->qp_count, sizeof(part->qps[0]));
	if (part->qps == NULL)
		return -ENOMEM;
	err = rig_open_device(bench, part, side);
	if (err != 0)
		return err;
	/* Room for all that can be complete at once, as far as a queue goes. */
	depth = (uint64_t)part->qp_count *
		(bench->opts.depth / RTE_MIN(bench->opts.signal, bench->opts.depth) + 1 +
			2 * bench->opts.depth);
	cq.depth = (uint32_t)RTE_MIN(depth, (uint64_t)RTE_MIN(part->device.max_cqe, 1u << 17));
	err = rcd_client_call(&part->client, RCD_CTRL_PD_CREATE, NULL, &pd, NULL, NULL);
	part->pd = pd.handle;
	if (err == 0)
		err = rcd_cl_cq_create(&part->client, &cq, &part->cq);
	if (err == 0)
		err = rig_make_qps(bench, part);
	if (err == 0)
		err = rig_make_memory(part);
	return err;
}

static int
rig_make_ah(struct bench_part *part, struct bench_qp *qp, const struct rcd_ctrl_av *av)
{
	struct rcd_ctrl_ah_req req = { .pd = part->pd, .av = *av };
	struct rcd_ctrl_handle rep;
	int err = rcd_client_call(&part->client, RCD_CTRL_AH_CREATE, &req, &rep, NULL, NULL);

	qp->ah = rep.handle;
	return err;
}

static int
rig_connect_qp(struct bench_part *part, uint32_t index)
{
	struct bench *bench = part->bench;
	struct bench_qp *qp = &part->qps[index];
	const struct bench_part *peer = part->peer;
	struct rcd_ctrl_qp_attr attr = {
		.access = RCD_ACCESS_REMOTE,
		.qkey = QKEY,
		.rq_psn = index & 0xffff,
		.sq_psn = index & 0xffff,
		.dest_qpn = peer->qps[index].cl.qpn,
		.path_mtu_bytes = bench->path_mtu,
		.port = 1,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 16,
		.min_rnr_timer = 1,
		.max_dest_rd_atomic = 16,
		.av = { .sgid_index = (uint8_t)part->gid_index, .hop_limit = 64 },
	};
	bool rc = bench->opts.service == RCD_QP_RC;
	bool ud = bench->opts.service == RCD_QP_UD;
	uint32_t masks[] = {
		RCD_QP_ATTR_STATE | RCD_QP_ATTR_PKEY_INDEX | RCD_QP_ATTR_PORT |
			(ud ? RCD_QP_ATTR_QKEY : RCD_QP_ATTR_ACCESS),
		RCD_QP_ATTR_STATE |
			(ud ? 0
			    : RCD_QP_ATTR_AV | RCD_QP_ATTR_PATH_MTU | RCD_QP_ATTR_DEST_QPN |
						RCD_QP_ATTR_RQ_PSN) |
			(rc ? RCD_QP_ATTR_MAX_DEST_RD_ATOMIC | RCD_QP_ATTR_MIN_RNR_TIMER : 0),
		RCD_QP_ATTR_STATE | RCD_QP_ATTR_SQ_PSN |
			(rc ? RCD_QP_ATTR_TIMEOUT | RCD_QP_ATTR_RETRY_CNT | RCD_QP_ATTR_RNR_RETRY |
						RCD_QP_ATTR_MAX_RD_ATOMIC
			    : 0),
	};
	int err = 0;

	memcpy(attr.av.dgid, peer->gids.gids[peer->gid_index].raw, sizeof(attr.av.dgid));
	qp->remote_addr = peer->qps[index].rx_addr;
	qp->dest_qpn = attr.dest_qpn;
	for (uint32_t i = 0; err == 0 && i < RTE_DIM(masks); i++) {
		attr.state = (uint8_t)(RCD_QP_INIT + i);
		err = rcd_cl_qp_modify(&qp->cl, &attr, masks[i]);
	}
	if (err == 0 && ud && index == 0)
		err = rig_make_ah(part, qp, &attr.av);
	qp->ah = part->qps[0].ah;
	return err;
}

static int
rig_find_mtu(struct bench *bench)
{
	bench->path_mtu = 4096;
	for (uint32_t side = 0; side < 2; side++) {
		struct rcd_ctrl_port_rep port;
		int err = rcd_client_call(
			&bench->parts[side][0].client, RCD_CTRL_PORT, NULL, &port, NULL, NULL);

		if (err != 0)
			return err;
		bench->path_mtu = RTE_MIN(bench->path_mtu, port.active_mtu_bytes);
	}
	if (bench->opts.mtu > bench->path_mtu) {
		fprintf(stderr, "rocade-bench: the ports have a path MTU of %u\n", bench->path_mtu);
		return -EINVAL;
	}
	if (bench->opts.mtu != 0)
		bench->path_mtu = bench->opts.mtu;
	if (bench->opts.service == RCD_QP_UD && bench->size_room > bench->path_mtu) {
		fprintf(stderr, "rocade-bench: a datagram has up to %u bytes\n", bench->path_mtu);
		return -EINVAL;
	}
	return 0;
}

static int
rig_connect_all(struct bench *bench)
{
	int err = 0;

	/* All of one side before the other: so sessions spread over the lcores in order. */
	for (uint32_t side = 0; err == 0 && side < 2; side++)
		for (uint32_t i = 0; err == 0 && i < bench->part_count; i++)
			err = rig_open_part(bench, side, i);
	if (err == 0)
		err = rig_find_mtu(bench);
	for (uint32_t side = 0; err == 0 && side < 2; side++)
		for (uint32_t i = 0; err == 0 && i < bench->part_count; i++)
			for (uint32_t k = 0; err == 0 && k < bench->parts[side][i].qp_count; k++)
				err = rig_connect_qp(&bench->parts[side][i], k);
	return err;
}

int
bench_rig_connect(struct bench *bench)
{
	int err;

	bench_rig_disconnect(bench);
	bench->size_room = 0;
	for (uint32_t i = 0; i < bench->opts.size_count; i++)
		bench->size_room = RTE_MAX(bench->size_room, bench->opts.sizes[i]);
	err = rig_connect_all(bench);
	bench->connected = true;
	if (err != 0) {
		bench_rig_disconnect(bench);
		return rig_say(err, "connecting");
	}
	bench_phase_set(bench, BENCH_PAUSE);
	return 0;
}

void
bench_rig_disconnect(struct bench *bench)
{
	if (!bench->connected)
		return;
	bench_phase_set(bench, BENCH_OFF);
	bench->connected = false;
	for (uint32_t side = 0; side < 2; side++) {
		for (uint32_t i = 0; i < bench->part_count; i++) {
			struct bench_part *part = &bench->parts[side][i];

			if (!part->open)
				continue;
			part->open = false;
			if (part->mr.key != 0)
				rcd_cl_mr_dereg(&part->client, &part->mr);
			rcd_client_close(&part->client);
			if (part->memory != NULL)
				munmap(part->memory, part->memory_len);
			free(part->qps);
			part->qps = NULL;
		}
	}
}

struct impairment {
	const char *args;
	int err;
};

static void
rig_set_impair(struct rcd_engine *engine, void *arg)
{
	struct impairment *impairment = arg;
	char error[300];

	for (int i = 0; i < 2 && impairment->err == 0; i++) {
		impairment->err = rcd_engine_dev_set(
			engine, dev_names[i], "impair", impairment->args, error, sizeof(error));
		if (impairment->err != 0)
			fprintf(stderr, "rocade-bench: %s\n", error);
	}
}

int
bench_rig_impair(struct bench *bench, const char *args)
{
	struct impairment impairment = { .args = args };

	bench_control_call(bench, rig_set_impair, &impairment);
	return impairment.err;
}
