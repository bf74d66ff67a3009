/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * One socket for questions, and what comes back by it.
 */
#include "rcd_rtnl.h"

#include <errno.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "rcd_nl_recv.h"
#include "rcd_thread.h"

#define BUFFER_BYTES 32768

struct rcd_rtnl {
	const struct rcd_rtnl_ops *ops;
	void *arg;
	uint32_t port;
	uint32_t sequence;
	bool asking;
	_Alignas(struct nlmsghdr) char buffer[BUFFER_BYTES];
};

/** What the answers to a question for a way are read into. */
struct answer {
	struct rcd_rtnl_way *way;
	bool found;
};

/** Likewise, for a netdev. */
struct owner {
	const struct rcd_gid *gid;
	uint32_t ifindex; /**< 0: not yet */
};

static ssize_t
rtnl_send(void *arg, const void *message, size_t len)
{
	return rcd_nl_send(mnl_socket_get_fd(arg), message, len);
}

static ssize_t
rtnl_receive(void *arg, void *buffer, size_t room)
{
	return rcd_nl_recv(mnl_socket_get_fd(arg), buffer, room);
}

static void
rtnl_close(void *arg)
{
	mnl_socket_close(arg);
}

struct rcd_rtnl *
rcd_rtnl_create(const struct rcd_rtnl_ops *ops, void *arg, uint32_t port)
{
	struct rcd_rtnl *rtnl = calloc(1, sizeof(*rtnl));

	RCD_ON_CONTROL();
	if (rtnl == NULL)
		return NULL;
	rtnl->ops = ops;
	rtnl->arg = arg;
	rtnl->port = port;
	return rtnl;
}

struct mnl_socket *
rcd_rtnl_socket(int *fd, unsigned int groups)
{
	struct mnl_socket *sock = fd != NULL
		? mnl_socket_fdopen(*fd)
		: mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC | SOCK_NONBLOCK);
	int on = 1;

	RCD_ON_CONTROL();
	if (sock == NULL)
		return NULL;
	if (fd != NULL)
		*fd = -1;
	/* Lists of one netdev alone; older kernels pass over what they do not know. */
	mnl_socket_setsockopt(sock, NETLINK_GET_STRICT_CHK, &on, sizeof(on));
	if (mnl_socket_bind(sock, groups, MNL_SOCKET_AUTOPID) == 0)
		return sock;
	mnl_socket_close(sock);
	return NULL;
}

struct rcd_rtnl *
rcd_rtnl_open(int *fd)
{
	static const struct rcd_rtnl_ops ops = {
		.send = rtnl_send,
		.receive = rtnl_receive,
		.close = rtnl_close,
	};
	struct mnl_socket *sock;
	struct rcd_rtnl *rtnl;

	RCD_ON_CONTROL();
	sock = rcd_rtnl_socket(fd, 0);
	if (sock == NULL)
		return NULL;
	rtnl = rcd_rtnl_create(&ops, sock, mnl_socket_get_portid(sock));
	if (rtnl == NULL)
		mnl_socket_close(sock);
	return rtnl;
}

void
rcd_rtnl_close(struct rcd_rtnl *rtnl)
{
	RCD_ON_CONTROL();
	if (rtnl == NULL)
		return;
	rtnl->ops->close(rtnl->arg);
	free(rtnl);
}

struct nlmsghdr *
rcd_rtnl_begin(struct rcd_rtnl_message *message, uint16_t type, uint16_t flags)
{
	struct nlmsghdr *nlh;

	RCD_ON_CONTROL();
	memset(message, 0, sizeof(*message));
	nlh = mnl_nlmsg_put_header(message->bytes);
	nlh->nlmsg_type = type;
	nlh->nlmsg_flags = NLM_F_REQUEST | flags;
	return nlh;
}

