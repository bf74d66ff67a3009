/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What librdmacm(7) promises and no program of the distribution looks at: ports and who may have
 * them, options, channels and the events in them, a fork, what is refused. Public headers alone.
 *
 *   cm_api ADDRESS OTHER   two addresses of the engine's devices, the second reached from the first
 *
 * Exit status: 0; 1 at the first promise that is not kept, which is named.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <rdma/rsocket.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MUST(condition)                                                                            \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "line %d: %s: %s\n", __LINE__, #condition,                 \
				strerror(errno));                                                  \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

/* It fails, with this errno. */
#define REFUSED(call, error) MUST((call) == -1 && errno == (error))

static struct rdma_event_channel *channel;
static struct sockaddr_in here, there;
static struct sockaddr_in6 any6 = { .sin6_family = AF_INET6 };
static struct sockaddr_in any4 = { .sin_family = AF_INET };

static struct rdma_cm_id *
new_id(void)
{
	struct rdma_cm_id *id;

	MUST(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0);
	return id;
}

static int
bind_to(struct rdma_cm_id *id, void *addr, uint16_t port)
{
	struct sockaddr_in *sin = addr;

	/* The port is at the same place in both. */
	sin->sin_port = htons(port);
	return rdma_bind_addr(id, addr);
}

static void
option(struct rdma_cm_id *id, int name)
{
	int on = 1;

	MUST(rdma_set_option(id, RDMA_OPTION_ID, name, &on, sizeof(on)) == 0);
}

static bool
readable(const struct rdma_event_channel *which)
{
	struct pollfd pollfd = { .fd = which->fd, .events = POLLIN };

	return poll(&pollfd, 1, 0) == 1;
}

static void
ports(void)
{
	struct rdma_cm_id *a = new_id(), *b = new_id(), *c = new_id();

	MUST(bind_to(a, &here, 8001) == 0);
	MUST(ntohs(rdma_get_src_port(a)) == 8001 && a->verbs != NULL);
	REFUSED(bind_to(b, &here, 8001), EADDRINUSE);
	REFUSED(bind_to(b, &any4, 8001), EADDRINUSE);
	REFUSED(bind_to(b, &any6, 8001), EADDRINUSE);
	/* Another address, another port, and another space are free. */
	MUST(bind_to(b, &there, 8001) == 0);
	MUST(rdma_listen(a, 1) == 0 && rdma_listen(b, 1) == 0);
	MUST(bind_to(c, &here, 0) == 0 && rdma_get_src_port(c) != 0);
	rdma_destroy_id(a);
	rdma_destroy_id(b);
	rdma_destroy_id(c);
	a = new_id();
	MUST(bind_to(a, &here, 8001) == 0);
	MUST(rdma_create_id(channel, &b, NULL, RDMA_PS_UDP) == 0 && bind_to(b, &here, 8001) == 0);
	rdma_destroy_id(a);
	rdma_destroy_id(b);
}

static void
sharing_a_port(void)
{
	struct rdma_cm_id *a = new_id(), *b = new_id();

	option(a, RDMA_OPTION_ID_REUSEADDR);
	option(b, RDMA_OPTION_ID_REUSEADDR);
	MUST(bind_to(a, &here, 8002) == 0 && bind_to(b, &here, 8002) == 0);
	REFUSED(rdma_listen(a, 1), EADDRINUSE);
	rdma_destroy_id(b);
	MUST(rdma_listen(a, 1) == 0);
	rdma_destroy_id(a);
	/* The wildcard of IPv6 leaves IPv4 alone when it is told to. */
	a = new_id();
	b = new_id();
	option(a, RDMA_OPTION_ID_AFONLY);
	MUST(bind_to(a, &any6, 8002) == 0 && bind_to(b, &any4, 8002) == 0);
	MUST(rdma_listen(a, 1) == 0 && rdma_listen(b, 1) == 0);
	rdma_destroy_id(a);
	rdma_destroy_id(b);
}

static void
privileged_ports(void)
{
	pid_t child = fork();
	int status;

	MUST(child >= 0);
	if (child == 0) {
		struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
		struct __user_cap_data_struct caps[2];
		struct rdma_cm_id *id;

		MUST((channel = rdma_create_event_channel()) != NULL);
		id = new_id();
		MUST(bind_to(id, &here, 88) == 0);
		rdma_destroy_id(id);
		id = new_id();
		MUST(syscall(SYS_capget, &header, caps) == 0);
		caps[0].effective &= ~(1u << CAP_NET_BIND_SERVICE);
		MUST(syscall(SYS_capset, &header, caps) == 0);
		REFUSED(bind_to(id, &here, 88), EACCES);
		exit(0);
	}
	MUST(waitpid(child, &status, 0) == child && status == 0);
}

