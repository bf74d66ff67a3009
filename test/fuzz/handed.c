/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Sockets of right and wrong kinds. What is sent is kept, too: both hold one socket.
 */
#include "handed.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rcd_away.h"
#include "rcd_check.h"

/** More than a message may bring. */
#define MOST 8

/** The bit of a poke's `how` for a right socket of the namespace that the others are not of. */
#define ELSEWHERE 0x04u

static int own_netns = -1, other_netns = -1;
static int kept[MOST] = { -1, -1, -1, -1, -1, -1, -1, -1 };
static uint32_t number; /* of the last request */

void
handed_begin(void)
{
	static bool begun;

	if (begun)
		return;
	begun = true;
	if (unshare(CLONE_NEWNET) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
		return;
	own_netns = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	RCD_CHECK(own_netns >= 0);
	if (unshare(CLONE_NEWNET) != 0)
		return;
	other_netns = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	RCD_CHECK(other_netns >= 0 && setns(own_netns, CLONE_NEWNET) == 0);
}

void
handed_forget(void)
{
	for (int i = 0; i < MOST; i++) {
		if (kept[i] >= 0)
			close(kept[i]);
		kept[i] = -1;
	}
}

static int
make_socket(int domain, int type, int protocol, bool other)
{
	bool goes = other && other_netns >= 0;
	int fd;

	RCD_CHECK(!goes || setns(other_netns, CLONE_NEWNET) == 0);
	fd = socket(domain, type | SOCK_CLOEXEC, protocol);
	RCD_CHECK(!goes || setns(own_netns, CLONE_NEWNET) == 0);
	return fd;
}

/* A right one for its place. @param queue  of a queue; else of the first four */
static int
make_right(unsigned int place, bool queue, bool other)
{
	if (!queue && place % 4 < 2)
		return make_socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE, other);
	return make_socket(place % 2 == 0 ? AF_INET : AF_INET6, SOCK_DGRAM, IPPROTO_UDP, other);
}

static void
give_address(int fd, uint32_t groups)
{
	struct sockaddr_nl netlink = { .nl_family = AF_NETLINK, .nl_groups = groups };
	struct sockaddr_in v4 = { .sin_family = AF_INET };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };

	/* That of its family is taken, the others are refused. */
	if (bind(fd, (struct sockaddr *)&netlink, sizeof(netlink)) != 0 &&
		bind(fd, (struct sockaddr *)&v4, sizeof(v4)) != 0)
		bind(fd, (struct sockaddr *)&v6, sizeof(v6));
}

static void
give_peer(int fd)
{
	struct sockaddr_nl netlink = { .nl_family = AF_NETLINK, .nl_pid = 1 };
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(9) };

	if (connect(fd, (struct sockaddr *)&netlink, sizeof(netlink)) != 0)
		connect(fd, (struct sockaddr *)&v4, sizeof(v4));
}

static int
make_wrong_socket(uint32_t kind, bool other)
{
	int fd = make_socket(kind < 4 ? AF_NETLINK : AF_INET, kind < 4 ? SOCK_RAW : SOCK_DGRAM,
		kind < 4 ? NETLINK_ROUTE : IPPROTO_UDP, other);

	if (fd >= 0 && kind % 4 == 0)
		give_address(fd, 0);
	if (fd >= 0 && (kind % 4 == 1 || kind % 4 == 2))
		give_address(fd, kind % 4 == 1 ? RTMGRP_LINK : RTMGRP_IPV4_IFADDR);
	if (fd >= 0 && kind % 4 == 3) {
		give_address(fd, 0);
		give_peer(fd);
	}
	return fd;
}