/* What is left of a question that ended before its answers did is not taken for the next one's. */
static int
rtnl_drain(struct rcd_rtnl *rtnl)
{
	for (int i = 0; i < RCD_RTNL_READS_MAX; i++)
		if (rtnl->ops->receive(rtnl->arg, rtnl->buffer, sizeof(rtnl->buffer)) < 0 &&
			errno != ENOBUFS)
			return 0;
	/* Somebody fills it as fast as it is read: another time. */
	return -EBUSY;
}

/* Whether a datagram answers the question that was asked last. */
static bool
rtnl_is_answer(const struct rcd_rtnl *rtnl, size_t got)
{
	const struct nlmsghdr *nlh = (const struct nlmsghdr *)rtnl->buffer;

	return got >= sizeof(*nlh) && nlh->nlmsg_seq == rtnl->sequence &&
		nlh->nlmsg_pid == rtnl->port;
}

static int
rtnl_ask(struct rcd_rtnl *rtnl, struct nlmsghdr *nlh, mnl_cb_t each, void *arg)
{
	int run = MNL_CB_OK;
	int err = rtnl_drain(rtnl);

	if (err != 0)
		return err;
	nlh->nlmsg_seq = ++rtnl->sequence;
	if (rtnl->ops->send(rtnl->arg, nlh, nlh->nlmsg_len) < 0)
		return -errno;
	for (int i = 0; run > MNL_CB_STOP; i++) {
		ssize_t got;

		if (i == RCD_RTNL_READS_MAX)
			return -EMSGSIZE;
		/* The kernel answers while we send: nothing to wait for. */
		got = rtnl->ops->receive(rtnl->arg, rtnl->buffer, sizeof(rtnl->buffer));
		if (got < 0)
			return -errno;
		if (rtnl_is_answer(rtnl, (size_t)got))
			run = mnl_cb_run(
				rtnl->buffer, (size_t)got, rtnl->sequence, rtnl->port, each, arg);
	}
	return run < 0 ? -errno : 0;
}

int
rcd_rtnl_ask(struct rcd_rtnl *rtnl, struct nlmsghdr *nlh, mnl_cb_t each, void *arg)
{
	int err;

	RCD_ON_CONTROL();
	if (rtnl == NULL)
		return -ENOTCONN;
	/* The answer that is being read lies where another one would. */
	if (rtnl->asking)
		return -EBUSY;
	rtnl->asking = true;
	err = rtnl_ask(rtnl, nlh, each, arg);
	rtnl->asking = false;
	return err;
}

bool
rcd_rtnl_take_addr(const struct nlattr *attr, uint8_t family, struct rcd_gid *gid)
{
	const uint8_t *bytes = mnl_attr_get_payload(attr);
	uint16_t len = mnl_attr_get_payload_len(attr);

	RCD_ON_CONTROL();
	if (family == AF_INET && len == 4)
		*gid = rcd_gid_from_ipv4(bytes);
	else if (family == AF_INET6 && len == 16)
		*gid = rcd_gid_from_ipv6(bytes);
	else
		return false;
	return true;
}

bool
rcd_rtnl_read_addr(const struct nlmsghdr *nlh, struct rcd_gid *gid)
{
	const struct ifaddrmsg *info = mnl_nlmsg_get_payload(nlh);
	struct nlattr *attr;
	bool found = false;
	bool local = false;

	RCD_ON_CONTROL();
	if (!rcd_nl_has(nlh, sizeof(*info)))
		return false;
	mnl_attr_for_each(attr, nlh, sizeof(*info)) {
		/* On a point-to-point link IFA_ADDRESS is the peer, and IFA_LOCAL ours. */
		if (mnl_attr_get_type(attr) == IFA_LOCAL)
			local = found = rcd_rtnl_take_addr(attr, info->ifa_family, gid);
		else if (mnl_attr_get_type(attr) == IFA_ADDRESS && !local)
			found = rcd_rtnl_take_addr(attr, info->ifa_family, gid);
	}
	return found;
}

