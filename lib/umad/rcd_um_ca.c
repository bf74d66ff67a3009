/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The drop-in libibumad: adapters and their ports, as far as programs ask to show them (ibstat).
 * MADs are RDMA CM's, which the engine speaks itself: opening a port for them is refused.
 */
#include <endian.h>
#include <errno.h>
#include <infiniband/umad.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rcd_client.h"
#include "rcd_number.h"

#define NODE_CA  1
#define RATE_SDR 2 /**< what programs show as 2.5 Gb/s */

int
umad_init(void)
{
	return 0;
}

int
umad_done(void)
{
	return 0;
}

/* The device of a name, or of a place in the list; connected on success. */
static int
um_ca_find_device(struct rcd_client *client, const char *name, uint32_t place,
	struct rcd_ctrl_device_rep *rep)
{
	int err = rcd_client_connect(client, NULL);

	for (uint32_t i = name != NULL ? 0 : place; err == 0; i++) {
		struct rcd_ctrl_index_req req = { .index = i };

		err = rcd_client_call(client, RCD_CTRL_DEVICE, &req, rep, NULL, NULL);
		if (err == 0 && (name == NULL || strcmp(rep->name, name) == 0))
			return 0;
		if (err != 0)
			rcd_client_close(client);
	}
	return err;
}

int
umad_get_cas_names(char cas[][UMAD_CA_NAME_LEN], int max)
{
	int count = 0;

	while (count < max) {
		struct rcd_ctrl_device_rep rep;
		struct rcd_client client;

		if (um_ca_find_device(&client, NULL, (uint32_t)count, &rep) != 0)
			break;
		rcd_client_close(&client);
		snprintf(cas[count++], UMAD_CA_NAME_LEN, "%.19s", rep.name);
	}
	return count;
}

/* Names are cut to 20 bytes by the interface; the first device is what no name means. */
static int
um_ca_find_ca(struct rcd_client *client, const char *name, struct rcd_ctrl_device_rep *rep)
{
	return um_ca_find_device(client, name != NULL && name[0] != '\0' ? name : NULL, 0, rep);
}

static int
um_ca_fill_port(struct rcd_client *client, const struct rcd_ctrl_device_rep *rep, umad_port_t *port)
{
	struct rcd_ctrl_port_rep state;
	int err = rcd_client_open(client, rep->index);

	if (err == 0)
		err = rcd_client_call(client, RCD_CTRL_PORT, NULL, &state, NULL, NULL);
	if (err != 0)
		return err;
	memset(port, 0, sizeof(*port));
	snprintf(port->ca_name, sizeof(port->ca_name), "%.19s", rep->name);
	port->portnum = 1;
	port->state = state.state;
	port->phys_state = rcd_port_phys_of(state.state);
	port->rate = RATE_SDR;
	/* CM, and GIDs that are IP addresses. */
	port->capmask = htobe32(1u << 16 | 1u << 26);
	port->gid_prefix = htobe64(UINT64_C(0xfe80) << 48);
	port->port_guid = htobe64(rep->node_guid);
	port->pkeys = malloc(sizeof(port->pkeys[0]));
	if (port->pkeys == NULL)
		return -ENOMEM;
	port->pkeys[0] = 0xffff;
	port->pkeys_size = 1;
	snprintf(port->link_layer, sizeof(port->link_layer), "Ethernet");
	return 0;
}

int
umad_get_port(const char *ca_name, int portnum, umad_port_t *port)
{
	struct rcd_ctrl_device_rep rep;
	struct rcd_client client;
	int err;

	if (portnum != 0 && portnum != 1)
		return -EINVAL;
	err = um_ca_find_ca(&client, ca_name, &rep);
	if (err != 0)
		return err;
	err = um_ca_fill_port(&client, &rep, port);
	rcd_client_close(&client);
	return err;
}

int
umad_release_port(umad_port_t *port)
{
	free(port->pkeys);
	port->pkeys = NULL;
	port->pkeys_size = 0;
	return 0;
}

