/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A host for the CM service that is made of tables.
 */
#include "cma_host.h"

#include <errno.h>
#include <string.h>

#include "gid_text.h"
#include "rcd_tap.h"

#define FIRST_SERIAL 100

uint64_t cma_host_now_ns = 1000000000;

struct rcd_ctrl_cm_addr
cma_host_addr(const char *text, uint16_t port)
{
	struct rcd_ctrl_cm_addr addr = { .port = port };
	struct rcd_gid gid;

	if (text == NULL)
		return addr;
	gid = gid_text(text);
	memcpy(addr.addr, gid.raw, RCD_GID_LEN);
	addr.family = rcd_gid_is_ipv4(&gid) ? 4 : 6;
	return addr;
}

static uint64_t
now_ns(void)
{
	return cma_host_now_ns;
}

static uint32_t
host_random(void *arg)
{
	struct cma_host *host = arg;

	return (uint32_t)rcd_sequence_next(&host->random);
}

static bool
dev_next(void *arg, uint32_t *place, struct rcd_cma_dev *dev)
{
	const struct cma_host *host = arg;

	while (*place < host->dev_count) {
		*dev = host->devs[(*place)++];
		if (dev->name != NULL)
			return true;
	}
	return false;
}

static uint64_t
client_netns(const void *owner)
{
	const struct cma_host_client *client = owner;

	return client->netns;
}

static bool
dev_of(void *arg, uint32_t serial, struct rcd_cma_dev *dev)
{
	for (uint32_t place = 0; dev_next(arg, &place, dev);)
		if (dev->serial == serial)
			return true;
	return false;
}

static void
count(void *arg, uint32_t serial, enum rcd_counter counter, uint64_t add)
{
	struct cma_host *host = arg;

	(void)serial;
	host->counts[counter] += add;
}

static int
send_mad(void *arg, const struct rcd_cm_way *way, const uint8_t *mad, struct rcd_waiter *waiter)
{
	struct cma_host *host = arg;

	if (host->sending == -EAGAIN && waiter != NULL)
		rcd_waiter_wait(&host->waiters, waiter);
	if (host->sending != 0)
		return host->sending;
	CU_ASSERT_FATAL(host->mad_count < CMA_HOST_MADS);
	host->ways[host->mad_count] = *way;
	memcpy(host->mads[host->mad_count++], mad, RCD_MAD_LEN);
	return 0;
}

static void
membership(void *arg, uint32_t serial, const struct rcd_gid *source, const struct rcd_gid *group,
	uint16_t vlan_id, bool leave)
{
	struct cma_host *host = arg;

	(void)serial;
	(void)group;
	host->said_source = *source;
	host->said_vlan_id = vlan_id;
	host->joined += !leave;
	host->left += leave;
}

static struct cma_host *
host_of(const void *owner)
{
	const struct cma_host_client *client = owner;

	return client->host;
}

static int
resolve(void *owner, uint32_t serial, int sgid_index, const struct rcd_gid *dgid,
	struct rcd_waiter *waiter)
{
	struct cma_host *host = host_of(owner);

	(void)serial;
	(void)sgid_index;
	(void)dgid;
	host->asked++;
	if (host->neighbour == -EAGAIN)
		rcd_waiter_wait(&host->waiters, waiter);
	return host->neighbour;
}

static bool
reachable(void *arg, uint32_t serial, int sgid_index, const struct rcd_gid *dgid)
{
	const struct cma_host *host = arg;
	uint32_t place = serial - FIRST_SERIAL;

	(void)sgid_index;
	return host->gateway[place] || rcd_gid_table_on_link(&host->gids[place], dgid) >= 0;
}

static int
source(void *arg, uint64_t netns, const struct rcd_gid *dgid, uint32_t *ifindex,
	struct rcd_gid *src)
{
	const struct cma_host *host = arg;

	(void)dgid;
	if (host->kernel_ifindex == 0 || host->kernel_netns != netns)
		return -ENETUNREACH;
	*ifindex = host->kernel_ifindex;
	*src = host->kernel_src;
	return 0;
}

static bool
may_bind(const void *owner)
{
	return host_of(owner)->privileged;
}