static int
rtnl_on_route(const struct nlmsghdr *nlh, void *arg)
{
	const struct rtmsg *info = mnl_nlmsg_get_payload(nlh);
	struct answer *answer = arg;
	struct nlattr *attr;

	if (nlh->nlmsg_type != RTM_NEWROUTE || !rcd_nl_has(nlh, sizeof(*info)))
		return MNL_CB_OK;
	answer->found = info->rtm_type == RTN_UNICAST || info->rtm_type == RTN_MULTICAST;
	mnl_attr_for_each(attr, nlh, sizeof(*info)) {
		switch (mnl_attr_get_type(attr)) {
		case RTA_GATEWAY:
			rcd_rtnl_take_addr(attr, info->rtm_family, &answer->way->next);
			break;
		case RTA_PREFSRC:
			rcd_rtnl_take_addr(attr, info->rtm_family, &answer->way->source);
			break;
		case RTA_OIF:
			if (mnl_attr_get_payload_len(attr) == sizeof(uint32_t))
				answer->way->ifindex = mnl_attr_get_u32(attr);
			break;
		default:
			break;
		}
	}
	return MNL_CB_OK;
}

int
rcd_rtnl_way(struct rcd_rtnl *rtnl, const struct rcd_gid *dgid, uint32_t ifindex,
	struct rcd_rtnl_way *way)
{
	struct rcd_rtnl_message message;
	struct answer answer = { .way = way };
	bool v4 = rcd_gid_is_ipv4(dgid);
	struct nlmsghdr *nlh;
	struct rtmsg *info;

	RCD_ON_CONTROL();
	nlh = rcd_rtnl_begin(&message, RTM_GETROUTE, NLM_F_ACK);
	info = mnl_nlmsg_put_extra_header(nlh, sizeof(*info));
	info->rtm_family = v4 ? AF_INET : AF_INET6;
	info->rtm_dst_len = v4 ? 32 : 128;
	mnl_attr_put(nlh, RTA_DST, v4 ? 4 : 16, v4 ? dgid->raw + 12 : dgid->raw);
	if (ifindex != 0)
		mnl_attr_put_u32(nlh, RTA_OIF, ifindex);
	way->next = *dgid;
	way->ifindex = 0;
	if (rcd_rtnl_ask(rtnl, nlh, rtnl_on_route, &answer) != 0 || !answer.found)
		return -ENETUNREACH;
	return 0;
}

static int
rtnl_on_addr(const struct nlmsghdr *nlh, void *arg)
{
	const struct ifaddrmsg *info = mnl_nlmsg_get_payload(nlh);
	struct owner *owner = arg;
	struct rcd_gid gid;

	if (nlh->nlmsg_type == RTM_NEWADDR && owner->ifindex == 0 &&
		rcd_rtnl_read_addr(nlh, &gid) && rcd_gid_eq(&gid, owner->gid))
		owner->ifindex = info->ifa_index;
	return MNL_CB_OK;
}

int
rcd_rtnl_owner(struct rcd_rtnl *rtnl, const struct rcd_gid *gid, uint32_t *ifindex)
{
	struct rcd_rtnl_message message;
	struct owner owner = { .gid = gid };
	struct ifaddrmsg *info;
	struct nlmsghdr *nlh;
	int err;

	RCD_ON_CONTROL();
	nlh = rcd_rtnl_begin(&message, RTM_GETADDR, NLM_F_DUMP);
	info = mnl_nlmsg_put_extra_header(nlh, sizeof(*info));
	info->ifa_family = rcd_gid_is_ipv4(gid) ? AF_INET : AF_INET6;
	err = rcd_rtnl_ask(rtnl, nlh, rtnl_on_addr, &owner);
	if (owner.ifindex == 0)
		return err != 0 ? err : -EADDRNOTAVAIL;
	*ifindex = owner.ifindex;
	return 0;
}