int
umad_get_ca(const char *ca_name, umad_ca_t *ca)
{
	struct rcd_ctrl_device_rep rep;
	struct rcd_client client;
	umad_port_t *port = calloc(1, sizeof(*port));
	int err;

	if (port == NULL)
		return -ENOMEM;
	err = um_ca_find_ca(&client, ca_name, &rep);
	if (err == 0) {
		memset(ca, 0, sizeof(*ca));
		snprintf(ca->ca_name, sizeof(ca->ca_name), "%.19s", rep.name);
		snprintf(ca->fw_ver, sizeof(ca->fw_ver), "%.19s", client.engine.release);
		ca->node_type = NODE_CA;
		ca->numports = 1;
		ca->node_guid = ca->system_guid = htobe64(rep.node_guid);
		err = um_ca_fill_port(&client, &rep, port);
		rcd_client_close(&client);
	}
	if (err != 0) {
		free(port);
		return err;
	}
	ca->ports[1] = port;
	return 0;
}

int
umad_release_ca(umad_ca_t *ca)
{
	for (int i = 0; i < UMAD_CA_MAX_PORTS; i++) {
		if (ca->ports[i] == NULL)
			continue;
		umad_release_port(ca->ports[i]);
		free(ca->ports[i]);
		ca->ports[i] = NULL;
	}
	return 0;
}

int
umad_get_ca_portguids(const char *ca_name, __be64 *portguids, int max)
{
	struct rcd_ctrl_device_rep rep;
	struct rcd_client client;
	int err = um_ca_find_ca(&client, ca_name, &rep);

	if (err != 0)
		return err;
	rcd_client_close(&client);
	if (portguids != NULL) {
		if (max < 2)
			return -ENOMEM;
		portguids[0] = 0;
		portguids[1] = htobe64(rep.node_guid);
	}
	/* Port 0, which adapters do not have, counts. */
	return 2;
}

struct umad_device_node *
umad_get_ca_device_list(void)
{
	struct umad_device_node *head = NULL;
	struct umad_device_node **tail = &head;

	errno = 0;
	for (uint32_t place = 0;; place++) {
		struct rcd_ctrl_device_rep rep;
		struct rcd_client client;
		struct umad_device_node *node;

		if (um_ca_find_device(&client, NULL, place, &rep) != 0)
			return head;
		rcd_client_close(&client);
		node = calloc(1, sizeof(*node));
		if (node == NULL)
			return head;
		node->ca_name = strdup(rep.name);
		*tail = node;
		tail = &node->next;
	}
}

void
umad_free_ca_device_list(struct umad_device_node *head)
{
	while (head != NULL) {
		struct umad_device_node *next = head->next;

		free((void *)(uintptr_t)head->ca_name);
		free(head);
		head = next;
	}
}

static int
um_ca_by_name(const void *a, const void *b)
{
	const struct umad_device_node *const *x = a, *const *y = b;

	return strcmp((*x)->ca_name, (*y)->ca_name);
}

int
umad_sort_ca_device_list(struct umad_device_node **head, size_t size)
{
	struct umad_device_node **nodes;
	size_t count = 0;

	for (struct umad_device_node *node = *head; node != NULL; node = node->next)
		count++;
	if (size != 0 && size < count)
		count = size;
	if (count < 2)
		return 0;
	nodes = calloc(count, sizeof(nodes[0]));
	if (nodes == NULL)
		return -1;
	nodes[0] = *head;
	for (size_t i = 1; i < count; i++)
		nodes[i] = nodes[i - 1]->next;
	qsort(nodes, count, sizeof(nodes[0]), um_ca_by_name);
	for (size_t i = 0; i + 1 < count; i++)
		nodes[i]->next = nodes[i + 1];
	nodes[count - 1]->next = NULL;
	*head = nodes[0];
	free(nodes);
	return 0;
}
