/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * For programs with datagrams of rsockets in the guest, by LD_PRELOAD. rdma-core's library makes an
 * address handle that leads back to its own port by LID, as InfiniBand has it. On RoCE there is no
 * way without a GRH, and the kernel refuses it: no such socket is ever made. Here it becomes a way
 * to the port's GID of index LOOP_GID. All other handles are left as they are.
 */
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <stdlib.h>

#define HOPS 64

typedef struct ibv_ah *(*create_ah)(struct ibv_pd *pd, struct ibv_ah_attr *attr);

struct ibv_ah *
ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	create_ah next = (create_ah)dlsym(RTLD_NEXT, "ibv_create_ah");
	const char *index = getenv("LOOP_GID");
	struct ibv_ah_attr looped = *attr;

	if (attr->is_global || index == NULL)
		return next(pd, attr);
	looped.is_global = 1;
	looped.grh.sgid_index = (uint8_t)strtoul(index, NULL, 10);
	looped.grh.hop_limit = HOPS;
	if (ibv_query_gid(pd->context, looped.port_num, looped.grh.sgid_index, &looped.grh.dgid))
		return NULL;
	return next(pd, &looped);
}
