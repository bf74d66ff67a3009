/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Messages as rtnetlink(7) and netlink(7) have them: a route, and an acknowledgement behind it.
 */
#include "kernel.h"

#include <errno.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

#include "gid_text.h"

#define PORT 4711

static struct nlmsghdr *
kernel_write(struct kernel *kernel, const struct nlmsghdr *question, uint16_t type)
{
	struct kernel_mail *mail = &kernel->mail[kernel->mail_count];
	struct nlmsghdr *nlh;

	CU_ASSERT_FATAL(kernel->mail_count < sizeof(kernel->mail) / sizeof(kernel->mail[0]));
	memset(mail, 0, sizeof(*mail));
	nlh = mnl_nlmsg_put_header(mail->bytes);
	nlh->nlmsg_type = type;
	nlh->nlmsg_seq = question->nlmsg_seq + (kernel->fault == KERNEL_SEQUENCE);
	nlh->nlmsg_pid = PORT + (kernel->fault == KERNEL_PORT);
	return nlh;
}

static void
kernel_post(struct kernel *kernel, const struct nlmsghdr *nlh)
{
	kernel->mail[kernel->mail_count++].len = nlh->nlmsg_len;
}

static void
kernel_put_addr(
	const struct kernel *kernel, struct nlmsghdr *nlh, uint16_t type, const char *address)
{
	struct rcd_gid gid;
	bool v4;

	if (address == NULL)
		return;
	gid = gid_text(address);
	v4 = rcd_gid_is_ipv4(&gid);
	mnl_attr_put(nlh, type, (v4 ? 4 : 16) - (size_t)(kernel->fault == KERNEL_LENGTHS),
		v4 ? gid.raw + 12 : gid.raw);
}

static void
kernel_tell_route(struct kernel *kernel, const struct nlmsghdr *question)
{
	const struct rtmsg *asked = mnl_nlmsg_get_payload(question);
	struct nlmsghdr *nlh = kernel_write(kernel, question, RTM_NEWROUTE);
	struct rtmsg *info = mnl_nlmsg_put_extra_header(nlh, sizeof(*info));
	uint32_t ifindex = kernel->route.ifindex;

	if (kernel->fault == KERNEL_SHORT) {
		nlh->nlmsg_len = MNL_NLMSG_HDRLEN;
		kernel_post(kernel, nlh);
		return;
	}
	info->rtm_family = asked->rtm_family;
	info->rtm_type = kernel->route.type;
	kernel_put_addr(kernel, nlh, RTA_GATEWAY, kernel->route.gateway);
	kernel_put_addr(kernel, nlh, RTA_PREFSRC, kernel->route.source);
	if (ifindex != 0)
		mnl_attr_put(nlh, RTA_OIF,
			sizeof(ifindex) - (size_t)(kernel->fault == KERNEL_LENGTHS), &ifindex);
	kernel_post(kernel, nlh);
	if (kernel->fault == KERNEL_CUT)
		kernel->mail[kernel->mail_count - 1].len -= 4;
}

/* What is there before the answer: of somebody else, and of an earlier question that failed. */
static void
kernel_tell_strays(struct kernel *kernel, const struct nlmsghdr *question)
{
	struct nlmsghdr earlier = *question;
	struct nlmsghdr *nlh;
	struct nlmsgerr *end;

	kernel->mail[kernel->mail_count++].len = 0;
	earlier.nlmsg_seq--;
	nlh = kernel_write(kernel, &earlier, NLMSG_ERROR);
	end = mnl_nlmsg_put_extra_header(nlh, sizeof(*end));
	end->error = -EPERM;
	kernel_post(kernel, nlh);
}

static void
kernel_tell_end(struct kernel *kernel, const struct nlmsghdr *question)
{
	struct nlmsghdr *nlh = kernel_write(kernel, question, NLMSG_ERROR);
	struct nlmsgerr *end = mnl_nlmsg_put_extra_header(nlh, sizeof(*end));

	end->error = -kernel->route.err;
	end->msg = *question;
	kernel_post(kernel, nlh);
}

