#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Goal: DPDK's own tools show what the built drivers are and take, and take them.

    test_pmdinfo.py NET_IMPAIR NET_UDP
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'harness'))
import tap  # noqa: E402


PARAMS = {'net_impair': ('port=', 'drop=', 'duplicate=', 'reorder=', 'corrupt=', 'delay=', 'ecn=',
                         'seed='),
          'net_udp': ('iface=', 'port=', 'runs=', 'gro=', 'icrc=', 'buffer=')}


@tap.test
def dpdk_pmdinfo_shows_the_drivers():
    if shutil.which('dpdk-pmdinfo.py') is None:
        raise tap.Skip('no dpdk-pmdinfo.py here')
    for library, (name, params) in zip(sys.argv[1:], PARAMS.items()):
        done = subprocess.run(['dpdk-pmdinfo.py', library], capture_output=True, text=True,
                              check=False)
        tap.equal(done.returncode, 0, done.stderr)
        drivers = json.loads(done.stdout)
        tap.equal([driver['name'] for driver in drivers], [name], done.stdout)
        for key in params:
            tap.true(key in drivers[0]['params'], key)


@tap.test
def testpmd_sends_and_receives_by_net_udp():
    """Two ports on lo, in a namespace of its own: each sends to the other's."""
    if shutil.which('dpdk-testpmd') is None or shutil.which('unshare') is None:
        raise tap.Skip('no dpdk-testpmd here')
    environment = {key: val for key, val in os.environ.items() if key != 'LD_LIBRARY_PATH'}
    script = 'ip link set lo up && { sleep 3; echo; } | dpdk-testpmd --no-huge -m 128 --no-pci ' \
        f'--no-telemetry --file-prefix pmd{os.getpid()} -d {sys.argv[2]} ' \
        '--vdev net_udp0,iface=lo --vdev net_udp1,iface=lo,port=9 -- --total-num-mbufs 4096 ' \
        '--forward-mode txonly --tx-ip 127.0.0.1,127.0.0.1 --tx-udp 9,9 --no-flush-rx'
    done = subprocess.run(['unshare', '-n', 'sh', '-c', script], capture_output=True, text=True,
                          timeout=60, check=False, env=environment)
    tap.equal(done.returncode, 0, done.stdout + done.stderr)
    totals = [int(text) for text in re.findall('TX-packets: ([0-9]+)', done.stdout)]
    tap.true(totals and max(totals) > 1000, done.stdout)


if __name__ == '__main__':
    sys.exit(tap.run())
