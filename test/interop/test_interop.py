#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Goal: Rocade and a Linux kernel's rdma_rxe understand each other in both roles.

Method: the kernel runs in a virtual machine; the engine owns the addresses 10.77.0.100 and
fd77::100 on the free end of a veth pair in the same bridge (AF_PACKET), or is the other end of the
machine's vhost-user interface; with --udp the free end is this kernel's, and the engine is nobody,
who has sockets. Unmodified programs run on both sides, once with Rocade as server
and once as client. Their own TCP connection goes over the bridge's address 10.77.0.254, which this
kernel has; with vhost there is none, and a relay through the machine's control channel takes its
place.

    test_interop.py ROCADED LIBIBVERBS VERDICTS PLACEMENT [--kernel 6.12] [--mtu 1500] [--short]
        [--vhost] [--udp] [--router PROGRAM] [--only PATTERN]

Where there is no peer to be had it says why and exits with 77 (under meson: skips).
"""
import argparse
import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import cm  # noqa: E402
import rsockets  # noqa: E402
from peer import BRIDGE, GUEST, LIMIT, OURS, Engine, NoPeer, Peer, Router, sh, tap  # noqa: E402
from talk import FAMILIES, ROLES, Talk, start_server  # noqa: E402

ARGS = argparse.ArgumentParser()
ARGS.add_argument('rocaded')
ARGS.add_argument('library')
ARGS.add_argument('verdicts')
ARGS.add_argument('placement')
ARGS.add_argument('--kernel', default='6.12')
ARGS.add_argument('--mtu', type=int, default=1500)
ARGS.add_argument('--short', action='store_true')
ARGS.add_argument('--vhost', action='store_true')
ARGS.add_argument('--udp', action='store_true')
ARGS.add_argument('--router', help='examples/graph-router, in place of rocaded; with --short')
ARGS.add_argument('--only', help='tests whose names have this pattern')
ARGS = ARGS.parse_args()
NAMESPACE = f'rcdi{os.getpid()}'
FOLDER = tempfile.mkdtemp(prefix='rcdinterop')
VHOST = f'{FOLDER}/vhost.sock'
PORT = f'net_vhost0,iface={VHOST}' if ARGS.vhost else \
    'net_af_packet0,iface=dpdk0,qpairs=1,framesz=4480,blocksz=143360,framecnt=1024'

peer = Peer(ARGS.kernel, ARGS.mtu, NAMESPACE, f'vhost:{VHOST}' if ARGS.vhost else None)
engine = (Router if ARGS.router else Engine)(os.path.abspath(ARGS.router or ARGS.rocaded),
                                             os.path.abspath(ARGS.library), NAMESPACE)
impaired = False


def relay(role, port):
    """With vhost: the programs' TCP connection, through the control channel of the machine."""
    deadline = time.monotonic() + tap.PATIENCE
    while role == 'client' and not peer.listens(port):
        tap.true(time.monotonic() < deadline, 'the program in the guest does not listen')
    how, inside = ('connect', f'nc -l -p {port}') if role == 'server' else \
        ('listen', f'nc 127.0.0.1 {port}')
    script = pathlib.Path(__file__).parent / 'relay.py'
    return subprocess.Popen(['ip', 'netns', 'exec', NAMESPACE, sys.executable, script, how,
                             str(port), *peer.piped(inside)], stderr=subprocess.DEVNULL)


@contextlib.contextmanager
def way(role, program):
    """The addresses by which programs reach each other: in the guest, and here."""
    if not ARGS.vhost:
        yield BRIDGE, GUEST
        return
    relayed = relay(role, 18515 if program.startswith('ib') else 18600)
    try:
        yield '127.0.0.1', '127.0.0.1'
    finally:
        relayed.kill()
        relayed.wait()


talk = Talk(engine, peer, way, LIMIT)


def add(name, func, *args):
    if ARGS.only is None or re.search(ARGS.only, name):
        tap.add(name, lambda: talk.attempt(func, args))


def pings():
    # On a busy machine all replies may come later than ping waits for them.
    for words in (f'ping -c 3 -W 5 {OURS}', 'ping -6 -c 3 -W 5 fd77::100'):
        tap.wait_until(words, lambda words=words: peer.run(words)[0] == 0)
    if ARGS.vhost:
        return
    for address in (OURS, 'fd77::100', GUEST):
        tap.wait_until(f'{address} to answer', lambda address=address: sh(
            'ip', 'netns', 'exec', NAMESPACE, 'ping', '-c', '3', '-W', '5',
            address).returncode == 0)


