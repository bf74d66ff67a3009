/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Options of sockets. Those that mean something to TCP alone are kept, so that programs find what
 * they have set.
 */
#include "rcd_ds.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>

/* Of struct rcd_rs's options. */
#define KEPT_REUSEADDR (1u << 0)
#define KEPT_OOBINLINE (1u << 1)
#define KEPT_NODELAY   (1u << 2)
#define KEPT_V6ONLY    (1u << 3)

/* @return 0; -EINVAL: it is too short */
static int
rs_option_number(const void *val, socklen_t len, int *number)
{
	if (val == NULL || len < sizeof(*number))
		return -EINVAL;
	memcpy(number, val, sizeof(*number));
	return 0;
}

static void
rs_option_keep(struct rcd_rs *rs, uint32_t option, bool on)
{
	rs->options = on ? rs->options | option : rs->options & ~option;
}

static int
rs_option_set_id(struct rcd_rs *rs, int option, void *val, size_t len)
{
	return rdma_set_option(rs->id, RDMA_OPTION_ID, option, val, len) != 0 ? -errno : 0;
}

static int
rs_option_set_socket(struct rcd_rs *rs, int option, int val)
{
	switch (option) {
	case SO_REUSEADDR:
		rs_option_keep(rs, KEPT_REUSEADDR, val);
		return rs->state == RCD_RS_NEW
			? rs_option_set_id(rs, RDMA_OPTION_ID_REUSEADDR, &val, sizeof(val))
			: 0;
	case SO_RCVBUF:
		if (rs->ring == NULL)
			rs->sizes.recv_bytes = rcd_rs_buffer_bytes(val);
		return 0;
	case SO_SNDBUF:
		if (rs->send_buf == NULL)
			rs->sizes.send_bytes = rcd_rs_buffer_bytes(val);
		return 0;
	case SO_OOBINLINE:
		rs_option_keep(rs, KEPT_OOBINLINE, val);
		return 0;
	default:
		return -ENOPROTOOPT;
	}
}

static int
rs_option_set_tcp(struct rcd_rs *rs, int option, int val)
{
	switch (option) {
	case TCP_NODELAY:
		rs_option_keep(rs, KEPT_NODELAY, val);
		return 0;
	case TCP_MAXSEG:
		return 0; /* a wish: the path has its MTU */
	default:
		return -ENOPROTOOPT;
	}
}

static int
rs_option_set_ip(struct rcd_rs *rs, int level, int option, int val)
{
	uint8_t tos = (uint8_t)val;
	int err;

	if (level == IPPROTO_IP && option == IP_TOS) {
		err = rs_option_set_id(rs, RDMA_OPTION_ID_TOS, &tos, sizeof(tos));
		if (err == 0)
			rs->tos = tos;
		return err;
	}
	if (level == IPPROTO_IPV6 && option == IPV6_V6ONLY) {
		err = rs_option_set_id(rs, RDMA_OPTION_ID_AFONLY, &val, sizeof(val));
		if (err == 0)
			rs_option_keep(rs, KEPT_V6ONLY, val);
		return err;
	}
	return -ENOPROTOOPT;
}

static int
rs_option_set_rdma(struct rcd_rs *rs, int option, int val)
{
	uint16_t size = (uint16_t)rcd_rs_least(val > 0 ? (uint32_t)val : 0, RCD_RS_QUEUE_MAX);

	if (rs->state >= RCD_RS_RESOLVING)
		return -EINVAL;
	switch (option) {
	case RDMA_SQSIZE:
		rs->sizes.send_queue = size;
		return 0;
	case RDMA_RQSIZE:
		rs->sizes.recv_queue = size;
		return 0;
	case RDMA_INLINE:
		rs->sizes.inline_bytes = size;
		return 0;
	case RDMA_IOMAPSIZE:
		rs->sizes.iomaps = rcd_rs_iomaps_count(rcd_rs_iomaps_code(size));
		return 0;
	default:
		return -ENOPROTOOPT;
	}
}

