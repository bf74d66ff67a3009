#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Goal: programs get right data and no hang from a network that damages what it carries.

Method: net_impair before both ends: 1 % of the packets lost, 1 % sent twice, 1 % reordered, and in
one run all kinds of damage; then a network that loses in bursts, one with delays of all kinds, and
a bottleneck with a short queue, which marks. Reliable connections only: what the others lose is
lost, and their programs wait for it. Each test looks whether the damage was done.

    test_loss.py ROCADED LIBIBVERBS [veth]
"""
import contextlib
import pathlib
import re
import sys

from ends import (ENDS, FOLDER, address, both, counters, pair, perftest, rocade_on, several, start,
                  stop, tap)

DAMAGE = 'drop=1%,duplicate=1%,reorder=1%'


@contextlib.contextmanager
def damaged(*kinds):
    """What runs inside meets damage of these kinds on both ends."""
    before = [counters(end) for end in ENDS]
    yield
    after = [counters(end) for end in ENDS]
    for kind in kinds:
        name = f'tx_impair_{kind}'
        total = sum(now[name] - then[name] for now, then in zip(after, before))
        tap.true(total > 0, f'no packet had {kind}')


def pingpong(program, *options):
    """These programs end without a word to each other: when the last acknowledge is lost, the one
    that waits for it asks a peer that is gone. That end is not a fault, and is tried again."""
    for _ in range(4):
        try:
            return both(program, '-g', *options)
        except AssertionError as err:
            text = str(err)
            if 'retry counter exceeded (12)' not in text or \
                    not re.search(r'server \d+, client 0|server 0, client \d+', text):
                raise
    raise AssertionError(text)


@tap.test
def engine_starts():
    config = pathlib.Path(FOLDER) / 'loss.conf'
    config.write_text(''.join(
        f'[device {name}]\ntype = wire\npeer = {peer}\naddress = {address}\n'
        f'impair = {DAMAGE},seed={seed}\n' for name, peer, address, seed in (
            ('roce0', 'roce1', '10.77.0.1/24 fd77::1/64', 1),
            ('roce1', 'roce0', '10.77.0.2/24 fd77::2/64', 2))))
    try:
        start(config, f'impair = {DAMAGE},seed=3\n')
    except AssertionError as err:
        if 'no net_impair' in str(err):
            raise tap.Skip('no driver headers: usertools/rocade-driver-sdk.sh') from None
        raise


@tap.test
def every_byte_at_every_size():
    with damaged('drop', 'duplicate', 'reorder'):
        for size in ('1', '4096', '1048576'):
            for more in ([], ['-e']):
                pingpong('ibv_rc_pingpong', '1', '-s', size, '-n', '100', '-c', *more)


@tap.test
def path_mtus_and_both_ips():
    with damaged('drop', 'duplicate', 'reorder'):
        for mtu in ('256', '1024', '4096'):
            pingpong('ibv_rc_pingpong', '1', '-m', mtu, '-s', '65536', '-n', '100', '-c')
        for gid in ('0', '2'):
            pingpong('ibv_rc_pingpong', gid, '-s', '65536', '-n', '100', '-c')


@tap.test
def shared_receive_queue():
    with damaged('drop', 'duplicate', 'reorder'):
        pingpong('ibv_srq_pingpong', '1', '-n', '200', '-c')
        pingpong('ibv_srq_pingpong', '1', '-n', '200', '-e')


@tap.test
def perftest_bandwidth():
    with damaged('drop', 'duplicate', 'reorder'):
        several(perftest, [('ib_read_bw', '-a', '-n', '5')] +
                [(program, '-n', '500')
                 for program in ('ib_send_bw', 'ib_write_bw', 'ib_read_bw', 'ib_atomic_bw')] +
                [('ib_send_bw', '-b', '-n', '200'), ('ib_write_bw', '-q', '16', '-n', '50')])


@tap.test
def perftest_latency():
    with damaged('drop', 'duplicate', 'reorder'):
        for program in ('ib_send_lat', 'ib_write_lat', 'ib_read_lat', 'ib_atomic_lat'):
            perftest(program, '-n', '200')


@tap.test
def connections_by_address():
    with damaged('drop', 'duplicate', 'reorder'):
        for v6 in (False, True):
            pair(['rping', '-s', '-a', address(2, v6), '-V', '-C', '1000'],
                 ['rping', '-c', '-a', address(2, v6), '-V', '-C', '1000'])
        pair(['ucmatose', '-b', address(2), '-c', '50'],
             ['ucmatose', '-s', address(2), '-c', '50'])


def repairs():
    return sum(counters(end)['sack_repair'] for end in ENDS)


def hellos():
    return sum(counters(end)['tx_hello'] for end in ENDS)


@tap.test
def what_came_is_told():
    before = repairs()
    by_address = ['ib_write_bw', '-R', '-F', '-n', '500']
    with damaged('drop', 'duplicate', 'reorder'):
        pair(by_address, [*by_address, address(2)])
    told = repairs()
    tap.true(told > before, 'connected by address: nothing was sent again for it')
    # One that does not want it is enough.
    for state in ('off', 'auto'):
        changed = rocade_on(ENDS[0], 'link', 'set', ENDS[0].device, 'sack', state)
        tap.equal(changed.returncode, 0, changed.stderr)
        if state == 'off':
            pair(by_address, [*by_address, address(2)])
            tap.equal(repairs(), told, 'sack off')


@tap.test
def rocades_find_each_other():
    """By programs that exchange numbers over sockets. One that must not look is enough."""
    for state in ('cm', 'auto'):
        changed = rocade_on(ENDS[0], 'link', 'set', ENDS[0].device, 'sack', state)
        tap.equal(changed.returncode, 0, changed.stderr)
        before = repairs(), hellos()
        with damaged('drop', 'duplicate', 'reorder'):
            pingpong('ibv_rc_pingpong', '1', '-s', '65536', '-n', '300', '-c')
            perftest('ib_write_bw', '-n', '500')
        if state == 'cm':
            tap.equal((repairs(), hellos()), before, 'sack cm')
        else:
            tap.true(repairs() > before[0] and hellos() > before[1], 'without addresses: nothing')


def become(args):
    """Another network, between the same ends."""
    for end in ENDS:
        done = rocade_on(end, 'link', 'set', end.device, 'impair', args)
        tap.equal(done.returncode, 0, done.stderr)


@tap.test
def losses_in_bursts():
    # Shorter than what a queue pair tries.
    become('ge_p=0.4%,ge_r=25%,ge_max=4,seed=4')
    with damaged('burst', 'burst_drop'):
        for size in ('4096', '65536'):
            pingpong('ibv_rc_pingpong', '1', '-s', size, '-n', '200', '-c')
        several(perftest, [(program, '-n', '200') for program in
                           ('ib_send_bw', 'ib_write_bw', 'ib_read_bw', 'ib_atomic_bw')])


@tap.test
def delays_that_differ():
    """Each packet has one of its own, so that most come out of order."""
    for how in ('uniform,jitter_us=100', 'normal,jitter_us=50', 'pareto,jitter_us=30'):
        become(f'delay=1,delay_us=100,delay_max_us=2000,drop=0.5%,seed=5,delay_dist={how}')
        with damaged('delay', 'delay_us', 'drop'):
            pingpong('ibv_rc_pingpong', '1', '-s', '16384', '-n', '50', '-c')
            several(perftest, [(program, '-n', '50') for program in
                               ('ib_send_bw', 'ib_write_bw', 'ib_read_bw', 'ib_atomic_bw')])


@tap.test
def bottleneck_with_a_short_queue():
    """A sender that fills it loses all that is too much, again and again."""
    become('rate=100000000,queue=100000,delay=1,delay_us=50')
    with damaged('queue_packets', 'queue_drop'):
        pingpong('ibv_rc_pingpong', '1', '-s', '262144', '-n', '20', '-c')
        for program in ('ib_send_bw', 'ib_write_bw', 'ib_read_bw'):
            perftest(program, '-n', '100')
        perftest('ib_write_bw', '-q', '16', '-n', '20')


@tap.test
def bottleneck_that_marks():
    become('rate=100000000,queue=400000,mark=20000')
    for gid in ('1', '2'):
        with damaged('queue_mark'):
            both('ib_write_bw', '-x', gid, '-F', '-n', '100', '--tclass=2')
    # A mark is no damage.
    tap.equal(sum(counters(end)['rx_drop_icrc'] for end in ENDS), 0, 'ICRC')


@tap.test
def all_kinds_of_damage():
    become(f'{DAMAGE},corrupt=1%,delay=5%,delay_us=200,side=both')
    with damaged('drop', 'duplicate', 'reorder', 'corrupt', 'delay'):
        pingpong('ibv_rc_pingpong', '1', '-s', '65536', '-n', '100', '-c')
        several(perftest, [(program, '-n', '100') for program in
                           ('ib_send_bw', 'ib_write_bw', 'ib_read_bw', 'ib_atomic_bw')])
        # Corruption is what the ICRC is for.
        tap.true(sum(counters(end)['rx_drop_icrc'] for end in ENDS) > 0, 'ICRC')


@tap.test
def changed_while_it_runs():
    with damaged():
        refused = rocade_on(ENDS[0], 'link', 'set', ENDS[0].device, 'impair', 'drop=2')
        tap.true(refused.returncode == 1 and 'probability' in refused.stderr, refused.stderr)
        for end in ENDS:
            off = rocade_on(end, 'link', 'set', end.device, 'impair', 'seed=1')
            tap.equal(off.returncode, 0, off.stderr)
        before = counters(ENDS[0])
        perftest('ib_write_bw', '-n', '200')
        after = counters(ENDS[0])
        tap.equal({key: after[key] - before[key] for key in before if 'impair' in key and
                   after[key] != before[key]}, {}, 'damage after it was turned off')


@tap.test
def nothing_is_left():
    stop()


if __name__ == '__main__':
    sys.exit(tap.run())