def add_pingpong(service, gid, size, mtu, *more):
    for role in ROLES:
        add(f'{service}_pingpong {size} bytes, MTU {mtu}, {FAMILIES[gid]}, Rocade {role}',
            talk.pingpong, role, service, gid, size, mtu, *more)


def add_perftest(program, *options):
    for role in ROLES:
        add(f'{program} {" ".join(map(str, options))}, Rocade {role}', talk.perftest, role,
            program, *options)


def plan_short():
    add_pingpong('rc', '1', 4096, 1024, '-c')
    add_perftest('ib_write_bw', '-s', 65536, '-n', 20)
    add_perftest('ib_read_bw', '-s', 65536, '-n', 20)
    add_perftest('ib_atomic_bw', '-n', 20)


def plan_programs():
    largest = 4096 if ARGS.mtu >= 4200 else 1024
    for size in (1, 1024, 4096, 65536):
        add_pingpong('rc', '1', size, largest, '-c')
    for mtu in (256, 512, 1024, 2048, 4096):
        if mtu < largest:
            add_pingpong('rc', '1', 4096, mtu, '-c')
    for gid in ('0', '2'):
        add_pingpong('rc', gid, 4096, largest, '-c')
        add_pingpong('rc', gid, 65536, largest, '-c')
        add_pingpong('ud', gid, 1024, largest)
        add_pingpong('uc', gid, 4096, largest)
    for size in (1, 1024, 4096, 16384):
        add_pingpong('uc', '1', size, largest)
    for size in (1, 1024):
        add_pingpong('ud', '1', size, largest)
    for size in (1, 4096, 65536):
        add_pingpong('srq', '1', size, largest)
    for verb in ('send', 'write', 'read'):
        for size in (1, 4096, 65536):
            add_perftest(f'ib_{verb}_bw', '-s', size, '-n', 50)
        add_perftest(f'ib_{verb}_lat', '-s', 64, '-n', 50)
    for kind in ('CMP_AND_SWAP', 'FETCH_AND_ADD'):
        add_perftest('ib_atomic_bw', '-A', kind, '-n', 50)
    add_perftest('ib_atomic_lat', '-n', 50)
    for verb in ('send', 'write'):
        add_perftest(f'ib_{verb}_lat', '-c', 'UC', '-s', 64, '-n', 50)
        add_perftest(f'ib_{verb}_bw', '-c', 'UC', '-s', 1024, '-n', 20)
    add_perftest('ib_send_lat', '-c', 'UD', '-s', 64, '-n', 50)
    add_perftest('ib_send_bw', '-c', 'UD', '-s', 1024, '-n', 20, '-r', 64)
    for gid in ('0', '2'):
        for program in ('ib_send_bw', 'ib_write_bw', 'ib_read_bw', 'ib_atomic_bw'):
            size = [] if 'atomic' in program else ['-s', 4096]
            for role in ROLES:
                add(f'{program}, {FAMILIES[gid]}, Rocade {role}', talk.both, role, program,
                    '-x', gid, '-F', '-n', 50, *size)
    for role in ROLES:
        for gid in ('1', '2'):
            add(f'UD multicast, {FAMILIES[gid]}, Rocade {role}', multicast, role, gid)


def multicast(role, gid):
    """Each side sends to the other's group. The guest's IP takes only groups that it has joined,
    which RDMA CM would do for a program; here an address that joins does."""
    peer.run('ip addr add 239.1.2.4/32 dev eth0 autojoin; '
             'ip addr add ff0e::1:204/128 dev eth0 autojoin')
    group = '0:0:0:0:0:0:0:0:0:0:255:255:239:1:2:' if gid == '1' else \
        '255:14:0:0:0:0:0:0:0:0:0:0:0:1:2:'
    options = ['-x', gid, '-F', '-c', 'UD', '-g', '-n', 20, '-M']
    words = [['ib_send_lat', '-d', side.device, *options, group + last]
             for side, last in ((engine, '3'), (peer, '4'))]
    server, client, text = talk.exchange(role, *words)
    tap.equal((server, client), (0, 0), text)


