/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Channels of CM events. An event waits here until the client takes it, so that what waits of an
 * identifier goes with it; the channel's stream has a byte for each, for poll(2) to see. Bytes for
 * which it has no room follow as the client takes events; where it takes none, because not even one
 * fitted, they are tried again.
 *
 * Threads: the control thread.
 */
#ifndef RCD_CMA_EVENT_H
#define RCD_CMA_EVENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "rcd_alarm.h"
#include "rcd_ctrl.h"

/** Events of librdmacm, numbers as there. */
enum rcd_cma_event_type {
#define RCD_CM_EVENT(symbol, number) RCD_CMA_EVENT_##symbol = (number),
#include "rcd_number.def"
};

struct rcd_cma;
struct rcd_cma_client;
struct rcd_cma_group;
struct rcd_cmid;

/** An event that waits. */
struct rcd_cma_event {
	TAILQ_ENTRY(rcd_cma_event) link;    /**< of its channel */
	TAILQ_ENTRY(rcd_cma_event) of_link; /**< of those of the same identifier */
	struct rcd_cmid *of;                /**< goes with it: for a request, the listener */
	struct rcd_ctrl_cm_event_rep rep;
};

/** A channel of events. */
struct rcd_cma_channel {
	struct rcd_cma *cma;
	uint32_t handle;
	uint32_t users; /**< identifiers */
	int sock;       /**< sending end: a byte for each event */
	uint32_t count;
	uint32_t untold;        /**< events whose byte did not fit */
	uint32_t in_vain;       /**< alarms since one fitted */
	struct rcd_alarm again; /**< set while it has none of them: nothing makes the client look */
	bool waits;             /**< the alarm is set */
	TAILQ_HEAD(, rcd_cma_event) events;
};

/** @param fd  set to the end that is the client's. @return 0; -ENOMEM; of the stream, -errno */
int
rcd_cma_channel_create(struct rcd_cma_client *client, uint32_t *handle, int *fd);

/** @return 0; -ENOENT; -EBUSY: it has identifiers */
int
rcd_cma_channel_destroy(struct rcd_cma_client *client, uint32_t handle);

/** @return NULL: the client has none with this number */
struct rcd_cma_channel *
rcd_cma_channel_get(const struct rcd_cma_client *client, uint32_t handle);

/**
 * An event of an identifier, all but its kind zero, for which its client is charged.
 *
 * @return NULL, and it is counted as lost
 */
struct rcd_cma_event *
rcd_cma_event(struct rcd_cmid *id, enum rcd_cma_event_type type, int status);

/** Free one that waits nowhere. */
void
rcd_cma_event_free(struct rcd_cma_event *event);

/** Let it wait in the channel of whom it is of. Takes it. */
void
rcd_cma_event_post(struct rcd_cma_event *event);

/** Both, for an event that says no more than its kind. */
void
rcd_cma_event_tell(struct rcd_cmid *id, enum rcd_cma_event_type type, int status);

/** Take the oldest. @return 0 or -EAGAIN */
int
rcd_cma_event_take(struct rcd_cma_client *client, struct rcd_cma_channel *channel,
	struct rcd_ctrl_cm_event_rep *rep);

/** Remove what waits of an identifier, or of one group of it. @return how many events */
uint32_t
rcd_cma_event_purge(struct rcd_cmid *id, const struct rcd_cma_group *group);

/** Take an identifier and what waits of it to another channel. @return how many events */
uint32_t
rcd_cma_event_migrate(struct rcd_cmid *id, struct rcd_cma_channel *channel);

/** Forget all that waits for a client: it takes nothing any more. */
void
rcd_cma_events_end(struct rcd_cma_client *client);

/** Free a client's channels. */
void
rcd_cma_channels_end(struct rcd_cma_client *client);

#endif /* RCD_CMA_EVENT_H */
