#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Goal: rocade-compare measures every system that this machine has and writes what it promises.
Method: the shortest run; figures are looked at for being there, never for being good.

    test_compare.py BUILD
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'harness'))
import confine  # noqa: E402
import tap  # noqa: E402

PROGRAM = pathlib.Path(__file__).parents[2] / 'usertools/rocade_compare.py'
TOOLS = 'qperf', 'ucx_perftest', 'gnuplot', 'iperf3', 'ib_send_bw'
SYSTEMS = ('Rocade, embedded wire', 'Rocade, veth', 'TCP over veth, iperf3', 'TCP over veth, qperf',
           'UCX over TCP over veth')


@tap.test
def the_shortest_run():
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        raise tap.Skip(f'not here: {" ".join(missing)}')
    probe = f'rcdprobe{os.getpid()}'
    made = subprocess.run(['ip', 'netns', 'add', probe], capture_output=True, check=False)
    usable = subprocess.run(['ip', 'netns', 'exec', probe, 'true'], capture_output=True,
                            check=False)
    subprocess.run(['ip', 'netns', 'del', probe], capture_output=True, check=False)
    if made.returncode or usable.returncode:
        raise tap.Skip('no network namespaces here')
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([sys.executable, str(PROGRAM), '--build', sys.argv[1], '--quick',
                               '--rounds', '1', *confine.OPTIONS, folder],
                              capture_output=True, text=True, timeout=300, check=False)
        tap.equal(done.returncode, 0, done.stderr[-800:])
        out = pathlib.Path(folder)
        rows = (out / 'compare.csv').read_text().splitlines()[1:]
        for system in SYSTEMS:
            for kind in ('bandwidth', 'latency'):
                if (kind, system) == ('latency', 'TCP over veth, iperf3'):
                    continue
                tap.true(any(row.startswith(f'{kind},"{system}"') for row in rows),
                         f'{kind} of {system}: {rows} {done.stderr[-500:]}')
        table = (out / 'compare.md').read_text()
        tap.true('| 65536 B |' in table, table)
        for kind in 'bandwidth', 'latency':
            tap.true('</svg>' in (out / f'{kind}.svg').read_text(), f'{kind}.svg')


sys.exit(tap.run())
