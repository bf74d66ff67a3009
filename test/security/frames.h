/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Frames for tests of raw packets, and devices that have such.
 */
#ifndef FRAMES_H
#define FRAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "rcd_client.h"

struct node;

/** EtherType for local experiments (IEEE 802). */
#define FRAMES_TYPE 0x88b5

/** An Ethernet header to a group, and bytes behind it. @param len  of the frame, bytes */
void
frames_make(uint8_t *frame, uint32_t len, uint16_t type, uint8_t what);

/** UDP in IPv4, with sums of 0. @param len  42 or more */
void
frames_make_udp(uint8_t *frame, uint32_t len, uint16_t port);

/** Whether a frame is of the engines themselves: they ask for neighbours now and then. */
bool
frames_are_of_link(const uint8_t *frame);

/** A flow of all frames. @param kind  enum rcd_flow_kind */
struct rcd_ctrl_flow_req
frames_flow_of(const struct rcd_cl_qp *qp, uint8_t kind);

/** One of those of an EtherType. */
struct rcd_ctrl_flow_req
frames_flow_of_type(const struct rcd_cl_qp *qp, uint16_t type);

/** Make it. @param handle  set then; NULL: of no interest @return 0 or -errno */
int
frames_flow_create(struct node *node, const struct rcd_ctrl_flow_req *req, uint32_t *handle);

/** Take a queue pair of raw packets to a state. @return 0 or -errno */
int
frames_to_state(struct rcd_cl_qp *qp, uint8_t state);

/** Take it to RTS, from RESET. */
void
frames_ready(struct rcd_cl_qp *qp);

/** A node whose queue pair is of raw packets and ready. @param len  of its memory, bytes */
void
frames_open(struct node *node, const char *socket, const char *device, uint32_t len);

/** Post the frame that the memory of a node begins with. @param flags  RCD_SEND_... */
int
frames_post(struct node *node, uint32_t len, uint8_t flags);

/** And wait. @return status of its completion */
int
frames_send(struct node *node, uint32_t len, uint8_t flags);

/** Change something of both devices of an embedded wire. @param what  an option of "link set" */
void
frames_set(const char *socket, const char *what);

#endif /* FRAMES_H */
