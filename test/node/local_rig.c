/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * An engine in the test's own process, and what it opened of it.
 */
#include "local_rig.h"

#include <errno.h>
#include <rte_eal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rcd_audit.h"
#include "rcd_clock.h"
#include "rcd_dev_conf.h"
#include "rcd_inline.h"
#include "rcd_limits.h"
#include "rcd_number.h"
#include "rcd_poll.h"
#include "rcd_sequence.h"
#include "rcd_tap.h"

#define ROUNDS 3 /**< of an lcore between two steps */

/* What is reached from EAL's memory alone looks leaked to the sanitizer, which does not scan it. */
const char *
__asan_default_options(void);

const char *
__asan_default_options(void)
{
	return "detect_leaks=0";
}

struct rcd_engine *engine;
uint8_t side_timeout = 14;
bool local_polls;
void (*local_also)(void);

void
local_eal(const char *lcores)
{
	static char prefix[40];
	char *args[] = { (char *)(uintptr_t) "local", (char *)(uintptr_t) "--no-huge",
		(char *)(uintptr_t) "-m", (char *)(uintptr_t) "256",
		(char *)(uintptr_t) "--no-shconf", (char *)(uintptr_t) "--no-telemetry",
		(char *)(uintptr_t) "-a", (char *)(uintptr_t) "0000:00:00.0",
		(char *)(uintptr_t) "--log-level=critical", (char *)(uintptr_t) "--lcores",
		(char *)(uintptr_t)lcores, (char *)(uintptr_t) "--file-prefix", prefix };

	snprintf(prefix, sizeof(prefix), "rcdlocal%d", (int)getpid());
	if (rte_eal_init(sizeof(args) / sizeof(args[0]), args) < 0) {
		printf("Bail out! no EAL\n");
		exit(1);
	}
	local_polls = strcmp(lcores, "0") == 0;
}

void
local_add(const char *name, const char *peer, const char *addr)
{
	struct rcd_dev_conf conf = { .attach = RCD_ATTACH_WIRE, .addr_count = 1 };
	char error[200] = "";

	snprintf(conf.name, sizeof(conf.name), "%s", name);
	snprintf(conf.target, sizeof(conf.target), "%s", peer);
	CU_ASSERT_EQUAL_FATAL(rcd_addr_parse(addr, &conf.addrs[0]), 0);
	if (rcd_engine_dev_add(engine, &conf, error, sizeof(error)) != 0)
		CU_FAIL_FATAL("no device");
}

struct rcd_inline *
local_feed(const char *name, const char *mac, const char *address)
{
	struct rcd_dev_conf conf = { .mtu = 1500, .no_shortcut = true };
	char error[256] = "";
	struct rcd_inline *dev = NULL;

	snprintf(conf.name, sizeof(conf.name), "%s", name);
	if (rcd_dev_conf_set(&conf, "address", address, error, sizeof(error)) == 0 &&
		rcd_dev_conf_set(&conf, "mac", mac, error, sizeof(error)) == 0)
		dev = rcd_inline_create(engine, &conf, error, sizeof(error));
	if (dev == NULL)
		printf("# %s\n", error);
	CU_ASSERT_PTR_NOT_NULL_FATAL(dev);
	return dev;
}

void
local_begin(void (*change)(struct rcd_engine_conf *conf))
{
	struct rcd_engine_conf conf;
	char error[200] = "";

	rcd_engine_conf_init(&conf);
	conf.socket[0] = '\0';
	conf.mbufs = 4095;
	if (change != NULL)
		change(&conf);
	engine = rcd_engine_create(&conf, error, sizeof(error));
	CU_ASSERT_PTR_NOT_NULL_FATAL(engine);
	local_add("w0", "w1", "10.9.0.1/24");
	local_add("w1", "w0", "10.9.0.2/24");
}

void
local_audit(void)
{
	char error[200] = "";

	if (rcd_engine_audit(engine, error, sizeof(error)) != 0)
		printf("# %s\n", error);
	CU_ASSERT_STRING_EQUAL(error, "");
}