static int
make_unlike(const struct client *client, uint32_t kind)
{
	int ends[2];

	switch (kind) {
	case 0:
		RCD_CHECK(pipe(ends) == 0);
		close(ends[0]);
		return ends[1];
	case 1:
		return memfd_create("handed", MFD_CLOEXEC);
	case 2:
		return open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	case 3:
		return open("/", O_RDONLY | O_CLOEXEC);
	case 4:
		return open("/", O_PATH | O_CLOEXEC);
	case 5:
		return eventfd(0, EFD_CLOEXEC);
	case 6:
		return epoll_create1(EPOLL_CLOEXEC);
	case 7:
		return dup(client->sock);
	case 8:
		return dup(client->segment_fd);
	case 9:
		return dup(client->wake_fd);
	case 10:
		return dup(client->event_fd);
	default:
		return dup(own_netns);
	}
}

/* None of them is to be taken. */
static int
make_wrong(const struct client *client, uint32_t kind, bool other)
{
	static const struct {
		int domain, type, protocol;
	} sockets[] = {
		{ AF_INET, SOCK_STREAM, 0 },
		{ AF_INET6, SOCK_STREAM, 0 },
		{ AF_UNIX, SOCK_DGRAM, 0 },
		{ AF_UNIX, SOCK_SEQPACKET, 0 },
		{ AF_INET, SOCK_DGRAM, IPPROTO_ICMP },
		{ AF_INET, SOCK_DGRAM, IPPROTO_UDPLITE },
		{ AF_INET, SOCK_RAW, IPPROTO_UDP },
		{ AF_PACKET, SOCK_DGRAM, 0 },
		{ AF_NETLINK, SOCK_RAW, NETLINK_KOBJECT_UEVENT },
		{ AF_NETLINK, SOCK_RAW, NETLINK_GENERIC },
		{ AF_NETLINK, SOCK_DGRAM, NETLINK_SOCK_DIAG },
		{ AF_VSOCK, SOCK_STREAM, 0 },
	};
	uint32_t count = sizeof(sockets) / sizeof(sockets[0]);
	int fd;

	kind %= 2 * count + 8;
	if (kind < count)
		fd = make_socket(
			sockets[kind].domain, sockets[kind].type, sockets[kind].protocol, other);
	else if (kind < count + 8)
		fd = make_wrong_socket(kind - count, other);
	else
		fd = make_unlike(client, kind - count - 8);
	/* What this machine lacks. */
	return fd >= 0 ? fd : memfd_create("handed", MFD_CLOEXEC);
}

