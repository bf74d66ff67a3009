#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Goal: unmodified programs of the distribution connect by IP address through the drop-in
librdmacm.

Method: as test_verbs.py; the programs check what they transfer. Clients go to the address of the
other end's device, so that every message crosses the wire. Afterwards nothing may be left.

    test_cm.py ROCADED LIBIBVERBS [veth]
"""
import json
import pathlib
import re
import signal
import subprocess
import sys

from ends import (ENDS, LIBRARY, LIMIT, UDP, VETH, address, all_gone, begin, counters, finish, ids,
                  kill, listening, on, pair, rocade_on, several, so_far, start, stop, tap,
                  transferring)

BUILD = pathlib.Path(LIBRARY).parents[1]

def gone():
    for end in ENDS:
        tap.wait_until(f'no identifiers on {end.device}', lambda: not ids(end))


@tap.test
def engines_start():
    start(veth_lines='')


@tap.test
def rping_both_ips():
    for v6 in (False, True):
        out = pair(['rping', '-s', '-a', address(2, v6), '-v', '-V', '-C', '1000'],
                   ['rping', '-c', '-a', address(2, v6), '-v', '-V', '-C', '1000'])
        tap.true(out.count('ping data: rdma-ping-') >= 2000, out[-2000:])
    gone()


@tap.test
def rping_to_a_listener_on_any_address():
    pair(['rping', '-s', '-v', '-V', '-C', '20'],
         ['rping', '-c', '-a', address(2), '-v', '-V', '-C', '20'])
    pair(['rping', '-s', '-v', '-V', '-C', '20'],
         ['rping', '-c', '-a', address(2), '-I', address(1), '-v', '-V', '-C', '20'])


@tap.test
def rping_persistent_server():
    server = begin(ENDS[1], 'rping', '-s', '-P', '-a', address(2))
    command = ['timeout', str(LIMIT), 'rping', '-c', '-a', address(2), '-V', '-C', '3']
    try:
        listening(ENDS[1], server)
        for _ in range(100):
            done = on(ENDS[0], *command)
            tap.equal(done.returncode, 0, done.stdout + done.stderr + so_far(server))
        clients = [begin(ENDS[0], *command[2:]) for _ in range(20)]
        for client in clients:
            out = finish(client)
            tap.equal(client.returncode, 0, out + so_far(server))
        # What is left is the server's: its listener, and no connection.
        tap.wait_until('the end of all connections', lambda: len(ids(ENDS[1])) <= 1)
    finally:
        kill(server)
    gone()


@tap.test
def ucmatose():
    for v6 in (False, True):
        pair(['ucmatose', '-b', address(2, v6), '-c', '100', '-C', '10', '-S', '1000'],
             ['ucmatose', '-s', address(2, v6), '-c', '100', '-C', '10', '-S', '1000'])
    for options in (['-m'], ['-t', '8'], ['-c', '3', '-a', '17'], ['-P', 'tcp'], ['-P', 'ib']):
        pair(['ucmatose', '-b', address(2), *options],
             ['ucmatose', '-s', address(2), '-b', address(1), *options])


@tap.test
def udaddy():
    for v6 in (False, True):
        pair(['udaddy', '-b', address(2, v6), '-c', '10', '-C', '10'],
             ['udaddy', '-s', address(2, v6), '-c', '10', '-C', '10'])
    pair(['udaddy', '-b', address(2), '-p', '0x0002'], ['udaddy', '-s', address(2), '-p', '0x0002'])


@tap.test
def mckey():
    for v6, group in ((False, '239.1.2.3'), (True, 'ff0e::77')):
        pair(['mckey', '-m', group, '-b', address(2, v6)],
             ['mckey', '-m', group, '-b', address(1, v6), '-s'], bound=False)
    if not VETH:
        # The addresses are the engine's: so is the word to the routers.
        for end in ENDS:
            tap.true(counters(end)['tx_membership'] >= 4, 'IGMP and MLD')
    pair(['mckey', '-m', '239.1.2.4', '-b', address(2)],
         ['mckey', '-m', '239.1.2.4', '-b', address(1), '-s', '-o'], bound=False)


@tap.test
def endpoints():
    pair(['rdma_server'], ['rdma_client', '-s', address(2)])


@tap.test
def endpoints_of_xrc():
    for kind in ('x', 'r'):
        out = pair(['rdma_xserver', '-c', kind],
                   ['rdma_xclient', '-c', kind, '-s', address(2)])
        tap.equal(len(re.findall(r'rdma_x(?:server|client): end 0', out)), 2, out)
    tool = str(BUILD / 'test/system/cm_xrc')
    for v6 in (False, True):
        pair([tool, 'serve', address(2, v6)], [tool, 'connect', address(2, v6)])
    gone()


@tap.test
def cmtime():
    server = begin(ENDS[1], 'cmtime', '-b', address(2), '-c', '1000')
    try:
        listening(ENDS[1], server)
        done = on(ENDS[0], 'timeout', str(LIMIT), 'cmtime', '-s', address(2), '-c', '1000')
        # Since rdma-core 50 it ends with connections of queue pairs that it only makes up. The
        # engine knows whose each one is, and refuses them.
        made_up = 'test - no QPs' in done.stdout and 'rdma_connect: Invalid arg' in done.stderr
        tap.true(done.returncode == 0 or made_up, done.stdout + done.stderr)
        connect = re.search(r'^(?:connect +:|cm connect) +([\d.]+)', done.stdout, re.M)
        print(f'# 1000 connections at once: {1e6 / float(connect[1]):.0f} in a second')
    finally:
        kill(server)
    gone()


def perftest_pair(*command):
    """The two tell each other by TCP that they are ready; then one listens and one connects, and
    who connects first is refused: with datagrams, by the answer that there is no such service.
    perftest means to try again, and touches freed memory there."""
    for _ in range(10):
        try:
            return pair(list(command), [*command, address(2)])
        except AssertionError as error:
            if not re.search('RDMA_CM_EVENT_(REJECTED; error: 8|UNREACHABLE; error: 1)',
                             str(error)):
                raise
    raise AssertionError(f'{command}: refused ten times')


@tap.test
def perftest_by_address():
    options = ('-R', '-F', '-n', '200')
    several(perftest_pair, [(program, *options) for program in (
        'ib_send_bw', 'ib_write_bw', 'ib_read_bw', 'ib_atomic_bw')])
    for program in ('ib_send_lat', 'ib_write_lat', 'ib_read_lat', 'ib_atomic_lat'):
        perftest_pair(program, *options)
    several(perftest_pair, [('ib_send_bw', *options, *more) for more in (
        ['-q', '4'], ['-e'], ['-b'], ['-T', '41'])])
    # What datagrams lose they wait for.
    perftest_pair('ib_send_bw', *options, '-c', 'UD', '-s', '1024')


@tap.test
def promises_of_the_library():
    """On the wire, where both addresses are one engine's."""
    if VETH:
        raise tap.Skip('for one engine')
    done = on(ENDS[0], str(BUILD / 'test/system/cm_api'), address(1), address(2))
    tap.equal(done.returncode, 0, done.stdout + done.stderr)
    gone()


