/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Requests of the command line about objects of clients, one entry for each of them.
 */
#include <arpa/inet.h>
#include <jansson.h>
#include <rte_common.h>
#include <string.h>

#include "rcd_admin.h"
#include "rcd_cma_client.h"
#include "rcd_context.h"
#include "rcd_dev.h"
#include "rcd_engine_priv.h"
#include "rcd_gid.h"
#include "rcd_id.h"
#include "rcd_qp.h"
#include "rcd_queue.h"
#include "rcd_shm.h"
#include "rcd_thread.h"
#include "rcd_turn.h"
#include "rcd_umem.h"

static json_t *
admin_list_gid(const struct rcd_gid *gid)
{
	char text[INET6_ADDRSTRLEN];

	return json_string(inet_ntop(AF_INET6, gid->raw, text, sizeof(text)));
}

static json_t *
admin_list_object_json(const struct rcd_context *context, const char *number_name, uint32_t number)
{
	const struct rcd_conn *first = rcd_context_first(context);

	return json_pack("{s:s, s:i, s:i, s:s}", "ifname", context->dev->conf.name, number_name,
		(int)number, "pid", (int)first->pid, "comm", first->comm);
}

/* Who it talks to, and what it has sent and received since it was made. */
static void
admin_list_add_traffic(const struct rcd_hqp *hqp, json_t *entry)
{
	struct rcd_gid dgid;
	struct rcd_qpn peer;

	if (!hqp->datagram && rcd_qp_peer(hqp->qp, &dgid, &peer)) {
		json_object_set_new(entry, "rqpn", json_integer(peer.val));
		json_object_set_new(entry, "dgid", admin_list_gid(&dgid));
	}
	json_object_set_new(entry, "tx_messages", json_integer(rcd_qp_sq_done(hqp->qp)));
	json_object_set_new(entry, "rx_messages", json_integer(rcd_qp_messages(hqp->qp)));
	json_object_set_new(
		entry, "tx_bytes", json_integer((json_int_t)rcd_turn_bytes(&hqp->turn)));
	json_object_set_new(entry, "rx_bytes",
		json_integer((json_int_t)__atomic_load_n(&hqp->rx_bytes, __ATOMIC_RELAXED)));
}

static const char *
admin_list_qp_type_name(const struct rcd_hqp *hqp)
{
	return hqp->datagram ? "UD" : hqp->reliable ? "RC" : "UC";
}

static void
admin_list_qps(const struct rcd_context *context, json_t *list)
{
	static const char *const states[] = { "RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR" };

	for (uint32_t i = 0; i < context->hqps.capacity; i++) {
		const struct rcd_hqp *hqp = context->hqps.slots[i];
		json_t *entry;

		if (hqp == NULL)
			continue;
		entry = admin_list_object_json(context, "lqpn", hqp->qpn);
		json_object_set_new(
			entry, "ctxn", json_integer(rcd_context_first(context)->serial));
		json_object_set_new(entry, "type", json_string(admin_list_qp_type_name(hqp)));
		json_object_set_new(entry, "state", json_string(states[rcd_qp_state(hqp->qp)]));
		json_object_set_new(entry, "pdn", json_integer(hqp->pd));
		json_object_set_new(entry, "sq_depth", json_integer(hqp->sq_depth));
		json_object_set_new(entry, "rq_depth", json_integer(hqp->rq_depth));
		json_object_set_new(entry, "sq_done", json_integer(rcd_qp_sq_done(hqp->qp)));
		json_object_set_new(
			entry, "sq_posted", json_integer(rcd_shm_load(&hqp->sq_shm->producer)));
		admin_list_add_traffic(hqp, entry);
		json_array_append_new(list, entry);
	}
}

static void
admin_list_objects(const struct rcd_context *context, const char *what, json_t *list)
{
	const struct rcd_conn *first = rcd_context_first(context);

	if (strcmp(what, "qp") == 0)
		admin_list_qps(context, list);
	for (uint32_t i = 0; strcmp(what, "pd") == 0 && i < context->pds.capacity; i++) {
		const struct rcd_pd *pd = context->pds.slots[i];

		if (pd != NULL) {
			json_t *entry = admin_list_object_json(context, "pdn", i);

			json_object_set_new(entry, "users", json_integer(pd->users));
			json_array_append_new(list, entry);
		}
	}
	for (uint32_t i = 0; strcmp(what, "cq") == 0 && i < context->cqs.capacity; i++) {
		const struct rcd_hcq *cq = context->cqs.slots[i];

		if (cq != NULL) {
			json_t *entry = admin_list_object_json(context, "cqn", i);

			json_object_set_new(entry, "cqe", json_integer(cq->mask + 1));
			json_object_set_new(entry, "users", json_integer(cq->users));
			json_array_append_new(list, entry);
		}
	}
	for (uint32_t i = 0; strcmp(what, "srq") == 0 && i < context->srqs.capacity; i++)
		if (context->srqs.slots[i] != NULL)
			json_array_append_new(list, admin_list_object_json(context, "srqn", i));
	for (uint32_t i = 0; strcmp(what, "mr") == 0 && i < RCD_UMR_BUCKETS; i++) {
		const struct rcd_umr *umr;

		/* Keys are secrets of their owner; the table is for everybody in the group. */
		LIST_FOREACH(umr, &context->umem.umrs[i], hash_link)
			json_array_append_new(list,
				json_pack("{s:s, s:I, s:i, s:s, s:i, s:s}", "ifname",
					context->dev->conf.name, "mrlen", (json_int_t)umr->len,
					"pdn", (int)umr->pd, "memory",
					umr->copies != NULL ? "copied" : "shared", "pid",
					(int)first->pid, "comm", first->comm));
	}
	if (strcmp(what, "ctx") == 0)
		json_array_append_new(list, admin_list_object_json(context, "ctxn", first->serial));
}

json_t *
rcd_admin_objects(const struct rcd_engine *engine, const char *what)
{
	static const char *const kinds[] = { "pd", "cq", "qp", "mr", "srq", "ctx", "cm_id" };
	const struct rcd_context *context;
	json_t *list;
	bool known = false;

	RCD_ON_CONTROL();
	for (size_t i = 0; i < RTE_DIM(kinds); i++)
		known |= strcmp(kinds[i], what) == 0;
	if (!known)
		return NULL;
	list = json_array();
	LIST_FOREACH(context, &engine->contexts, link)
		admin_list_objects(context, what, list);
	if (strcmp(what, "cm_id") == 0)
		rcd_cma_list(engine->cma, list);
	return list;
}
