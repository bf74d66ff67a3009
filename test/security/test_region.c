/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: whatever lengths, offsets and addresses a client gives, a region is made of its own memory
 * and lies in addresses that were reserved for it. Method: requests as a hostile client makes them,
 * from a table of the edges of 2^64, and a look at what they would have reached.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rcd_bytes.h"
#include "rcd_limits.h"
#include "rcd_mr.h"
#include "rcd_qp.h"
#include "rcd_tap.h"
#include "rig.h"

#define HUGE   ((uint64_t)2 << 20)
#define PAGE   UINT64_C(4096)
#define FILE_4 (UINT64_C(4) * HUGE) /**< bytes of the file behind shared extents */

static struct rig rig;
static struct node node;
static uint32_t shared; /**< handle of the file */

struct edge {
	const char *what;
	uint64_t len, addr, start;
	uint32_t extent_count;
	struct {
		uint64_t offset, len;
		bool copied;
	} extents[3];
	int err;
};

#define ALL_BUT(bytes) ((uint64_t)0 - (bytes))

static const struct edge edges[] = {
	{ "a copied region that wraps with its reservation", ALL_BUT(HUGE) + PAGE, 0, 0, 1,
		{ { 0, ALL_BUT(HUGE) + PAGE, true } }, -EINVAL },
	{ "the same, one page less", ALL_BUT(HUGE), 0, 0, 1, { { 0, ALL_BUT(HUGE), true } },
		-EINVAL },
	{ "a copied region that wraps with its place in a hugepage", ALL_BUT(2 * HUGE), HUGE - 1, 0,
		1, { { 0, ALL_BUT(2 * HUGE), true } }, -EINVAL },
	{ "all addresses but one", UINT64_MAX, 0, 0, 1, { { 0, UINT64_MAX, true } }, -EINVAL },
	{ "half of all addresses", UINT64_C(1) << 63, 0, 0, 1, { { 0, UINT64_C(1) << 63, true } },
		-EINVAL },
	{ "extents whose sum wraps to the length", PAGE, 0, 0, 3,
		{ { 0, UINT64_C(1) << 63, true }, { 0, UINT64_C(1) << 63, true },
			{ 0, PAGE, true } },
		-EINVAL },
	{ "large extents whose sum wraps to the large length", ALL_BUT(PAGE), 0, 0, 2,
		{ { 0, ALL_BUT(PAGE), true }, { 0, ALL_BUT(PAGE), true } }, -EINVAL },
	{ "copies from an address range that wraps", 2 * PAGE, 0, 0, 1,
		{ { ALL_BUT(PAGE), 2 * PAGE, true } }, -EINVAL },
	{ "one byte above the limit", RCD_MR_MAX_BYTES + 1, 0, 0, 1,
		{ { 0, RCD_MR_MAX_BYTES + 1, true } }, -EINVAL },
	{ "all addresses of a process", RCD_MR_ALL_BYTES, 0, 0, 1,
		{ { 0, RCD_MR_ALL_BYTES, true } }, 0 },
	{ "one byte less", RCD_MR_ALL_BYTES - 1, 0, 0, 1, { { 0, RCD_MR_ALL_BYTES - 1, true } },
		-EINVAL },
	{ "one byte more", RCD_MR_ALL_BYTES + 1, 0, 0, 1, { { 0, RCD_MR_ALL_BYTES + 1, true } },
		-EINVAL },
	{ "all of them from the second on", RCD_MR_ALL_BYTES, 0, 0, 1,
		{ { 1, RCD_MR_ALL_BYTES, true } }, -EINVAL },
	{ "all of them, which peers name otherwise", RCD_MR_ALL_BYTES, 0, PAGE, 1,
		{ { 0, RCD_MR_ALL_BYTES, true } }, -EINVAL },
	{ "all of them, elsewhere in the application", RCD_MR_ALL_BYTES, PAGE, 0, 1,
		{ { 0, RCD_MR_ALL_BYTES, true } }, -EINVAL },
	{ "all of them in two pieces", RCD_MR_ALL_BYTES, 0, 0, 2,
		{ { 0, PAGE, true }, { PAGE, RCD_MR_ALL_BYTES - PAGE, true } }, -EINVAL },
	{ "all of them in the file", RCD_MR_ALL_BYTES, 0, 0, 1, { { 0, RCD_MR_ALL_BYTES } },
		-EINVAL },
	{ "addresses for peers that wrap", 2 * PAGE, 0, ALL_BUT(PAGE), 1, { { 0, 2 * PAGE } },
		-EINVAL },
	{ "an offset near the end of 64 bits", PAGE, 0, 0, 1, { { ALL_BUT(PAGE), PAGE } },
		-EINVAL },
	{ "an offset that wraps into the file", 2 * PAGE, 0, 0, 1, { { ALL_BUT(PAGE), 2 * PAGE } },
		-EINVAL },
	{ "one byte behind the file", PAGE, 0, 0, 1, { { FILE_4 - PAGE + 1, PAGE } }, -EINVAL },
	{ "a shared extent as long as all addresses", ALL_BUT(HUGE) + PAGE, 0, 0, 1,
		{ { 0, ALL_BUT(HUGE) + PAGE } }, -EINVAL },
	{ "the same beside a copied one", ALL_BUT(HUGE) + PAGE, 0, 0, 2,
		{ { 0, ALL_BUT(HUGE) }, { 0, PAGE, true } }, -EINVAL },
	{ "an empty extent", PAGE, 0, 0, 2, { { 0, PAGE }, { 0, 0 } }, -EINVAL },
	{ "pieces that do not lie as in the application", 2 * PAGE, 0, 0, 2,
		{ { 0, PAGE - 1 }, { PAGE, PAGE + 1 } }, -EINVAL },
	{ "pieces at the last address", 2 * PAGE, UINT64_MAX - PAGE + 1, 0, 2,
		{ { 0, PAGE }, { PAGE, PAGE } }, 0 },
	{ "the whole file", FILE_4, 0, 0, 1, { { 0, FILE_4 } }, 0 },
	{ "the whole file at the last addresses", FILE_4, 0, ALL_BUT(FILE_4), 1, { { 0, FILE_4 } },
		0 },
	{ "no bytes", 0, 0, 0, 0, { { 0, 0 } }, 0 },
};