@tap.test
def example_program():
    program = str(BUILD / 'examples/rdma-copy')
    out = pair([program, '-a', address(2)], [program, '-a', address(2), '-t', 'a text to copy'])
    tap.true('received: a text to copy' in out and 'the buffers are alike' in out, out)
    out = pair([program], [program, '-a', address(2, True), '-t', 'x' * 5000])
    tap.true('the buffers are alike' in out, out)


def memory(end):
    """Of the end's engine, KiB."""
    pid = json.loads(rocade_on(end, '-j', 'engine').stdout)['pid']
    status = pathlib.Path(f'/proc/{pid}/status').read_text(encoding='utf-8')
    return int(re.search(r'VmRSS:\s+(\d+)', status)[1])


@tap.test
def ten_thousand_connections():
    """By two engines: one that has both ends does nothing else."""
    if not VETH:
        raise tap.Skip('for two engines')
    tool = str(BUILD / 'test/system/cm_tool')

    def cycle(count):
        return pair([tool, 'serve', address(2), str(count)],
                    [tool, 'cycle', address(2), str(count)]).split()

    # What is in timewait at a time takes its place once.
    cycle(4000)
    before = [memory(end) for end in ENDS]
    first, last = cycle(10000)
    print(f'# microseconds for a connection: {first} at first, {last} at last')
    after = [memory(end) for end in ENDS]
    all_gone()
    tap.true(all(now - then < 4096 for now, then in zip(after, before)), (before, after))


