/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The parts of rocade-bench:
 *
 *   main.c     EAL, the order of things, signals
 *   opts.c     what the user asks for
 *   rig.c      the engine, its two devices, a session for each end on each lcore; queue pairs
 *   worker.c   loops on EAL lcores, and what they do at the moment
 *   load.c     throughput: keep queues full
 *   pingpong.c latency: one message at a time
 *   ceiling.c  what this machine could do at best
 *   run.c      timed runs and what came of them
 *   turns.c    a run whose network is impaired by turns
 *   report.c   the closing table and JSON
 *   prompt.c   the interactive prompt
 *   hist.c     a histogram
 *   share.c    what impaired turns leave of the rate; the median
 *
 * Threads: main makes everything and asks; the control thread runs the engine's event loop; EAL
 * workers poll the engine, post and poll. A part of the traffic belongs to one worker, and what
 * main reads of it are counters.
 */
#ifndef BENCH_H
#define BENCH_H

#include <pthread.h>
#include <rte_common.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "hist.h"
#include "share.h"
#include "rcd_cl_mem.h"
#include "rcd_client.h"
#include "rcd_engine.h"
#include "rcd_mr.h"
#include "rcd_qp.h"
#include "rcd_stages.h"

#define BENCH_SIZES_MAX   32
#define BENCH_PARTS_MAX   16 /**< lcores that drive a side, at most */
#define BENCH_WORKERS_MAX 32
#define BENCH_POLL_MAX    64 /**< completions taken at once */

#define BENCH_TURN_MS_LEAST 20
#define BENCH_SEED_LEN      28 /**< bytes of ",seed=N" with its end */

#define BENCH_STAGE_SECONDS 0.5 /**< that the stages are measured for */

enum bench_op {
	BENCH_SEND,
	BENCH_WRITE,
	BENCH_WRITE_IMM,
	BENCH_READ,
	BENCH_CAS,
	BENCH_FAA,
};

#define BENCH_OP_COUNT 6

/** Where the application is. */
enum bench_client {
	BENCH_DIRECT, /**< on the lcore that polls the engine, between two polls */
	BENCH_SHM,    /**< on lcores of its own: everything goes through shared memory */
};

/** What the user asks for. */
struct bench_opts {
	enum bench_op op;
	enum rcd_qp_type service;
	uint32_t sizes[BENCH_SIZES_MAX]; /**< bytes of a message; several: a sweep */
	uint32_t size_count;
	uint32_t depth; /**< work requests of a queue pair under way */
	uint32_t qps;
	uint32_t sges;
	uint32_t mtu;    /**< path MTU; 0: the largest that the port does */
	uint32_t burst;  /**< packets that a poll of the engine receives and sends at most */
	uint32_t signal; /**< every so many work requests one asks for a completion */
	uint32_t inline_max;
	bool bidirectional;
	bool latency;
	bool ceilings;
	bool interactive;
	bool yield; /**< workers share cores */
	enum bench_client client;
	uint32_t lcores_per_side; /**< 0: one lcore drives both ends */
	char ports[2][256];       /**< EAL device arguments; both empty: the embedded wire */
	char impair[256];
	uint32_t turn_ms; /**< impaired in every other time so long; 0: all the time */
	int sack;         /**< enum rcd_sack_use */
	char cc[128]; /**< as rcd_cc_parse() takes it, of both devices; empty: auto, or not told */
	double seconds;
	uint32_t rounds; /**< of each size; medians are told */
	const char *json;
};

/** One end of a queue pair's connection. */
struct bench_qp {
	struct rcd_cl_qp cl;
	uint32_t in_flight;  /**< posted, not known to be complete */
	uint32_t unsignaled; /**< posted since one that asked for a completion */
	uint64_t tx_addr;
	uint64_t rx_addr;
	uint64_t remote_addr;
	uint32_t ah;
	uint32_t dest_qpn;
};

/** What a part has done. Written by its worker, read by main. */
struct bench_stats {
	uint64_t completed; /**< messages sent */
	uint64_t received;  /**< messages received */
	uint32_t failed;    /**< status of a failed completion, and of which queue pair */
	uint32_t failed_qp;
};

struct bench;

