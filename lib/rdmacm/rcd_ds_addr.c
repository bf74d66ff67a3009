/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Addresses of datagrams, and the headers that have them.
 */
#include "rcd_ds.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define UDP_TAG      0x55555555u
#define UDP_HEADER4  16
#define ANY_PORT     9 /**< of a socket that sends nothing */
#define QPN_MASK     0xffffffu
#define CARRIER_MASK 0xffffffu
#define FNV_BASIS    2166136261u
#define FNV_PRIME    16777619u

static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

bool
rcd_ds_addr_is_ipv4(const struct rcd_ds_addr *addr)
{
	return memcmp(addr->ip, mapped, sizeof(mapped)) == 0;
}

static bool
ds_addr_is_link_local(const struct rcd_ds_addr *addr)
{
	return addr->ip[0] == 0xfe && (addr->ip[1] & 0xc0) == 0x80;
}

int
rcd_ds_addr_take(int domain, const struct sockaddr *from, socklen_t len, struct rcd_ds_addr *addr)
{
	const struct sockaddr_in *sin = (const void *)from;
	const struct sockaddr_in6 *sin6 = (const void *)from;

	memset(addr, 0, sizeof(*addr));
	if (from == NULL || len < sizeof(from->sa_family))
		return -EINVAL;
	if (from->sa_family != domain)
		return -EAFNOSUPPORT;
	if (len < (domain == AF_INET ? sizeof(*sin) : sizeof(*sin6)))
		return -EINVAL;
	if (domain == AF_INET) {
		memcpy(addr->ip, mapped, sizeof(mapped));
		memcpy(addr->ip + sizeof(mapped), &sin->sin_addr, 4);
		addr->port = sin->sin_port;
		return 0;
	}
	memcpy(addr->ip, &sin6->sin6_addr, 16);
	addr->port = sin6->sin6_port;
	addr->scope = ds_addr_is_link_local(addr) ? sin6->sin6_scope_id : 0;
	return 0;
}

socklen_t
rcd_ds_addr_give(int domain, const struct rcd_ds_addr *addr, struct sockaddr_storage *to)
{
	struct sockaddr_in *sin = (void *)to;
	struct sockaddr_in6 *sin6 = (void *)to;

	memset(to, 0, sizeof(*to));
	to->ss_family = (sa_family_t)domain;
	if (domain == AF_INET) {
		memcpy(&sin->sin_addr, addr->ip + sizeof(mapped), 4);
		sin->sin_port = addr->port;
		return rcd_ds_addr_is_ipv4(addr) ? sizeof(*sin) : 0;
	}
	memcpy(&sin6->sin6_addr, addr->ip, 16);
	sin6->sin6_port = addr->port;
	sin6->sin6_scope_id = addr->scope;
	return sizeof(*sin6);
}

bool
rcd_ds_addr_equal(const struct rcd_ds_addr *a, const struct rcd_ds_addr *b)
{
	return a->port == b->port && a->scope == b->scope && memcmp(a->ip, b->ip, 16) == 0;
}

bool
rcd_ds_addr_is_any(const struct rcd_ds_addr *addr)
{
	static const uint8_t none[16];

	return memcmp(addr->ip, none, 16) == 0 ||
		(rcd_ds_addr_is_ipv4(addr) && memcmp(addr->ip + 12, none, 4) == 0);
}

bool
rcd_ds_addr_is_loopback(const struct rcd_ds_addr *addr)
{
	static const uint8_t one[16] = { [15] = 1 };

	return memcmp(addr->ip, one, 16) == 0 || (rcd_ds_addr_is_ipv4(addr) && addr->ip[12] == 127);
}

