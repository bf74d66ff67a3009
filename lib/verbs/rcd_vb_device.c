/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Devices: the list, opening one, and what it can.
 */
#include "rcd_number.h"
#include "rcd_vb.h"

#include <endian.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#undef ibv_query_port

/** Of IB_UVERBS_DEVICE_*, which headers name or not: FLUSH of global visibility, ATOMIC WRITE. */
#define CAP_FLUSH_GLOBAL (UINT64_C(1) << 38)
#define CAP_ATOMIC_WRITE (UINT64_C(1) << 40)

/** Of enum ib_odp_transport_cap_bits, likewise. */
#define ODP_SUPPORT_FLUSH (1u << 6)

/** Bytes of struct _compat_ibv_port_attr: up to where flags begin in struct ibv_port_attr. */
#define COMPAT_PORT_ATTR_BYTES 48

/* Exported, and in no header. */
int
ibv_dontfork_range(void *base, size_t size);
int
ibv_dofork_range(void *base, size_t size);

static pthread_mutex_t devices_lock = PTHREAD_MUTEX_INITIALIZER;
static struct rcd_vb_device *devices;

void
rcd_vb_debug(const char *format, ...)
{
	va_list args;

	if (getenv("ROCADE_DEBUG") == NULL)
		return;
	fputs("rocade: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}

/* The one object of a name, with what the engine says of it now. */
static struct rcd_vb_device *
vb_device_of(const struct rcd_ctrl_device_rep *rep)
{
	struct rcd_vb_device *device = devices;
	static int count;

	while (device != NULL && strcmp(device->device.name, rep->name) != 0)
		device = device->next;
	if (device == NULL) {
		device = calloc(1, sizeof(*device));
		if (device == NULL)
			return NULL;
		device->device.node_type = IBV_NODE_CA;
		device->device.transport_type = IBV_TRANSPORT_IB;
		memcpy(device->device.name, rep->name, sizeof(device->device.name));
		snprintf(device->device.dev_name, sizeof(device->device.dev_name), "uverbs%d",
			count);
		snprintf(device->device.dev_path, sizeof(device->device.dev_path),
			"/sys/class/infiniband_verbs/uverbs%d", count++);
		snprintf(device->device.ibdev_path, sizeof(device->device.ibdev_path),
			"/sys/class/infiniband/%s", rep->name);
		device->next = devices;
		devices = device;
	}
	device->rep = *rep;
	return device;
}

struct ibv_device **
ibv_get_device_list(int *num)
{
	struct ibv_device **list = NULL;
	struct rcd_client client;
	uint32_t count = 0;
	int err = rcd_client_connect(&client, NULL);

	if (num != NULL)
		*num = 0;
	if (err == -EPROTONOSUPPORT)
		rcd_vb_debug("the engine speaks version %u, ABI %u; this library %u, ABI %u",
			client.engine.version, client.engine.abi, RCD_CTRL_VERSION, RCD_SHM_ABI);
	else if (err != 0)
		rcd_vb_debug("no engine: %s", strerror(-err));
	list = calloc(1 + (err == 0 ? client.engine.device_count : 0), sizeof(list[0]));
	if (list == NULL) {
		errno = ENOMEM;
	} else if (err == 0) {
		pthread_mutex_lock(&devices_lock);
		for (uint32_t i = 0; i < client.engine.device_count; i++) {
			struct rcd_ctrl_index_req req = { .index = i };
			struct rcd_ctrl_device_rep rep;
			struct rcd_vb_device *device;

			if (rcd_client_call(&client, RCD_CTRL_DEVICE, &req, &rep, NULL, NULL) != 0)
				break;
			device = vb_device_of(&rep);
			if (device != NULL)
				list[count++] = &device->device;
		}
		pthread_mutex_unlock(&devices_lock);
	}
	if (err == 0)
		rcd_client_close(&client);
	if (num != NULL)
		*num = (int)count;
	return list;
}

void
ibv_free_device_list(struct ibv_device **list)
{
	free(list);
}

const char *
ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

__be64
ibv_get_device_guid(struct ibv_device *device)
{
	return htobe64(((struct rcd_vb_device *)(void *)device)->rep.node_guid);
}

int
ibv_get_device_index(struct ibv_device *device)
{
	return (int)((struct rcd_vb_device *)(void *)device)->rep.index;
}

int
ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	const struct rcd_ctrl_device_rep *rep = &rcd_vb_context(context)->rep;

	memset(attr, 0, sizeof(*attr));
	memcpy(attr->fw_ver, rcd_vb_client(context)->engine.release,
		sizeof(rcd_vb_client(context)->engine.release));
	attr->node_guid = attr->sys_image_guid = htobe64(rep->node_guid);
	attr->max_mr_size = rep->max_mr_size;
	attr->page_size_cap = 0xfffff000;
	attr->vendor_id = 0xffffff;
	attr->max_qp = (int)rep->max_qp;
	attr->max_qp_wr = (int)rep->max_qp_wr;
	attr->device_cap_flags = IBV_DEVICE_UD_AV_PORT_ENFORCE | IBV_DEVICE_PORT_ACTIVE_EVENT |
		IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_SRQ_RESIZE |
		IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B |
		IBV_DEVICE_MEM_MGT_EXTENSIONS | IBV_DEVICE_XRC;
	if (rep->max_flows > 0) {
		attr->device_cap_flags |= IBV_DEVICE_RAW_IP_CSUM | IBV_DEVICE_MANAGED_FLOW_STEERING;
		attr->max_raw_ethy_qp = (int)rep->max_qp;
	}
	attr->max_sge = attr->max_sge_rd = (int)rep->max_sge;
	attr->max_cq = (int)rep->max_cq;
	attr->max_cqe = (int)rep->max_cqe;
	attr->max_mr = (int)rep->max_mr;
	attr->max_pd = (int)rep->max_pd;
	attr->max_qp_rd_atom = attr->max_qp_init_rd_atom = (int)rep->max_rd_atomic;
	attr->max_res_rd_atom = (int)(rep->max_rd_atomic * rep->max_qp);
	attr->atomic_cap = IBV_ATOMIC_HCA;
	attr->max_mw = (int)rep->max_mw;
	attr->max_mcast_grp = (int)rep->max_mcast_groups;
	attr->max_mcast_qp_attach = (int)rep->max_mcast_qps;
	attr->max_total_mcast_qp_attach = (int)(rep->max_mcast_groups * rep->max_mcast_qps);
	attr->max_ah = (int)rep->max_ah;
	attr->max_srq = (int)rep->max_srq;
	attr->max_srq_wr = (int)rep->max_srq_wr;
	attr->max_srq_sge = (int)rep->max_sge;
	attr->max_pkeys = 1;
	attr->local_ca_ack_delay = 15;
	attr->phys_port_cnt = 1;
	/* A forked child may know as much, to allocate device memory. */
	if (rcd_client_forked(rcd_vb_client(context)))
		return 0;
	return rcd_client_check(rcd_vb_client(context)) ? EIO : 0;
}

/*
 * What works with regions that follow what is mapped. Not ATOMIC WRITE, which is no single store
 * there.
 */
static void
vb_device_set_demand(struct ibv_device_attr_ex *attr)
{
	uint32_t messages = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV;

	attr->odp_caps.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
	attr->odp_caps.per_transport_caps.rc_odp_caps = messages | IBV_ODP_SUPPORT_WRITE |
		IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC | IBV_ODP_SUPPORT_SRQ_RECV |
		ODP_SUPPORT_FLUSH;
	attr->odp_caps.per_transport_caps.uc_odp_caps = messages | IBV_ODP_SUPPORT_WRITE;
	attr->odp_caps.per_transport_caps.ud_odp_caps = messages | IBV_ODP_SUPPORT_SRQ_RECV;
	attr->xrc_odp_caps = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ |
		IBV_ODP_SUPPORT_ATOMIC | IBV_ODP_SUPPORT_SRQ_RECV;
}

/* All that there are, in kb/s. */
static void
vb_device_set_pacing(struct ibv_device_attr_ex *attr)
{
	attr->packet_pacing_caps = (struct ibv_packet_pacing_caps){
		.qp_rate_limit_min = 1,
		.qp_rate_limit_max = UINT32_MAX,
		.supported_qpts = 1 << IBV_QPT_RC | 1 << IBV_QPT_UC | 1 << IBV_QPT_UD |
			1 << IBV_QPT_XRC_SEND | 1 << IBV_QPT_XRC_RECV,
	};
	if (attr->raw_packet_caps != 0)
		attr->packet_pacing_caps.supported_qpts |= 1 << IBV_QPT_RAW_PACKET;
}

static int
vb_device_query_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
	struct ibv_device_attr_ex *attr, size_t attr_size)
{
	struct ibv_device_attr_ex full;
	int err;

