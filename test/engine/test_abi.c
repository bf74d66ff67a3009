/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: what programs and providers that were built long ago find in our objects lies where they
 * look. Method: sizes and offsets of the structs as rdma-core 44 has them on x86-64, and an open
 * context looked at through them, by address.
 */
#include <errno.h>
#include <infiniband/umad.h>
#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rcd_tap.h"
#include "rig.h"

static struct rig rig;

static void
sizes_and_offsets(void)
{
	CU_ASSERT_EQUAL(sizeof(struct ibv_device), 664);
	CU_ASSERT_EQUAL(offsetof(struct ibv_device, node_type), 16);
	CU_ASSERT_EQUAL(offsetof(struct ibv_device, transport_type), 20);
	CU_ASSERT_EQUAL(offsetof(struct ibv_device, name), 24);
	CU_ASSERT_EQUAL(offsetof(struct ibv_device, dev_name), 88);
	CU_ASSERT_EQUAL(offsetof(struct ibv_device, dev_path), 152);
	CU_ASSERT_EQUAL(offsetof(struct ibv_device, ibdev_path), 408);
	CU_ASSERT_EQUAL(sizeof(struct ibv_context), 328);
	CU_ASSERT_EQUAL(offsetof(struct ibv_context, ops), 8);
	CU_ASSERT_EQUAL(offsetof(struct ibv_context, cmd_fd), 264);
	CU_ASSERT_EQUAL(offsetof(struct ibv_context, async_fd), 268);
	CU_ASSERT_EQUAL(offsetof(struct ibv_context, num_comp_vectors), 272);
	CU_ASSERT_EQUAL(offsetof(struct ibv_context, mutex), 280);
	CU_ASSERT_EQUAL(offsetof(struct ibv_context, abi_compat), 320);
	CU_ASSERT_EQUAL(sizeof(struct verbs_context), 648);
	CU_ASSERT_EQUAL(offsetof(struct verbs_context, sz), 312);
	CU_ASSERT_EQUAL(offsetof(struct verbs_context, context), 320);
	/* It grows; what was there stays where it was. */
	CU_ASSERT(sizeof(struct ibv_port_attr) >= 52);
	CU_ASSERT_EQUAL(offsetof(struct ibv_port_attr, flags), 47);
	CU_ASSERT_EQUAL(offsetof(struct ibv_port_attr, port_cap_flags2), 48);
	CU_ASSERT_EQUAL(sizeof(umad_ca_t), 208);
	CU_ASSERT_EQUAL(sizeof(umad_port_t), 112);
}

static struct ibv_device *
first_device(struct ibv_device ***list)
{
	int count = 0;

	*list = ibv_get_device_list(&count);
	CU_ASSERT_PTR_NOT_NULL_FATAL(*list);
	CU_ASSERT_EQUAL_FATAL(count, 2);
	CU_ASSERT_PTR_NULL((*list)[2]);
	return (*list)[0];
}

static void
device_as_providers_see_it(void)
{
	struct ibv_device **list;
	const uint8_t *device = (const uint8_t *)first_device(&list);
	void *ops;
	uint32_t type;

	memcpy(&type, device + 16, 4);
	CU_ASSERT_EQUAL(type, IBV_NODE_CA);
	CU_ASSERT_STRING_EQUAL(device + 24, "roce0");
	CU_ASSERT(strncmp((const char *)device + 88, "uverbs", 6) == 0);
	CU_ASSERT_STRING_EQUAL(device + 408, "/sys/class/infiniband/roce0");
	/* struct verbs_device: libmlx5 and libefa compare these operations with their own. */
	memcpy(&ops, device + 664, sizeof(ops));
	CU_ASSERT_PTR_NULL(ops);
	ibv_free_device_list(list);
}

