/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * All other threads of this process stand still for a moment, without any right: for who may not
 * use userfaultfd. Private to lib/client; one call at a time, the caller holds the lock of
 * rcd_cl_mem.c.
 */
#ifndef RCD_CL_STOP_H
#define RCD_CL_STOP_H

#include <stdint.h>

/**
 * Call a function while no other thread of this process runs, in user space or in the kernel.
 *
 * A child process that shares all memory, and has descriptors like ours, stops them by ptrace, and
 * calls it. The function may make system calls by syscall() alone, and no others: a thread that
 * stands still may have any lock. What it opens or closes is the child's. Of waits that the kernel
 * would end with EINTR (signal(7)) those of epoll, semaphores, sigtimedwait(), io_getevents(),
 * io_uring_enter(), and of calls that read, write, accept or connect are begun again; those with a
 * timeout of theirs then have all of it before them. Other such calls, as of a device's driver, may
 * say EINTR. A program's PR_SET_PTRACER is lost where Yama would forbid this without one. Threads
 * that have ended stand still. x86-64 alone.
 *
 * @param patience_ns  for all threads together to stop
 * @return what the function returns; -EPERM: nobody may trace this process, somebody does, /proc is
 *         of another PID namespace, or the child was killed, as a sandbox may; -ETIMEDOUT: a thread
 *         does not stop; -E2BIG: too many threads; -EAGAIN: no memory, process or descriptor;
 *         -ENOSYS: not on this architecture. With these nothing was called.
 */
int
rcd_cl_stop_others(int (*fn)(void *arg), void *arg, int64_t patience_ns);

#endif /* RCD_CL_STOP_H */
