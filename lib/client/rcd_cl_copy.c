/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The thread that makes copies for the engine.
 */
#include "rcd_cl_copy.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "rcd_copyq.h"

#define MASK        (RCD_COPYQ_JOBS - 1)
#define STACK_BYTES (256u << 10)
#define SPINS       20 /**< looks without work before it sleeps */
#define WAIT_S      3  /**< for a copy that is being made, at most */
#define GONE_MAX    64 /**< regions that went while copies of them were asked for */

/* A region that went: jobs of it with lower numbers are not begun any more. */
struct gone {
	uint32_t key;
	uint32_t before;
};

struct rcd_cl_copy {
	struct rcd_shm_hdr *shm;
	struct rcd_copyq *queue;
	int wake_fd;
	int mem_fd; /**< -1: not needed */
	pid_t pid;  /**< by which the kernel finds this process: of the thread itself */
	pthread_t thread;
	uint32_t done;
	uint32_t stop; /**< atomic */

	/* Of the job that is being carried out, and those that must not be. */
	pthread_mutex_t lock;
	pthread_cond_t idle;
	bool busy;
	uint32_t key;
	uint32_t gone_count;
	struct gone gone[GONE_MAX];
};

static void
cl_copy_tell_engine(struct rcd_cl_copy *copy)
{
	uint64_t one = 1;

	/* The index before the look, as the engine has it the other way round. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&copy->shm->sleeping, __ATOMIC_SEQ_CST) != 0 &&
		write(copy->wake_fd, &one, sizeof(one)) < 0) {
		/* Full: it is going to wake up anyway. */
	}
}

/*
 * Where the first way is forbidden, in some sandboxes: through a file of memory. Not through
 * /proc/self/mem, by which the kernel writes what the program made read-only.
 */
static ssize_t
cl_copy_through_file(struct rcd_cl_copy *copy, uint8_t *here, uint64_t addr, size_t len, bool to)
{
	void *there = (void *)(uintptr_t)addr;
	long count;

	if (copy->mem_fd < 0)
		copy->mem_fd = memfd_create("rocade-copy", MFD_CLOEXEC);
	if (copy->mem_fd < 0)
		return -1;
	count = syscall(SYS_pwrite64, copy->mem_fd, to ? here : there, len, 0L);
	if (count == (long)len)
		count = syscall(SYS_pread64, copy->mem_fd, to ? there : here, len, 0L);
	return count;
}

/* By the kernel, which says that memory is gone where a copy of our own would fault. */
static int
cl_copy_move(struct rcd_cl_copy *copy, uint8_t *here, uint64_t addr, size_t len, bool to)
{
	size_t tail = len < RCD_CACHE_LINE ? len : (addr + len - 1) % RCD_CACHE_LINE + 1;
	struct iovec local = { .iov_base = here, .iov_len = len };
	/* Who polls the end of a message takes what is in front of it for written. */
	struct iovec remote[2] = {
		{ .iov_base = (void *)(uintptr_t)addr, .iov_len = len - tail },
		{ .iov_base = (void *)(uintptr_t)(addr + len - tail), .iov_len = tail },
	};
	ssize_t count = to ? process_vm_writev(copy->pid, &local, 1, remote, 2, 0)
			   : process_vm_readv(copy->pid, &local, 1, remote, 2, 0);

	if (count < 0 && (errno == EPERM || errno == ENOSYS))
		count = cl_copy_through_file(copy, here, addr, len, to);
	return count == (ssize_t)len ? 0 : EFAULT;
}

static int
cl_copy_exchange(struct rcd_cl_copy *copy, const struct rcd_copyq_job *job, uint8_t *data)
{
	uint64_t found, next;
	int err = cl_copy_move(copy, data, job->addr, sizeof(found), false);

	if (err != 0)
		return err;
	memcpy(&found, data, sizeof(found));
	if (job->op == RCD_COPYQ_SWAP && found != job->compare)
		return 0;
	next = job->op == RCD_COPYQ_ADD ? found + job->operand : job->operand;
	return cl_copy_move(copy, (uint8_t *)&next, job->addr, sizeof(next), true);
}

static int
cl_copy_carry_out(struct rcd_cl_copy *copy, const struct rcd_copyq_job *job)
{
	uint8_t *data = copy->queue->arena + job->data;

	if (job->data > RCD_COPYQ_BYTES || job->len > RCD_COPYQ_BYTES - job->data)
		return EINVAL;
	switch ((enum rcd_copyq_op)job->op) {
	case RCD_COPYQ_NOTHING:
		return 0;
	case RCD_COPYQ_READ:
		return cl_copy_move(copy, data, job->addr, job->len, false);
	case RCD_COPYQ_WRITE:
		return cl_copy_move(copy, data, job->addr, job->len, true);
	case RCD_COPYQ_ADD:
	case RCD_COPYQ_SWAP:
		return job->len == sizeof(uint64_t) ? cl_copy_exchange(copy, job, data) : EINVAL;
	}
	return EINVAL;
}