def capture(path):
    """A tcpdump of RoCE on the bridge's end of our veth pair."""
    tcpdump = subprocess.Popen(['ip', 'netns', 'exec', NAMESPACE, 'tcpdump', '-q', '-i', 'dpdk0b',
                                '-s', '0', '-U', '--immediate-mode', '-w', path, 'udp port 4791'],
                               stderr=subprocess.PIPE)
    tap.true(b'listening' in tcpdump.stderr.readline(), 'tcpdump')
    return tcpdump


def stop_capture(tcpdump):
    time.sleep(0.5)
    tcpdump.terminate()
    tcpdump.communicate(timeout=tap.PATIENCE)


def traffic_class(role):
    if shutil.which('tcpdump') is None or shutil.which('tshark') is None:
        raise tap.Skip('no tcpdump or tshark here')
    path = f'{FOLDER}/tos-{role}.pcap'
    tcpdump = capture(path)
    talk.both(role, 'ib_send_lat', '-x', 1, '-F', '-n', 5, '-s', 64, '--tclass=106')
    stop_capture(tcpdump)
    done = sh('tshark', '-r', path, '-T', 'fields', '-e', 'ip.src', '-e', 'ip.dsfield', '-e',
              'ip.ttl')
    seen = {tuple(line.split()) for line in done.stdout.decode().splitlines()}
    # The hop limit that perftest asks for; the kernel puts the route's in its place.
    tap.equal(seen, {(OURS, '0x6a', '255'), (GUEST, '0x6a', '64')}, 'class and hop limit')


def vectors_program():
    program = pathlib.Path(FOLDER) / 'rxevec'
    source = pathlib.Path(peer.command('')[0]).parent / 'rxevec.c'
    if not program.exists():
        made = sh('cc', '-O1', '-o', str(program), str(source), '-libverbs')
        tap.equal(made.returncode, 0, made.stderr.decode())
    return program


def vectors(role):
    """Every opcode with known data, by the kit's own program, captured and looked at."""
    program = vectors_program()
    for gid in ('1', '2'):
        path = f'{FOLDER}/vectors-{role}-{gid}.pcap'
        tcpdump = capture(path) if shutil.which('tcpdump') else None
        groups = 'send imm solicited write wimm read atomic inv batch uc ud'.split()
        server, client, text = run_vectors(role, program, gid, groups)
        if tcpdump:
            stop_capture(tcpdump)
            check_capture(path)
        tap.equal((server, client), (0, 0), text)
        failed = [line for line in text.splitlines() if re.search(r'len .*: (?!success)', line)]
        tap.equal(failed, [], text)
        for line in ('original value 0x102030405060708', 'original value 0xaabbccddeeff0011',
                     'original value 0xbabbccddeeff0012'):
            tap.true(line in text, f'{line} is not in {text}')


NAKS = {
    'rnr then send': {'rocade': 'success', 'rxe': 'success'},
    'write, bad rkey': {'rocade': 'remote access error', 'rxe': 'remote access error'},
    'read out of bounds': {'rocade': 'remote access error', 'rxe': 'remote access error'},
    'send too long': {'rocade': 'remote invalid request error', 'rxe': 'remote operation error'},
}


def naks(role):
    """The same program's cases that end in a NAK."""
    _, client, text = run_vectors(role, vectors_program(), '1',
                                  'rnr badkey badlen toolong misalign'.split())
    tap.equal(client, 0, text)
    for case, expected in NAKS.items():
        status = expected['rocade' if role == 'server' else 'rxe']
        tap.true(re.search(rf'^{case} +len +\d+: {status}$', text, re.M), f'{case}: {text}')
    tap.true('misaligned atomic' in text and not
             re.search('misaligned atomic .*: success', text), text)


def run_vectors(role, program, gid, groups):
    ours = [str(program), 'roce0', gid]
    theirs = f'rxevec rxe0 {gid}'
    if role == 'server':
        server = start_server(engine.command(*ours), engine.env)
        time.sleep(0.5)
        client, text = peer.run(f'{theirs} {BRIDGE} {" ".join(groups)}')
    else:
        server = start_server(peer.command(theirs))
        time.sleep(1)
        done = sh(*engine.command(*ours, GUEST, *groups), env=engine.env)
        client, text = done.returncode, (done.stdout + done.stderr).decode()
    try:
        out = server.communicate(timeout=tap.PATIENCE)[0].decode()
    except subprocess.TimeoutExpired:
        server.kill()
        out = server.communicate()[0].decode()
    return server.returncode, client, out + text


