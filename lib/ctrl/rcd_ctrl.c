/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Shape and transport of control messages.
 */
#include "rcd_ctrl.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/** The most that one message brings: the kernel's SCM_MAX_FD. */
#define FDS_SENT_MAX 253

static const struct {
	const char *name;
	uint16_t req_len;
	uint16_t rep_len;
	uint8_t fds;
	uint8_t stage;
} ops[RCD_CTRL_OP_COUNT] = {
#define RCD_CTRL(symbol, label, request, reply, fd_count, before, description)                     \
	[RCD_CTRL_##symbol] = {                                                                    \
		.name = #label,                                                                    \
		.req_len = sizeof(struct rcd_ctrl_hdr) + sizeof(struct rcd_ctrl_##request),        \
		.rep_len = sizeof(struct rcd_ctrl_hdr) + sizeof(struct rcd_ctrl_##reply),          \
		.fds = fd_count,                                                                   \
		.stage = RCD_CTRL_STAGE_##before,                                                  \
	},
#include "rcd_ctrl.def"
};

const char *
rcd_ctrl_op_name(uint32_t op)
{
	return op < RCD_CTRL_OP_COUNT ? ops[op].name : "?";
}

size_t
rcd_ctrl_req_len(uint32_t op)
{
	return ops[op].req_len;
}

size_t
rcd_ctrl_rep_len(uint32_t op)
{
	return ops[op].rep_len;
}

enum rcd_ctrl_stage
rcd_ctrl_op_stage(uint32_t op)
{
	return (enum rcd_ctrl_stage)ops[op].stage;
}

int
rcd_ctrl_req_check(const struct rcd_ctrl_msg *msg, size_t len, unsigned int fd_count)
{
	uint32_t op;

	if (len < sizeof(msg->hdr))
		return -EPROTO;
	op = msg->hdr.op;
	if (op >= RCD_CTRL_OP_COUNT || len != ops[op].req_len || fd_count != ops[op].fds ||
		msg->hdr.status != 0)
		return -EPROTO;
	if ((op == RCD_CTRL_MR_REG || op == RCD_CTRL_MR_REREG) &&
		msg->body.mr_reg_req.extent_count > RCD_CTRL_EXTENTS_MAX)
		return -EPROTO;
	if (op == RCD_CTRL_ADMIN &&
		memchr(msg->body.admin_req.json, '\0', sizeof(msg->body.admin_req.json)) == NULL)
		return -EPROTO;
	return 0;
}

int
rcd_ctrl_send(int sock, const void *msg, size_t len, const struct rcd_ctrl_fds *fds, int flags)
{
	union {
		char bytes[CMSG_SPACE(RCD_CTRL_FDS_MAX * sizeof(int))];
		struct cmsghdr align;
	} control = { .bytes = { 0 } };
	struct iovec iov = { .iov_base = (void *)(uintptr_t)msg, .iov_len = len };
	struct msghdr hdr = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t sent;

	if (fds != NULL && fds->count > 0) {
		struct cmsghdr *cmsg;

		hdr.msg_control = control.bytes;
		hdr.msg_controllen = CMSG_SPACE(fds->count * sizeof(int));
		cmsg = CMSG_FIRSTHDR(&hdr);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(fds->count * sizeof(int));
		memcpy(CMSG_DATA(cmsg), fds->fds, fds->count * sizeof(int));
	}
	do {
		sent = sendmsg(sock, &hdr, flags | MSG_NOSIGNAL);
	} while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : 0;
}

/* Keeps as many as there is room for and drops the rest. */
static void
ctrl_take_fds(struct msghdr *hdr, struct rcd_ctrl_fds *fds, const struct rcd_ctrl_drop *drop)
{
	for (struct cmsghdr *cmsg = CMSG_FIRSTHDR(hdr); cmsg != NULL;
		cmsg = CMSG_NXTHDR(hdr, cmsg)) {
		size_t count;

		if (cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS)
			continue;
		count = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(cmsg) + i * sizeof(int), sizeof(fd));
			if (fds != NULL && fds->count < RCD_CTRL_FDS_MAX)
				fds->fds[fds->count++] = fd;
			else
				drop->fn(drop->arg, fd);
		}
	}
}

static void
ctrl_close_one(void *arg, int fd)
{
	(void)arg;
	close(fd);
}

static const struct rcd_ctrl_drop closes = { .fn = ctrl_close_one };

/* @param patient  a signal does not end the wait */
static long
ctrl_receive(int sock, void *msg, size_t size, struct rcd_ctrl_fds *fds, int flags, bool patient,
	const struct rcd_ctrl_drop *drop)
{
	union {
		/* For which there is no room the kernel closes here and now. */
		char bytes[CMSG_SPACE(FDS_SENT_MAX * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = { .iov_base = msg, .iov_len = size };
	struct msghdr hdr = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes) };
	ssize_t got;

	if (fds != NULL)
		fds->count = 0;
	do {
		got = recvmsg(sock, &hdr, flags | MSG_CMSG_CLOEXEC);
	} while (got < 0 && errno == EINTR && patient);
	if (got < 0)
		return -errno;
	ctrl_take_fds(&hdr, fds, drop);
	/* A message of no bytes looks like the end, and may bring descriptors all the same. */
	if (fds != NULL && (got == 0 || (hdr.msg_flags & MSG_TRUNC)))
		while (fds->count > 0)
			drop->fn(drop->arg, fds->fds[--fds->count]);
	return hdr.msg_flags & MSG_TRUNC ? -EMSGSIZE : got;
}

long
rcd_ctrl_recv(int sock, void *msg, size_t size, struct rcd_ctrl_fds *fds, int flags)
{
	return ctrl_receive(sock, msg, size, fds, flags, true, &closes);
}

long
rcd_ctrl_recv_drop(int sock, void *msg, size_t size, struct rcd_ctrl_fds *fds,
	const struct rcd_ctrl_drop *drop)
{
	return ctrl_receive(sock, msg, size, fds, MSG_DONTWAIT, true, drop);
}

long
rcd_ctrl_recv_event(int sock, struct rcd_ctrl_event *event)
{
	return ctrl_receive(sock, event, sizeof(*event), NULL, 0, false, &closes);
}

void
rcd_ctrl_fds_close(struct rcd_ctrl_fds *fds)
{
	for (unsigned int i = 0; i < fds->count; i++)
		close(fds->fds[i]);
	fds->count = 0;
}

int
rcd_ctrl_stream_send(int sock, const void *data, size_t len)
{
	ssize_t sent = send(sock, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);

	/* Without a reader it is a client that is going away. */
	return sent < 0 && (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM) ? -EAGAIN : 0;
}
