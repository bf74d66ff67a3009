#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What is left of the rate where the network loses, delays or is too narrow: rocade-bench over the
embedded wire with net_impair before both ends. A network that does damage does so in every other
twentieth of a second (--turns): what is left is a share of the rate in between, of the same
process, for the time that the lcore had its core: the median over the turns, and the share by sums
over all of them, in which what hits few turns shows, and all that the machine did. Networks are
tried by turns, round by round; medians over the rounds are printed as tables in Markdown, with
quartiles of the former: a machine that others use tells less, not something else.

    lossy.py ROCADE_BENCH [--rounds N] [--seconds N] [--only PATTERN] [--network PATTERN]

Records, never gates.
"""
import argparse
import collections
import datetime
import json
import re
import statistics
import subprocess
import sys

from rounds import busy_cores

# name: (options, milliseconds of a turn, share at a loss of 1 % that issue 22 asks for). Each
# message has a completion: with one of 16, the default, 16 queue pairs in step are told of 17 MB
# at once, and a turn has some six times that. One at a time, all waits for timeouts of 67 ms.
TRAFFIC = {
    'WRITE 64 KiB, 1 QP': (('-o', 'write', '-q', '1'), 50, '95 %'),
    'WRITE 64 KiB, 16 QPs': (('-o', 'write', '-q', '16'), 50, '97 %'),
    'READ 64 KiB, 16 QPs': (('-o', 'read', '-q', '16'), 50, '90 %'),
    'WRITE 64 KiB, one at a time': (('-o', 'write', '-q', '1', '-d', '1'), 500, '33 %'),
}
# Bursts lose 1 % as well: 0.25253 / (0.25253 + 25), four packets each in the mean.
DAMAGE = {
    # As the turns in between (app/rocade-bench/turns.c).
    'nothing': 'drop=0.00000003%',
    'loss 1 %': 'drop=1%',
    'loss 1 % in bursts': 'ge_p=0.25253%,ge_r=25%',
    'reordering 1 %': 'reorder=1%',
    'jitter, 1 %': 'delay=1%,delay_us=50,delay_dist=pareto,jitter_us=20,delay_max_us=1000',
}
RATE = 100_000_000
NARROW = {
    'queue of 1 MB': f'rate={RATE},queue=1000000',
    'queue of 100 kB': f'rate={RATE},queue=100000',
    'queue of 100 kB, marks behind 30 kB': f'rate={RATE},queue=100000,mark=30000',
    'queue of 100 kB, 200 us long':
        f'rate={RATE},queue=100000,delay=1,delay_us=100',
}


def bench(args, traffic, impair, *more):
    """The result; None of a queue pair that gave up."""
    done = subprocess.run([args.bench, '--', '-s', '64K', '-n', '1', *TRAFFIC[traffic][0], '-D',
                           str(args.seconds), '--impair', impair, *more, '-j', '-'],
                          capture_output=True, text=True, check=False)
    if 'retry count exceeded' in done.stderr:
        return None
    if done.returncode:
        raise SystemExit(f'{traffic}, {impair}: {done.stderr}{done.stdout}')
    return json.loads(done.stdout[done.stdout.index('\n{') if not done.stdout.startswith('{')
                                  else 0:])['results'][0]


def damaged(args, traffic, impair):
    """The shares of the rate without damage that are left, by turns and by sums, and that rate;
    none of a queue pair that gave up."""
    while result := bench(args, traffic, impair, '--turns', str(TRAFFIC[traffic][1])):
        # None of its turns can be compared where the machine changed beside each.
        if 'turns' in result:
            turns = result['turns']
            return turns['share'], turns['whole_share'], turns['between_bytes_per_s']
    return None


def narrowed(args, traffic, impair):
    """The share of the bottleneck, where a core that is away is not missed, and packets sent again
    for each that was sent; none of a queue pair that gave up."""
    result = bench(args, traffic, impair)
    if result is None:
        return None
    packets = result['packets_per_s'] * args.seconds
    return result['bytes_per_s'] / RATE, result['packets_sent_again'] / packets if packets else 0


def cell(found):
    """Of tuples, the median of the first, with quartiles; "gave up", of how many rounds, where a
    queue pair did."""
    lost = found.count(None)
    if lost:
        return f'gave up, {lost} of {len(found)}'
    shares = [one[0] for one in found]
    text = f'{statistics.median(shares):.1%}'
    if len(shares) > 1:
        low, _, high = statistics.quantiles(shares, n=4, method='inclusive')
        text += f' ({low:.1%} to {high:.1%})'
    return text


def median_of(found, member):
    """Of tuples, the median of a member."""
    return statistics.median([one[member] for one in filter(None, found)] or [0])


def table(title, columns, rows):
    print(f'\n| {title} | {" | ".join(columns)} |\n|---{"|---" * len(columns)}|')
    for name, cells in rows:
        print(f'| {name} | {" | ".join(cells)} |')


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('bench')
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--seconds', type=float, default=2)
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
    for turn in range(args.rounds):
        for traffic in traffics:
            for tried, networks in (damaged, damages), (narrowed, narrows):
                for name, impair in networks.items():
                    seen[traffic, name].append(tried(args, traffic, f'{impair},seed={turn + 1}'))
    print(f'{datetime.date.today()}; {busy:.1f} cores busy with other things; medians of '
          f'{args.rounds} rounds of {args.seconds:g} s, with quartiles')
    if damages:
        rows = []
        for traffic in traffics:
            rate = median_of(sum((seen[traffic, name] for name in damages), []), 2)
            rows.append((traffic, [f'{rate / 1e9:.2f}',
                                   *(f'{cell(seen[traffic, name])}; '
                                     f'{median_of(seen[traffic, name], 1):.1%}'
                                     for name in damages), TRAFFIC[traffic][2]]))
        table('share of the rate in between; by sums', ['in between, all networks, GB/s', *damages,
                                               'wanted at 1 % loss'], rows)
    if narrows:
        table(f'share of a bottleneck of {RATE // 1_000_000} MB/s; sent again', list(narrows),
              [(traffic, [f'{cell(seen[traffic, name])}; {median_of(seen[traffic, name], 1):.1%}'
                          for name in narrows]) for traffic in traffics])


if __name__ == '__main__':
    sys.exit(main())
