/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What providers of kernel drivers import from libibverbs, so that programs linked with them load
 * (perftest and libfabric are with those of mlx5 and efa). There is no kernel driver here: a
 * provider registers and is never asked for a device; whatever it calls all the same fails.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

/* Their prototypes are private to rdma-core; these take whatever comes and refuse. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define REFUSE(name)                                                                               \
	int name(void)                                                                             \
	{                                                                                          \
		errno = EOPNOTSUPP;                                                                \
		return EOPNOTSUPP;                                                                 \
	}

#define REFUSE_POINTER(name)                                                                       \
	void *name(void)                                                                           \
	{                                                                                          \
		errno = EOPNOTSUPP;                                                                \
		return NULL;                                                                       \
	}

#define IGNORE(name)                                                                               \
	void name(void)                                                                            \
	{                                                                                          \
	}

bool verbs_allow_disassociate_destroy;

IGNORE(verbs_register_driver_34)
REFUSE(__ioctl_final_num_attrs)
IGNORE(__verbs_log)
REFUSE_POINTER(_verbs_init_and_alloc_context)
REFUSE(execute_ioctl)
REFUSE(ibv_cmd_advise_mr)
REFUSE(ibv_cmd_alloc_dm)
REFUSE(ibv_cmd_alloc_mw)
REFUSE(ibv_cmd_alloc_pd)
REFUSE(ibv_cmd_attach_mcast)
REFUSE(ibv_cmd_close_xrcd)
REFUSE(ibv_cmd_create_ah)
REFUSE(ibv_cmd_create_counters)
REFUSE(ibv_cmd_create_cq)
REFUSE(ibv_cmd_create_cq_ex)
REFUSE(ibv_cmd_create_flow)
REFUSE(ibv_cmd_create_flow_action_esp)
REFUSE(ibv_cmd_create_qp)
REFUSE(ibv_cmd_create_qp_ex)
REFUSE(ibv_cmd_create_qp_ex2)
REFUSE(ibv_cmd_create_rwq_ind_table)
REFUSE(ibv_cmd_create_srq)
REFUSE(ibv_cmd_create_srq_ex)
REFUSE(ibv_cmd_create_wq)
REFUSE(ibv_cmd_dealloc_mw)
REFUSE(ibv_cmd_dealloc_pd)
REFUSE(ibv_cmd_dereg_mr)
REFUSE(ibv_cmd_destroy_ah)
REFUSE(ibv_cmd_destroy_counters)
REFUSE(ibv_cmd_destroy_cq)
REFUSE(ibv_cmd_destroy_flow)
REFUSE(ibv_cmd_destroy_flow_action)
REFUSE(ibv_cmd_destroy_qp)
REFUSE(ibv_cmd_destroy_rwq_ind_table)
REFUSE(ibv_cmd_destroy_srq)
REFUSE(ibv_cmd_destroy_wq)
REFUSE(ibv_cmd_detach_mcast)
REFUSE(ibv_cmd_free_dm)
REFUSE(ibv_cmd_modify_cq)
REFUSE(ibv_cmd_modify_flow_action_esp)
REFUSE(ibv_cmd_modify_qp)
REFUSE(ibv_cmd_modify_qp_ex)
REFUSE(ibv_cmd_modify_srq)
REFUSE(ibv_cmd_modify_wq)
REFUSE(ibv_cmd_open_qp)
REFUSE(ibv_cmd_open_xrcd)
REFUSE(ibv_cmd_poll_cq)
REFUSE(ibv_cmd_post_recv)
REFUSE(ibv_cmd_post_send)
REFUSE(ibv_cmd_post_srq_recv)
REFUSE(ibv_cmd_query_context)
REFUSE(ibv_cmd_query_device_any)
REFUSE(ibv_cmd_query_mr)
REFUSE(ibv_cmd_query_port)
REFUSE(ibv_cmd_query_qp)
REFUSE(ibv_cmd_query_srq)
REFUSE(ibv_cmd_read_counters)
REFUSE(ibv_cmd_reg_dm_mr)
REFUSE(ibv_cmd_reg_dmabuf_mr)
REFUSE(ibv_cmd_reg_mr)
REFUSE(ibv_cmd_req_notify_cq)
REFUSE(ibv_cmd_rereg_mr)
REFUSE(ibv_cmd_resize_cq)
REFUSE(ibv_read_ibdev_sysfs_file)
IGNORE(verbs_init_cq)
REFUSE_POINTER(verbs_open_device)
IGNORE(verbs_set_ops)
IGNORE(verbs_uninit_context)
REFUSE(ibv_cmd_get_context)
