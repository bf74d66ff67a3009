#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What is left of the rate where the network loses, delays or is too narrow: rocade-bench over the
embedded wire with net_impair before both ends. Networks are tried in turns, round by round, each as
a share of the rate of the same round on a network that loses next to nothing; medians over the
rounds are printed as tables in Markdown. Where the processor is the limit a rate is that of a
second that the lcore had its core for. So a machine that others use tells less, not something else.

    lossy.py ROCADE_BENCH [--rounds N] [--seconds N] [--only PATTERN] [--network PATTERN]

Records, never gates.
"""
import argparse
import collections
import datetime
import json
import math
import re
import statistics
import subprocess
import sys

from rounds import busy_cores

# name: (options, share at a loss of 1 % that issue 22 asks for)
TRAFFIC = {
    'WRITE 64 KiB, 1 QP': (('-o', 'write', '-q', '1'), '95 %'),
    'WRITE 64 KiB, 16 QPs': (('-o', 'write', '-q', '16'), '97 %'),
    'READ 64 KiB, 16 QPs': (('-o', 'read', '-q', '16'), '90 %'),
    'WRITE 64 KiB, one at a time': (('-o', 'write', '-q', '1', '-d', '1', '-n', '1'), '33 %'),
}
# It draws for each packet, as the others do, and loses one in 2^32: the least there is.
NOTHING = 'drop=0.00000003%,seed=1'
# Bursts lose 1 % as well: 0.25253 / (0.25253 + 25), four packets each in the mean.
DAMAGE = {
    'loss 1 %': 'drop=1%,seed=1',
    'loss 1 % in bursts': 'ge_p=0.25253%,ge_r=25%,seed=1',
    'reordering 1 %': 'reorder=1%,seed=1',
    'jitter, 1 %': 'delay=1%,delay_us=50,delay_dist=pareto,jitter_us=20,delay_max_us=1000,seed=1',
}
RATE = 100_000_000
NARROW = {
    'queue of 1 MB': f'rate={RATE},queue=1000000,seed=1',
    'queue of 100 kB': f'rate={RATE},queue=100000,seed=1',
    'queue of 100 kB, marks behind 30 kB': f'rate={RATE},queue=100000,mark=30000,seed=1',
    'queue of 100 kB, 200 us long':
        f'rate={RATE},queue=100000,delay=1,delay_us=100,seed=1',
}


def bench(args, traffic, impair):
    """Bytes of messages in a second, and packets sent again for each that was sent; of a queue pair
    that gave up, zero and infinitely many."""
    done = subprocess.run([args.bench, '--', '-s', '64K', *TRAFFIC[traffic][0], '-D',
                           str(args.seconds), '--impair', impair, '-j', '-'],
                          capture_output=True, text=True, check=False)
    if 'retry count exceeded' in done.stderr:
        return 0, math.inf
    if done.returncode:
        raise SystemExit(f'{traffic}, {impair}: {done.stderr}{done.stdout}')
    result = json.loads(done.stdout[done.stdout.index('\n{') if not done.stdout.startswith('{')
                                    else 0:])['results'][0]
    packets = result['packets_per_s'] * args.seconds
    again = result['packets_sent_again'] / packets if packets else 0
    # Where a rate of the network is the limit, a core that is away is not missed.
    if 'rate=' in impair:
        return result['bytes_per_s'], again
    return result['bytes_per_s'] / max(result['cores_had'], 0.01), again


def cell(shares, again=None):
    """Medians; "gave up", of how many rounds, where a queue pair did."""
    lost = sum(share == 0 for share in shares)
    if lost:
        return f'gave up, {lost} of {len(shares)}'
    text = f'{statistics.median(shares):.1%}'
    return text if again is None else f'{text}; {statistics.median(again):.1%}'


def table(title, columns, rows):
    print(f'\n| {title} | {" | ".join(columns)} |\n|---{"|---" * len(columns)}|')
    for name, cells in rows:
        print(f'| {name} | {" | ".join(cells)} |')


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('bench')
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--seconds', type=float, default=1)
    parser.add_argument('--only', default='', help='traffic whose name has this pattern')
    parser.add_argument('--network', default='', help='networks whose name has this pattern')
    args = parser.parse_args()
    traffics = [name for name in TRAFFIC if re.search(args.only, name)]
    damages, narrows = ({name: impair for name, impair in networks.items()
                         if re.search(args.network, name)} for networks in (DAMAGE, NARROW))
    if not traffics or not damages and not narrows:
        parser.error('no traffic or no network has this name')
    busy = busy_cores()
    seen = collections.defaultdict(list)
    again = collections.defaultdict(list)
    for _ in range(args.rounds):
        for traffic in traffics:
            whole, _ = bench(args, traffic, NOTHING)
            seen[traffic, ''].append(whole)
            for name, impair in {**damages, **narrows}.items():
                rate, share = bench(args, traffic, impair)
                seen[traffic, name].append(rate / (whole if name in damages else RATE))
                again[traffic, name].append(share)
    print(f'{datetime.date.today()}; {busy:.1f} cores busy with other things; medians of '
          f'{args.rounds} rounds of {args.seconds:g} s')
    table('share of the rate without damage', ['without, GB/s', *damages, 'wanted at 1 % loss'],
          [(traffic, [f'{statistics.median(seen[traffic, ""]) / 1e9:.2f}',
                      *(cell(seen[traffic, name]) for name in damages),
                      TRAFFIC[traffic][1]]) for traffic in traffics])
    if narrows:
        table(f'share of a bottleneck of {RATE // 1_000_000} MB/s; sent again', list(narrows),
              [(traffic, [cell(seen[traffic, name], again[traffic, name]) for name in narrows])
               for traffic in traffics])


if __name__ == '__main__':
    sys.exit(main())
