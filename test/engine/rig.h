/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * An engine of a test's own, and nodes: a session with what a test needs of it, joined in pairs.
 * Everything that must succeed for a test to make sense is checked here and ends the program.
 */
#ifndef RIG_H
#define RIG_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "rcd_cl_mem.h"
#include "rcd_client.h"

/** Of what is done over and over, fewer where everything takes ten times as long. */
#ifdef __SANITIZE_THREAD__
#define RIG_TIMES(count) ((count) / 10)
#else
#define RIG_TIMES(count) (count)
#endif

/** For what must come: nothing but a fault takes so long, however busy the machine is. */
#define FOREVER_MS 180000

/** A running engine. */
struct rig {
	pid_t pid;
	char socket[108];
	char prefix[48];
};

/**
 * Start an engine. With ROCADED_CONFINED=USER in the environment it becomes that user, and a system
 * call that it is not known to make ends it.
 *
 * @param args  of rocaded behind "--", NULL-terminated; NULL: the embedded wire alone
 */
void
rig_start(struct rig *rig, const char *const *args);

/** Start one by the text of a configuration. @param wire  with the embedded wire besides */
void
rig_start_text(struct rig *rig, const char *text, bool wire);

/** Hold all of its threads, until SIGCONT: what comes meanwhile is one burst to it. */
void
rig_halt(const struct rig *rig);

/** Stop it by SIGTERM. @return its exit status, or -1 when it took longer than @p limit_ms */
int
rig_stop(struct rig *rig, int limit_ms);

/** Kill it with -9 and wait for its end. */
void
rig_kill(struct rig *rig);

/**
 * The answer to a request of administration in words, as rocade(8) takes them (words.c): JSON text
 * to free. @return NULL when it can't be had
 */
char *
rig_admin(const char *socket, const char *line);

/** A number in an answer: the value behind the first "key":. @return -1 when there is none */
long long
rig_number(const char *answer, const char *key);

/** A number in what an engine says of itself ("engine"). @return -1 when there is none */
long long
rig_engine(const struct rig *rig, const char *key);

/** Occurrences of a text in an answer. */
int
rig_count(const char *answer, const char *text);

/** Wait until an engine has this many sessions. @return whether it came to that */
int
rig_contexts(const struct rig *rig, int wanted, int limit_ms);

/** Whether an honest pair still transfers, and the engine ends well then. */
bool
rig_ends_well(struct rig *rig);

/** An address of the embedded wire: 10.77.0.@p last. */
struct rcd_ctrl_cm_addr
rig_addr(uint8_t last, uint16_t port);

/** The next event of a channel of CM. @return its kind; -1: none within the time */
int
rig_cm_event(struct rcd_client *client, uint32_t channel, struct rcd_ctrl_cm_event_rep *event,
	int limit_ms);

/** An honest pair of nodes in a child process: transfers and compares until it is told to stop. */
struct honest {
	pid_t pid;
	int stop; /**< writing end of a pipe */
};

struct honest
honest_start(const struct rig *rig);

/** Stop it. @return 0 when it finished each transfer, with right data */
int
honest_end(struct honest honest);

#define NODE_DEPTH 128

/** A session on a device with a protection domain, a completion queue and a queue pair. */
struct node {
	struct rcd_client client;
	struct rcd_ctrl_device_rep device;
	uint32_t pd;
	struct rcd_cl_cq cq;
	struct rcd_cl_qp qp;
	struct rcd_ctrl_gids_rep gids;
	uint32_t channel;
	int channel_fd;
	uint8_t *memory; /**< of node_memory() */
	uint64_t memory_len;
	struct rcd_cl_mr mr;
};

/** Connect and open a device by name. @return 0 or -errno */
int
node_try_open(struct node *node, const char *socket, const char *device);

/** The same with queue pair, and it must succeed. @param type enum rcd_qp_type */
void
node_open(struct node *node, const char *socket, const char *device, uint32_t type);

/** One more queue pair of a node. */
void
node_qp(struct node *node, uint32_t type, struct rcd_cl_qp *qp);

void
node_close(struct node *node);

/** Private anonymous memory, registered with all rights. */
void
node_memory(struct node *node, uint64_t len);

/** Index of a GID that is an IPv4 address, or (v4 0) a global IPv6 one; 0 when there is none. */
uint8_t
node_gid(const struct node *node, int v4);

/**
 * Codes of the time after which a packet is sent again. Two seconds, as an lcore that a busy
 * machine keeps waiting is no peer that has gone; 67 ms for who waits for the end of all tries.
 */
#define NODE_TIMEOUT       19
#define NODE_TIMEOUT_SHORT 14

/** The one that node_attr() gives. */
extern uint8_t node_timeout;

/** Attributes with which everything works. */
struct rcd_ctrl_qp_attr
node_attr(const struct node *node, const struct node *peer, int v4);

/** Take a queue pair to RTS. @return 0 or -errno of the first step that fails */
int
node_connect(struct rcd_cl_qp *qp, uint32_t type, struct rcd_ctrl_qp_attr attr);

/** Join two nodes' queue pairs over IPv4 or IPv6. */
void
node_join(struct node *a, struct node *b, uint32_t type, int v4);

/** Post one operation between the memories of two nodes, and ring. @return 0 or -errno */
int
node_write(struct node *from, struct node *to, uint8_t opcode, uint64_t offset, uint32_t len,
	uint64_t wr_id);

/** An address handle for another node. */
uint32_t
node_ah(struct node *from, const struct node *to, int v4);

/** Send a datagram from the beginning of a node's memory. */
int
node_datagram(struct node *from, const struct node *to, uint32_t ah, uint32_t len);

/** Post a receive into the node's own memory. */
int
node_recv(struct node *node, uint64_t offset, uint32_t len, uint64_t wr_id);

/** Wait for one completion. @return its status; -ETIMEDOUT; -EIO when the engine ended */
int
node_wait(struct node *node, struct rcd_cq_slot *slot, int limit_ms);

/** Milliseconds of a monotonic clock. */
uint64_t
now_ms(void);

/** Fill with bytes that depend on a seed and the place. */
void
fill(uint8_t *memory, uint64_t len, uint32_t seed);

/** Whether they are what fill() wrote. */
int
filled(const uint8_t *memory, uint64_t len, uint32_t seed);

/** End the program with a message unless a condition holds. */
#define MUST(condition)                                                                            \
	do {                                                                                       \
		if (!(condition))                                                                  \
			rig_die(#condition, __FILE__, __LINE__);                                   \
	} while (0)

void
rig_die(const char *what, const char *file, int line) __attribute__((noreturn));

#endif /* RIG_H */