def check_capture(path):
    """Our own parser and tshark find nothing wrong with any packet of either side."""
    dump = pathlib.Path(ARGS.rocaded).parents[1] / 'rocade-dump/rocade-dump'
    done = sh(str(dump), path)
    last = done.stdout.decode().splitlines()[-1]
    tap.true('icrc_bad 0 malformed 0' in last, last)
    # How many acknowledgements there are depends on who was slow: 96 packets were seen.
    tap.true(int(re.search(r'icrc_ok (\d+)', last)[1]) > 75, last)
    if shutil.which('tshark') is None:
        return
    # It guesses RPC over RDMA in SENDs of a few bytes, and objects to datagrams of none.
    done = sh('tshark', '-r', path, '--disable-protocol', 'rpcordma', '-Y', '_ws.malformed', '-T',
              'fields', '-e', 'infiniband.bth.opcode', '-e', 'udp.length')
    flagged = {tuple(line.split()) for line in done.stdout.decode().splitlines()}
    tap.true(flagged <= {('100', '32'), ('101', '36')}, f'malformed, says tshark: {flagged}')
    kept = os.environ.get('ROCADE_INTEROP_KEEP')
    if kept:
        os.makedirs(kept, exist_ok=True)
        shutil.copy(path, kept)


# What a requester is told, and what the responder's queue pair is then: by who responds. rxe
# answers a SEND that is too long with NAK 3 where the specification has NAK 1.
VERDICTS = {
    'badkey': {'rocade': ('REM_ACCESS_ERR', 'ERR'), 'rxe': ('REM_ACCESS_ERR', 'ERR')},
    'badrange': {'rocade': ('REM_ACCESS_ERR', 'ERR'), 'rxe': ('REM_ACCESS_ERR', 'ERR')},
    'norights': {'rocade': ('REM_ACCESS_ERR', 'ERR'), 'rxe': ('REM_ACCESS_ERR', 'ERR')},
    'toolong': {'rocade': ('REM_INV_REQ_ERR', 'ERR'), 'rxe': ('REM_OP_ERR', 'ERR')},
    'rnr': {'rocade': ('RNR_RETRY_EXC_ERR', 'RTS'), 'rxe': ('RNR_RETRY_EXC_ERR', 'RTS')},
    'late': {'rocade': ('SUCCESS', 'RTS'), 'rxe': ('SUCCESS', 'RTS')},
    'few': {'rocade': ('SUCCESS', 'RTS'), 'rxe': ('SUCCESS', 'RTS')},
    'gone': {'rocade': ('RETRY_EXC_ERR', 'RESET'), 'rxe': ('RETRY_EXC_ERR', 'RESET')},
}


def verdicts(role):
    """Errors: each with a connection of its own, and what both sides see of it."""
    peer.put(ARGS.verdicts, '/usr/bin/verdicts')
    server, client, text = talk.exchange(role, [os.path.abspath(ARGS.verdicts), 'roce0', '1'],
                                    ['verdicts', 'rxe0', '1'])
    tap.equal((server, client), (0, 0), text)
    responder = 'rocade' if role == 'server' else 'rxe'
    seen = dict(re.findall(r'^case (\w+): (.*)$', text, re.M))
    for case, expected in VERDICTS.items():
        status, state = expected[responder]
        tap.equal(seen.get(case), f'requester {status} then '
                  f'{"WR_FLUSH_ERR" if status != "SUCCESS" else "nothing"}, responder {state}',
                  f'{case}\n{text}')


# FLUSH and ATOMIC WRITE: what a requester is told of each case of placement.c.
PLACEMENT = {
    'log': 'success, 3', 'whole': 'success, 1', 'many': 'success, 12',
    **dict.fromkeys(('flushkey', 'flushrange', 'flushrights', 'persistent', 'writekey',
                     'writerights'), 'remote access error, 1'),
}


