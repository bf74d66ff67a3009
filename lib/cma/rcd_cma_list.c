/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Identifiers for the command line, with the keys of iproute2's rdma.
 */
#include <arpa/inet.h>
#include <jansson.h>

#include "rcd_cma_client.h"
#include "rcd_thread.h"

static const char *
cma_list_space_name(uint16_t space)
{
	switch (space) {
	case RCD_CMA_SPACE_TCP:
		return "TCP";
	case RCD_CMA_SPACE_UDP:
		return "UDP";
	case RCD_CMA_SPACE_IPOIB:
		return "IPoIB";
	default:
		return "IB";
	}
}

static void
cma_list_set_addr(json_t *entry, const char *addr_key, const char *port_key,
	const struct rcd_ctrl_cm_addr *addr)
{
	char text[INET6_ADDRSTRLEN];

	if (addr->family == 0)
		return;
	if (addr->family == 4)
		inet_ntop(AF_INET, addr->addr + 12, text, sizeof(text));
	else
		inet_ntop(AF_INET6, addr->addr, text, sizeof(text));
	json_object_set_new(entry, addr_key, json_string(text));
	json_object_set_new(entry, port_key, json_integer(addr->port));
}

void
rcd_cma_list(const struct rcd_cma *cma, json_t *list)
{
	static const char *const types[] = { "RC", "UC", "UD" };
	const struct rcd_cmid *id;
	struct rcd_cma_dev dev;
	const char *comm;

	RCD_ON_CONTROL();
	LIST_FOREACH(id, &cma->ids, all_link) {
		bool has_dev = rcd_cma_dev(cma, id->dev, &dev);
		pid_t pid = cma->ops->name(id->client->owner, &comm);
		json_t *entry = json_pack("{s:s, s:i, s:i, s:s, s:s, s:s, s:s}", "ifname",
			has_dev ? dev.name : "-", "cm-idn", (int)id->handle, "pid", (int)pid,
			"comm", comm, "state", rcd_cma_state_name((enum rcd_cma_state)id->state),
			"ps", cma_list_space_name(id->space), "qp-type", types[id->qp_type]);

		if (id->qpn != 0)
			json_object_set_new(entry, "lqpn", json_integer(id->qpn));
		cma_list_set_addr(entry, "src-addr", "src-port", &id->src);
		cma_list_set_addr(entry, "dst-addr", "dst-port", &id->dst);
		json_array_append_new(list, entry);
	}
}
