/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * All other threads of this process stand still for a moment, without any right: for who may not
 * use userfaultfd. Private to lib/client; one call at a time, the caller holds the lock of
 * rcd_cl_mem.c.
 */
#ifndef RCD_CL_STOP_H
#define RCD_CL_STOP_H

/**
 * Call a function while no other thread of this process runs, in user space or in the kernel.
 *
 * A child process that shares all memory and descriptors stops them by ptrace, and calls it. The
 * function may make system calls by syscall() alone, and no others: a thread that stands still may
 * have any lock. Waits that the kernel would end with EINTR are begun again; those with a timeout
 * of theirs then have all of it before them. A program's PR_SET_PTRACER is lost where Yama would
 * forbid this without one. x86-64 alone.
 *
 * @return what the function returns; -EPERM: nobody may trace this process, or somebody does;
 *         -ETIMEDOUT: a thread does not stop; -E2BIG: too many threads; -EAGAIN: no memory, process
 *         or descriptor; -ENOSYS: not on this architecture. With these nothing was called.
 */
int
rcd_cl_stop_others(int (*fn)(void *arg), void *arg);

#endif /* RCD_CL_STOP_H */
