/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What DPDK's driver for AF_XDP leaves to us. Seen with 22.11:
 *
 * - It puts its program on the netdev by netlink, so that it outlives an engine that is killed. The
 *   next one then finds the place taken. A BPF link in its place ends with the process.
 * - Closing a port takes whatever program is there away, if it has been put there by netlink: one
 *   of somebody else's too, when that was why the port could not be set up.
 * - Closing a port leaves the socket open (its memory is counted down twice, and never freed) and
 *   the objects of the program. As long as the socket is there no other can take its queue, and
 *   the kernel keeps all buffers of the port, so the same link could never be added again.
 *
 * Descriptors that appear while the driver sets a port up are its own: no other thread opens
 * sockets of AF_XDP, or BPF objects. They are closed by number only while they still are what they
 * were, so a driver that closes them itself loses nothing.
 */
#include "rcd_xdp.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <libmnl/libmnl.h>
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rcd_dev.h"
#include "rcd_log.h"
#include "rcd_ports.h"
#include "rcd_rtnl.h"
#include "rcd_thread.h"

#ifndef AF_XDP
#define AF_XDP 44
#endif

#define HELD_STEP 64

enum kind {
	KIND_OTHER,
	KIND_SOCKET,
	KIND_MAP,
	KIND_BTF,
	KIND_PROGRAM,
};

/** A descriptor, and what tells it from another that gets its number. */
struct held {
	int fd;
	enum kind kind;
	uint64_t id;
};

struct held_list {
	struct held *entries;
	uint32_t count;
};

struct rcd_xdp {
	struct held_list before; /**< there already, and not the driver's */
	struct held_list ours;   /**< the driver's */
	int link;                /**< -1: none */
};

static int
xdp_bpf(enum bpf_cmd command, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, command, attr, sizeof(*attr));
}

static enum kind
xdp_kind_of_bpf(const char *text)
{
	static const struct {
		const char *name;
		enum kind kind;
	} kinds[] = {
		{ "anon_inode:bpf-map", KIND_MAP },
		{ "anon_inode:btf", KIND_BTF },
		{ "anon_inode:bpf-prog", KIND_PROGRAM },
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(text, kinds[i].name) == 0)
			return kinds[i].kind;
	return KIND_OTHER;
}

/* The kernel's number of a BPF object. @return 0: it does not say */
static uint32_t
xdp_bpf_id(int fd, enum kind kind)
{
	struct bpf_prog_info program = { 0 };
	struct bpf_map_info map = { 0 };
	struct bpf_btf_info btf = { 0 };
	union bpf_attr attr = { .info.bpf_fd = (uint32_t)fd };

	attr.info.info = (uint64_t)(uintptr_t)(kind == KIND_PROGRAM ? (void *)&program
			: kind == KIND_MAP                          ? (void *)&map
								    : (void *)&btf);
	attr.info.info_len = kind == KIND_PROGRAM ? sizeof(program)
		: kind == KIND_MAP                ? sizeof(map)
						  : sizeof(btf);
	if (xdp_bpf(BPF_OBJ_GET_INFO_BY_FD, &attr) != 0)
		return 0;
	return kind == KIND_PROGRAM ? program.id : kind == KIND_MAP ? map.id : btf.id;
}

/*
 * By the name of a descriptor: EAL's threads may be making one of this number just now, and files
 * of clients, which are among them, are not asked for anything.
 *
 * @return false: nothing that the driver could have made
 */
static bool
xdp_identify(int fd, struct held *held)
{
	int domain = 0;
	socklen_t domain_len = sizeof(domain);
	char path[32], text[64];
	ssize_t len;

	*held = (struct held){ .fd = fd };
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	len = readlink(path, text, sizeof(text) - 1);
	if (len <= 0)
		return false;
	text[len] = '\0';
	if (sscanf(text, "socket:[%" SCNu64 "]", &held->id) == 1) {
		held->kind = KIND_SOCKET;
		return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &domain_len) == 0 &&
			domain == AF_XDP;
	}
	held->kind = xdp_kind_of_bpf(text);
	if (held->kind != KIND_OTHER)
		held->id = xdp_bpf_id(fd, held->kind);
	return held->id != 0;
}

static bool
xdp_has(const struct held_list *list, const struct held *held)
{
	for (uint32_t i = 0; i < list->count; i++)
		if (list->entries[i].fd == held->fd && list->entries[i].kind == held->kind &&
			list->entries[i].id == held->id)
			return true;
	return false;
}

/* List all that the driver could have made, but for what is in another list. */
static int
xdp_look(struct held_list *list, const struct held_list *except)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	struct held held;
	int err = 0;

	if (dir == NULL)
		return -errno;
	while (err == 0 && (entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] == '.' ||
			!xdp_identify((int)strtol(entry->d_name, NULL, 10), &held) ||
			(except != NULL && xdp_has(except, &held)))
			continue;
		if (list->count % HELD_STEP == 0) {
			struct held *more = realloc(
				list->entries, (list->count + HELD_STEP) * sizeof(*list->entries));

			if (more == NULL) {
				err = -ENOMEM;
				break;
			}
			list->entries = more;
		}
		list->entries[list->count++] = held;
	}
	closedir(dir);
	return err;
}