static void
channels(void)
{
	struct rdma_event_channel *other = rdma_create_event_channel();
	struct rdma_cm_id *id = new_id();
	struct rdma_cm_event *event;
	int flags = fcntl(channel->fd, F_GETFL);

	MUST(other != NULL && !readable(channel));
	MUST(fcntl(channel->fd, F_SETFL, flags | O_NONBLOCK) == 0);
	REFUSED(rdma_get_cm_event(channel, &event), EAGAIN);
	MUST(fcntl(channel->fd, F_SETFL, flags) == 0);
	/* What waits of an identifier goes with it: to another channel, and to nowhere. */
	there.sin_port = htons(8003);
	MUST(rdma_resolve_addr(id, NULL, (struct sockaddr *)&there, 2000) == 0);
	for (int i = 0; i < 2000 && !readable(channel); i++)
		usleep(1000);
	MUST(readable(channel));
	MUST(rdma_migrate_id(id, other) == 0 && id->channel == other);
	MUST(!readable(channel) && readable(other));
	MUST(rdma_get_cm_event(other, &event) == 0);
	MUST(event->event == RDMA_CM_EVENT_ADDR_RESOLVED && event->id == id);
	MUST(rdma_ack_cm_event(event) == 0);
	MUST(rdma_resolve_route(id, 2000) == 0 && readable(other));
	MUST(rdma_destroy_id(id) == 0 && !readable(other));
	rdma_destroy_event_channel(other);
}

static void
what_is_refused(void)
{
	struct rdma_cm_id *id = new_id();
	struct rdma_conn_param param = { .retry_count = 7 };
	struct sockaddr_in nowhere = { .sin_family = AF_INET };
	uint8_t tos = 32;
	int fine = 1;

	MUST(inet_pton(AF_INET, "203.0.113.1", &nowhere.sin_addr) == 1);
	REFUSED(rdma_listen(id, 1) == 0 ? rdma_connect(id, &param) : 0, EINVAL);
	rdma_destroy_id(id);
	id = new_id();
	REFUSED(rdma_create_id(channel, &id, NULL, (enum rdma_port_space)99), EPROTONOSUPPORT);
	REFUSED(rdma_bind_addr(id, (struct sockaddr *)&nowhere), ENODEV);
	REFUSED(rdma_resolve_route(id, 1), EINVAL);
	REFUSED(rdma_disconnect(id), EINVAL);
	REFUSED(rdma_accept(id, &param), EINVAL);
	REFUSED(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &fine, sizeof(fine)),
		EINVAL);
	REFUSED(rdma_set_option(id, RDMA_OPTION_ID, 77, &fine, sizeof(fine)), ENOSYS);
	REFUSED(rdma_set_option(id, 7, 0, &fine, sizeof(fine)), ENOSYS);
	MUST(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof(tos)) == 0);
	rdma_destroy_id(id);
	REFUSED(rsocket(AF_INET, SOCK_SEQPACKET, 0), EOPNOTSUPP);
	REFUSED(rclose(0), EBADF);
}

static void
private_data_that_is_too_long(void)
{
	static const uint8_t data[200];
	struct rdma_conn_param param = { .private_data = data, .private_data_len = 57 };
	struct rdma_cm_event *event;
	struct rdma_cm_id *id = new_id();

	there.sin_port = htons(8004);
	MUST(rdma_resolve_addr(id, NULL, (struct sockaddr *)&there, 2000) == 0);
	MUST(rdma_get_cm_event(channel, &event) == 0 && event->status == 0);
	rdma_ack_cm_event(event);
	MUST(rdma_resolve_route(id, 2000) == 0);
	MUST(rdma_get_cm_event(channel, &event) == 0 && event->status == 0);
	rdma_ack_cm_event(event);
	MUST(id->route.num_paths == 1 && id->route.path_rec->mtu >= IBV_MTU_1024);
	REFUSED(rdma_connect(id, &param), EINVAL);
	/* Nobody listens: the refusal says so. */
	param.private_data_len = 56;
	MUST(rdma_connect(id, &param) == 0);
	MUST(rdma_get_cm_event(channel, &event) == 0);
	MUST(event->event == RDMA_CM_EVENT_REJECTED && event->status == 8);
	rdma_ack_cm_event(event);
	rdma_destroy_id(id);
}