static int
rs_option_set(struct rcd_rs *rs, int level, int option, const void *val, socklen_t len)
{
	int number = 0;
	int err;

	/* Paths: there is one to each address, which is found without being told. */
	if (level == SOL_RDMA && option == RDMA_ROUTE)
		return val != NULL && len > 0 && len % sizeof(struct ibv_path_data) == 0 &&
				rs->state < RCD_RS_RESOLVING
			? 0
			: -EINVAL;
	/* Closing waits for what was sent in any case. */
	if (level == SOL_SOCKET && option == SO_LINGER)
		return val != NULL && len >= sizeof(struct linger) ? 0 : -EINVAL;
	err = rs_option_number(val, len, &number);
	if (err != 0)
		return err;
	err = rcd_rs_keep_set(rs, level, option, number);
	if (err != -ENOPROTOOPT)
		return err;
	switch (level) {
	case SOL_SOCKET:
		return rs_option_set_socket(rs, option, number);
	case IPPROTO_TCP:
		return rs_option_set_tcp(rs, option, number);
	case IPPROTO_IP:
	case IPPROTO_IPV6:
		return rs_option_set_ip(rs, level, option, number);
	case SOL_RDMA:
		return rs_option_set_rdma(rs, option, number);
	default:
		return -ENOPROTOOPT;
	}
}

int
rsetsockopt(int number, int level, int option, const void *val, socklen_t len)
{
	struct rcd_rs *rs = rcd_rs_get(number);
	int err;

	if (rs == NULL)
		return -1;
	pthread_mutex_lock(&rs->lock);
	err = rs->ds != NULL && level != SOL_RDMA ? rcd_ds_set_option(rs, level, option, val, len)
						  : rs_option_set(rs, level, option, val, len);
	pthread_mutex_unlock(&rs->lock);
	rcd_rs_put(rs);
	return (int)rcd_rs_ret(err);
}

static int
rs_option_give(const void *from, size_t size, void *val, socklen_t *len)
{
	if (val == NULL || len == NULL)
		return -EFAULT;
	if (*len > size)
		*len = (socklen_t)size;
	memcpy(val, from, *len);
	return 0;
}

/* The path that there is, as RDMA_ROUTE has it. */
static int
rs_option_get_route(const struct rcd_rs *rs, void *val, socklen_t *len)
{
	const struct ibv_sa_path_rec *path = rs->id->route.path_rec;
	struct ibv_path_data data = { .flags = 0 };

	if (val == NULL || len == NULL || *len < sizeof(data))
		return -EINVAL;
	if (rs->id->route.num_paths == 0 || path == NULL) {
		*len = 0;
		return 0;
	}
	data.path.dgid = path->dgid;
	data.path.sgid = path->sgid;
	data.path.flowlabel_hoplimit = htobe32(be32toh(path->flow_label) << 8 | path->hop_limit);
	data.path.tclass = path->traffic_class;
	data.path.reversible_numpath = (uint8_t)(path->reversible << 7 | 1);
	data.path.pkey = path->pkey;
	data.path.mtu = path->mtu | 2 << 6;
	data.path.rate = path->rate | 2 << 6;
	data.path.packetlifetime = path->packet_life_time | 2 << 6;
	return rs_option_give(&data, sizeof(data), val, len);
}