static void
context_as_programs_see_it(void)
{
	struct ibv_device **list;
	struct ibv_context *context = ibv_open_device(first_device(&list));
	uint8_t *at = (uint8_t *)context;
	void *compat;
	size_t size;
	int fd;

	CU_ASSERT_PTR_NOT_NULL_FATAL(context);
	memcpy(&size, at - 8, sizeof(size));
	CU_ASSERT_EQUAL(size, 648);
	memcpy(&compat, at + 320, sizeof(compat));
	CU_ASSERT_EQUAL((uintptr_t)compat, UINTPTR_MAX);
	memcpy(&fd, at + 264, sizeof(fd));
	CU_ASSERT(fd >= 0);
	memcpy(&fd, at + 268, sizeof(fd));
	CU_ASSERT(fd >= 0);
	/* Inline functions call these without looking. */
	CU_ASSERT(context->ops._compat_query_device != NULL);
	CU_ASSERT(context->ops._compat_query_port != NULL);
	CU_ASSERT(context->ops.poll_cq != NULL && context->ops.req_notify_cq != NULL);
	CU_ASSERT(context->ops.post_send != NULL && context->ops.post_recv != NULL);
	CU_ASSERT(context->ops.post_srq_recv != NULL);
	CU_ASSERT(context->ops.alloc_mw != NULL && context->ops.dealloc_mw != NULL);
	CU_ASSERT(context->ops.bind_mw != NULL);
	ibv_free_device_list(list);
	CU_ASSERT_EQUAL(ibv_close_device(context), 0);
}

/* Callers say how much room they have. */
static void
no_byte_beyond_what_the_caller_has(void)
{
	struct ibv_device **list;
	struct ibv_context *context = ibv_open_device(first_device(&list));
	struct ibv_device_attr_ex device[2];
	struct ibv_port_attr port[2];
	struct ibv_gid_entry gid[2];
	uint8_t *edge;
	size_t half = sizeof(device[0].orig_attr) + 8;

	CU_ASSERT_PTR_NOT_NULL_FATAL(context);
	memset(device, 0xaa, sizeof(device));
	CU_ASSERT_EQUAL(verbs_get_ctx(context)->query_device_ex(context, NULL, device, half), 0);
	edge = (uint8_t *)device + half;
	CU_ASSERT(edge[0] == 0xaa && edge[-1] != 0xaa);
	CU_ASSERT_EQUAL(verbs_get_ctx(context)->query_device_ex(context, NULL, device, 8), EINVAL);
	memset(port, 0xaa, sizeof(port));
	/* The exported function is for the short struct that programs had before flags. */
	CU_ASSERT_EQUAL((ibv_query_port)(context, 1, (struct _compat_ibv_port_attr *)port), 0);
	CU_ASSERT(((uint8_t *)port)[47] != 0xaa && ((uint8_t *)port)[48] == 0xaa);
	memset(port, 0xaa, sizeof(port));
	CU_ASSERT_EQUAL(ibv_query_port(context, 1, port), 0);
	edge = (uint8_t *)&port[1];
	CU_ASSERT(edge[-1] != 0xaa && edge[0] == 0xaa);
	CU_ASSERT_EQUAL(ibv_query_port(context, 2, port), EINVAL);
	memset(gid, 0xaa, sizeof(gid));
	CU_ASSERT_EQUAL(ibv_query_gid_ex(context, 1, 0, gid, 0), 0);
	CU_ASSERT_EQUAL(gid[0].gid_type, IBV_GID_TYPE_ROCE_V2);
	CU_ASSERT_EQUAL(((uint8_t *)&gid[1])[0], 0xaa);
	CU_ASSERT_EQUAL(ibv_query_gid_ex(context, 1, 40, gid, 0), ENODATA);
	CU_ASSERT_EQUAL(ibv_query_gid_table(context, gid, 1, 0), -EINVAL);
	ibv_free_device_list(list);
	CU_ASSERT_EQUAL(ibv_close_device(context), 0);
}

static void
engine_stops(void)
{
	CU_ASSERT_EQUAL(rig_stop(&rig, FOREVER_MS), 0);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(sizes_and_offsets),
		RCD_TEST(device_as_providers_see_it),
		RCD_TEST(context_as_programs_see_it),
		RCD_TEST(no_byte_beyond_what_the_caller_has),
		RCD_TEST(engine_stops),
	};

	rig_start(&rig, NULL);
	setenv("ROCADE_SOCKET", rig.socket, 1);
	return rcd_tap_run("abi", tests, sizeof(tests) / sizeof(tests[0]));
}