void
local_end(void)
{
	local_audit();
	rcd_engine_destroy(engine);
	engine = NULL;
}

void
local_turn(void)
{
	rcd_engine_step(engine, 0);
	for (uint32_t i = 0; local_polls && i < ROUNDS * rcd_engine_lcore_count(engine); i++)
		rcd_lcore_poll(rcd_engine_lcore(engine, i / ROUNDS), rcd_clock_ns(), RCD_BURST_MAX);
	if (local_also != NULL)
		local_also();
}

uint64_t
local_now_ns(void)
{
	return rcd_clock_ns();
}

int
side_qp(struct side *side, enum rcd_qp_type type, struct rcd_local_qp **qp)
{
	const struct rcd_local_qp_conf conf = {
		.type = type,
		.pd = side->pd,
		.send_cq = side->cq,
		.recv_cq = side->cq,
		.sq_depth = SIDE_DEPTH,
		.rq_depth = SIDE_DEPTH,
		.max_send_sge = 4,
		.max_recv_sge = 2,
		.max_inline = 64,
		.cookie = 0x9b,
	};

	return rcd_local_qp_create(side->local, &conf, qp);
}

void
side_open(struct side *side, const char *device, enum rcd_qp_type type)
{
	const uint32_t access = RCD_ACCESS_LOCAL_WRITE | RCD_ACCESS_REMOTE;

	memset(side, 0, sizeof(*side));
	side->memory = calloc(1, SIDE_BYTES);
	CU_ASSERT_PTR_NOT_NULL_FATAL(side->memory);
	CU_ASSERT_EQUAL_FATAL(rcd_local_open(engine, device, -1, &side->local), 0);
	CU_ASSERT_EQUAL_FATAL(rcd_local_gids(side->local, &side->gids), 0);
	for (uint32_t i = 0; i < side->gids.count; i++)
		if (side->gids.gids[i].raw[10] == 0xff && side->gids.gids[i].raw[12] == 10)
			side->gid = (uint8_t)i;
	CU_ASSERT_EQUAL_FATAL(rcd_local_pd_create(side->local, &side->pd), 0);
	CU_ASSERT_EQUAL_FATAL(rcd_local_mr_reg(side->local, side->pd, side->memory, SIDE_BYTES,
				      access, &side->key),
		0);
	CU_ASSERT_EQUAL_FATAL(
		rcd_local_cq_create(side->local, SIDE_COMPLETIONS, 0xc9, &side->cq), 0);
	CU_ASSERT_EQUAL_FATAL(side_qp(side, type, &side->qp), 0);
}

void
side_close(struct side *side)
{
	rcd_local_close(side->local);
	free(side->memory);
	side->local = NULL;
}

struct rcd_ctrl_qp_attr
side_attr(const struct side *side, const uint8_t dgid[16], uint32_t dest_qpn)
{
	struct rcd_ctrl_qp_attr attr = {
		.access = RCD_ACCESS_REMOTE,
		.qkey = 0x1234,
		.rq_psn = 700,
		.sq_psn = 700,
		.dest_qpn = dest_qpn,
		.path_mtu_bytes = 1024,
		.port = 1,
		.timeout = side_timeout,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 4,
		.min_rnr_timer = 1,
		.max_dest_rd_atomic = 4,
		.av = { .sgid_index = side->gid, .hop_limit = 64 },
	};

	memcpy(attr.av.dgid, dgid, sizeof(attr.av.dgid));
	return attr;
}

int
side_to(struct rcd_local_qp *qp, enum rcd_qp_type type, struct rcd_ctrl_qp_attr attr,
	enum rcd_qp_state state)
{
	uint64_t end_ns = rcd_clock_ns() + FOREVER_NS;
	uint32_t mask = RCD_QP_ATTR_STATE;
	int err;