/* Regions that went whose last job is behind us. With the lock. */
static void
cl_copy_sweep(struct rcd_cl_copy *copy)
{
	uint32_t done = rcd_shm_load(&copy->queue->done);

	for (uint32_t i = 0; i < copy->gone_count; i++)
		if ((int32_t)(copy->gone[i].before - done) <= 0)
			copy->gone[i--] = copy->gone[--copy->gone_count];
}

/* @return whether it may be carried out: its region is still there */
static bool
cl_copy_begin(struct rcd_cl_copy *copy, uint32_t key)
{
	bool may = true;

	pthread_mutex_lock(&copy->lock);
	cl_copy_sweep(copy);
	for (uint32_t i = 0; i < copy->gone_count; i++)
		may = may && copy->gone[i].key != key;
	copy->busy = may;
	copy->key = key;
	pthread_mutex_unlock(&copy->lock);
	return may;
}

static void
cl_copy_end(struct rcd_cl_copy *copy)
{
	pthread_mutex_lock(&copy->lock);
	copy->busy = false;
	pthread_cond_broadcast(&copy->idle);
	pthread_mutex_unlock(&copy->lock);
}

static bool
cl_copy_stopping(const struct rcd_cl_copy *copy)
{
	return __atomic_load_n(&copy->stop, __ATOMIC_SEQ_CST) != 0;
}

static void
cl_copy_work(struct rcd_cl_copy *copy)
{
	while (copy->done != rcd_shm_load(&copy->queue->posted) && !cl_copy_stopping(copy)) {
		struct rcd_copyq_job *slot = &copy->queue->jobs[copy->done & MASK];
		struct rcd_copyq_job job = *slot;

		slot->status = cl_copy_begin(copy, job.key)
			? (uint32_t)cl_copy_carry_out(copy, &job)
			: ECANCELED;
		rcd_shm_store(&copy->queue->done, ++copy->done);
		cl_copy_end(copy);
		cl_copy_tell_engine(copy);
	}
}

static void
cl_copy_sleep_until_posted(struct rcd_cl_copy *copy)
{
	uint32_t *asleep = &copy->queue->asleep;

	__atomic_store_n(asleep, 1, __ATOMIC_SEQ_CST);
	if (copy->done == __atomic_load_n(&copy->queue->posted, __ATOMIC_SEQ_CST) &&
		!cl_copy_stopping(copy))
		syscall(SYS_futex, asleep, FUTEX_WAIT, 1, NULL, NULL, 0);
	__atomic_store_n(asleep, 0, __ATOMIC_SEQ_CST);
}

static void *
cl_copy_run(void *arg)
{
	struct rcd_cl_copy *copy = arg;
	int spins = 0;

	/* The process's own number finds no memory when its first thread has ended. */
	copy->pid = (pid_t)syscall(SYS_gettid);
	while (!cl_copy_stopping(copy)) {
		if (copy->done != rcd_shm_load(&copy->queue->posted)) {
			cl_copy_work(copy);
			spins = 0;
		} else if (++spins < SPINS) {
			sched_yield();
		} else {
			cl_copy_sleep_until_posted(copy);
			spins = 0;
		}
	}
	return NULL;
}

