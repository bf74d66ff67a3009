#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Goal: perftest, unmodified, runs with all its services and options that apply.

Method: as server and client on the two ends; few iterations, since what they measure is not judged
here, and several programs at a time where none waits for another's turn at each message.
--run_infinitely is stopped by an interrupt, as a user does.

    test_perftest.py ROCADED LIBIBVERBS [veth]
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

from ends import (ENDS, LIMIT, UDP, await_port, begin, both, ended, finish, kill, on, perftest,
                  rocade_on, several, so_far, start, stop, tap)

BANDWIDTH = ('ib_send_bw', 'ib_write_bw', 'ib_read_bw', 'ib_atomic_bw')
LATENCY = ('ib_send_lat', 'ib_write_lat', 'ib_read_lat', 'ib_atomic_lat')


@tap.test
def engine_starts():
    start()


@tap.test
def reliable():
    several(perftest, [(program, '-n', '100') for program in BANDWIDTH])
    for program in LATENCY:
        perftest(program, '-n', '100')


@tap.test
def all_sizes():
    # All at once: they find out how fast the processor is for each size anew. In cycles, or those
    # that measure latency would do it twice.
    several(perftest, [(program, '-a', '-n', '20') for program in BANDWIDTH[:3]] +
            [(program, '-a', '-n', '10', '-C') for program in ('ib_send_lat', 'ib_read_lat')], 5)


@tap.test
def both_directions():
    several(perftest, [(program, '-b', '-n', '200') for program in BANDWIDTH])


@tap.test
def many_queue_pairs():
    several(perftest, [(program, '-q', '16', '-n', '50') for program in BANDWIDTH] +
            [('ib_send_bw', '-q', '16', '-b', '-n', '50')])


@tap.test
def completion_events():
    # Not with WRITEs, says perftest.
    several(perftest, [(program, '-e', '-n', '200')
                       for program in ('ib_send_bw', 'ib_read_bw', 'ib_atomic_bw')] +
            [(program, '-e', '-n', '100')
             for program in ('ib_send_lat', 'ib_read_lat', 'ib_atomic_lat')])


@tap.test
def inline_data():
    options = ('-s', '32', '--inline_size', '64', '-n', '100')
    several(perftest, [(program, *options) for program in ('ib_send_bw', 'ib_write_bw')])
    for program in ('ib_send_lat', 'ib_write_lat'):
        perftest(program, *options)


@tap.test
def path_mtus():
    several(perftest, [(program, '-m', mtu, '-n', '50')
                       for mtu in ('256', '512', '1024', '2048', '4096')
                       for program in BANDWIDTH[:3]])


@tap.test
def memory_on_demand():
    several(perftest, [(program, '--odp', '-n', '100') for program in
                       ('ib_send_bw', 'ib_write_bw', 'ib_read_bw')])
    # Not with atomics, says perftest.
    for program in LATENCY[:3]:
        perftest(program, '--odp', '-n', '100')
    perftest('ib_send_bw', '--odp', '-c', 'UD', '-n', '100', '-s', '1024')


@tap.test
def shared_receive_queue():
    several(perftest, [('ib_send_bw', '--use-srq', '-n', '200'),
                       ('ib_send_bw', '--use-srq', '-q', '8', '-n', '50')])
    perftest('ib_send_lat', '--use-srq', '-n', '100')


@tap.test
def ways_to_post():
    several(perftest, [
        ('ib_write_bw', '-l', '8', '-n', '200'),
        ('ib_send_bw', '-l', '8', '--recv_post_list', '8', '-n', '200'),
        ('ib_send_bw', '--use_old_post_send', '-n', '200'),
        ('ib_write_bw', '-Q', '1', '-n', '200'),
        ('ib_read_bw', '-t', '1', '-n', '50'),
        ('ib_send_bw', '--mr_per_qp', '-q', '4', '-n', '50'),
        ('ib_read_bw', '-o', '1', '-n', '50'),
    ])


@tap.test
def extended_reliable_connections():
    several(perftest, [(program, '-c', 'XRC', '-n', '100') for program in BANDWIDTH] +
            [('ib_send_bw', '-c', 'XRC', '-q', '4', '-b', '-n', '50')])
    for program in LATENCY:
        perftest(program, '-c', 'XRC', '-n', '100')


@tap.test
def unreliable_connection():
    # A receiver that is too slow loses messages, and perftest waits for them: no more than a port
    # keeps.
    for program in ('ib_send_bw', 'ib_write_bw'):
        perftest(program, '-c', 'UC', '-n', '100', '-s', '8192')
    for program in ('ib_send_lat', 'ib_write_lat'):
        perftest(program, '-c', 'UC', '-n', '100')


@tap.test
def datagrams():
    perftest('ib_send_lat', '-c', 'UD', '-n', '100')
    # Likewise, and no more than there are receives.
    perftest('ib_send_bw', '-c', 'UD', '-n', '100', '-r', '512')
    perftest('ib_send_bw', '-c', 'UD', '-n', '100', '-r', '512', '-s', '1024', '-q', '4')


@tap.test
def multicast():
    # Its group is an IPv6 address: so must the source be. It is one of this interface alone, which
    # no kernel sends to a link: over sockets one of everywhere takes its place.
    group = ['-M', '255:14:0:0:0:2:201:133:0:0:0:0:0:0:0:0'] if UDP else []
    for gid in ('0', '2'):
        both('ib_send_lat', '-x', gid, '-F', '-c', 'UD', '-g', '-n', '100', *group)
        both('ib_send_bw', '-x', gid, '-F', '-c', 'UD', '-g', '-n', '100', '-r', '512', *group)


