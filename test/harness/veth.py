# SPDX-License-Identifier: BSD-3-Clause
"""A veth whose both ends are up carries nothing yet: the kernel gives the end that was up first its
queue later, when a worker of its own gets to it, and until then drops all without a word."""
import subprocess

import tap


def wait(space, dev):
    """Until an interface of a namespace, or of this one (None), has what its carrier brings.

    The state is written where the queue is given, under the lock that a change of the interface
    takes, too: after one, both are there."""
    command = ['ip', *([] if space is None else ['-n', space])]

    def is_up():
        return b'state UP' in subprocess.run([*command, '-o', 'link', 'show', 'dev', dev],
                                             capture_output=True, check=False).stdout
    tap.wait_until(f'{dev} up', is_up)
    subprocess.run([*command, 'link', 'set', dev, 'up'], check=True)