/* A child has none of its parent's identifiers, and the parent has them still. */
static void
forked(void)
{
	struct rdma_cm_id *id = new_id();
	pid_t child;
	int status;

	MUST(bind_to(id, &here, 8005) == 0);
	child = fork();
	MUST(child >= 0);
	if (child == 0) {
		REFUSED(rdma_listen(id, 1), EIO);
		MUST((channel = rdma_create_event_channel()) != NULL);
		id = new_id();
		REFUSED(bind_to(id, &here, 8005), EADDRINUSE);
		exit(0);
	}
	MUST(waitpid(child, &status, 0) == child && status == 0);
	MUST(rdma_listen(id, 1) == 0);
	rdma_destroy_id(id);
}

/* The next event is this one. @return whose */
static struct rdma_cm_id *
comes(enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	MUST(rdma_get_cm_event(channel, &event) == 0);
	MUST(event->event == type);
	id = event->id;
	MUST(rdma_ack_cm_event(event) == 0);
	return id;
}

static bool
heard(struct rdma_cm_id *id, uint32_t vendor_id, uint32_t options)
{
	struct ibv_ece ece = { .comp_mask = 1 };

	return rdma_get_remote_ece(id, &ece) == 0 && ece.vendor_id == vendor_id &&
		ece.options == options && ece.comp_mask == 0;
}

/* Of queue pairs that a program has itself: both hear what the other said, and nobody looks. */
static void
options_of_vendors(void)
{
	struct rdma_cm_id *listener = new_id(), *active = new_id(), *passive;
	struct rdma_conn_param param = { .retry_count = 1 };
	struct ibv_ece ece = { 0 };

	MUST(bind_to(listener, &there, 8006) == 0 && rdma_listen(listener, 1) == 0);
	there.sin_port = htons(8006);
	here.sin_port = 0;
	MUST(rdma_resolve_addr(active, (struct sockaddr *)&here, (struct sockaddr *)&there, 2000) ==
		0);
	MUST(comes(RDMA_CM_EVENT_ADDR_RESOLVED) == active);
	MUST(rdma_resolve_route(active, 2000) == 0);
	MUST(comes(RDMA_CM_EVENT_ROUTE_RESOLVED) == active);
	REFUSED(rdma_set_local_ece(active, &ece), EINVAL);
	ece.vendor_id = 0x1000000;
	REFUSED(rdma_set_local_ece(active, &ece), EINVAL);
	ece = (struct ibv_ece){ .vendor_id = 0xa1b2c3, .options = 0x89abcdef };
	MUST(rdma_set_local_ece(active, &ece) == 0 && heard(active, 0, 0));
	MUST(rdma_connect(active, &param) == 0);
	passive = comes(RDMA_CM_EVENT_CONNECT_REQUEST);
	MUST(heard(passive, 0xa1b2c3, 0x89abcdef));
	ece = (struct ibv_ece){ .vendor_id = 0x0d0e0f, .options = 0x01234567 };
	MUST(rdma_set_local_ece(passive, &ece) == 0);
	MUST(rdma_accept(passive, &param) == 0);
	MUST(comes(RDMA_CM_EVENT_CONNECT_RESPONSE) == active);
	MUST(heard(active, 0x0d0e0f, 0x01234567));
	MUST(rdma_establish(active) == 0);
	MUST(comes(RDMA_CM_EVENT_ESTABLISHED) == passive);
	rdma_destroy_id(active);
	MUST(comes(RDMA_CM_EVENT_DISCONNECTED) == passive);
	rdma_destroy_id(passive);
	rdma_destroy_id(listener);
}

static void
devices(void)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_UDP };
	struct rdma_addrinfo *res;
	struct ibv_context **list;
	int count;

	list = rdma_get_devices(&count);
	MUST(list != NULL && count >= 1 && list[count] == NULL);
	MUST(ibv_get_device_name(list[0]->device) != NULL);
	rdma_free_devices(list);
	MUST(rdma_getaddrinfo("127.0.0.1", "7471", &hints, &res) == 0);
	MUST(res->ai_src_addr != NULL && res->ai_dst_addr == NULL && res->ai_qp_type == IBV_QPT_UD);
	rdma_freeaddrinfo(res);
	MUST(rdma_getaddrinfo("no such name", NULL, NULL, &res) != 0);
}

int
main(int argc, char **argv)
{
	here.sin_family = there.sin_family = AF_INET;
	if (argc != 3 || inet_pton(AF_INET, argv[1], &here.sin_addr) != 1 ||
		inet_pton(AF_INET, argv[2], &there.sin_addr) != 1)
		return 2;
	channel = rdma_create_event_channel();
	MUST(channel != NULL);
	ports();
	sharing_a_port();
	privileged_ports();
	channels();
	what_is_refused();
	private_data_that_is_too_long();
	forked();
	options_of_vendors();
	devices();
	MUST(!readable(channel));
	rdma_destroy_event_channel(channel);
	return 0;
}
