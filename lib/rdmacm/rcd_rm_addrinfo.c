/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Names to addresses, by the resolver of the system; and the names of events.
 */
#include "rcd_rm.h"

#include <netdb.h>
#include <stdlib.h>
#include <string.h>

static int
rm_addrinfo_socktype_of(enum rdma_port_space ps)
{
	return ps == RDMA_PS_UDP || ps == RDMA_PS_IPOIB ? SOCK_DGRAM : SOCK_STREAM;
}

/* @return 0 or EAI_MEMORY */
static int
rm_addrinfo_copy_addr(
	const struct sockaddr *from, socklen_t len, struct sockaddr **to, socklen_t *to_len)
{
	*to = malloc(len);
	if (*to == NULL)
		return EAI_MEMORY;
	memcpy(*to, from, len);
	*to_len = len;
	return 0;
}

static void
rm_addrinfo_defaults(struct rdma_addrinfo *rai, const struct rdma_addrinfo *hints)
{
	if (hints != NULL) {
		rai->ai_flags = hints->ai_flags;
		rai->ai_family = hints->ai_family;
		rai->ai_qp_type = hints->ai_qp_type;
		rai->ai_port_space = hints->ai_port_space;
	}
	/* Each follows from the other; without both it is a stream. */
	if (rai->ai_port_space == 0)
		rai->ai_port_space = rai->ai_qp_type == IBV_QPT_UD ? RDMA_PS_UDP : RDMA_PS_TCP;
	if (rai->ai_qp_type == 0)
		rai->ai_qp_type = rm_addrinfo_socktype_of(
					  (enum rdma_port_space)rai->ai_port_space) == SOCK_DGRAM
			? IBV_QPT_UD
			: IBV_QPT_RC;
}

/* Ask the resolver. @return 0 or EAI_* */
static int
rm_addrinfo_resolve(const char *node, const char *service, struct rdma_addrinfo *rai)
{
	struct addrinfo hints = {
		.ai_family = rai->ai_family,
		.ai_socktype = rm_addrinfo_socktype_of((enum rdma_port_space)rai->ai_port_space),
	};
	struct addrinfo *res;
	int err;

	if (rai->ai_flags & RAI_PASSIVE)
		hints.ai_flags |= AI_PASSIVE;
	if (rai->ai_flags & RAI_NUMERICHOST)
		hints.ai_flags |= AI_NUMERICHOST;
	if (!(rai->ai_flags & RAI_FAMILY) && rai->ai_family == 0)
		hints.ai_family = AF_UNSPEC;
	err = getaddrinfo(node, service, &hints, &res);
	if (err != 0)
		return err;
	rai->ai_family = res->ai_family;
	if (rai->ai_flags & RAI_PASSIVE) {
		err = rm_addrinfo_copy_addr(
			res->ai_addr, res->ai_addrlen, &rai->ai_src_addr, &rai->ai_src_len);
		if (err == 0 && res->ai_canonname != NULL)
			rai->ai_src_canonname = strdup(res->ai_canonname);
	} else {
		err = rm_addrinfo_copy_addr(
			res->ai_addr, res->ai_addrlen, &rai->ai_dst_addr, &rai->ai_dst_len);
		if (err == 0 && res->ai_canonname != NULL)
			rai->ai_dst_canonname = strdup(res->ai_canonname);
	}
	freeaddrinfo(res);
	return err;
}

int
rdma_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
	struct rdma_addrinfo **res)
{
	struct rdma_addrinfo *rai;
	int err = 0;

	if (res == NULL || (node == NULL && service == NULL && hints == NULL))
		return rcd_rm_ret(-EINVAL);
	rai = calloc(1, sizeof(*rai));
	if (rai == NULL)
		return EAI_MEMORY;
	rm_addrinfo_defaults(rai, hints);
	if (node != NULL || service != NULL)
		err = rm_addrinfo_resolve(node, service, rai);
	else if (hints->ai_dst_len > 0)
		err = rm_addrinfo_copy_addr(
			hints->ai_dst_addr, hints->ai_dst_len, &rai->ai_dst_addr, &rai->ai_dst_len);
	/* An address of its own is the application's to say. */
	if (err == 0 && rai->ai_src_len == 0 && hints != NULL && hints->ai_src_len > 0)
		err = rm_addrinfo_copy_addr(
			hints->ai_src_addr, hints->ai_src_len, &rai->ai_src_addr, &rai->ai_src_len);
	if (err != 0) {
		rdma_freeaddrinfo(rai);
		return err;
	}
	*res = rai;
	return 0;
}

void
rdma_freeaddrinfo(struct rdma_addrinfo *res)
{
	while (res != NULL) {
		struct rdma_addrinfo *next = res->ai_next;

		free(res->ai_connect);
		free(res->ai_route);
		free(res->ai_src_canonname);
		free(res->ai_dst_canonname);
		free(res->ai_src_addr);
		free(res->ai_dst_addr);
		free(res);
		res = next;
	}
}

const char *
rdma_event_str(enum rdma_cm_event_type event)
{
	static const char *const names[] = {
		[RDMA_CM_EVENT_ADDR_RESOLVED] = "RDMA_CM_EVENT_ADDR_RESOLVED",
		[RDMA_CM_EVENT_ADDR_ERROR] = "RDMA_CM_EVENT_ADDR_ERROR",
		[RDMA_CM_EVENT_ROUTE_RESOLVED] = "RDMA_CM_EVENT_ROUTE_RESOLVED",
		[RDMA_CM_EVENT_ROUTE_ERROR] = "RDMA_CM_EVENT_ROUTE_ERROR",
		[RDMA_CM_EVENT_CONNECT_REQUEST] = "RDMA_CM_EVENT_CONNECT_REQUEST",
		[RDMA_CM_EVENT_CONNECT_RESPONSE] = "RDMA_CM_EVENT_CONNECT_RESPONSE",
		[RDMA_CM_EVENT_CONNECT_ERROR] = "RDMA_CM_EVENT_CONNECT_ERROR",
		[RDMA_CM_EVENT_UNREACHABLE] = "RDMA_CM_EVENT_UNREACHABLE",
		[RDMA_CM_EVENT_REJECTED] = "RDMA_CM_EVENT_REJECTED",
		[RDMA_CM_EVENT_ESTABLISHED] = "RDMA_CM_EVENT_ESTABLISHED",
		[RDMA_CM_EVENT_DISCONNECTED] = "RDMA_CM_EVENT_DISCONNECTED",
		[RDMA_CM_EVENT_DEVICE_REMOVAL] = "RDMA_CM_EVENT_DEVICE_REMOVAL",
		[RDMA_CM_EVENT_MULTICAST_JOIN] = "RDMA_CM_EVENT_MULTICAST_JOIN",
		[RDMA_CM_EVENT_MULTICAST_ERROR] = "RDMA_CM_EVENT_MULTICAST_ERROR",
		[RDMA_CM_EVENT_ADDR_CHANGE] = "RDMA_CM_EVENT_ADDR_CHANGE",
		[RDMA_CM_EVENT_TIMEWAIT_EXIT] = "RDMA_CM_EVENT_TIMEWAIT_EXIT",
	};

	if ((size_t)event >= sizeof(names) / sizeof(names[0]))
		return "UNKNOWN EVENT";
	return names[event];
}