@contextlib.contextmanager
def icrc_relayed():
    """With icrc_relay.py between our end of the veth pair and the bridge. What it says in the end
    is appended to the list."""
    said = []
    mtu = str(ARGS.mtu)
    engine.inside('ip', 'link', 'add', 'icrc0', 'mtu', mtu, 'type', 'veth', 'peer', 'name', 'icrc1',
                  'mtu', mtu)
    try:
        for words in ('icrc0 master br77', 'dpdk0b nomaster', 'icrc0 up', 'icrc1 up'):
            engine.inside('ip', 'link', 'set', *words.split())
        relays = subprocess.Popen(
            ['ip', 'netns', 'exec', NAMESPACE, sys.executable,
             pathlib.Path(__file__).parent / 'icrc_relay.py', 'dpdk0b', 'icrc1'],
            stdout=subprocess.PIPE, text=True)
        try:
            tap.equal(relays.stdout.readline(), 'relays\n', 'the relay')
            yield said
        finally:
            relays.terminate()
            said.append(relays.communicate(timeout=tap.PATIENCE)[0].strip())
    finally:
        engine.inside('ip', 'link', 'set', 'dpdk0b', 'master', 'br77')
        engine.inside('ip', 'link', 'del', 'icrc0')


def placement(role):
    """What rxe has since Linux 6.2, though with an ICRC of its own for FLUSH."""
    peer.put(ARGS.placement, '/usr/bin/placement')
    with icrc_relayed() as said:
        for gid in ('1', '2'):
            placement_by(role, gid)
    way = 'from' if role == 'server' else 'to'
    tap.true(re.fullmatch(rf'.*[1-9]\d* {way} kernel.*, 0 other', said[0]), said[0])


def placement_by(role, gid):
    server, client, text = talk.exchange(
        role, [os.path.abspath(ARGS.placement), 'roce0', gid], ['placement', 'rxe0', gid])
    tap.equal((server, client), (0, 0), text)
    seen = dict(re.findall(r"^case (\w+): (.*), responder's memory is right", text, re.M))
    tap.equal(seen, PLACEMENT, text)


GUEST_DAMAGE = {
    'loss': 'loss 1%', 'duplication': 'duplicate 1%', 'reordering': 'delay 1ms reorder 99%',
    'corruption': 'corrupt 0.1%',
}
OUR_DAMAGE = {
    'loss': 'drop=1%', 'duplication': 'duplicate=1%', 'reordering': 'reorder=1%',
    'corruption': 'corrupt=0.1%',
    'bursts': 'ge_p=0.4%,ge_r=25%,ge_max=4',
    'bottleneck': 'rate=10000000,queue=30000,mark=10000',
}
OUR_COUNTER = {
    'loss': 'drop', 'duplication': 'duplicate', 'reordering': 'reorder', 'corruption': 'corrupt',
    'bursts': 'burst_drop', 'bottleneck': 'queue_drop',
}


def under_damage(kind, side, role):
    if not impaired:
        raise tap.Skip('this build has no net_impair')
    before = engine.counters(), peer.counters()

    def counted():
        """What each side has counted since."""
        return [{key: now[key] - then[key] for key in now} for now, then in
                zip((engine.counters(), peer.counters()), before)]
    if side == 'guest':
        peer.must('modprobe sch_netem; tc qdisc replace dev eth0 root netem ' + GUEST_DAMAGE[kind])
    else:
        engine.impair(OUR_DAMAGE[kind] + ',seed=3')
    try:
        # One packet in a thousand: enough of them that some are sure to be hit.
        talk.damaged(role, 300 if kind == 'corruption' else 100)
    except AssertionError as err:
        # Whose retries ran out is not what its program alone says.
        raise AssertionError(f'{err}\n{counted()}') from err
    finally:
        if side == 'guest':
            dropped = peer.must('tc -s qdisc show dev eth0')
            peer.run('tc qdisc del dev eth0 root')
        else:
            engine.impair('seed=1')
    ours, theirs = counted()
    check_damage(kind, side, ours, theirs, dropped if side == 'guest' else '')