static bool
has_qpn(const void *owner, uint32_t qpn)
{
	return qpn != host_of(owner)->foreign_qpn;
}

static pid_t
client_name(const void *owner, const char **comm)
{
	(void)owner;
	*comm = "test";
	return 7;
}

/* The other end is as if it were nobody's descriptor. */
static int
stream(void *owner, int ends[2])
{
	host_of(owner)->streams++;
	ends[0] = ends[1] = -1;
	return 0;
}

static void
stream_close(void *owner, int sock)
{
	(void)sock;
	host_of(owner)->streams--;
}

/* All streams are of one host at a time: those that the tests fill. */
static struct cma_host *filled;

static int
stream_send(int sock, const void *data, size_t len)
{
	(void)sock;
	(void)data;
	if (filled->room < len) {
		filled->refused++;
		return -EAGAIN;
	}
	filled->room -= (uint32_t)len;
	filled->said += (uint32_t)len;
	return 0;
}

void
cma_host_open(struct cma_host *host)
{
	static const struct rcd_cma_ops ops = {
		.now_ns = now_ns,
		.random = host_random,
		.dev_next = dev_next,
		.netns = client_netns,
		.dev_of = dev_of,
		.count = count,
		.send = send_mad,
		.membership = membership,
		.resolve = resolve,
		.reachable = reachable,
		.source = source,
		.may_bind = may_bind,
		.has_qpn = has_qpn,
		.name = client_name,
		.stream = stream,
		.stream_close = stream_close,
		.stream_send = stream_send,
	};
	static const struct rcd_quota none;
	struct rcd_cma_conf conf = {
		.secret = 11, .guid = 33, .ops = &ops, .arg = host, .alarms = &host->alarms
	};

	memset(host, 0, sizeof(*host));
	rcd_quota_open(&host->book, &none, &none, &none);
	host->foreign_qpn = UINT32_MAX;
	host->room = UINT32_MAX;
	host->random.state = 5;
	filled = host;
	rcd_alarms_init(&host->alarms, cma_host_now_ns);
	rcd_waiters_init(&host->waiters);
	host->cma = rcd_cma_create(&conf);
	CU_ASSERT_PTR_NOT_NULL_FATAL(host->cma);
}

void
cma_host_close(struct cma_host *host)
{
	CU_ASSERT_EQUAL(rcd_cmid_count(host->cma, RCD_CMA_NO_DEV), 0);
	CU_ASSERT_EQUAL(host->streams, 0);
	rcd_cma_destroy(host->cma);
	CU_ASSERT(rcd_waiters_empty(&host->waiters));
	CU_ASSERT_EQUAL(rcd_alarms_next(&host->alarms), UINT64_MAX);
	/* With the service go the connections that wait for their end. */
	for (int i = 0; i < RCD_RESOURCE_COUNT; i++)
		CU_ASSERT_EQUAL(host->book.used[i], 0);
}

void
cma_host_neighbours(struct cma_host *host)
{
	struct rcd_waiters told;

	rcd_waiters_init(&told);
	rcd_waiters_move(&told, &host->waiters);
	rcd_waiters_call(&told, UINT32_MAX);
}

void
cma_host_pass(struct cma_host *host, uint64_t ns)
{
	cma_host_now_ns += ns;
	rcd_alarms_run(&host->alarms, cma_host_now_ns, UINT32_MAX);
	rcd_cma_tick(host->cma, cma_host_now_ns);
}

struct rcd_cma_dev *
cma_host_dev(struct cma_host *host, const char *name)
{
	uint32_t place = host->dev_count++;

	CU_ASSERT_FATAL(place < CMA_HOST_DEVS);
	host->devs[place] = (struct rcd_cma_dev){
		.serial = FIRST_SERIAL + place,
		.name = name,
		.gids = &host->gids[place],
		.path_mtu_bytes = 1024,
		.answers = true,
		.up = true,
	};
	return &host->devs[place];
}