/* Beside the program, or where it is installed: below the same folder as the program, or /usr. */
const char *
rcd_xdp_program(char *path, size_t path_len)
{
	static const char *const places[] = { "rocade_xdp.o", "../lib/rocade/rocade_xdp.o" };
	static const char installed[] = "/usr/lib/rocade/rocade_xdp.o";
	const char *given = getenv("ROCADE_XDP_PROG");
	ssize_t len;

	RCD_ON_CONTROL();
	if (given != NULL) {
		snprintf(path, path_len, "%s", given);
		return access(path, R_OK) == 0 ? path : NULL;
	}
	len = readlink("/proc/self/exe", path, path_len - 32);
	for (size_t i = 0; len > 0 && i < sizeof(places) / sizeof(places[0]); i++) {
		char *slash;

		path[len] = '\0';
		slash = memrchr(path, '/', (size_t)len);
		if (slash == NULL)
			break;
		len = slash - path + 1;
		snprintf(slash + 1, 32, "%s", places[i]);
		if (access(path, R_OK) == 0)
			return path;
	}
	if (path_len < sizeof(installed))
		return NULL;
	memcpy(path, installed, sizeof(installed));
	return access(path, R_OK) == 0 ? path : NULL;
}

int
rcd_xdp_begin(struct rcd_dev *dev)
{
	struct rcd_xdp *xdp;
	int err;

	RCD_ON_CONTROL();
	if (dev->xdp_taken) {
		RCD_LOG(NOTICE, "%s: %s has an XDP program already, which is not ours to replace",
			dev->conf.name, dev->conf.target);
		return -EBUSY;
	}
	xdp = calloc(1, sizeof(*xdp));
	if (xdp == NULL)
		return -ENOMEM;
	xdp->link = -1;
	dev->xdp = xdp;
	err = xdp_look(&xdp->before, NULL);
	if (err != 0)
		rcd_xdp_end(dev);
	return err;
}

/* Put a program on the netdev by netlink, in place of another. Either may be -1: none. */
static int
xdp_replace_program(struct rcd_dev *dev, int fd, int expected)
{
	struct rcd_rtnl_message message;
	struct nlmsghdr *nlh = rcd_rtnl_begin(&message, RTM_SETLINK, NLM_F_ACK);
	uint32_t flags = expected >= 0 ? XDP_FLAGS_REPLACE : XDP_FLAGS_UPDATE_IF_NOEXIST;
	struct ifinfomsg *info;
	struct nlattr *nest;

	info = mnl_nlmsg_put_extra_header(nlh, sizeof(*info));
	info->ifi_index = (int)dev->ifindex;
	nest = mnl_attr_nest_start(nlh, IFLA_XDP);
	mnl_attr_put_u32(nlh, IFLA_XDP_FD, (uint32_t)fd);
	mnl_attr_put_u32(nlh, IFLA_XDP_FLAGS, flags);
	if (expected >= 0)
		mnl_attr_put_u32(nlh, IFLA_XDP_EXPECTED_FD, (uint32_t)expected);
	mnl_attr_nest_end(nlh, nest);
	return rcd_rtnl_ask(dev->ports->rtnl, nlh, NULL, NULL);
}

int
rcd_xdp_hold(struct rcd_dev *dev)
{
	struct rcd_xdp *xdp = dev->xdp;
	union bpf_attr attr = { .link_create.target_ifindex = dev->ifindex,
		.link_create.attach_type = BPF_XDP };
	int program = -1;
	int err;

	RCD_ON_CONTROL();
	err = xdp_look(&xdp->ours, &xdp->before);
	for (uint32_t i = 0; i < xdp->ours.count; i++)
		if (xdp->ours.entries[i].kind == KIND_PROGRAM)
			program = xdp->ours.entries[i].fd;
	/* A kernel that can't tell whose program it takes away has no links either. */
	if (err == 0)
		err = program < 0 ? -ENOENT : xdp_replace_program(dev, -1, program);
	if (err != 0) {
		RCD_LOG(NOTICE, "%s: the program on %s may outlive the engine: %s", dev->conf.name,
			dev->conf.target, strerror(-err));
		return 0;
	}
	attr.link_create.prog_fd = (uint32_t)program;
	xdp->link = xdp_bpf(BPF_LINK_CREATE, &attr);
	if (xdp->link >= 0)
		return 0;
	RCD_LOG(NOTICE, "%s: no BPF link on %s: %s", dev->conf.name, dev->conf.target,
		strerror(errno));
	return xdp_replace_program(dev, program, -1);
}

void
rcd_xdp_release(struct rcd_dev *dev)
{
	struct rcd_xdp *xdp = dev->xdp;

	RCD_ON_CONTROL();
	if (xdp == NULL)
		return;
	if (xdp->link >= 0)
		close(xdp->link);
	xdp->link = -1;
	/* It could not be set up: what was made until then. */
	if (xdp->ours.count == 0)
		xdp_look(&xdp->ours, &xdp->before);
}

void
rcd_xdp_end(struct rcd_dev *dev)
{
	struct rcd_xdp *xdp = dev->xdp;
	struct held now;

	RCD_ON_CONTROL();
	if (xdp == NULL)
		return;
	for (uint32_t i = 0; i < xdp->ours.count; i++) {
		const struct held *held = &xdp->ours.entries[i];

		if (xdp_identify(held->fd, &now) && now.kind == held->kind && now.id == held->id)
			close(held->fd);
	}
	free(xdp->before.entries);
	free(xdp->ours.entries);
	free(xdp);
	dev->xdp = NULL;
}
