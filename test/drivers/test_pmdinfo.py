#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Goal: DPDK's own tool shows what the built driver is and takes.

    test_pmdinfo.py LIBRARY
"""
import json
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'harness'))
import tap  # noqa: E402


@tap.test
def dpdk_pmdinfo_shows_the_driver():
    if shutil.which('dpdk-pmdinfo.py') is None:
        raise tap.Skip('no dpdk-pmdinfo.py here')
    done = subprocess.run(['dpdk-pmdinfo.py', sys.argv[1]], capture_output=True, text=True,
                          check=False)
    tap.equal(done.returncode, 0, done.stderr)
    drivers = json.loads(done.stdout)
    tap.equal([driver['name'] for driver in drivers], ['net_impair'], done.stdout)
    for key in ('port=', 'drop=', 'duplicate=', 'reorder=', 'corrupt=', 'delay=', 'ecn=', 'seed='):
        tap.true(key in drivers[0]['params'], key)


if __name__ == '__main__':
    sys.exit(tap.run())