def bandwidth(text):
    return float(re.search(r'^ *65536 +\d+ +[\d.]+ +([\d.]+)', text, re.M)[1])


@tap.test
def flood_of_requests():
    """A flood of requests (a hundred thousand in each second, where the machine can) to a listener
    that does not look: what is established goes on, memory is bounded, and the listener's backlog
    is all that waits."""
    if not VETH:
        raise tap.Skip('a flood comes from a netdev')
    mac = json.loads(rocade_on(ENDS[1], '-j', 'link', 'show', ENDS[1].device).stdout)[0]['mac']
    listener = subprocess.Popen([*ENDS[1].prefix, str(BUILD / 'test/system/cm_tool'), 'listen',
                                 address(2), '10'], env=ENDS[1].env, stdin=subprocess.PIPE)
    before = memory(ENDS[1])
    command = ['ib_write_bw', '-R', '-F', '-p', '19999', '-D', '3']
    try:
        listening(ENDS[1])
        alone = bandwidth(perftest_pair(*command))
        flood = begin(ENDS[0], str(BUILD / 'test/system/req_flood'), ENDS[0].netdev, mac,
                      address(1), address(2), '7471', '100000')
        beside = bandwidth(perftest_pair(*command))
        flood.send_signal(signal.SIGTERM)
        sent = int(finish(flood))
        tap.true(sent > 0, 'no requests')
        tap.true(memory(ENDS[1]) - before < 32768, f'{before} KiB grew to {memory(ENDS[1])} KiB')
        waiting = [i for i in ids(ENDS[1]) if i['state'] == 'CONNECT']
        tap.equal(len(waiting), 10, 'requests that wait')
        dropped = {name: val for name, val in counters(ENDS[1]).items()
                   if name.startswith('cm_rx_drop')}
        print(f'# {alone:.0f} MB/s without a flood, {beside:.0f} beside {sent} requests; {dropped}')
        # Another connection is made while they wait.
        pair(['rping', '-s', '-a', address(2), '-p', '8888', '-C', '3'],
             ['rping', '-c', '-a', address(2), '-p', '8888', '-C', '3'])
    finally:
        listener.stdin.close()
        listener.wait()
    gone()


def client_hears(event, server):
    """Some programs go on waiting when they have said what they heard."""
    client = begin(ENDS[0], 'rping', '-c', '-a', server, '-C', '1', '-d')
    try:
        tap.wait_until(event, lambda: event in so_far(client) or client.poll() is not None)
        tap.true(event in so_far(client), so_far(client))
    finally:
        kill(client)


@tap.test
def nobody_listens():
    client_hears('RDMA_CM_EVENT_REJECTED, error 8', address(2))


@tap.test
def nobody_answers():
    """Without ARP of its own an engine hears of it when the connection is not made."""
    client_hears('RDMA_CM_EVENT_UNREACHABLE' if UDP else 'RDMA_CM_EVENT_ADDR_ERROR', address(99))


FORGE = """
import socket, struct
def checksum(data):
    total = sum(struct.unpack(f'>{len(data) // 2}H', data))
    total = (total >> 16) + (total & 0xffff)
    return struct.pack('>H', ~(total + (total >> 16)) & 0xffff)
ip = bytearray(struct.pack('>BBHHHBBH4s4s', 0x45, 0, 60, 0, 0x4000, 64, 17, 0,
                           bytes([192, 168, 1, 1]), bytes([192, 168, 1, 2])))
ip[10:12] = checksum(ip)
about = bytes([3, 3, 0, 0, 0, 0, 0, 0]) + ip + struct.pack('>HHHH', 4791, 4791, 40, 0)
about = about[:2] + checksum(about) + about[4:]
for _ in range(20):
    socket.socket(socket.AF_INET, socket.SOCK_RAW, 1).sendto(about, ('192.168.1.1', 0))
"""