	if (input != NULL && input->comp_mask != 0)
		return EINVAL;
	if (attr_size < sizeof(attr->orig_attr))
		return EINVAL;
	memset(&full, 0, sizeof(full));
	err = ibv_query_device(context, &full.orig_attr);
	/* CLOCK_MONOTONIC in nanoseconds: kHz, and all bits. */
	full.completion_timestamp_mask = UINT64_MAX;
	full.hca_core_clock = 1000000;
	full.device_cap_flags_ex =
		full.orig_attr.device_cap_flags | CAP_FLUSH_GLOBAL | CAP_ATOMIC_WRITE;
	full.phys_port_cnt_ex = 1;
	full.max_dm_size = rcd_vb_context(context)->rep.max_dm_size;
	vb_device_set_demand(&full);
	if (rcd_vb_context(context)->rep.max_flows > 0)
		full.raw_packet_caps = IBV_RAW_PACKET_CAP_IP_CSUM;
	vb_device_set_pacing(&full);
	full.cq_mod_caps.max_cq_count = RCD_CTRL_CQ_COUNT_MAX;
	full.cq_mod_caps.max_cq_period = RCD_CTRL_CQ_PERIOD_MAX;
	memset(attr, 0, attr_size);
	memcpy(attr, &full, attr_size < sizeof(full) ? attr_size : sizeof(full));
	return err;
}