@tap.test
def address_families():
    several(both, [(program, '-x', gid, '-F', '-n', '50')
                   for program in ('ib_write_bw', 'ib_send_lat') for gid in ('0', '1', '2')], 3)


@tap.test
def for_a_time():
    several(perftest, [(program, '-D', '1')
                       for program in ('ib_send_bw', 'ib_write_bw', 'ib_read_bw', 'ib_send_lat')])


@tap.test
def until_it_is_stopped():
    if shutil.which('ib_write_bw') is None:
        raise tap.Skip('no ib_write_bw here')
    ends = ENDS
    options = ['-x', '1', '-F', '--run_infinitely', '-D', '1']
    command = ['timeout', '-k', '5', str(LIMIT), 'ib_write_bw', *options, '-d']
    server = subprocess.Popen([*ends[0].prefix, *command, ends[0].device], env=ends[0].env,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              start_new_session=True)
    await_port(ends[0])
    client = subprocess.Popen([*ends[1].prefix, 'stdbuf', '-oL', *command, ends[1].device,
                               ends[0].address], env=ends[1].env, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              start_new_session=True)
    reports = 0
    for line in client.stdout:
        reports += re.match(r' *65536 ', line) is not None
        if reports == 2:
            break
    for process in (client, server):
        os.killpg(process.pid, signal.SIGINT)
    client.communicate(timeout=tap.PATIENCE)
    server.wait(timeout=tap.PATIENCE)
    tap.equal(reports, 2, 'reports of a running program')
    # What they had is gone with them.
    for _ in range(50):
        if all(' ctx 0 ' in rocade_on(end, 'resource').stdout for end in ends):
            break
        time.sleep(0.02)


def mac(end):
    links = json.loads(rocade_on(end, '-j', 'link', 'show').stdout)
    return next(link['mac'] for link in links if link['ifname'] == end.device)


def raw(program, *options):
    """Raw Ethernet frames: no connection is made by which the client could wait, so it begins when
    the server has a flow and a receive."""
    if shutil.which(program) is None:
        raise tap.Skip(f'no {program} here')
    macs = [mac(end) for end in ENDS]
    command = [program, '-F', *options]
    client = ['timeout', str(LIMIT), *command, '--client', '-d',
              ENDS[0].device, '-B', macs[0], '-E', macs[1]]
    server = begin(ENDS[1], *command, '--server', '-d', ENDS[1].device, '-B', macs[1], '-E',
                   macs[0])
    try:
        tap.wait_until('a flow', lambda: server.poll() is not None or any(
            pair.get('flows') and pair['rq_posted'] for pair in
            json.loads(rocade_on(ENDS[1], '-j', 'resource', 'show', 'qp').stdout)))
        done = on(ENDS[0], *client)
        # What came before its first receive is lost. A second client of a program that waits for
        # answers would find a server that has what it wants.
        while done.returncode == 0 and program == 'raw_ethernet_bw' and not ended(server):
            done = on(ENDS[0], *client)
        out = finish(server) if done.returncode == 0 else so_far(server)
    finally:
        kill(server)
    tap.equal((server.returncode, done.returncode), (0, 0), f'{out}\n{done.stdout}{done.stderr}')
    return out + done.stdout


@tap.test
def raw_packets():
    for end in ENDS:
        done = rocade_on(end, 'link', 'set', end.device, 'raw', 'on')
        tap.equal(done.returncode, 0, done.stderr)
    if UDP:
        raise tap.Skip('sockets have no frames')
    raw('raw_ethernet_bw', '-n', '100', '-s', '1024')
    # UDP in IPv4, its ports, and a VLAN: each is in the flow.
    udp = ('-j', '10.9.0.1', '-J', '10.9.0.2', '-k', '5000', '-K', '6000')
    raw('raw_ethernet_bw', '-n', '100', '-s', '512', *udp)
    raw('raw_ethernet_bw', '-n', '100', '-s', '512', '--vlan_en', *udp)
    raw('raw_ethernet_lat', '-n', '100', '-s', '64')
    for use in ('sniff', 'on'):
        done = rocade_on(ENDS[1], 'link', 'set', ENDS[1].device, 'raw', use)
        tap.equal(done.returncode, 0, done.stderr)
        if use == 'sniff':
            raw('raw_ethernet_bw', '-n', '100', '-s', '1024', '--sniffer')
    # PP asks the queue pair, and for 81920 kb/s: no faster, as far as perftest knows its clock.
    out = raw('raw_ethernet_bw', '-n', '1000', '-s', '1024', '--report_gbits', '--rate_limit',
              '10', '--rate_units', 'M', '--rate_limit_type', 'PP', '--typical_pkt_size', '1024')
    rows = re.findall(r'^ *1024 +1000 +[0-9.]+ +([0-9.]+)', out, re.M)
    tap.true(rows and all(float(average) <= 0.16 for average in rows), out)
    # Without these options it refuses its own limit, and waits for completions that never come.
    # And its server destroys its queue pair without a look whether its answers have left.
    raw('raw_ethernet_burst_lat', '-n', '100', '-s', '64', '--rate_limit', '10', '-Q', '1')


@tap.test
def flow_rate():
    if UDP:
        raise tap.Skip('sockets have no frames')
    done = on(ENDS[1], 'timeout', str(LIMIT), 'raw_ethernet_fs_rate', '--server', '-F', '-n', '20',
              '-d', ENDS[1].device, '-B', mac(ENDS[1]), '-E', mac(ENDS[0]))
    tap.equal(done.returncode, 0, done.stdout + done.stderr)


@tap.test
def nothing_is_left():
    stop()


if __name__ == '__main__':
    sys.exit(tap.run())
