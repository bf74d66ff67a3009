#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Goal: programs get right data and no hang from a network that damages what it carries.

Method: net_impair before both ends of an embedded wire, and before the ports of two engines on
veth: 1 % of the packets lost, 1 % sent twice, 1 % reordered, and in one run all kinds of damage.
Reliable connections only: what the others lose is lost, and their programs wait for it. Each test
looks whether the damage was done.

    test_loss.py ROCADED LIBIBVERBS
"""
import contextlib
import json
import pathlib
import re
import sys

from ends import FOLDER, WIRE, both, perftest, rocade, start, stop, tap, veth_ends

DAMAGE = 'drop=1%,duplicate=1%,reorder=1%'
running = False


def counters(device):
    done = rocade('-j', 'statistic', 'show', 'link', device)
    return json.loads(done.stdout)[0]['counters']


@contextlib.contextmanager
def damaged(*kinds):
    """What runs inside meets damage of these kinds on both ends."""
    if not running:
        raise tap.Skip('no engine with net_impair')
    before = [counters(end.device) for end in WIRE]
    yield
    after = [counters(end.device) for end in WIRE]
    for kind in kinds:
        name = f'tx_impair_{kind}'
        total = sum(now[name] - then[name] for now, then in zip(after, before))
        tap.true(total > 0, f'no packet had {kind}')


def pingpong(program, *options, ends=WIRE):
    """These programs end without a word to each other: when the last acknowledge is lost, the one
    that waits for it asks a peer that is gone. That end is not a fault, and is tried again."""
    for _ in range(4):
        try:
            return both(program, '-g', *options, ends=ends)
        except AssertionError as err:
            text = str(err)
            if 'retry counter exceeded (12)' not in text or \
                    not re.search(r'server \d+, client 0|server 0, client \d+', text):
                raise
    raise AssertionError(text)


@tap.test
def engine_starts():
    global running
    config = pathlib.Path(FOLDER) / 'loss.conf'
    config.write_text(''.join(
        f'[device {name}]\ntype = wire\npeer = {peer}\naddress = {address}\n'
        f'impair = {DAMAGE},seed={seed}\n' for name, peer, address, seed in (
            ('roce0', 'roce1', '10.77.0.1/24 fd77::1/64', 1),
            ('roce1', 'roce0', '10.77.0.2/24 fd77::2/64', 2))))
    try:
        start('--config', str(config))
    except AssertionError as err:
        if 'no net_impair' in str(err):
            raise tap.Skip('no driver headers: usertools/rocade-driver-sdk.sh') from None
        raise
    running = True


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
        for program in ('ib_send_bw', 'ib_write_bw', 'ib_read_bw', 'ib_atomic_bw'):
            perftest(program, '-n', '500')
        perftest('ib_send_bw', '-b', '-n', '200')
        perftest('ib_write_bw', '-q', '16', '-n', '50')
        perftest('ib_read_bw', '-a', '-n', '5')


@tap.test
def perftest_latency():
    with damaged('drop', 'duplicate', 'reorder'):
        for program in ('ib_send_lat', 'ib_write_lat', 'ib_read_lat', 'ib_atomic_lat'):
            perftest(program, '-n', '200')


@tap.test
def all_kinds_of_damage():
    for end in WIRE:
        rocade('link', 'set', end.device, 'impair',
               f'{DAMAGE},corrupt=1%,delay=5%,delay_us=200,side=both')
    with damaged('drop', 'duplicate', 'reorder', 'corrupt', 'delay'):
        pingpong('ibv_rc_pingpong', '1', '-s', '65536', '-n', '100', '-c')
        for program in ('ib_send_bw', 'ib_write_bw', 'ib_read_bw', 'ib_atomic_bw'):
            perftest(program, '-n', '100')
        # Corruption is what the ICRC is for.
        tap.true(sum(counters(end.device)['rx_drop_icrc'] for end in WIRE) > 0, 'ICRC')


@tap.test
def changed_while_it_runs():
    with damaged():
        refused = rocade('link', 'set', 'roce0', 'impair', 'drop=2')
        tap.true(refused.returncode == 1 and 'probability' in refused.stderr, refused.stderr)
        for end in WIRE:
            tap.equal(rocade('link', 'set', end.device, 'impair', 'seed=1').returncode, 0, 'off')
        before = counters('roce0')
        perftest('ib_write_bw', '-n', '200')
        after = counters('roce0')
        tap.equal({key: after[key] - before[key] for key in before if 'impair' in key and
                   after[key] != before[key]}, {}, 'damage after it was turned off')


@tap.test
def nothing_is_left():
    if running:
        stop()


@tap.test
def on_veth_between_namespaces():
    if not running:
        raise tap.Skip('no engine with net_impair')
    with contextlib.ExitStack() as stack:
        ends = veth_ends(stack, more=f'impair = {DAMAGE},seed=3\n')
        pingpong('ibv_rc_pingpong', '1', '-s', '65536', '-n', '100', '-c', ends=ends)
        for program in ('ib_send_bw', 'ib_write_bw', 'ib_read_bw', 'ib_atomic_bw'):
            perftest(program, '-n', '100', ends=ends)


if __name__ == '__main__':
    sys.exit(tap.run())