/*
 * Speeds of a lane and numbers of lanes as the verbs encode them: the least that is
 * not below the port's. Programs tune themselves on it, so an unknown speed is told as 100 Gb/s,
 * which nothing here holds back.
 */
static void
vb_device_set_speed(struct ibv_port_attr *attr, uint32_t mbps)
{
	static const struct {
		uint32_t mbps;
		uint8_t width, speed;
	} speeds[] = {
		{ 2500, 1, 1 },     /* 1x SDR */
		{ 5000, 1, 2 },     /* 1x DDR */
		{ 10000, 1, 4 },    /* 1x QDR */
		{ 14000, 1, 16 },   /* 1x FDR */
		{ 25000, 1, 32 },   /* 1x EDR */
		{ 40000, 2, 4 },    /* 4x QDR */
		{ 50000, 1, 64 },   /* 1x HDR */
		{ 56000, 2, 16 },   /* 4x FDR */
		{ 100000, 2, 32 },  /* 4x EDR */
		{ 200000, 2, 64 },  /* 4x HDR */
		{ 400000, 2, 128 }, /* 4x NDR */
		{ 800000, 4, 128 }  /* 8x NDR */
	};
	size_t i = 0;

	if (mbps == 0)
		mbps = 100000;
	while (i + 1 < sizeof(speeds) / sizeof(speeds[0]) && speeds[i].mbps < mbps)
		i++;
	attr->active_width = speeds[i].width;
	attr->active_speed = speeds[i].speed;
}

static int
vb_device_query_port(
	struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr, size_t len)
{
	struct rcd_ctrl_port_rep rep;
	struct ibv_port_attr full;
	int err;

	if (port != 1)
		return EINVAL;
	err = rcd_client_call(rcd_vb_client(context), RCD_CTRL_PORT, NULL, &rep, NULL, NULL);
	if (err != 0)
		return -err;
	memset(&full, 0, sizeof(full));
	full.state = (enum ibv_port_state)rep.state;
	full.max_mtu = (enum ibv_mtu)rcd_mtu_code(rep.max_mtu_bytes);
	full.active_mtu = (enum ibv_mtu)rcd_mtu_code(rep.active_mtu_bytes);
	full.gid_tbl_len = (int)rep.gid_count;
	full.port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS;
	full.max_msg_sz = UINT32_C(1) << 31;
	full.pkey_tbl_len = 1;
	full.max_vl_num = 1;
	vb_device_set_speed(&full, rep.speed_mbps);
	full.phys_state = (uint8_t)rcd_port_phys_of(rep.state);
	full.link_layer = IBV_LINK_LAYER_ETHERNET;
	full.flags = IBV_QPF_GRH_REQUIRED;
	memset(attr, 0, len);
	memcpy(attr, &full, len < sizeof(full) ? len : sizeof(full));
	return 0;
}

