/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A veth whose both ends are up carries nothing yet: the kernel gives the end that was up first its
 * queue later, when a worker of its own gets to it, and until then drops all without a word.
 */
#ifndef RCD_VETH_H
#define RCD_VETH_H

#include <stdio.h>
#include <stdlib.h>

/**
 * Wait until an interface of this namespace has what its carrier brings.
 *
 * The state is written where the queue is given, under the lock that a change of the interface
 * takes, too: after one, both are there.
 *
 * @return 0; otherwise: ten seconds were not enough
 */
static inline int
rcd_veth_wait(const char *name)
{
	char command[256];

	snprintf(command, sizeof(command),
		"for i in $(seq 1000); do ip -o link show dev %s | grep -q 'state UP' && "
		"exec ip link set %s up; sleep 0.01; done; exit 1",
		name, name);
	return system(command);
}

#endif /* RCD_VETH_H */