static int
cl_copy_make_thread(struct rcd_cl_copy *copy)
{
	pthread_attr_t attr;
	sigset_t all, before;
	int err;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	/* Signals are the application's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&copy->thread, &attr, cl_copy_run, copy);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	if (err == 0)
		pthread_setname_np(copy->thread, "rocade-copy");
	return -err;
}

/* The engine makes one queue for each client: one that is there is used, if no thread was to be had
 * for it before. */
static int
cl_copy_open_queue(struct rcd_client *client)
{
	struct rcd_ctrl_copy_rep rep;
	uint64_t segment = client->shm_bytes + client->huge_bytes;
	int err;

	if (client->copy_offset != 0)
		return 0;
	err = rcd_client_call(client, RCD_CTRL_COPY_OPEN, NULL, &rep, NULL, NULL);
	if (err != 0)
		return err;
	if (rep.jobs != RCD_COPYQ_JOBS || rep.bytes != RCD_COPYQ_BYTES || rep.offset > segment ||
		sizeof(struct rcd_copyq) > segment - rep.offset)
		return -EPROTO;
	client->copy_offset = rep.offset;
	return 0;
}

int
rcd_cl_copy_start(struct rcd_client *client)
{
	struct rcd_cl_copy *copy;
	pthread_condattr_t attr;
	int err;

	if (client->copy != NULL)
		return 0;
	copy = calloc(1, sizeof(*copy));
	if (copy == NULL)
		return -ENOMEM;
	err = cl_copy_open_queue(client);
	if (err != 0) {
		free(copy);
		return err;
	}
	copy->shm = client->shm;
	copy->queue = (struct rcd_copyq *)(void *)((uint8_t *)client->shm + client->copy_offset);
	copy->wake_fd = client->wake_fd;
	copy->mem_fd = -1;
	pthread_mutex_init(&copy->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&copy->idle, &attr);
	pthread_condattr_destroy(&attr);
	err = cl_copy_make_thread(copy);
	if (err != 0) {
		pthread_mutex_destroy(&copy->lock);
		pthread_cond_destroy(&copy->idle);
		free(copy);
		return err;
	}
	client->copy = copy;
	return 0;
}

/* What may be waited for. */
static bool
cl_copy_is_idle(struct rcd_cl_copy *copy, const void *arg)
{
	(void)arg;
	return !copy->busy;
}

static bool
cl_copy_is_elsewhere(struct rcd_cl_copy *copy, const void *key)
{
	return !copy->busy || copy->key != *(const uint32_t *)key;
}

static bool
cl_copy_is_behind(struct rcd_cl_copy *copy, const void *number)
{
	return (int32_t)(rcd_shm_load(&copy->queue->done) - *(const uint32_t *)number) >= 0;
}

static bool
cl_copy_has_room(struct rcd_cl_copy *copy, const void *arg)
{
	(void)arg;
	cl_copy_sweep(copy);
	return copy->gone_count < GONE_MAX;
}

/* With the lock. @return whether it came to that */
static bool
cl_copy_wait_for(struct rcd_cl_copy *copy,
	bool (*reached)(struct rcd_cl_copy *copy, const void *arg), const void *arg)
{
	struct timespec until;
	int err = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += WAIT_S;
	while (err == 0 && !reached(copy, arg))
		err = pthread_cond_timedwait(&copy->idle, &copy->lock, &until);
	return err == 0;
}

bool
rcd_cl_copy_stop(struct rcd_client *client)
{
	struct rcd_cl_copy *copy = client->copy;
	bool ended;

	if (copy == NULL)
		return true;
	client->copy = NULL;
	__atomic_store_n(&copy->stop, 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&copy->queue->asleep, 0, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &copy->queue->asleep, FUTEX_WAKE, 1, NULL, NULL, 0);
	pthread_mutex_lock(&copy->lock);
	ended = cl_copy_wait_for(copy, cl_copy_is_idle, NULL);
	pthread_mutex_unlock(&copy->lock);
	if (!ended) {
		/* It has no use for the descriptor any more, which may be another file by then. */
		copy->wake_fd = -1;
		pthread_detach(copy->thread);
		return false;
	}
	pthread_join(copy->thread, NULL);
	if (copy->mem_fd >= 0)
		close(copy->mem_fd);
	pthread_mutex_destroy(&copy->lock);
	pthread_cond_destroy(&copy->idle);
	free(copy);
	return true;
}

bool
rcd_cl_copy_pause(struct rcd_client *client)
{
	struct rcd_cl_copy *copy = client->copy;
	bool idle;

	if (copy == NULL)
		return true;
	pthread_mutex_lock(&copy->lock);
	idle = cl_copy_wait_for(copy, cl_copy_is_idle, NULL);
	if (!idle)
		pthread_mutex_unlock(&copy->lock);
	return idle;
}

void
rcd_cl_copy_go_on(struct rcd_client *client)
{
	if (client->copy != NULL)
		pthread_mutex_unlock(&client->copy->lock);
}

int
rcd_cl_copy_forget(struct rcd_client *client, uint32_t key)
{
	struct rcd_cl_copy *copy = client->copy;
	bool right;

	if (copy == NULL)
		return 0;
	pthread_mutex_lock(&copy->lock);
	right = cl_copy_wait_for(copy, cl_copy_has_room, NULL);
	if (right) {
		copy->gone[copy->gone_count++] =
			(struct gone){ .key = key, .before = rcd_shm_load(&copy->queue->posted) };
		right = cl_copy_wait_for(copy, cl_copy_is_elsewhere, &key);
	}
	pthread_mutex_unlock(&copy->lock);
	return right ? 0 : -ETIMEDOUT;
}

int
rcd_cl_copy_drain(struct rcd_client *client)
{
	struct rcd_cl_copy *copy = client->copy;
	uint32_t number;
	bool right;

	if (copy == NULL)
		return 0;
	number = rcd_shm_load(&copy->queue->posted);
	pthread_mutex_lock(&copy->lock);
	right = cl_copy_wait_for(copy, cl_copy_is_behind, &number);
	pthread_mutex_unlock(&copy->lock);
	return right ? 0 : -ETIMEDOUT;
}