/* The shape that programs built long ago know. */
int
ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	return vb_device_query_port(
		context, port, (struct ibv_port_attr *)(void *)attr, COMPAT_PORT_ATTR_BYTES);
}

int
ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey)
{
	(void)context;
	if (port != 1 || index != 0) {
		errno = EINVAL;
		return -1;
	}
	*pkey = htobe16(0xffff);
	return 0;
}

int
ibv_get_pkey_index(struct ibv_context *context, uint8_t port, __be16 pkey)
{
	(void)context;
	if (port == 1 && pkey == htobe16(0xffff))
		return 0;
	errno = EINVAL;
	return -1;
}

static int
vb_device_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values)
{
	uint32_t wanted = values->comp_mask;

	(void)context;
	values->comp_mask = 0;
	if (wanted & IBV_VALUES_MASK_RAW_CLOCK) {
		clock_gettime(CLOCK_MONOTONIC, &values->raw_clock);
		values->comp_mask |= IBV_VALUES_MASK_RAW_CLOCK;
	}
	return 0;
}

static void
vb_device_fill_ops(struct verbs_context *base)
{
	struct ibv_context_ops *ops = &base->context.ops;

	ops->_compat_query_device = ibv_query_device;
	ops->_compat_query_port = ibv_query_port;
	ops->alloc_mw = rcd_vb_alloc_mw;
	ops->bind_mw = rcd_vb_bind_mw;
	ops->dealloc_mw = rcd_vb_dealloc_mw;
	ops->poll_cq = rcd_vb_poll_cq;
	ops->req_notify_cq = rcd_vb_req_notify_cq;
	ops->post_srq_recv = rcd_vb_post_srq_recv;
	ops->post_send = rcd_vb_post_send;
	ops->post_recv = rcd_vb_post_recv;
	base->sz = sizeof(*base);
	base->query_port = vb_device_query_port;
	base->query_device_ex = vb_device_query_ex;
	base->query_rt_values = vb_device_query_rt_values;
	base->create_cq_ex = rcd_vb_create_cq_ex;
	base->create_qp_ex = rcd_vb_create_qp_ex;
	base->modify_qp_rate_limit = rcd_vb_modify_qp_rate_limit;
	base->create_srq_ex = rcd_vb_create_srq_ex;
	base->alloc_td = rcd_vb_alloc_td;
	base->dealloc_td = rcd_vb_dealloc_td;
	base->alloc_parent_domain = rcd_vb_alloc_parent_domain;
	base->modify_cq = rcd_vb_modify_cq;
	base->alloc_null_mr = rcd_vb_alloc_null_mr;
	base->alloc_dm = rcd_vb_alloc_dm;
	base->free_dm = rcd_vb_free_dm;
	base->reg_dm_mr = rcd_vb_reg_dm_mr;
	base->advise_mr = rcd_vb_advise_mr;
	base->open_xrcd = rcd_vb_open_xrcd;
	base->close_xrcd = rcd_vb_close_xrcd;
	base->get_srq_num = rcd_vb_get_srq_num;
	base->open_qp = rcd_vb_open_qp;
	base->ibv_create_flow = rcd_vb_create_flow;
	base->ibv_destroy_flow = rcd_vb_destroy_flow;
	base->create_counters = rcd_vb_create_counters;
	base->destroy_counters = rcd_vb_destroy_counters;
	base->attach_counters_point_flow = rcd_vb_attach_counters_point_flow;
	base->read_counters = rcd_vb_read_counters;
	base->context.abi_compat = (void *)UINTPTR_MAX;
}

