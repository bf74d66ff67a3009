#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Latency of programs that wait for a WRITE by looking at memory, on cores that they share with the
engine: such a program makes no call in which it could give its core away. Ways to schedule are
tried in turns, round by round; medians over the rounds are printed.

    polled.py ROCADED FOLDER_OF_LIBRARIES [ROUNDS]

Needs root (priorities) and ib_write_lat. Records, never gates.
"""
import ctypes
import os
import pathlib
import statistics
import struct
import subprocess
import sys
import tempfile
import time

ROCADED, LIBRARIES = map(os.path.abspath, sys.argv[1:3])
ROUNDS = int(sys.argv[3]) if len(sys.argv) > 3 else 5
ROCADE = pathlib.Path(__file__).resolve().parents[2] / 'usertools/rocade'
SYS_SCHED_SETATTR = 314  # x86-64
LIBC = ctypes.CDLL(None, use_errno=True)


def attributes(tid, nice=0, slice_ns=0):
    """SCHED_OTHER with a nice value and a slice of its own (Linux 6.12: 0.1 to 100 ms)."""
    attr = struct.pack('=IIQiIQQQ', 48, 0, 0, nice, 0, slice_ns, 0, 0)
    if LIBC.syscall(SYS_SCHED_SETATTR, tid, attr, 0) != 0:
        print(f'# thread {tid}: {os.strerror(ctypes.get_errno())}', file=sys.stderr)


# name: (idle policy, of the lcore, of the programs)
WAYS = {
    'yield': ('yield', {}, {}),
    'poll': ('poll', {}, {}),
    'sleep': ('sleep', {}, {}),
    'yield, lcore slice 0.1 ms': ('yield', {'slice_ns': 100000}, {}),
    'yield, all slices 0.1 ms': ('yield', {'slice_ns': 100000}, {'slice_ns': 100000}),
    'yield, programs nice 10': ('yield', {}, {'nice': 10}),
    'sleep, lcore slice 0.1 ms': ('sleep', {'slice_ns': 100000}, {}),
    'sleep, all slices 0.1 ms': ('sleep', {'slice_ns': 100000}, {'slice_ns': 100000}),
}


def figures(folder, way):
    idle, lcore, programs = WAYS[way]
    env = {**os.environ, 'ROCADE_SOCKET': f'{folder}/rocade.sock'}
    engine = subprocess.Popen([ROCADED, '--file-prefix', f'rcdpolled{os.getpid()}', '--no-huge',
                               '-m', '256', '--no-telemetry', '--', '--embedded-wire', '-o',
                               f'idle={idle}', '--socket', env['ROCADE_SOCKET']], env=env,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while subprocess.run([ROCADE, 'engine'], env=env, capture_output=True,
                             check=False).returncode:
            time.sleep(0.05)
        for task in pathlib.Path(f'/proc/{engine.pid}/task').iterdir():
            if (task / 'comm').read_text().startswith(('rte-worker', 'dpdk-worker')):
                attributes(int(task.name), **lcore)
        env['LD_LIBRARY_PATH'] = LIBRARIES
        command = ['timeout', '30', 'ib_write_lat', '-x', '1', '-F', '-s', '8', '-n', '300']

        def prepare():
            attributes(0, **programs)
        server = subprocess.Popen([*command, '-d', 'roce0'], env=env, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL, preexec_fn=prepare)
        time.sleep(0.5)
        client = subprocess.run([*command, '-d', 'roce1', '127.0.0.1'], env=env, text=True,
                                capture_output=True, preexec_fn=prepare, check=False)
        server.wait()
        for line in client.stdout.splitlines():
            words = line.split()
            # bytes iterations min max typical average deviation p99 p99.9
            if len(words) == 9 and words[0] == '8':
                return [float(words[i]) for i in (4, 5, 7)]
    finally:
        engine.terminate()
        engine.wait()
    return None


def main():
    found = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(ROUNDS):
            for way in WAYS:
                found[way].append(figures(folder, way) or [float('inf')] * 3)
    print('| way | typical us | average us | p99 us |\n|---|---|---|---|')
    for way, runs in found.items():
        print(f'| {way} | ' + ' | '.join(
            f'{statistics.median(run[i] for run in runs):.1f}' for i in range(3)) + ' |')


if __name__ == '__main__':
    main()
