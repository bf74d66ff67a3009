/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: memory of a region on demand may change at any moment of the traffic: nothing that was
 * written is lost, the engine lives, and a sandbox makes no difference. Method: the drop-in library
 * on an embedded wire; a thread changes memory, or a page is held by userfaultfd, while the other
 * side reads and writes; bytes are compared.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "demand.h"

#define SHARES RIG_TIMES(100u)

static uint32_t stop; /**< atomic */

/* Maps anew, empties and forks, as fast as it can. There is memory at all times. */
static void *
change_all_the_time(void *arg)
{
	for (uint32_t round = 0; !__atomic_load_n(&stop, __ATOMIC_RELAXED); round++) {
		uint8_t *page = at + round % PAGES * PAGE;

		if (round % 64 == 0) {
			pid_t pid = fork();

			if (pid == 0)
				_exit(0);
			MUST(pid > 0 && waitpid(pid, NULL, 0) == pid);
		}
		if (round % 2 == 0)
			map(page, 2 * PAGE > LEN - (size_t)(page - at) ? PAGE : 2 * PAGE,
				PROT_READ | PROT_WRITE);
		else
			MUST(madvise(page, PAGE, MADV_DONTNEED) == 0);
	}
	return arg;
}

static void
beneath_traffic(void)
{
	pthread_t thread;

	setup();
	map(at, LEN, PROT_READ | PROT_WRITE);
	stop = 0;
	MUST(pthread_create(&thread, NULL, change_all_the_time, NULL) == 0);
	for (uint32_t i = 0; i < RIG_TIMES(2000); i++) {
		fill(there.memory, SIDE_LEN, i);
		CU_ASSERT_EQUAL_FATAL(
			reach(IBV_WR_RDMA_WRITE, (uintptr_t)at + i % 8 * PAGE, SIDE_LEN, mr->rkey),
			IBV_WC_SUCCESS);
		CU_ASSERT_EQUAL_FATAL(
			reach(IBV_WR_RDMA_READ, (uintptr_t)at + i % 8 * PAGE, SIDE_LEN, mr->rkey),
			IBV_WC_SUCCESS);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	MUST(pthread_join(thread, NULL) == 0);
	is_written(at, at, SIDE_LEN, mr->rkey);
	is_read(at + PAGE, at + PAGE, SIDE_LEN, mr->rkey);
	teardown();
	CU_ASSERT_EQUAL(honest_end(honest_start(&rig)), 0);
}

static pthread_barrier_t barrier;

/* Registers the same memory as any other, which replaces it where it is. */
static void *
share_again(void *arg)
{
	for (uint32_t i = 0; i < SHARES; i++) {
		struct ibv_mr *shared;

		pthread_barrier_wait(&barrier);
		shared = ibv_reg_mr(here.pd, at, LEN, IBV_ACCESS_LOCAL_WRITE);
		MUST(shared != NULL && ibv_dereg_mr(shared) == 0);
		pthread_barrier_wait(&barrier);
	}
	return arg;
}

static void
shared_beneath_traffic(void)
{
	pthread_t thread;

	setup();
	MUST(pthread_barrier_init(&barrier, NULL, 2) == 0);
	MUST(pthread_create(&thread, NULL, share_again, NULL) == 0);
	for (uint32_t i = 0; i < SHARES; i++) {
		map(at, LEN, PROT_READ | PROT_WRITE);
		pthread_barrier_wait(&barrier);
		for (uint32_t k = 0; k < 20; k++)
			is_written(at + k % 8 * PAGE, at + k % 8 * PAGE, SIDE_LEN, mr->rkey);
		pthread_barrier_wait(&barrier);
	}
	MUST(pthread_join(thread, NULL) == 0);
	pthread_barrier_destroy(&barrier);
	teardown();
}

/* @return a descriptor by which a page waits; -1: that is not allowed here */
static int
hold_page(uint8_t *page)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .range = { (uintptr_t)page, PAGE },
		.mode = UFFDIO_REGISTER_MODE_MISSING };
	int uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	if (uffd < 0)
		return -1;
	MUST(ioctl(uffd, UFFDIO_API, &api) == 0 && ioctl(uffd, UFFDIO_REGISTER, &range) == 0);
	return uffd;
}

/* Whether a page was replaced by one that the engine has too. */
static bool
is_shared(const uint8_t *page)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	bool found = false;
	char line[512];

	while (maps != NULL && fgets(line, sizeof(line), maps) != NULL) {
		uintptr_t start = 0, end = 0;

		if (sscanf(line, "%lx-%lx", &start, &end) == 2 && (uintptr_t)page >= start &&
			(uintptr_t)page < end)
			found = strstr(line, "rocade-memory") != NULL;
	}
	if (maps != NULL)
		fclose(maps);
	return found;
}