/** One end of the traffic of one lcore: a session with its queue pairs. */
struct bench_part {
	struct rcd_client client;
	struct rcd_ctrl_device_rep device;
	uint32_t pd;
	struct rcd_cl_cq cq;
	struct rcd_cl_mr mr;
	uint8_t *memory;
	uint64_t memory_len;
	struct rcd_ctrl_gids_rep gids;
	uint32_t gid_index;
	bool open;
	bool receives;  /**< has receives posted */
	bool requester; /**< sends */
	uint32_t qp_count;
	struct bench_qp *qps;
	struct bench_part *peer;
	struct bench *bench;
	struct bench_stats stats;
	bool begun; /**< all queues were filled once */

	/* Ping-pong. */
	bool waiting;
	uint8_t stamp;
	uint64_t begin_tsc;
	struct hist hist;
} __rte_cache_aligned;

/** What the workers do. */
enum bench_phase {
	BENCH_OFF,      /**< poll the engine alone */
	BENCH_PAUSE,    /**< take completions, post nothing */
	BENCH_LOAD,     /**< keep queues full */
	BENCH_PINGPONG, /**< one message at a time */
	BENCH_IO,       /**< forward what comes, as testpmd's io */
	BENCH_MACSWAP,  /**< likewise with addresses exchanged */
	BENCH_COPY,     /**< copy and CRC alone */
	BENCH_RELAY,    /**< words through shared memory */
};

/** An EAL lcore of ours. */
struct bench_worker {
	struct bench *bench;
	struct rcd_lcore *lcore; /**< NULL: it is the application's alone */
	uint32_t index;
	struct bench_part *parts[2];
	uint32_t part_count;
	clockid_t clock; /**< of the time that its thread had a core */
	uint32_t seen;   /**< phase that it is in */
	uint64_t done;   /**< of a ceiling: packets, bytes or rounds */
} __rte_cache_aligned;

/** Two threads that pass a word on. */
struct bench_relay {
	uint64_t there __rte_cache_aligned;
	uint64_t back __rte_cache_aligned;
};

/** Something for the control thread to do. */
struct bench_errand {
	void (*fn)(struct rcd_engine *engine, void *arg);
	void *arg;
	uint32_t done;
};

struct bench {
	struct bench_opts opts;
	uint32_t size;      /**< of the messages at the moment */
	uint32_t size_room; /**< largest that the memory has room for */
	struct rcd_engine *engine;
	char socket[108];
	pthread_t control;
	bool control_runs;
	uint32_t control_stop;
	struct bench_errand *errand;
	uint32_t phase; /**< enum bench_phase */
	uint32_t quit;
	uint32_t worker_count;
	struct bench_worker workers[BENCH_WORKERS_MAX];
	uint32_t part_count; /**< of each side */
	struct bench_part *parts[2];
	bool connected;
	bool failed; /**< a completion said so */
	uint32_t path_mtu;
	uint16_t port_ids[2];
	struct bench_relay relay;
	struct rte_mempool *pool; /**< of the ceilings */
	double clock_cycles;      /**< what reading the time-stamp counter costs */
};

extern volatile sig_atomic_t bench_stop;

#define BENCH_RECV_WR (UINT64_C(1) << 63) /**< of a wr_id */

/* opts.c */

extern const char *const bench_op_names[BENCH_OP_COUNT];
const char *
bench_service_name(enum rcd_qp_type service);

void
bench_opts_init(struct bench_opts *opts);

/** Whether it asks for --help or --version. */
bool
bench_opts_is_about(const char *word);

/** @return 0; 1: it was --help or --version; -EINVAL, and it was said why */
int
bench_opts_parse(struct bench_opts *opts, int argc, char **argv);

/** Set one by its name. @return 0 or -EINVAL, and it was said why */
int
bench_opts_set(struct bench_opts *opts, const char *name, const char *val);

/** Whether they make sense together. @return 0 or -EINVAL, and it was said why */
int
bench_opts_check(const struct bench_opts *opts);

/** EAL workers that they need. */
uint32_t
bench_opts_workers(const struct bench_opts *opts);

/* rig.c */

/** Make engine, devices, threads. @return 0, or -errno and it was said why */
int
bench_rig_init(struct bench *bench);
void
bench_rig_fini(struct bench *bench);

/** Make sessions and connected queue pairs as the options say, or make them anew. */
int
bench_rig_connect(struct bench *bench);
void
bench_rig_disconnect(struct bench *bench);

/** Have the control thread do something, and wait for it. */
void
bench_control_call(
	struct bench *bench, void (*fn)(struct rcd_engine *engine, void *arg), void *arg);

/** Change what net_impair does. @return 0, or -errno and it was said why */
int
bench_rig_impair(struct bench *bench, const char *args);

