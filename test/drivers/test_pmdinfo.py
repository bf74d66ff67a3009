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
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'harness'))
import tap  # noqa: E402


PARAMS = {'net_impair': ('port=', 'drop=', 'duplicate=', 'reorder=', 'corrupt=', 'delay=', 'ecn=',
                         'seed=', 'ge_p=', 'delay_dist=', 'rate=', 'mark='),
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
def testpmd_takes_net_udp():
    """Two ports on lo, in a namespace of its own: one sends to the other."""
    if shutil.which('dpdk-testpmd') is None or shutil.which('unshare') is None:
        raise tap.Skip('no dpdk-testpmd here')
    if subprocess.run(['unshare', '-n', 'true'], capture_output=True, check=False).returncode:
        raise tap.Skip('no network namespaces here')
    if b'__asan_init' in pathlib.Path(sys.argv[2]).read_bytes():
        raise tap.Skip('a program without the sanitizer takes no driver with it')
    # EAL takes no driver below a folder that anybody may write to, as those of many clones are.
    if os.stat('/run').st_mode & 0o022 or not os.access('/run', os.W_OK):
        raise tap.Skip('no folder that EAL takes drivers from')
    folder = tempfile.mkdtemp(prefix='rcdpmd', dir='/run')
    try:
        driver = shutil.copy(sys.argv[2], folder)
        # On a busy machine nothing may be sent in so short a time.
        tap.true(any(testpmd_sends(driver, seconds) for seconds in (1, 10, 60)), 'nothing is sent')
    finally:
        shutil.rmtree(folder)


def testpmd_sends(driver, seconds):
    """How many packets, within so many seconds."""
    environment = {key: val for key, val in os.environ.items() if key != 'LD_LIBRARY_PATH'}
    script = 'ip link set lo up && ' \
        'exec stdbuf -oL dpdk-testpmd --no-huge -m 128 --no-pci ' \
        f'--no-telemetry --file-prefix pmd{os.getpid()} -d {driver} ' \
        '--vdev net_udp0,iface=lo --vdev net_udp1,iface=lo,port=4792 -- ' \
        '--total-num-mbufs 4096 --no-flush-rx ' \
        '--forward-mode txonly --tx-ip 127.0.0.1,127.0.0.1 --tx-udp 4792,4792'
    with subprocess.Popen(['unshare', '-n', 'sh', '-c', script], stdin=subprocess.PIPE, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env=environment) as testpmd:
        said = ''
        for line in testpmd.stdout:
            said += line
            if 'Press enter' in line:
                break
        time.sleep(seconds)
        said += testpmd.communicate('\n', timeout=tap.PATIENCE)[0]
    tap.equal(testpmd.returncode, 0, said)
    return max(map(int, re.findall('TX-packets: ([0-9]+)', said)))


if __name__ == '__main__':
    sys.exit(tap.run())