/* A new page, registered as any other. @return whether that shared it */
static bool
shares_page(void)
{
	uint8_t *page = map(NULL, PAGE, PROT_READ | PROT_WRITE);
	struct ibv_mr *plain = ibv_reg_mr(here.pd, page, PAGE, IBV_ACCESS_LOCAL_WRITE);
	bool is = is_shared(page);

	MUST(plain != NULL);
	CU_ASSERT_EQUAL(ibv_dereg_mr(plain), 0);
	return is;
}

/* What the kernel waits for, and how it goes on. */
struct held {
	int uffd;
	struct uffdio_zeropage zeros;
};

/* The other side writes to memory that begins with a page that waits. */
static void
write_to_held(const struct held *held, uint64_t addr, uint32_t rkey)
{
	struct ibv_sge sge;
	struct ibv_send_wr *bad,
		wr = { .sg_list = &sge,
			.num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED };
	struct pollfd fault = { .fd = held->uffd, .events = POLLIN };

	sge = (struct ibv_sge){ (uintptr_t)there.memory, 100, there.mr->lkey };
	wr.wr.rdma.remote_addr = addr;
	wr.wr.rdma.rkey = rkey;
	CU_ASSERT_EQUAL(ibv_post_send(there.qp, &wr, &bad), 0);
	CU_ASSERT_EQUAL_FATAL(poll(&fault, 1, FOREVER_MS), 1);
}

/* Behind setup(). @return whether the page waits; false: it is not allowed, and all is torn down */
static bool
hold(struct held *held, uint8_t *page)
{
	*held = (struct held){ hold_page(page), { .range = { (uintptr_t)page, PAGE } } };
	if (held->uffd >= 0)
		return true;
	teardown();
	rcd_tap_skip("userfaultfd is not allowed here");
	return false;
}

/* A copy to the region waits. @return false: that is not allowed here */
static bool
hold_a_copy(struct held *held)
{
	setup();
	map(at, LEN, PROT_READ | PROT_WRITE);
	if (!hold(held, at))
		return false;
	write_to_held(held, (uintptr_t)at, mr->rkey);
	return true;
}

/*
 * What the kernel has begun to write goes where the memory was, so that nothing is replaced
 * meanwhile: with a page that waits there is always such a write.
 */
static void
shared_beside_a_copy(void)
{
	struct ibv_wc wc = { .status = IBV_WC_GENERAL_ERR };
	struct held held;

	if (!hold_a_copy(&held))
		return;
	CU_ASSERT(!shares_page());
	CU_ASSERT_EQUAL(ioctl(held.uffd, UFFDIO_ZEROPAGE, &held.zeros), 0);
	for (uint64_t end = now_ms() + FOREVER_MS; now_ms() < end;)
		if (ibv_poll_cq(there.cq, 1, &wc) == 1)
			break;
	CU_ASSERT_EQUAL(wc.status, IBV_WC_SUCCESS);
	CU_ASSERT(memcmp(at, there.memory, 100) == 0);
	CU_ASSERT(shares_page());
	close(held.uffd);
	teardown();
}

#define MAPPINGS 64u /* each waited for alone: longer than forever */

/* A registration waits for the copy once, however many mappings it has: all others wait for it. */
static void
waited_for_once(void)
{
	uint64_t begin = now_ms();
	struct ibv_mr *plain;
	struct held held;
	uint8_t *pages;

	if (!hold_a_copy(&held))
		return;
	pages = map(NULL, MAPPINGS * PAGE, PROT_READ | PROT_WRITE);
	for (uint32_t i = 0; i < MAPPINGS; i += 2)
		MUST(madvise(pages + i * PAGE, PAGE, MADV_DONTDUMP) == 0);
	plain = ibv_reg_mr(here.pd, pages, MAPPINGS * PAGE, IBV_ACCESS_LOCAL_WRITE);
	MUST(plain != NULL);
	CU_ASSERT(now_ms() - begin < FOREVER_MS);
	CU_ASSERT(!is_shared(pages));
	CU_ASSERT_EQUAL(ioctl(held.uffd, UFFDIO_ZEROPAGE, &held.zeros), 0);
	CU_ASSERT_EQUAL(ibv_dereg_mr(plain), 0);
	munmap(pages, MAPPINGS * PAGE);
	close(held.uffd);
	teardown();
}

/* It can't end while a copy of it waits, and does when that is over. */
static void
ends_beside_a_copy(void)
{
	struct held held;

	if (!hold_a_copy(&held))
		return;
	CU_ASSERT_EQUAL(ibv_dereg_mr(mr), ETIMEDOUT);
	CU_ASSERT_EQUAL(ioctl(held.uffd, UFFDIO_ZEROPAGE, &held.zeros), 0);
	CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
	mr = ibv_reg_mr(here.pd, at, LEN, ALL);
	MUST(mr != NULL);
	close(held.uffd);
	teardown();
}

/* Where a file of this name is mapped. @return NULL: nowhere */
static uint8_t *
mapping_of(const char *name)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	uintptr_t found = 0, start;
	char line[512];

	while (maps != NULL && fgets(line, sizeof(line), maps) != NULL)
		if (strstr(line, name) != NULL && sscanf(line, "%lx-", &start) == 1)
			found = start;
	if (maps != NULL)
		fclose(maps);
	return (uint8_t *)found;
}