/* All addresses of a family, and the end of the list. */
static void
kernel_list_addrs(struct kernel *kernel, const struct nlmsghdr *question)
{
	const struct ifaddrmsg *asked = mnl_nlmsg_get_payload(question);
	struct nlmsghdr *nlh;

	CU_ASSERT_EQUAL(question->nlmsg_flags, NLM_F_REQUEST | NLM_F_DUMP);
	for (uint32_t i = 0; i < kernel->addr_count; i++) {
		const struct kernel_addr *addr = &kernel->addrs[i];
		struct rcd_gid gid = gid_text(addr->local != NULL ? addr->local : addr->address);
		struct ifaddrmsg *info;

		if (rcd_gid_is_ipv4(&gid) != (asked->ifa_family == AF_INET))
			continue;
		nlh = kernel_write(kernel, question, RTM_NEWADDR);
		info = mnl_nlmsg_put_extra_header(nlh, sizeof(*info));
		info->ifa_family = asked->ifa_family;
		info->ifa_index = addr->ifindex;
		kernel_put_addr(kernel, nlh, IFA_ADDRESS, addr->address);
		kernel_put_addr(kernel, nlh, IFA_LOCAL, addr->local);
		kernel_post(kernel, nlh);
	}
	nlh = kernel_write(kernel, question, NLMSG_DONE);
	mnl_nlmsg_put_extra_header(nlh, sizeof(int));
	kernel_post(kernel, nlh);
}

static void
kernel_read(struct kernel *kernel, const struct nlmsghdr *question)
{
	const struct rtmsg *info = mnl_nlmsg_get_payload(question);
	struct nlattr *attr;
	bool found = false;

	CU_ASSERT_EQUAL(question->nlmsg_type, RTM_GETROUTE);
	CU_ASSERT_EQUAL(question->nlmsg_flags, NLM_F_REQUEST | NLM_F_ACK);
	CU_ASSERT_EQUAL(info->rtm_dst_len, info->rtm_family == AF_INET ? 32 : 128);
	kernel->asked++;
	kernel->by_netdev = false;
	kernel->ifindex = 0;
	mnl_attr_for_each(attr, question, sizeof(*info)) {
		if (mnl_attr_get_type(attr) == RTA_DST)
			found = rcd_rtnl_take_addr(attr, info->rtm_family, &kernel->dgid);
		if (mnl_attr_get_type(attr) == RTA_OIF) {
			kernel->by_netdev = true;
			kernel->ifindex = mnl_attr_get_u32(attr);
		}
	}
	CU_ASSERT(found);
}

static ssize_t
kernel_send(void *arg, const void *message, size_t len)
{
	struct kernel *kernel = arg;
	const struct nlmsghdr *question = message;

	CU_ASSERT_EQUAL_FATAL(question->nlmsg_len, len);
	/* What was told before has been thrown away. */
	CU_ASSERT_EQUAL(kernel->mail_count, 0);
	if (kernel->fault == KERNEL_DEAF) {
		errno = ENOBUFS;
		return -1;
	}
	kernel->flooded = kernel->fault == KERNEL_ENDLESS;
	if (kernel->fault == KERNEL_STRAYS)
		kernel_tell_strays(kernel, question);
	if (question->nlmsg_type == RTM_GETADDR && kernel->fault != KERNEL_MUTE) {
		kernel_list_addrs(kernel, question);
		return (ssize_t)len;
	}
	if (question->nlmsg_type != RTM_GETADDR)
		kernel_read(kernel, question);
	if (kernel->fault == KERNEL_MUTE)
		return (ssize_t)len;
	if (kernel->route.err == 0 && kernel->route.type != 0)
		kernel_tell_route(kernel, question);
	if (kernel->fault != KERNEL_CUT)
		kernel_tell_end(kernel, question);
	return (ssize_t)len;
}

static ssize_t
kernel_receive(void *arg, void *buffer, size_t room)
{
	struct kernel *kernel = arg;
	size_t len = kernel->mail[0].len;

	if (kernel->overrun) {
		kernel->overrun = false;
		errno = ENOBUFS;
		return -1;
	}
	if (kernel->flooded)
		return 0;
	if (kernel->mail_count == 0) {
		errno = EAGAIN;
		return -1;
	}
	CU_ASSERT_FATAL(len <= room);
	memcpy(buffer, kernel->mail[0].bytes, len);
	kernel->mail_count--;
	memmove(kernel->mail, kernel->mail + 1, kernel->mail_count * sizeof(kernel->mail[0]));
	return (ssize_t)len;
}

static void
kernel_close(void *arg)
{
	((struct kernel *)arg)->closed = true;
}

struct rcd_rtnl *
kernel_open(struct kernel *kernel)
{
	static const struct rcd_rtnl_ops ops = {
		.send = kernel_send,
		.receive = kernel_receive,
		.close = kernel_close,
	};

	return rcd_rtnl_create(&ops, kernel, PORT);
}