	attr.state = (uint8_t)state;
	if (state == RCD_QP_INIT)
		mask |= RCD_QP_ATTR_PKEY_INDEX | RCD_QP_ATTR_PORT |
			(type == RCD_QP_UD ? RCD_QP_ATTR_QKEY : RCD_QP_ATTR_ACCESS);
	if (state == RCD_QP_RTR && type != RCD_QP_UD)
		mask |= RCD_QP_ATTR_AV | RCD_QP_ATTR_PATH_MTU | RCD_QP_ATTR_DEST_QPN |
			RCD_QP_ATTR_RQ_PSN;
	if (state == RCD_QP_RTR && type == RCD_QP_RC)
		mask |= RCD_QP_ATTR_MAX_DEST_RD_ATOMIC | RCD_QP_ATTR_MIN_RNR_TIMER;
	if (state == RCD_QP_RTS)
		mask |= RCD_QP_ATTR_SQ_PSN;
	if (state == RCD_QP_RTS && type == RCD_QP_RC)
		mask |= RCD_QP_ATTR_TIMEOUT | RCD_QP_ATTR_RETRY_CNT | RCD_QP_ATTR_RNR_RETRY |
			RCD_QP_ATTR_MAX_RD_ATOMIC;
	while ((err = rcd_local_qp_modify(qp, &attr, mask)) == -EINPROGRESS &&
		rcd_clock_ns() < end_ns)
		local_turn();
	return err;
}

int
side_ah(struct side *side, const struct rcd_ctrl_av *av, uint32_t *ah)
{
	uint64_t end_ns = rcd_clock_ns() + FOREVER_NS;
	int err;

	while ((err = rcd_local_ah_create(side->local, side->pd, av, ah)) == -EINPROGRESS &&
		rcd_clock_ns() < end_ns)
		local_turn();
	return err;
}

int
side_connect(struct rcd_local_qp *qp, struct rcd_ctrl_qp_attr attr)
{
	uint64_t end_ns = rcd_clock_ns() + FOREVER_NS;
	int err;

	while ((err = rcd_local_qp_connect(qp, &attr)) == -EINPROGRESS && rcd_clock_ns() < end_ns)
		local_turn();
	return err;
}

void
side_join(struct side *a, struct side *b)
{
	CU_ASSERT_EQUAL_FATAL(
		side_connect(
			a->qp, side_attr(a, b->gids.gids[b->gid].raw, rcd_local_qp_num(b->qp))),
		0);
	CU_ASSERT_EQUAL_FATAL(
		side_connect(
			b->qp, side_attr(b, a->gids.gids[a->gid].raw, rcd_local_qp_num(a->qp))),
		0);
}

void
side_pair(struct side *a, struct side *b, enum rcd_qp_type type)
{
	side_open(a, "w0", type);
	side_open(b, "w1", type);
	side_join(a, b);
}

struct rcd_send_wr
side_wr(const struct side *from, const struct side *to, uint8_t opcode, struct rcd_sge *sge,
	uint64_t offset, uint32_t len)
{
	*sge = (struct rcd_sge){ (uintptr_t)from->memory + offset, len, from->key };
	return (struct rcd_send_wr){
		.wr_id = offset,
		.opcode = opcode,
		.flags = RCD_SEND_SIGNALED,
		.sge_count = 1,
		.sges = sge,
		.remote = { .va = (uintptr_t)to->memory + offset, .rkey = to->key },
	};
}

int
side_wait(struct side *side, struct rcd_cq_slot *slot)
{
	int count;

	LOCAL_UNTIL((count = rcd_local_poll_cq(side->cq, slot, 1)) != 0);
	return count == 1 ? slot->status : count;
}

void
bytes_fill(uint8_t *memory, uint64_t len, uint32_t seed)
{
	struct rcd_sequence sequence = { seed };

	for (uint64_t i = 0; i < len; i++)
		memory[i] = (uint8_t)rcd_sequence_next(&sequence);
}

bool
bytes_filled(const uint8_t *memory, uint64_t len, uint32_t seed)
{
	struct rcd_sequence sequence = { seed };

	for (uint64_t i = 0; i < len; i++)
		if (memory[i] != (uint8_t)rcd_sequence_next(&sequence))
			return false;
	return true;
}