/* As many as there are: rcd_ctrl_send() takes no more than a message may bring. */
static void
send_sockets(const struct client *client, const int *fds, uint32_t count)
{
	struct rcd_ctrl_msg msg = { .hdr = { .op = RCD_CTRL_SOCKETS, .number = ++number } };
	union {
		char bytes[CMSG_SPACE(MOST * sizeof(int))];
		struct cmsghdr align;
	} control = { .bytes = { 0 } };
	struct iovec iov = { .iov_base = &msg, .iov_len = rcd_ctrl_req_len(RCD_CTRL_SOCKETS) };
	struct msghdr hdr = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (count > 0) {
		hdr.msg_control = control.bytes;
		hdr.msg_controllen = CMSG_SPACE(count * sizeof(int));
		control.align = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
			.cmsg_type = SCM_RIGHTS,
			.cmsg_len = CMSG_LEN(count * sizeof(int)) };
		memcpy(CMSG_DATA(&control.align), fds, count * sizeof(int));
	}
	sendmsg(client->sock, &hdr, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void
hand(struct client *client, const struct step *step)
{
	static const uint8_t counts[] = { 4, 4, 4, 4, 4, 4, 4, 4, 0, 1, 2, 3, 5, 6, 7, 8 };
	uint32_t count = counts[(step->how & HANDED_COUNT) >> 2];
	bool queue = step->how & HANDED_QUEUE, other = step->how & HANDED_OTHER;
	bool right = count >= RCD_AWAY_FDS;
	int fds[MOST];

	for (uint32_t i = 0; i < count; i++)
		fds[i] = make_right(i, queue, other);
	for (uint32_t i = 0; i < STEP_POKES; i++) {
		const struct poke *poke = &step->pokes[i];
		uint32_t place = poke->at % MOST;

		if (!(poke->how & POKE_USED) || place >= count)
			continue;
		close(fds[place]);
		if (poke->how & ELSEWHERE) {
			fds[place] = make_right(place, queue, !other);
			right &= place >= RCD_AWAY_FDS || other_netns < 0;
		} else {
			fds[place] = make_wrong(client, poke->val, other);
			right &= place >= RCD_AWAY_FDS;
		}
	}
	send_sockets(client, fds, count);
	for (uint32_t i = 0; i < count; i++) {
		if (kept[i] >= 0)
			close(kept[i]);
		kept[i] = fds[i];
	}
	inside_turn(1);
	if (client->deaf)
		return;
	client_receive(client);
	/* The last reply may be to an earlier request. */
	RCD_CHECK(client->last.hdr.op != RCD_CTRL_SOCKETS || client->last.hdr.number != number ||
		client->last.hdr.status != 0 || right);
}

/* They are of a namespace whose lo is down, and of an engine without net_udp. */
static void
add_link(struct client *client, const struct step *step)
{
	static const char *const texts[] = {
		"{\"op\":\"link_add\",\"name\":\"f8\",\"type\":\"udp\",\"netdev\":\"lo\","
		"\"netns\":\"other\"}",
		"{\"op\":\"link_add\",\"name\":\"f8\",\"type\":\"udp\",\"netdev\":\"none0\","
		"\"netns\":\"other\"}",
		"{\"op\":\"link_add\",\"name\":\"f8\",\"type\":\"udp\",\"netdev\":\"127.0.0.1\","
		"\"netns\":\"other\"}",
		"{\"op\":\"link_add\",\"name\":\"f8\",\"type\":\"udp\",\"netdev\":\"lo\"}",
	};
	union rcd_ctrl_body body = { .admin_req = { .json = "" } };

	snprintf(body.admin_req.json, sizeof(body.admin_req.json), "%s", texts[step->who >> 4 & 3]);
	client_call(client, RCD_CTRL_ADMIN, &body, NULL);
}

/* Of netlink: a question whose answer nobody asked for, or bytes that are none. */
static void
ask(int fd, bool sense)
{
	struct {
		struct nlmsghdr hdr;
		struct rtgenmsg gen;
	} dump = { .hdr = { .nlmsg_len = sizeof(dump),
			   .nlmsg_type = RTM_GETLINK,
			   .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP } };

	send(fd, &dump, sense ? sizeof(dump) : 5, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void
change(int fd, uint32_t what)
{
	struct sock_filter drop_all = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog program = { .len = 1, .filter = &drop_all };
	char bytes[512];
	int one = 1;

	switch (what % 10) {
	case 0:
		give_address(fd, 0);
		break;
	case 1:
		give_address(fd, RTMGRP_LINK | RTMGRP_NEIGH);
		break;
	case 2:
		give_peer(fd);
		break;
	case 3:
		shutdown(fd, SHUT_RDWR);
		break;
	case 4:
		setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
		break;
	case 5:
		ask(fd, true);
		break;
	case 6:
		ask(fd, false);
		break;
	case 7:
		/* What was for the engine. */
		RCD_CHECK(recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) <= (ssize_t)sizeof(bytes));
		break;
	case 8:
		/* What the engine set when it took it. */
		fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
		break;
	default:
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &one, sizeof(one));
		break;
	}
}

void
handed_step(struct client *client, const struct step *step)
{
	if (!(step->how & HANDED_CHANGE))
		hand(client, step);
	for (uint32_t i = 0; (step->how & HANDED_CHANGE) && i < STEP_POKES; i++)
		if ((step->pokes[i].how & POKE_USED) && kept[step->pokes[i].at % MOST] >= 0)
			change(kept[step->pokes[i].at % MOST], step->pokes[i].val);
	if (step->how & HANDED_ADD)
		add_link(client, step);
}