/* What a region by descriptor maps stays: else the copy goes to what comes to its addresses. */
static void
mapped_beside_a_copy(void)
{
	int fd = memfd_create("demand-held", MFD_CLOEXEC);
	struct ibv_mr *buffer;
	struct held held;

	setup();
	MUST(fd >= 0 && ftruncate(fd, PAGE) == 0);
	setenv("ROCADE_MR", "copy", 1);
	buffer = ibv_reg_dmabuf_mr(
		here.pd, 0, PAGE, 0, fd, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	unsetenv("ROCADE_MR");
	MUST(buffer != NULL);
	MUST(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGE) == 0);
	if (!hold(&held, mapping_of("demand-held")))
		return;
	write_to_held(&held, 0, buffer->rkey);
	CU_ASSERT_EQUAL(ibv_dereg_mr(buffer), ETIMEDOUT);
	CU_ASSERT_PTR_NOT_NULL(mapping_of("demand-held"));
	CU_ASSERT_EQUAL(ioctl(held.uffd, UFFDIO_ZEROPAGE, &held.zeros), 0);
	CU_ASSERT_EQUAL(ibv_dereg_mr(buffer), 0);
	CU_ASSERT_PTR_NULL(mapping_of("demand-held"));
	close(held.uffd);
	close(fd);
	teardown();
}

/* As some sandboxes do: these calls are not permitted. */
static int
forbid_process_vm(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
		? prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)
		: -1;
}

/* @return what went wrong; 0: nothing */
static int
sandboxed(void)
{
	if (forbid_process_vm() != 0)
		return 1;
	setup();
	map(at, PAGE, PROT_READ | PROT_WRITE);
	fill(there.memory, PAGE, 3);
	if (reach(IBV_WR_RDMA_WRITE, (uintptr_t)at, PAGE, mr->rkey) != IBV_WC_SUCCESS ||
		!filled(at, PAGE, 3))
		return 2;
	memset(there.memory, 0, PAGE);
	if (reach(IBV_WR_RDMA_READ, (uintptr_t)at, PAGE, mr->rkey) != IBV_WC_SUCCESS ||
		!filled(there.memory, PAGE, 3))
		return 3;
	memset(there.memory, 0, PAGE);
	MUST(mprotect(at, PAGE, PROT_READ) == 0);
	if (reach(IBV_WR_RDMA_WRITE, (uintptr_t)at, 8, mr->rkey) != IBV_WC_REM_ACCESS_ERR ||
		!filled(at, PAGE, 3))
		return 4;
	begin_anew();
	if (reach(IBV_WR_RDMA_READ, (uintptr_t)at + PAGE, 8, mr->rkey) != IBV_WC_REM_ACCESS_ERR)
		return 5;
	teardown();
	return 0;
}

static void
in_a_sandbox(void)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0)
		_exit(sandboxed());
	MUST(pid > 0 && waitpid(pid, &status, 0) == pid);
	CU_ASSERT_EQUAL(status, 0);
}

/* @return as sandboxed() */
static void *
work_alone(void *arg)
{
	uint8_t byte = 0;
	struct iovec here_is = { &byte, 1 }, there_is = { &byte, 1 };

	/* Until the first thread has ended, and the kernel has forgotten its memory. */
	while (process_vm_readv(getpid(), &here_is, 1, &there_is, 1, 0) == 1)
		usleep(1000);
	fill(there.memory, PAGE, 5);
	if (reach(IBV_WR_RDMA_WRITE, (uintptr_t)at, PAGE, mr->rkey) != IBV_WC_SUCCESS ||
		!filled(at, PAGE, 5))
		_exit(2);
	_exit(0);
	return arg;
}

static void
behind_the_first_thread(void)
{
	pthread_t thread;
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		setup();
		map(at, PAGE, PROT_READ | PROT_WRITE);
		MUST(pthread_create(&thread, NULL, work_alone, NULL) == 0);
		pthread_exit(NULL);
	}
	MUST(pid > 0 && waitpid(pid, &status, 0) == pid);
	CU_ASSERT_EQUAL(status, 0);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		{ "a sandbox changes nothing", in_a_sandbox },
		{ "a program goes on when its first thread has ended", behind_the_first_thread },
		{ "memory changes beneath traffic", beneath_traffic },
		{ "memory is shared beneath traffic", shared_beneath_traffic },
		{ "memory is not shared while a copy is made", shared_beside_a_copy },
		{ "a registration waits for a copy once", waited_for_once },
		{ "a region ends when its last copy has", ends_beside_a_copy },
		{ "a buffer stays mapped until its last copy has ended", mapped_beside_a_copy },
	};

	return demand_run("demand_beneath", tests, sizeof(tests) / sizeof(tests[0]));
}