static int
region(const struct edge *edge, uint32_t *key)
{
	struct rcd_ctrl_mr_req req;
	struct rcd_ctrl_mr_rep rep = { .key = 0 };
	int err;

	memset(&req, 0, sizeof(req));
	req.pd = node.pd;
	req.access = RCD_ACCESS_LOCAL_WRITE | RCD_ACCESS_REMOTE;
	req.start = edge->start;
	req.addr = edge->addr;
	req.len = edge->len;
	req.key = *key;
	req.extent_count = edge->extent_count;
	for (uint32_t i = 0; i < edge->extent_count; i++) {
		req.extents[i].offset = edge->extents[i].offset;
		req.extents[i].len = edge->extents[i].len;
		req.extents[i].mem = edge->extents[i].copied ? RCD_CTRL_MEM_COPIED : shared;
	}
	err = rcd_client_call(&node.client, *key == 0 ? RCD_CTRL_MR_REG : RCD_CTRL_MR_REREG, &req,
		&rep, NULL, NULL);
	*key = err == 0 ? rep.key : *key;
	return err;
}

static void
edges_are_refused(void)
{
	struct edge plain = { "", FILE_4, 0, 0, 1, { { 0, FILE_4 } }, 0 };
	uint32_t kept = 0;

	CU_ASSERT_EQUAL_FATAL(region(&plain, &kept), 0);
	for (size_t i = 0; i < RCD_ARRAY_COUNT(edges); i++) {
		struct rcd_ctrl_key gone;
		uint32_t key = 0;
		int err = region(&edges[i], &key);

		if (err != edges[i].err)
			printf("# %s: %d instead of %d\n", edges[i].what, err, edges[i].err);
		CU_ASSERT_EQUAL(err, edges[i].err);
		gone.key = key;
		if (err == 0)
			CU_ASSERT_EQUAL(rcd_client_call(&node.client, RCD_CTRL_MR_DEREG, &gone,
						NULL, NULL, NULL),
				0);
		/* A change of a region is judged like a new one. */
		CU_ASSERT_EQUAL(region(&edges[i], &kept), edges[i].err);
	}
}

/* The attack: from a region that wraps, an offset reaches what others share. */
static void
nothing_of_others(void)
{
	struct edge whole = { "", ALL_BUT(HUGE) + PAGE, 0, 0, 1,
		{ { 0, ALL_BUT(HUGE) + PAGE, true } }, 0 };
	struct rcd_sge sge = { .addr = ALL_BUT(UINT64_C(4) << 40), .len = PAGE };
	struct rcd_send_wr wr = { .opcode = RCD_WR_RDMA_WRITE,
		.flags = RCD_SEND_SIGNALED,
		.sge_count = 1,
		.sges = &sge };
	struct rcd_cq_slot slot;
	struct node peer;
	uint32_t key = 0;

	node_open(&peer, rig.socket, "roce1", RCD_QP_RC);
	node_memory(&peer, PAGE);
	fill(peer.memory, PAGE, 2);
	node_join(&node, &peer, RCD_QP_RC, 1);
	CU_ASSERT_EQUAL(region(&whole, &key), -EINVAL);
	sge.lkey.val = key;
	wr.remote.va = (uintptr_t)peer.memory;
	wr.remote.rkey.val = peer.mr.key;
	MUST(rcd_cl_post_send(&node.qp, &wr) == 0);
	rcd_cl_ring(&node.qp);
	CU_ASSERT_EQUAL(node_wait(&node, &slot, FOREVER_MS), RCD_WC_LOC_PROT_ERR);
	CU_ASSERT(filled(peer.memory, PAGE, 2));
	node_close(&peer);
	CU_ASSERT_EQUAL(honest_end(honest_start(&rig)), 0);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		{ "S1 lengths, offsets and sums at the edges of 2^64", edges_are_refused },
		{ "S1 a region of nearly 2^64 bytes reaches nobody else's memory",
			nothing_of_others },
	};
	struct rcd_ctrl_mem_req req = { .len = FILE_4, .writable = 1 };
	struct rcd_ctrl_fds fds = { .fds = { memfd_create("t", 0) }, .count = 1 };
	struct rcd_ctrl_handle handle;
	struct rcd_ctrl_copy_rep copy;
	int failed;

	rig_start(&rig, NULL);
	node_open(&node, rig.socket, "roce0", RCD_QP_RC);
	MUST(ftruncate(fds.fds[0], FILE_4) == 0);
	MUST(rcd_client_call(&node.client, RCD_CTRL_MEM_ADD, &req, &handle, &fds, NULL) == 0);
	shared = handle.handle;
	/* Nobody makes copies, but there may be regions of them. */
	MUST(rcd_client_call(&node.client, RCD_CTRL_COPY_OPEN, NULL, &copy, NULL, NULL) == 0);
	failed = rcd_tap_run("region", tests, RCD_ARRAY_COUNT(tests));
	node_close(&node);
	if (rig_stop(&rig, FOREVER_MS) != 0)
		return 1;
	return failed;
}