/* What is a number. @return 0; -ENOPROTOOPT */
static int
rs_option_get_number(struct rcd_rs *rs, int level, int option, int *val)
{
	const struct rcd_rs_sizes *sizes = &rs->sizes;
	const struct {
		int level, option, val;
	} all[] = {
		{ SOL_SOCKET, SO_TYPE, SOCK_STREAM },
		{ SOL_SOCKET, SO_DOMAIN, rs->domain },
		{ SOL_SOCKET, SO_PROTOCOL, IPPROTO_TCP },
		{ SOL_SOCKET, SO_ACCEPTCONN, rs->state == RCD_RS_LISTENING },
		{ SOL_SOCKET, SO_ERROR, rs->error },
		{ SOL_SOCKET, SO_REUSEADDR, !!(rs->options & KEPT_REUSEADDR) },
		{ SOL_SOCKET, SO_KEEPALIVE, rs->keep.on },
		{ IPPROTO_TCP, TCP_KEEPIDLE, (int)rcd_rs_keep_idle_s(&rs->keep) },
		{ IPPROTO_TCP, TCP_KEEPINTVL, (int)rs->keep.interval_s },
		{ IPPROTO_TCP, TCP_KEEPCNT, (int)rs->keep.count },
		{ SOL_SOCKET, SO_OOBINLINE, !!(rs->options & KEPT_OOBINLINE) },
		{ SOL_SOCKET, SO_RCVBUF, (int)sizes->recv_bytes },
		{ SOL_SOCKET, SO_SNDBUF, (int)sizes->send_bytes },
		{ IPPROTO_TCP, TCP_NODELAY, !!(rs->options & KEPT_NODELAY) },
		{ IPPROTO_TCP, TCP_MAXSEG,
			rs->id->route.num_paths > 0 ? 128 << rs->id->route.path_rec->mtu : 2048 },
		{ IPPROTO_IP, IP_TOS, rs->tos },
		{ IPPROTO_IPV6, IPV6_V6ONLY, !!(rs->options & KEPT_V6ONLY) },
		{ SOL_RDMA, RDMA_SQSIZE, sizes->send_queue },
		{ SOL_RDMA, RDMA_RQSIZE, sizes->recv_queue },
		{ SOL_RDMA, RDMA_INLINE, sizes->inline_bytes },
		{ SOL_RDMA, RDMA_IOMAPSIZE, sizes->iomaps },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i].level == level && all[i].option == option) {
			*val = all[i].val;
			return 0;
		}
	return -ENOPROTOOPT;
}

/* What there is to say of it: programs look at the state, and count what was sent again. */
static int
rs_option_get_info(const struct rcd_rs *rs, void *val, socklen_t *len)
{
	struct tcp_info info = {
		.tcpi_state = rs->state == RCD_RS_CONNECTED ? TCP_ESTABLISHED : TCP_CLOSE,
		.tcpi_snd_cwnd = rs->sizes.send_queue,
	};

	return rs_option_give(&info, sizeof(info), val, len);
}

static int
rs_option_get(struct rcd_rs *rs, int level, int option, void *val, socklen_t *len)
{
	const struct linger linger = { .l_onoff = 1 };
	int number;
	int err;

	if (level == SOL_RDMA && option == RDMA_ROUTE)
		return rs_option_get_route(rs, val, len);
	if (level == IPPROTO_TCP && option == TCP_INFO)
		return rs_option_get_info(rs, val, len);
	if (level == SOL_SOCKET && option == SO_LINGER)
		return rs_option_give(&linger, sizeof(linger), val, len);
	if (level == SOL_SOCKET && option == SO_ERROR)
		rcd_rs_progress(rs, NULL);
	err = rs_option_get_number(rs, level, option, &number);
	if (err == 0)
		err = rs_option_give(&number, sizeof(number), val, len);
	if (err == 0 && level == SOL_SOCKET && option == SO_ERROR)
		rs->error = 0; /* it is told once */
	return err;
}

int
rgetsockopt(int number, int level, int option, void *val, socklen_t *len)
{
	struct rcd_rs *rs = rcd_rs_get(number);
	int err;

	if (rs == NULL)
		return -1;
	pthread_mutex_lock(&rs->lock);
	err = rs->ds != NULL && level != SOL_RDMA ? rcd_ds_get_option(rs, level, option, val, len)
						  : rs_option_get(rs, level, option, val, len);
	pthread_mutex_unlock(&rs->lock);
	rcd_rs_put(rs);
	return (int)rcd_rs_ret(err);
}