@tap.test
def somebody_says_that_nobody_is_there():
    """By ICMP, to an engine of sockets: it is counted, and read by the calls that it may make."""
    if not UDP:
        raise tap.Skip('sockets hear of it')
    done = on(ENDS[1], sys.executable, '-c', FORGE)
    tap.equal(done.returncode, 0, done.stderr)
    pair(['rping', '-s', '-a', address(2), '-C', '3'], ['rping', '-c', '-a', address(2), '-C', '3'])
    shown = rocade_on(ENDS[0], '-d', 'statistic').stdout
    told = re.findall(r'.x_udp_icmp (\d+)', shown)
    tap.true(told and sum(map(int, told)) > 0, shown[-2000:])


@tap.test
def port_is_taken():
    first = begin(ENDS[1], 'rping', '-s', '-P', '-a', address(2))
    try:
        listening(ENDS[1], first)
        for other in (address(2), '0.0.0.0'):
            done = on(ENDS[1], 'timeout', '200', 'rping', '-s', '-a', other)
            tap.true('Address already in use' in done.stdout + done.stderr,
                     done.stdout + done.stderr)
        # Another port is free.
        done = on(ENDS[1], 'timeout', '1', 'rping', '-s', '-a', address(2), '-p', '9999')
        tap.equal(done.returncode, 124, done.stdout + done.stderr)
    finally:
        kill(first)


@tap.test
def killed_programs_disconnect():
    for victim in (0, 1):
        server = begin(ENDS[1], 'rping', '-s', '-a', address(2), '-d')
        listening(ENDS[1], server)
        client = begin(ENDS[0], 'rping', '-c', '-a', address(2), '-C', '100000000', '-d')
        transferring(*ENDS)
        killed, other = ((client, server), (server, client))[victim]
        kill(killed)
        out = finish(other)
        # What it says on stderr, not on stdout: that may be cut in two by the other.
        tap.true('DISCONNECT EVENT' in out, f'{victim}: {out[-2000:]}')
    gone()


def must(end, *words):
    done = rocade_on(end, *words)
    tap.equal(done.returncode, 0, f'{words}: {done.stderr}')


@tap.test
def vlan_and_a_device_that_goes():
    if VETH:
        raise tap.Skip('on a wire')
    end = ENDS[0]
    must(end, 'link', 'add', 'x0', 'type', 'wire', 'peer', 'x1')
    for name, number in (('x0', 1), ('x1', 2)):
        must(end, 'addr', 'add', f'10.79.0.{number}/24', 'dev', name, 'vlan', '100')
    pair(['rping', '-s', '-a', '10.79.0.2', '-V', '-C', '20'],
         ['rping', '-c', '-a', '10.79.0.2', '-V', '-C', '20'])
    server = begin(end, 'rping', '-s', '-a', '10.79.0.2', '-d')
    listening(end, server)
    client = begin(end, 'rping', '-c', '-a', '10.79.0.2', '-C', '100000000', '-d')
    try:
        transferring(end)
        must(end, 'link', 'del', 'x0')
        for program in (client, server):
            tap.wait_until('the event', lambda: 'detected device removal' in so_far(program))
    finally:
        kill(client)
        kill(server)
    gone()


@tap.test
def counters_and_list():
    for end in ENDS:
        now = counters(end)
        for name in ('cm_rx_rtu', 'cm_tx_rep') if end is ENDS[1] else ('cm_tx_req', 'cm_rx_rej'):
            tap.true(now[name] > 0, f'{end.device}: {name}')
    server = begin(ENDS[1], 'rping', '-s', '-P', '-a', address(2), '-p', '7999')
    try:
        listening(ENDS[1], server)
        entry = ids(ENDS[1])[0]
        tap.equal((entry['ifname'], entry['state'], entry['ps'], entry['src-addr'],
                   entry['src-port'], entry['comm']),
                  (ENDS[1].device, 'LISTEN', 'TCP', address(2), 7999, 'rping'), entry)
    finally:
        kill(server)
    gone()


@tap.test
def nothing_is_left():
    gone()
    stop()


if __name__ == '__main__':
    sys.exit(tap.run())