bool
rcd_ds_addr_is_carried(const struct rcd_ds_addr *addr)
{
	int domain = rcd_ds_addr_is_ipv4(addr) ? AF_INET : AF_INET6;
	struct rcd_ds_addr to = *addr;
	struct sockaddr_storage own;
	socklen_t len;
	bool carried;
	int file = socket(domain, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (file < 0)
		return errno == EAFNOSUPPORT;
	/* To an address of its own the kernel sends from that address. Binding would not tell:
	 * there may be leave to bind to any (ip_nonlocal_bind). */
	to.port = htobe16(ANY_PORT);
	len = rcd_ds_addr_give(domain, &to, &own);
	carried = connect(file, (struct sockaddr *)&own, len) != 0;
	len = sizeof(own);
	if (!carried)
		carried = getsockname(file, (struct sockaddr *)&own, &len) != 0 ||
			rcd_ds_addr_take(domain, (struct sockaddr *)&own, len, &to) != 0 ||
			memcmp(to.ip, addr->ip, 16) != 0;
	close(file);
	return carried;
}

struct rcd_ds_addr
rcd_ds_addr_carrier(const struct rcd_ds_addr *addr)
{
	struct rcd_ds_addr to = { .port = addr->port };
	uint32_t low = FNV_BASIS;

	if (rcd_ds_addr_is_ipv4(addr)) {
		low = (uint32_t)addr->ip[13] << 16 | (uint32_t)addr->ip[14] << 8 | addr->ip[15];
	} else {
		for (int i = 0; i < 16; i++)
			low = (low ^ addr->ip[i]) * FNV_PRIME;
		low = (low >> 24 ^ low) & CARRIER_MASK;
	}
	memcpy(to.ip, mapped, sizeof(mapped));
	to.ip[12] = 127;
	to.ip[13] = (uint8_t)(low >> 16);
	to.ip[14] = (uint8_t)(low >> 8);
	to.ip[15] = (uint8_t)low;
	return to;
}

uint32_t
rcd_ds_header_build(uint8_t *to, const struct rcd_ds_addr *from)
{
	bool ipv4 = rcd_ds_addr_is_ipv4(from);

	memset(to, 0, RCD_DS_HEADER_MAX);
	to[0] = ipv4 ? 4 : 6;
	to[1] = ipv4 ? RCD_DS_HEADER4 : RCD_DS_HEADER_MAX;
	memcpy(to + 2, &from->port, 2);
	/* Of IPv6 there is a flow label before it. */
	if (ipv4)
		memcpy(to + 4, from->ip + 12, 4);
	else
		memcpy(to + 8, from->ip, 16);
	return to[1];
}

uint32_t
rcd_ds_header_parse(const uint8_t *bytes, size_t len, struct rcd_ds_addr *from)
{
	memset(from, 0, sizeof(*from));
	if (len < RCD_DS_HEADER4 || len < bytes[1])
		return 0;
	memcpy(&from->port, bytes + 2, 2);
	if (bytes[0] == 4 && bytes[1] == RCD_DS_HEADER4) {
		memcpy(from->ip, mapped, sizeof(mapped));
		memcpy(from->ip + 12, bytes + 4, 4);
		return RCD_DS_HEADER4;
	}
	if (bytes[0] == 6 && bytes[1] == RCD_DS_HEADER_MAX) {
		memcpy(from->ip, bytes + 8, 16);
		return RCD_DS_HEADER_MAX;
	}
	return 0;
}

uint32_t
rcd_ds_udp_build(uint8_t *to, enum rcd_ds_op op, uint32_t qpn, const struct rcd_ds_addr *from)
{
	uint32_t tag = htobe32(UDP_TAG);
	uint32_t number = htobe32(qpn & QPN_MASK);
	bool ipv4 = rcd_ds_addr_is_ipv4(from);

	memset(to, 0, RCD_DS_UDP_MAX);
	memcpy(to, &tag, 4);
	to[4] = ipv4 ? 4 : 6;
	to[5] = (uint8_t)op;
	to[6] = ipv4 ? UDP_HEADER4 : RCD_DS_UDP_MAX;
	memcpy(to + 8, &number, 4);
	memcpy(to + 12, from->ip + (ipv4 ? 12 : 0), ipv4 ? 4 : 16);
	return to[6];
}

uint32_t
rcd_ds_udp_parse(const uint8_t *bytes, size_t len, enum rcd_ds_op *op, uint32_t *qpn,
	struct rcd_ds_addr *from)
{
	uint32_t tag, number;

	memset(from, 0, sizeof(*from));
	if (len < UDP_HEADER4 || len < bytes[6])
		return 0;
	memcpy(&tag, bytes, 4);
	memcpy(&number, bytes + 8, 4);
	*qpn = be32toh(number) & QPN_MASK;
	/* 0 and 1 are the management's, and the last one is that of groups. */
	if (tag != htobe32(UDP_TAG) || *qpn < 2 || *qpn == QPN_MASK ||
		(bytes[5] != RCD_DS_DATA && bytes[5] != RCD_DS_CONTROL))
		return 0;
	*op = bytes[5] == RCD_DS_DATA ? RCD_DS_DATA : RCD_DS_CONTROL;
	if (bytes[4] == 4 && bytes[6] == UDP_HEADER4) {
		memcpy(from->ip, mapped, sizeof(mapped));
		memcpy(from->ip + 12, bytes + 12, 4);
		return UDP_HEADER4;
	}
	if (bytes[4] == 6 && bytes[6] == RCD_DS_UDP_MAX) {
		memcpy(from->ip, bytes + 12, 16);
		return RCD_DS_UDP_MAX;
	}
	return 0;
}
