# SPDX-License-Identifier: BSD-3-Clause
"""An engine polls for ever: none is left behind by a test that ends early.

PR_SET_PDEATHSIG would be lost when an engine becomes another user. Standard library only.
"""
import os
import select
import signal


def leash(pid):
    """Have a process killed should this one end before it, however it ends."""
    ends = os.pidfd_open(os.getpid()), os.pidfd_open(pid)
    child = os.fork()
    if child == 0:
        try:
            os.setsid()
            if os.fork() == 0:
                os.dup2(ends[0], 0)
                os.dup2(ends[1], 1)
                os.closerange(2, 65536)
                if 1 not in select.select([0, 1], [], [])[0]:
                    signal.pidfd_send_signal(1, signal.SIGKILL)
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    for end in ends:
        os.close(end)
