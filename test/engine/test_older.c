/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: a program that was built against older headers keeps working: structs that have grown since
 * end earlier in it, and what lies behind is its own. Method: such structs stand at the very end of
 * mapped memory, as long as rdma-core had them when the call came, so that one byte read or written
 * beyond is the end of this program; masks name the members that there are.
 */
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rcd_tap.h"
#include "rig.h"
#include "side.h"

/* What a struct had when this was its first member that is new: the rest is its alignment's. */
#define UP_TO(type, member)                                                                        \
	((offsetof(type, member) + _Alignof(type) - 1) / _Alignof(type) * _Alignof(type))

static struct rig rig;
static struct side side;

/* The last bytes before memory that can't be touched. */
static void *
at_the_edge(size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *pages =
		mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CU_ASSERT_FATAL(pages != MAP_FAILED);
	CU_ASSERT_EQUAL_FATAL(mprotect(pages + page, page, PROT_NONE), 0);
	return pages + page - bytes;
}

static void
queue_pairs_of_before_their_operations_were_asked_for(void)
{
	struct ibv_qp_init_attr_ex *attr = at_the_edge(UP_TO(struct ibv_qp_init_attr_ex, xrcd));
	struct ibv_qp *qp;

	attr->send_cq = attr->recv_cq = side.cq;
	attr->qp_type = IBV_QPT_RC;
	attr->cap.max_send_wr = attr->cap.max_recv_wr = 4;
	attr->cap.max_send_sge = attr->cap.max_recv_sge = 1;
	attr->comp_mask = IBV_QP_INIT_ATTR_PD;
	attr->pd = side.pd;
	qp = ibv_create_qp_ex(side.context, attr);
	CU_ASSERT_PTR_NOT_NULL_FATAL(qp);
	CU_ASSERT_EQUAL(ibv_destroy_qp(qp), 0);
}

static void
queue_pairs_of_before_rates_were_limited(void)
{
	struct ibv_qp_attr *attr = at_the_edge(UP_TO(struct ibv_qp_attr, rate_limit));
	struct ibv_qp_init_attr *init = at_the_edge(sizeof(*init));

	attr->qp_state = IBV_QPS_INIT;
	attr->port_num = 1;
	CU_ASSERT_EQUAL(
		ibv_modify_qp(side.qp, attr,
			IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
		0);
	CU_ASSERT_EQUAL(ibv_query_qp(side.qp, attr, IBV_QP_STATE | IBV_QP_CAP, init), 0);
	CU_ASSERT_EQUAL(attr->qp_state, IBV_QPS_INIT);
	CU_ASSERT_EQUAL(init->qp_type, IBV_QPT_RC);
}

static void
completion_queues_of_before_they_had_flags(void)
{
	struct ibv_cq_init_attr_ex *attr = at_the_edge(UP_TO(struct ibv_cq_init_attr_ex, flags));
	struct ibv_poll_cq_attr *none = at_the_edge(sizeof(*none));
	struct ibv_cq_ex *cq;

	attr->cqe = 4;
	attr->wc_flags = IBV_WC_EX_WITH_BYTE_LEN;
	cq = ibv_create_cq_ex(side.context, attr);
	CU_ASSERT_PTR_NOT_NULL_FATAL(cq);
	CU_ASSERT_EQUAL(ibv_start_poll(cq, none), ENOENT);
	CU_ASSERT_EQUAL(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

static void
receive_queues_of_before_tags(void)
{
	struct ibv_srq_init_attr_ex *attr = at_the_edge(UP_TO(struct ibv_srq_init_attr_ex, xrcd));
	struct ibv_srq *srq;

	attr->attr.max_wr = 4;
	attr->attr.max_sge = 1;
	attr->comp_mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE;
	attr->srq_type = IBV_SRQT_BASIC;
	attr->pd = side.pd;
	srq = ibv_create_srq_ex(side.context, attr);
	CU_ASSERT_PTR_NOT_NULL_FATAL(srq);
	CU_ASSERT_EQUAL(ibv_destroy_srq(srq), 0);
}

static void
domains_of_before_allocators(void)
{
	struct ibv_parent_domain_init_attr *attr =
		at_the_edge(UP_TO(struct ibv_parent_domain_init_attr, alloc));
	struct ibv_pd *pd;

	attr->pd = side.pd;
	pd = ibv_alloc_parent_domain(side.context, attr);
	CU_ASSERT_PTR_NOT_NULL_FATAL(pd);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(pd), 0);
}

/* The caller says how many bytes it has: each number that there ever was, and others. */
static void
ports_and_devices_of_all_lengths(void)
{
	const struct verbs_context *verbs = verbs_get_ctx(side.context);
	size_t first = offsetof(struct ibv_port_attr, port_cap_flags2);

	for (size_t len = first; len <= sizeof(struct ibv_port_attr);
		len += _Alignof(struct ibv_port_attr)) {
		struct ibv_port_attr *port = at_the_edge(len);

		CU_ASSERT_EQUAL(verbs->query_port(side.context, 1, port, len), 0);
		CU_ASSERT_EQUAL(port->state, IBV_PORT_ACTIVE);
	}
	CU_ASSERT_EQUAL((ibv_query_port)(side.context, 1,
				at_the_edge(offsetof(struct ibv_port_attr, port_cap_flags2))),
		0);
	first = sizeof(struct ibv_device_attr);
	for (size_t len = first; len <= sizeof(struct ibv_device_attr_ex); len += 8) {
		struct ibv_device_attr_ex *device = at_the_edge(len);

		CU_ASSERT_EQUAL(verbs->query_device_ex(side.context, NULL, device, len), 0);
		CU_ASSERT(device->orig_attr.max_qp > 0);
	}
}

/* Programs of before 2007 bind to other functions of the same names, which know other structs. */
static void
programs_of_before_2007_are_refused(void)
{
	struct ibv_device **(*list)(int *) = NULL;
	void *found = dlvsym(RTLD_DEFAULT, "ibv_get_device_list", "IBVERBS_1.0");

	CU_ASSERT_PTR_NOT_NULL_FATAL(found);
	CU_ASSERT(found != dlvsym(RTLD_DEFAULT, "ibv_get_device_list", "IBVERBS_1.1"));
	memcpy(&list, &found, sizeof(list));
	errno = 0;
	CU_ASSERT_PTR_NULL(list(NULL));
	CU_ASSERT_EQUAL(errno, EOPNOTSUPP);
}

static void
all_goes(void)
{
	side_close(&side);
	CU_ASSERT_EQUAL(rig_stop(&rig, FOREVER_MS), 0);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(queue_pairs_of_before_their_operations_were_asked_for),
		RCD_TEST(queue_pairs_of_before_rates_were_limited),
		RCD_TEST(completion_queues_of_before_they_had_flags),
		RCD_TEST(receive_queues_of_before_tags),
		RCD_TEST(domains_of_before_allocators),
		RCD_TEST(ports_and_devices_of_all_lengths),
		RCD_TEST(programs_of_before_2007_are_refused),
		RCD_TEST(all_goes),
	};

	rig_start(&rig, NULL);
	setenv("ROCADE_SOCKET", rig.socket, 1);
	side_open(&side, "roce0");
	return rcd_tap_run("older", tests, sizeof(tests) / sizeof(tests[0]));
}