static struct rcd_vb_context *
vb_device_new_context(void)
{
	struct rcd_vb_context *context = calloc(1, sizeof(*context));
	const char *single = getenv("ROCADE_SINGLE_THREADED");

	if (context == NULL)
		return NULL;
	pthread_mutex_init(&context->lock, NULL);
	pthread_mutex_init(&context->flow_lock, NULL);
	pthread_mutex_init(&context->base.context.mutex, NULL);
	LIST_INIT(&context->qps);
	LIST_INIT(&context->cqs);
	LIST_INIT(&context->srqs);
	LIST_INIT(&context->demand);
	context->single = single != NULL && strcmp(single, "1") == 0;
	context->cmd_fd = -1;
	context->users = 1;
	return context;
}

/* The context has its session with the engine: what applications see of it is filled in. */
static struct ibv_context *
vb_device_enter(struct rcd_vb_context *context, struct rcd_vb_device *device)
{
	vb_device_fill_ops(&context->base);
	context->rep = device->rep;
	context->base.context.device = &device->device;
	context->base.context.cmd_fd =
		context->cmd_fd >= 0 ? context->cmd_fd : context->client.seg_fd;
	context->base.context.async_fd = context->client.events_fd;
	context->base.context.num_comp_vectors = 1;
	return &context->base.context;
}

struct ibv_context *
ibv_open_device(struct ibv_device *device)
{
	struct rcd_vb_device *vb = (struct rcd_vb_device *)(void *)device;
	struct rcd_vb_context *context = vb_device_new_context();
	int err;

	if (context == NULL)
		return NULL;
	err = rcd_client_connect(&context->client, NULL);
	if (err == 0) {
		err = rcd_client_open(&context->client, vb->rep.index);
		if (err != 0)
			rcd_client_close(&context->client);
	}
	if (err != 0) {
		rcd_vb_debug("can't open %s: %s", device->name, strerror(-err));
		rcd_vb_leave(context);
		errno = -err;
		return NULL;
	}
	return vb_device_enter(context, vb);
}

/* @return the object of a device with this index, or NULL and errno */
static struct rcd_vb_device *
vb_device_at(uint32_t index)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct rcd_vb_device *found = NULL;

	for (int i = 0; list != NULL && list[i] != NULL; i++)
		if (((struct rcd_vb_device *)(void *)list[i])->rep.index == index)
			found = (struct rcd_vb_device *)(void *)list[i];
	ibv_free_device_list(list);
	if (found == NULL)
		errno = ENODEV;
	return found;
}

/*
 * The descriptor is that of the segment of a context, here or in another process. It stays the
 * caller's when this fails, and is closed with the context else.
 */
struct ibv_context *
ibv_import_device(int cmd_fd)
{
	struct rcd_vb_context *context = vb_device_new_context();
	struct rcd_vb_device *device = NULL;
	uint32_t index;
	int err;

	if (context == NULL)
		return NULL;
	err = rcd_client_connect(&context->client, NULL);
	if (err == 0) {
		err = rcd_client_import(&context->client, cmd_fd, &index);
		if (err == 0) {
			device = vb_device_at(index);
			err = device == NULL ? -errno : 0;
		}
		if (err != 0)
			rcd_client_close(&context->client);
	}
	if (err != 0) {
		rcd_vb_debug("can't import descriptor %d: %s", cmd_fd, strerror(-err));
		rcd_vb_leave(context);
		errno = -err;
		return NULL;
	}
	context->cmd_fd = cmd_fd;
	return vb_device_enter(context, device);
}

int
ibv_close_device(struct ibv_context *ibv)
{
	struct rcd_vb_context *context = rcd_vb_context(ibv);

	rcd_client_close(&context->client);
	if (context->cmd_fd >= 0)
		close(context->cmd_fd);
	rcd_vb_leave(context);
	return 0;
}

int
ibv_fork_init(void)
{
	return rcd_vb_ret(rcd_cl_mem_fork_init());
}

enum ibv_fork_status
ibv_is_fork_initialized(void)
{
	return rcd_cl_mem_fork_inited() ? IBV_FORK_ENABLED : IBV_FORK_DISABLED;
}

int
ibv_dontfork_range(void *base, size_t size)
{
	(void)base;
	(void)size;
	return 0;
}

int
ibv_dofork_range(void *base, size_t size)
{
	(void)base;
	(void)size;
	return 0;
}
