#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Goal: unmodified programs of the distribution transfer by rsockets of the drop-in librdmacm.

Method: as test_cm.py; the programs verify what they transfer, or this does. Afterwards nothing may
be left.

    test_rsocket.py ROCADED LIBIBVERBS [veth]
"""
import os
import pathlib
import re
import sys

from ends import (ENDS, FOLDER, LIBRARY, LIMIT, VETH, address, begin, counters, ids, kill,
                  listening, on, own_semaphores, pair, run, so_far, start, stop, tap)

# One address is the kernel's, which no program of ours has.
ALONE = 'ip link set lo up && ip addr add 10.77.0.99/32 dev lo && exec "$@"'
PRELOAD = pathlib.Path('/usr/lib/x86_64-linux-gnu/rsocket/librspreload.so')


def gone():
    for end in ENDS:
        tap.wait_until(f'no identifiers on {end.device}', lambda: not ids(end))


def stream(program, *options, v6=False):
    return pair([program, '-b', address(2, v6), *options],
                [program, '-s', address(2, v6), *options])


@tap.test
def engines_start():
    start()


@tap.test
def rstream_both_ips():
    for v6 in (False, True):
        stream('rstream', '-T', 'v', '-S', '1000', '-I', '100', '-C', '5', v6=v6)
    gone()


@tap.test
def rstream_blocking_or_not():
    for how in ('b', 'n', 'a', 'r'):
        for size in ('1', '3000', '300000'):
            stream('rstream', '-T', how, '-T', 'v', '-S', size, '-I', '20', '-C', '3')
    gone()


@tap.test
def rstream_of_all_sizes():
    for how in ('b', 'a'):
        stream('rstream', '-T', how, '-S', 'all', '-I', '10', '-C', '3')


@tap.test
def rstream_with_buffers_of_all_sizes():
    """Rings that wrap in the middle of a message, and requests that hold no bytes themselves."""
    for buffer, inline in (('1', '0'), ('5001', '16'), ('1000000', '200')):
        stream('rstream', '-T', 'v', '-B', buffer, '-i', inline, '-S', '70001', '-I', '20', '-C',
               '3')


@tap.test
def riostream():
    for how in ('b', 'n', 'a'):
        stream('riostream', '-T', how, '-T', 'v', '-S', '5000', '-I', '20', '-C', '3')
    stream('riostream', '-S', 'all', '-I', '10', '-C', '3')
    gone()


def sent_by_rdma():
    """Bytes, of all devices."""
    return sum(counters(end)['tx_bytes'] for end in ENDS)


def datagrams(*options, v6=False):
    """A server of datagrams, which goes on until it is ended, and one client after the other."""
    before = sent_by_rdma()
    server = begin(ENDS[1], 'udpong', '-b', address(2, v6), *options)
    try:
        for size in ('16', '100', '1500'):
            done = on(ENDS[0], 'timeout', str(LIMIT), 'udpong', '-s', address(2, v6), '-C', '50',
                      '-S', size, *options)
            tap.equal(done.returncode, 0, done.stdout + done.stderr + so_far(server))
            tap.true(re.search('custom +', done.stdout), done.stdout + done.stderr)
    finally:
        kill(server)
    # The first one went by UDP; who waits for no answer may have sent all of them by then.
    if 'e' in options:
        tap.true(sent_by_rdma() - before > 40 * 1500, 'not by RDMA')


@tap.test
def udpong_both_ips():
    for v6 in (False, True):
        datagrams('-T', 'e', v6=v6)
    gone()


@tap.test
def udpong_blocking_or_not():
    for how in ('b', 'n', 'a'):
        datagrams('-T', how)
        datagrams('-T', how, '-T', 'e')
    gone()


@tap.test
def rcopy():
    """A file arrives as it was."""
    data = os.urandom(3_000_001)
    source, target = f'{FOLDER}/source', f'{FOLDER}/target'
    with open(source, 'wb') as file:
        file.write(data)
    server = begin(ENDS[1], 'rcopy')
    try:
        listening(ENDS[1], server)
        for _ in range(2):
            done = on(ENDS[0], 'timeout', str(LIMIT), 'rcopy', source, f'{address(2)}:{target}')
            tap.equal(done.returncode, 0, done.stdout + done.stderr + so_far(server))
            with open(target, 'rb') as file:
                tap.true(file.read() == data, 'another file')
            os.unlink(target)
    finally:
        kill(server)
    gone()


def of_one_engine(name, *addresses, alone=False):
    """A program of ours: on the wire, where all addresses are one engine's; or alone, where the
    kernel does not have them."""
    if VETH:
        raise tap.Skip('for one engine')
    command = [str(pathlib.Path(LIBRARY).parents[1] / 'test/system' / name), *addresses]
    if alone:
        if run('unshare', '-n', 'true').returncode:
            raise tap.Skip('no network namespaces here')
        command = ['unshare', '-n', 'sh', '-c', ALONE, '-', *command]
    done = on(ENDS[0], 'timeout', str(LIMIT), *command)
    tap.equal(done.returncode, 0, done.stdout + done.stderr)
    gone()


@tap.test
def rules_of_sockets():
    of_one_engine('rs_rules', address(1))


@tap.test
def hostile_peers():
    of_one_engine('rs_hostile', address(1), address(2))


@tap.test
def rules_of_datagrams():
    for v6 in (False, True):
        of_one_engine('rs_datagrams', address(1, v6), address(2, v6))


@tap.test
def rules_of_datagrams_without_the_kernel():
    """It has none of the addresses: the engine's alone."""
    for v6 in (False, True):
        of_one_engine('rs_datagrams', address(1, v6), address(2, v6), alone=True)