def check_damage(kind, side, ours, theirs, qdisc):
    """What was done is seen where it must be."""
    seen = f'{ {key: val for key, val in ours.items() if val} } { theirs } {qdisc}'
    if side == 'ours':
        tap.true(ours[f'tx_impair_{OUR_COUNTER[kind]}'] > 0, seen)
    bad = sum(val for key, val in ours.items()
              if key.startswith('rx_drop_') and key not in ('rx_drop_stale', 'rx_drop_no_qp'))
    if kind == 'corruption' and side == 'guest':
        tap.true(bad > 0, seen)
    elif kind != 'corruption':
        tap.equal(ours['rx_drop_icrc'], 0, seen)
    if kind in ('loss', 'bursts', 'bottleneck'):
        again = ours['retransmitted_pkts'] + ours['duplicate_request'] + \
            ours['out_of_seq_request'] + theirs['completer_retry_err'] + theirs['rcvd_seq_err']
        tap.true(again > 0, seen)
    if kind == 'duplication':
        twice = ours['duplicate_request'] + ours['rx_drop_stale'] + theirs['duplicate_request']
        tap.true(twice > 0, seen)


def plan_damage():
    for kind in OUR_DAMAGE:
        # Not before the guest: rxe sends all again into the full queue, and may give up.
        for side in ('guest', 'ours') if kind in GUEST_DAMAGE else ('ours',):
            for role in ROLES:
                add(f'{kind} on packets of {side}, Rocade {role}', under_damage, kind, side, role)


def boot():
    """The peer, where there can be one. With vhost the engine makes the socket that it connects to.
    """
    peer.check()
    if ARGS.vhost:
        sh('ip', 'netns', 'add', NAMESPACE)
        sh('ip', '-n', NAMESPACE, 'link', 'set', 'lo', 'up')
        engine.start(PORT, ARGS.mtu)
    return peer.boot()


def engine_starts():
    global impaired
    if ARGS.vhost:
        return
    if ARGS.router:
        engine.start(PORT, ARGS.mtu)
        return
    if ARGS.udp:
        engine.start_by_sockets('seed=1')
        impaired = True
        return
    try:
        engine.start(PORT, ARGS.mtu, 'seed=1')
        impaired = True
    except AssertionError:
        if 'no net_impair' not in engine.log():
            raise
        engine.stop()
        engine.start(PORT, ARGS.mtu)


def nothing_is_left():
    def idle():
        text = engine.rocade('resource').stdout
        return ' qp 0 ' in text and ' ctx 0 ' in text

    tap.wait_until('nothing left', idle)
    engine.stop()


def main():
    # Killed or not, nothing is left.
    signal.signal(signal.SIGTERM, ended)
    try:
        return test_all()
    finally:
        engine.stop()
        peer.end()
        shutil.rmtree(FOLDER, ignore_errors=True)


def ended(number, _frame):
    """Once: a second signal does not end what tidies up."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(128 + number)


def test_all():
    try:
        said = boot()
    except NoPeer as why:
        print(f'1..0 # SKIP no interoperability tests: {why}')
        print(f'NO INTEROPERABILITY TESTS: {why}', file=sys.stderr)
        return 0 if os.environ.get('ROCADE_MESON') else 77
    print(f'# {said}', flush=True)
    tap.add('engine starts', engine_starts)
    # First of all: until neighbours know each other, a program in the guest gives up too early.
    tap.add('ping', pings)
    if not ARGS.vhost:
        plan = cm.Plan(engine, peer, add)
        plan.make(ARGS.short)
        sockets = rsockets.Sockets(plan, FOLDER)
        sockets.make(ARGS.short)
        if ARGS.udp:
            sockets.make_datagrams(pathlib.Path(ARGS.verdicts).with_name('loop_grh.so'))
    if ARGS.short or ARGS.vhost:
        plan_short()
        if ARGS.vhost:
            for role in ROLES:
                add(f'errors and their statuses, Rocade {role}', verdicts, role)
    else:
        plan_programs()
        for role in ROLES:
            add(f'traffic class and hop limit, Rocade {role}', traffic_class, role)
            add(f'every opcode with known data, Rocade {role}', vectors, role)
            add(f'NAKs to the kit\'s program, Rocade {role}', naks, role)
            add(f'errors and their statuses, Rocade {role}', verdicts, role)
            # With --udp this kernel leaves checksums to the veth pair: the relay would see none.
            if ARGS.kernel != '6.1' and not ARGS.udp:
                add(f'FLUSH and ATOMIC WRITE, Rocade {role}', placement, role)
        plan_damage()
    tap.add('nothing is left', nothing_is_left)
    return tap.run()


if __name__ == '__main__':
    sys.exit(main())