/* worker.c */

int
bench_worker_main(void *arg);

/** Have all workers in a phase. */
void
bench_phase_set(struct bench *bench, enum bench_phase phase);

/** Stop posting, and wait until nothing is under way. @return 0 or -ETIMEDOUT */
int
bench_drain(struct bench *bench);

/* load.c */

/** Before a run: all queues empty, receives posted. @return 0 or -errno */
int
bench_load_prepare(struct bench_part *part);

/** @param post whether to post more @return completions taken and requests posted */
uint32_t
bench_load_poll(struct bench_part *part, bool post);

/** Post one message; it has to be rung for. @return 0 or -errno */
int
bench_post(struct bench_part *part, struct bench_qp *qp, uint64_t wr_id, bool signaled);

/** Post a receive. @return 0 or -errno */
int
bench_post_recv(struct bench_part *part, struct bench_qp *qp);

/** Number of a queue pair in its part. */
static inline uint32_t
bench_qp_index(const struct bench_part *part, const struct bench_qp *qp)
{
	return (uint32_t)(qp - part->qps);
}

/* pingpong.c */

void
bench_pingpong_prepare(struct bench *bench);
uint32_t
bench_pingpong_poll(struct bench_part *part);

/* ceiling.c */

/** What this machine does at best. */
struct bench_ceilings {
	double io_pps;
	double macswap_pps;
	double copy_bps; /**< bytes of messages per second */
	double relay_ns; /**< there and back */
};

/** What a worker does in a phase that measures a ceiling, until the phase is another one. */
void
bench_ceiling_main(struct bench_worker *worker, enum bench_phase phase);

/** Make and free what they need. @return 0 or -ENOMEM */
int
bench_ceilings_init(struct bench *bench);
void
bench_ceilings_fini(struct bench *bench);

/** Measure them for the size of the moment. */
void
bench_ceilings_run(struct bench *bench, struct bench_ceilings *ceilings);

/* turns.c */

struct bench_rates;

/**
 * Let it run by turns, for as long as a round is and at least three of them.
 *
 * @param rates  of all of it
 * @param turns  rates in bytes per second, if the workers had cores all the time; measured if it
 *               came to its end, and the machine was the same in some of them
 */
void
bench_turns(struct bench *bench, struct bench_rates *rates, struct share *turns);

/* run.c */

/** Medians over the rounds of one size. */
struct bench_result {
	uint32_t size;
	double seconds;
	double messages; /**< per second, completed at the sender */
	double received; /**< per second; where the receiver is told */
	double bytes;    /**< of messages, per second */
	double packets;  /**< per second, acknowledges included */
	double cycles;   /**< of all engine lcores, per message */
	double cores;    /**< that the workers had: less where others run */
	uint64_t sent_again;
	/** Both devices', of all rounds, warming up included. */
	uint64_t counters[RCD_COUNTER_COUNT];
	bool has_stages;
	double stages[RCD_STAGE_COUNT]; /**< cycles per message */
	double stage_sum;
	bool has_latency;
	struct hist hist; /**< cycles */
	bool has_ceilings;
	struct bench_ceilings ceilings;
	uint32_t turn_rounds; /**< in which turns could be compared; 0: turns are not set */
	struct share turns;
};

/** Begin to post. @return 0 or -errno, and it was said */
int
bench_start(struct bench *bench);

/** Run one size. @return 0; -EIO: something failed, and it was said */
int
bench_run(struct bench *bench, struct bench_result *result);

/** Rates at the moment, since the last call. */
struct bench_rates {
	double seconds;
	double messages, received, bytes, packets;
	double cores; /**< that workers had, of as many as there are */
};

/** Counts at a moment. */
struct bench_mark {
	uint64_t ns;
	uint64_t completed, received, packets, again;
	uint64_t cores_ns; /**< that workers had a core */
};

void
bench_mark(struct bench *bench, struct bench_mark *mark);
void
bench_rates(const struct bench *bench, const struct bench_mark *from, const struct bench_mark *to,
	struct bench_rates *rates);

/** Say so once when a completion failed. @return whether one did */
bool
bench_check_failed(struct bench *bench);

/* report.c */

void
bench_report(const struct bench *bench, const struct bench_result *result);

/** All results of a sweep as JSON. @return 0 or -errno */
int
bench_report_json(const struct bench *bench, const struct bench_result *results, uint32_t count);

/* prompt.c */

void
bench_prompt(struct bench *bench);

#endif /* BENCH_H */