@tap.test
def forged_datagrams():
    of_one_engine('rs_forgers', address(1), address(2), alone=True)
    of_one_engine('rs_forgers', address(1), address(2), 'local')


@tap.test
def iperf3_preloaded():
    """A program that was made for TCP, by the distribution's librspreload."""
    if not PRELOAD.exists():
        raise tap.Skip(f'no {PRELOAD}')
    under = ['env', f'LD_PRELOAD={PRELOAD}']
    for more in ([], ['-R'], ['-P', '3']):
        server = begin(ENDS[1], *under, 'iperf3', '-s', '-1', '-B', address(2))
        try:
            listening(ENDS[1])
            done = on(ENDS[0], 'timeout', str(LIMIT), *under, 'iperf3', '-c', address(2), '-n',
                      '20M', *more)
            tap.equal(done.returncode, 0, done.stdout + done.stderr + so_far(server))
            tap.true('iperf Done' in done.stdout, done.stdout)
            tap.equal(server.wait(timeout=LIMIT), 0, so_far(server))
        finally:
            kill(server)
        gone()


@tap.test
def forks_preloaded():
    """A server that has a child for each connection: librspreload makes the connections in the
    child, with TCP before them, when both sides have RDMAV_FORK_SAFE."""
    if not PRELOAD.exists():
        raise tap.Skip(f'no {PRELOAD}')
    program = str(pathlib.Path(LIBRARY).parents[1] / 'test/system/tcp_forks')
    under = ['env', f'LD_PRELOAD={PRELOAD}', 'RDMAV_FORK_SAFE=1', program]
    apart = own_semaphores()
    for count in ('1', '4'):
        before = sent_by_rdma()
        server = begin(ENDS[1], *apart, *under, 'serve', address(2), count)
        try:
            tap.wait_until('a server', lambda one=server: 'listens' in so_far(one))
            done = on(ENDS[0], 'timeout', str(LIMIT), *under, 'ask', address(2), count)
            tap.equal(done.returncode, 0, done.stdout + done.stderr + so_far(server))
            tap.equal(server.wait(timeout=LIMIT), 0, so_far(server))
        finally:
            kill(server)
        tap.true(sent_by_rdma() - before > 2 * 200000 * int(count), 'not by RDMA')
        gone()


@tap.test
def nobody_listens():
    done = on(ENDS[0], 'timeout', str(LIMIT), 'rstream', '-T', 'b', '-s', address(2))
    tap.true('Connection refused' in done.stdout + done.stderr, done.stdout + done.stderr)
    gone()


@tap.test
def nothing_is_left():
    gone()
    stop()


if __name__ == '__main__':
    sys.exit(tap.run())
