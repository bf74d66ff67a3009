#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What a pipeline pays for an engine in it, beside testpmd: bench_nfv and testpmd's io mode on
ports of rings take turns. Prints medians, judges nothing. In hugepages, where 170 of 2 MiB are free
and hugetlbfs is mounted, as pipelines have them: else each packet waits for a page table.

    nfv.py BENCH_NFV [ROUNDS]
"""
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

BENCH = sys.argv[1]
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 5
FREE = int(re.search(r'HugePages_Free: *([0-9]+)',
                     pathlib.Path('/proc/meminfo').read_text(encoding='ascii'))[1])
MEMORY = ['-m', '320'] if FREE >= 170 else ['--no-huge', '-m', '512']
TESTPMD = ['dpdk-testpmd', '-l', '0-1', *MEMORY, '--no-pci', '--no-telemetry',
           '--file-prefix', f'nfv{os.getpid()}', '--vdev', 'net_ring0', '--vdev', 'net_ring1', '--',
           '-i', '--total-num-mbufs=8192', '--forward-mode=io']
WORDS = 'set record-core-cycles on\nstart tx_first 8\n'


def testpmd():
    """Cycles a packet, as it says itself."""
    process = subprocess.Popen(TESTPMD, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True)
    try:
        process.stdin.write(WORDS)
        process.stdin.flush()
        process.wait(timeout=3)
    except subprocess.TimeoutExpired:
        pass
    out, _ = process.communicate('stop\nquit\n', timeout=60)
    return float(re.search(r'CPU cycles/packet=([0-9.]+)', out)[1])


def bench():
    # Hosts slow a machine down whose cores were all busy.
    time.sleep(3)
    out = subprocess.run([BENCH, *MEMORY], capture_output=True, text=True, check=True).stdout
    return {match[1].strip(): float(match[2]) for match in
            re.finditer(r'^(\S.*?) {2,}([0-9.]+) +-?[0-9.]+$', out, re.M)}


def main():
    seen = {}
    for _ in range(ROUNDS):
        for name, cycles in ({'testpmd, io': testpmd()} | bench()).items():
            seen.setdefault(name, []).append(cycles)
    print('without hugepages' if '--no-huge' in MEMORY else 'in hugepages')
    print(f'{"cycles a packet, medians of " + str(ROUNDS):<36} {"":>6}')
    for name, values in seen.items():
        print(f'{name:<36} {statistics.median(values):6.1f}')


if __name__ == '__main__':
    main()