void
cma_host_address(struct cma_host *host, const char *text, uint8_t prefix_len, uint16_t vlan_id)
{
	struct rcd_gid_table *gids = &host->gids[host->dev_count - 1];
	uint32_t at = gids->count++;

	gids->entries[at].gid = gid_text(text);
	gids->entries[at].prefix_len = prefix_len;
	gids->entries[at].vlan_id = vlan_id;
	gids->entries[at].used = true;
}

void
cma_host_client(struct cma_host *host, struct cma_host_client *client, uid_t uid)
{
	int fd;

	memset(client, 0, sizeof(*client));
	client->host = host;
	CU_ASSERT_EQUAL_FATAL(rcd_quota_join(&host->book, &client->quota, uid), 0);
	client->cma = rcd_cma_client_create(host->cma, client, &client->quota);
	CU_ASSERT_PTR_NOT_NULL_FATAL(client->cma);
	CU_ASSERT_EQUAL_FATAL(rcd_cma_channel_create(client->cma, &client->channel, &fd), 0);
}

void
cma_host_client_end(struct cma_host_client *client)
{
	rcd_cma_client_destroy(client->cma);
	rcd_quota_leave(&client->quota);
}

void
cma_host_open_with(struct cma_host *host, const char *name, const char *address,
	struct cma_host_client *client, uid_t uid)
{
	cma_host_open(host);
	cma_host_dev(host, name);
	cma_host_address(host, address, 24, 0);
	cma_host_client(host, client, uid);
}

struct rcd_cmid *
cma_host_id(struct cma_host_client *client, enum rcd_cma_space space, uint8_t qp_type)
{
	struct rcd_ctrl_cm_create_req req = {
		.channel = client->channel,
		.space = (uint16_t)space,
		.qp_type = qp_type,
	};
	uint32_t handle;

	CU_ASSERT_EQUAL_FATAL(rcd_cmid_create(client->cma, &req, &handle), 0);
	return rcd_cmid_get(client->cma, handle);
}

int
cma_host_event(struct cma_host_client *client, struct rcd_ctrl_cm_event_rep *rep)
{
	struct rcd_cma_channel *channel = rcd_cma_channel_get(client->cma, client->channel);

	return rcd_cma_event_take(client->cma, channel, rep) == 0 ? (int)rep->event : -1;
}

int
cma_host_bind(struct rcd_cmid *id, const char *text, uint16_t port)
{
	struct rcd_ctrl_cm_addr addr = cma_host_addr(text, port);

	return rcd_cmid_bind(id, id->client->owner, &addr);
}

int
cma_host_resolve(struct rcd_cmid *id, const char *text, uint16_t port)
{
	struct rcd_ctrl_cm_resolve_req req = {
		.dst = cma_host_addr(text, port),
		.timeout_ms = 2000,
	};

	return rcd_cmid_resolve_addr(id, id->client->owner, &req);
}

int
cma_host_join(struct rcd_cmid *id, const char *text, uint32_t *handle)
{
	struct rcd_ctrl_cm_join_req req = { .addr = cma_host_addr(text, 0) };

	return rcd_cmid_join(id, &req, handle);
}

int
cma_host_event_of_peer(struct cma_host_client *client, struct rcd_ctrl_cm_event_rep *rep)
{
	int type;

	do
		type = cma_host_event(client, rep);
	while (type >= 0 && type <= RCD_CMA_EVENT_ROUTE_ERROR);
	return type;
}

void
cma_host_deliver(struct cma_host *a, struct cma_host *b)
{
	while (a->mad_count > 0 || b->mad_count > 0) {
		struct cma_host *from = a->mad_count > 0 ? a : b;
		struct cma_host *to = from == a ? b : a;
		/* As the packet tells it to who receives it. */
		struct rcd_cm_way back = {
			.local = from->ways[0].remote,
			.remote = from->ways[0].local,
			.dev = to->devs[0].serial,
		};
		uint8_t mad[RCD_MAD_LEN];

		memcpy(mad, from->mads[0], RCD_MAD_LEN);
		from->mad_count--;
		memmove(from->ways, from->ways + 1, from->mad_count * sizeof(from->ways[0]));
		memmove(from->mads, from->mads + 1, from->mad_count * sizeof(from->mads[0]));
		rcd_cma_rx(to->cma, &back, mad);
	}
}
