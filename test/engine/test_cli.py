#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Goal: the command line does what its guide says, and leaves nothing behind.

Method: the commands as a user types them, on an engine of the test's own; its files, processes
and sockets compared before and after.

    test_cli.py ROCADED
"""
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'harness'))
import leash  # noqa: E402
import tap  # noqa: E402

ROCADED = sys.argv[1]
ROCADE = pathlib.Path(__file__).parents[2] / 'usertools/rocade'
FOLDER = tempfile.mkdtemp(prefix='rcdcli')
SOCKET = f'{FOLDER}/run/rocade.sock'
ENV = {**os.environ, 'ROCADE_ROCADED': ROCADED, 'ROCADE_SOCKET': SOCKET}
PREFIX = f'rcdcli{os.getpid()}'
EAL = ['--', '--file-prefix', PREFIX, '--no-huge', '-m', '256']


def rocade(*words, status=0):
    done = subprocess.run([ROCADE, '--log', f'{FOLDER}/run/rocaded.log', *words],
                          capture_output=True, text=True, env=ENV, timeout=tap.PATIENCE,
                          check=False)
    tap.equal(done.returncode, status, f'{words}: {done.stdout}{done.stderr}')
    return done.stdout + done.stderr


def up(*words):
    os.makedirs(f'{FOLDER}/run', exist_ok=True)
    out = rocade('up', *words, *EAL)
    leash.leash(json.loads(rocade('-j', 'engine'))['pid'])
    return out


def traces():
    """What an engine of this test could leave behind; others may run beside it."""
    processes = []
    for path in pathlib.Path('/proc').glob('[0-9]*/cmdline'):
        try:
            state = (path.parent / 'stat').read_text().rsplit(')', 1)[1].split()[0]
            if PREFIX in path.read_text().split('\0') and state != 'Z':
                processes.append(path.parent.name)
        except OSError:
            pass
    return {
        'processes': sorted(processes),
        'sockets': sorted(line.split()[-1] for line in
                          pathlib.Path('/proc/net/unix').read_text().splitlines()
                          if FOLDER in line or PREFIX in line),
        'files': sorted(
            path for folder in ('/dev/hugepages', '/var/run/dpdk', '/dev/shm', FOLDER)
            # Folders of others may go while we look.
            for where, folders, names in os.walk(folder) for name in folders + names
            for path in [os.path.join(where, name)]
            if os.path.exists(path) and (folder == FOLDER or PREFIX in path)),
    }


def added(before):
    """What there is now and was not before. An engine of an earlier case may have been going then:
    a process that ends has no command line when its sockets close."""
    return {kind: [name for name in names if name not in before[kind]]
            for kind, names in traces().items()}


def nothing_left(before):
    """All traces are gone, soon."""
    try:
        tap.wait_until('the end', lambda: not any(added(before).values()))
    except AssertionError as err:
        raise AssertionError(f'{err}: {added(before)} is left') from None


@tap.test
def up_show_down_leaves_nothing():
    before = traces()
    up()
    lines = rocade('link', 'show').splitlines()
    tap.equal(len(lines), 2, 'links')
    for line in lines:
        tap.true('state ACTIVE physical_state LINK_UP' in line, line)
    rocade('down')
    nothing_left(before)


def wakes(pid):
    """How often the control thread has slept."""
    status = pathlib.Path(f'/proc/{pid}/task/{pid}/status').read_text()
    return int(re.search(r'^voluntary_ctxt_switches:\s*(\d+)', status, re.M)[1])


@tap.test
def idle_engine_sleeps():
    up()
    pid = json.loads(rocade('-j', 'engine'))['pid']
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
        client.connect(SOCKET)
        time.sleep(0.5)
        before, began = wakes(pid), time.monotonic()
        time.sleep(4)
        count = wakes(pid) - before
    # A machine that is busy may have us sleep for longer.
    seconds = time.monotonic() - began
    tap.true(count <= 5 * seconds, f'with nothing to do it woke {count} times in {seconds} s')
    rocade('down')


@tap.test
def second_engine_is_refused():
    up()
    try:
        tap.true('answers' in rocade('up', *EAL, status=1), 'the command does not say why')
        done = subprocess.run([ROCADED, '--file-prefix', f'rcdother{os.getpid()}', '--no-huge',
                               '-m', '256', '--', '--socket', SOCKET], capture_output=True,
                              text=True, check=False)
        tap.equal(done.returncode, 1, 'status of the daemon')
        tap.true('another engine answers' in done.stderr, done.stderr)
    finally:
        rocade('down')


@tap.test
def every_listing_has_json():
    up()
    try:
        for words in (['link'], ['dev'], ['resource'], ['statistic'], ['engine'], ['doctor'],
                      *[['resource', 'show', kind] for kind in
                        ('pd', 'cq', 'qp', 'mr', 'srq', 'ctx')]):
            json.loads(rocade('-j', *words))
            rocade(*words)
        links = json.loads(rocade('-j', 'link'))
        tap.equal([link['ifname'] for link in links], ['roce0', 'roce1'], 'names')
        tap.equal(links[0]['state'], 'ACTIVE', 'state')
        gids = [gid['gid'] for gid in links[0]['gids']]
        tap.true('::ffff:10.77.0.1' in gids and 'fd77::1' in gids, gids)
        counters = json.loads(rocade('-j', 'statistic', 'show', 'link', 'roce1'))[0]['counters']
        for name in ('sent_pkts', 'rcvd_pkts', 'out_of_seq_request', 'rx_drop_icrc'):
            tap.true(name in counters, name)
        tap.true(all(check['state'] in ('ok', 'warn', 'fail') for check in
                     json.loads(rocade('-j', 'doctor'))), 'doctor')
    finally:
        rocade('down')


@tap.test
def links_added_and_removed():
    up()
    try:
        rocade('link', 'add', 'x0', 'type', 'wire', 'peer', 'x1')
        rocade('addr', 'add', '192.168.3.1/24', 'dev', 'x0')
        tap.true('::ffff:192.168.3.1' in rocade('-d', 'link', 'show', 'x0/1'), 'address')
        rocade('link', 'set', 'x1', 'down')
        tap.wait_until('the other end to be down',
                       lambda: 'state DOWN' in rocade('link', 'show', 'x0'))
        rocade('link', 'del', 'x0')
        rocade('link', 'add', 'n0', 'type', 'port', 'net_null0')
        tap.true('link n0/1' in rocade('link'), 'no port n0')
        rocade('link', 'del', 'n0')
        for words, what in ((['link', 'show', 'zz'], 'no link zz'),
                            (['link', 'del', 'zz'], 'no link zz'),
                            (['link', 'add', 'y', 'type', 'netdev', 'nodev9'], 'nodev9'),
                            (['link', 'add', 'y', 'type', 'port', 'net_nothing0'], 'net_nothing0'),
                            (['link', 'add', 'roce0', 'type', 'wire', 'peer', 'q'], 'roce0'),
                            (['link', 'add', 'y', 'type', 'tunnel', 'q'], 'type'),
                            (['addr', 'add', '1.2.3', 'dev', 'roce0'], '1.2.3'),
                            (['resource', 'show', 'cow'], 'cow')):
            tap.true(what in rocade(*words, status=1), words)
        tap.equal(len(rocade('link').splitlines()), 2, 'links left')
    finally:
        rocade('down')


@tap.test
def links_by_keys():
    """All that a configuration can say, and what can change later."""
    up()
    try:
        rocade('link', 'add', 'k0', 'type', 'wire', 'peer', 'k1', 'mtu', '1500', 'address',
               '10.5.0.1/24,fd05::1/64@7', 'gateway4', '10.5.0.254', 'impair', 'seed=3',
               'cc', 'swift')
        first = json.loads(rocade('-j', 'link', 'show', 'k0'))[0]
        tap.equal((first['mtu'], first['active_mtu'], first['gateway4'], first['impair'],
                   first['cc']),
                  (1500, 1024, '::ffff:10.5.0.254', 'seed=3', 'swift'), first)
        tap.equal([(gid['gid'], gid['vlan']) for gid in first['gids'][1:]],
                  [('::ffff:10.5.0.1', 0), ('fd05::1', 7)], 'addresses')
        rocade('link', 'set', 'k0', 'mtu', '4200', 'gateway4', 'none', 'gateway6', 'fd05::fe')
        rocade('link', 'set', 'k0', 'impair', 'drop=1%,seed=4')
        rocade('link', 'set', 'k0', 'cc', 'dcqcn,line=10000,floor=50')
        first = json.loads(rocade('-j', 'link', 'show', 'k0'))[0]
        tap.equal((first['active_mtu'], first['gateway6'], first['impair'], 'gateway4' in first,
                   first['cc']),
                  (4096, 'fd05::fe', 'drop=1%,seed=4', False, 'dcqcn,line=10000,floor=50'), first)
        rocade('link', 'set', 'k0', 'state', 'down')
        tap.true('state DOWN' in rocade('link', 'show', 'k1'), 'state')
        rocade('link', 'set', 'k0', 'up')
        rocade('addr', 'add', '10.6.0.1/24', 'dev', 'k1', 'vlan', '9')
        tap.true('gid 1 ::ffff:10.6.0.1 type RoCE v2 vlan 9' in rocade('-d', 'link', 'show', 'k1'),
                 'the other end')
        rocade('link', 'del', 'k1')
        # Shorter forms.
        rocade('link', 'add', 'k0', 'wire', 'k1')
        rocade('link', 'add', 'n0', 'port', 'net_null0')
        rocade('link', 'add', 'n1', 'type', 'port', 'net_null1', 'mtu', '1500')
        tap.equal(len(rocade('link').splitlines()), 6, 'links')
        for words, what in ((['mtu', '12'], 'mtu: bytes, 576 to 65535'), (['mtu'], 'mtu: a key'),
                            (['mtu', '1500', 'mtu', '1500'], 'mtu: said twice'),
                            (['peer', 'k7'], 'peer: said when'), (['cow', '1'], 'cow: no such key'),
                            (['impair', 'drop=1%'], 'impair: k0 is not impaired'),
                            (['cc', 'reno'], 'cc: no such algorithm'),
                            (['cc', 'swift,target=0'], 'cc: target is from 1 to 100000'),
                            (['cc', 'swift,line=7'], 'cc: the algorithm has no such parameter')):
            tap.true(what in rocade('link', 'set', 'k0', *words, status=1), words)
        for words, what in ((['type', 'wire', 'peer', 'z', 'mode', 'xdp'], 'mode: a wire has none'),
                            (['type', 'netdev', 'lo', 'gateway', '1.2.3.4'],
                             "gateway: a netdev has the kernel's"),
                            (['type', 'udp', 'lo', 'mode', 'packet'],
                             'mode: a link of type udp has no other than udp'),
                            (['type', 'udp', '192.0.2.1'], 'none with this address'),
                            (['udp', 'nowhere0'], 'there is no netdev nowhere0'),
                            (['type', 'wire', 'peer', 'z', 'peer', 'q'], 'peer: said twice'),
                            (['type', 'port', 'x', 'impair', 'x' * 256], 'impair: too long'),
                            (['type', 'port', 'x' * 1000], 'too long a command'),
                            (['type', 'wire', 'peer', 'z', 'mtu', '1500\n'], 'control characters')):
            tap.true(what in rocade('link', 'add', 'z0', *words, status=1), words)
    finally:
        rocade('down')


def administer(text):
    """The answer to a request as it is, of a command that was written otherwise."""
    sys.path.insert(0, str(ROCADE.parent))
    sys.dont_write_bytecode = True
    import rocade_engine
    engine = rocade_engine.Engine(SOCKET)
    try:
        fds = engine.call(rocade_engine.OP_ADMIN, text.ljust(rocade_engine.ADMIN_LEN, b'\0'))
        with os.fdopen(fds[0]) as file:
            file.seek(0)
            return json.load(file)
    finally:
        engine.close()


@tap.test
def requests_of_strangers():
    """What is no request gets a sentence, and the engine goes on."""
    up()
    try:
        for text, what in ((b'link show', 'this command is of another version'),
                           (b'', 'this command is of another version'),
                           (b'{"op":"link","op":"stop"}', 'says something twice'),
                           (b'{' * 1023, 'not one flat object'),
                           (b'{"op":{"op":"stop"}}', 'not one flat object'),
                           (b'{"op":"link_set","name":"roce0","mtu":1500}', 'mtu is not a text'),
                           (b'{"op":"link_set","name":"roce0","state":"up\\u001b"}', 'control'),
                           (b'{"op":"\xff"}', 'no JSON')):
            tap.true(what in administer(text)['error'], f'{text}: {administer(text)}')
        tap.equal(len(administer(b'{"op":"link"}')), 2, 'links')
    finally:
        rocade('down')


def telemetry(folder, *commands):
    """What DPDK's telemetry answers to some commands."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sock:
        sock.settimeout(30)
        sock.connect(f'{folder}/dpdk_telemetry.v2')
        most = json.loads(sock.recv(1024))['max_output_len']
        answers = []
        for command in commands:
            sock.send(command.encode())
            answers.append(json.loads(sock.recv(most))[command.split(',')[0]])
        return answers


@tap.test
def telemetry_agrees_with_the_command():
    """Both show the same facts by the same names, as far as telemetry may see them."""
    up()
    try:
        about = json.loads(rocade('-j', 'engine'))
        names, link, statistic, engine, nobody = telemetry(
            about['runtime_dir'], '/rocade/links', '/rocade/link,roce1', '/rocade/statistic,roce1',
            '/rocade/engine', '/rocade/link,nobody')
        tap.equal((names, nobody), (['roce0', 'roce1'], None), 'names')
        shown = json.loads(rocade('-j', 'link', 'show', 'roce1'))[0]
        tap.equal(link.pop('name'), 'roce1', 'name')
        tap.equal(link, {key: shown[key] for key in link}, 'link')
        tap.true({'ifname', 'state', 'driver', 'dpdk_port', 'mtu', 'active_mtu'} <= set(link), link)
        counters = json.loads(rocade('-j', 'statistic', 'show', 'link', 'roce1'))[0]['counters']
        tap.true(set(counters) <= set(statistic), set(counters) - set(statistic))
        tap.equal(statistic['ifname'], 'roce1', 'link of the counters')
        tap.equal(engine['version'], about['version'], 'version')
        lcore = f'lcore{about["lcores"][0]["lcore"]}'
        tap.true({'clients', 'queue_pairs', 'longest_step_work', f'{lcore}_polls',
                  f'{lcore}_busy_polls', f'{lcore}_longest_poll_work',
                  f'{lcore}_away_ns'} <= set(engine), engine)
    finally:
        rocade('down')


@tap.test
def configuration_faults_have_lines():
    path = pathlib.Path(FOLDER) / 'bad.cfg'
    path.write_text('[engine]\nidle = lazy\nsocket_mode = 0999\n\n[device a]\ntype = wire\n'
                    'peer = b\naddress = 10.0.0.300/24\nmtu = 12\n[quota]\nqps = 0\n[cow]\nx = 1\n')
    done = subprocess.run([ROCADED, '--config', path, '--check-config'], capture_output=True,
                          text=True, check=False)
    tap.equal(done.returncode, 2, 'status')
    found = sorted(int(line.split(':')[1]) for line in done.stderr.splitlines())
    tap.equal(found, [2, 3, 7, 8, 9, 11, 12], done.stderr)
    path.write_text('[device a]\ntype = wire\npeer = b\naddress = 10.0.0.1/24, fd00::1/64@7\n'
                    '[device b]\ntype = wire\npeer = a\n[quota]\nqueue_bytes = 64M\n')
    done = subprocess.run([ROCADED, '--config', path, '--check-config'], capture_output=True,
                          text=True, check=False)
    tap.equal((done.returncode, done.stderr), (0, ''), 'a good file')


@tap.test
def configured_engine():
    path = pathlib.Path(FOLDER) / 'good.cfg'
    path.write_text(f'[engine]\nsocket = {SOCKET}\nsocket_mode = 0600\nidle = sleep\n'
                    '[device a]\ntype = wire\npeer = b\naddress = 10.0.0.1/24@7\nmtu = 1500\n'
                    '[device b]\ntype = wire\npeer = a\nmtu = 1500\n')
    up('--config', str(path))
    try:
        tap.equal(os.stat(SOCKET).st_mode & 0o777, 0o600, 'mode of the socket')
        engine = json.loads(rocade('-j', 'engine'))
        tap.equal(engine['idle'], 'sleep', 'idle policy')
        link = json.loads(rocade('-j', 'link', 'show', 'a'))[0]
        tap.equal(link['active_mtu'], 1024, 'path MTU')
        tap.true({'gid': '::ffff:10.0.0.1', 'vlan': 7}.items() <= link['gids'][1].items(),
                 link['gids'])
        # Asleep, it takes next to nothing of a core.
        stat = pathlib.Path(f'/proc/{engine["pid"]}/stat')

        def ticks():
            return sum(map(int, stat.read_text().rsplit(')', 1)[1].split()[11:13]))
        before, began = ticks(), time.monotonic()
        time.sleep(1)
        tap.true(ticks() - before < 20 * (time.monotonic() - began),
                 'an idle engine does not sleep')
    finally:
        rocade('down')


@tap.test
def drops_privileges():
    if os.geteuid() != 0:
        raise tap.Skip('needs root')
    path = pathlib.Path(FOLDER) / 'user.cfg'
    path.write_text(f'[engine]\nsocket = {SOCKET}\nuser = nobody\n[device a]\ntype = wire\n'
                    'peer = b\n[device b]\ntype = wire\npeer = a\n')
    before = traces()
    up('--config', str(path))
    try:
        engine = json.loads(rocade('-j', 'engine'))
        status = pathlib.Path(f'/proc/{engine["pid"]}/status').read_text()
        uid = [line for line in status.splitlines() if line.startswith('Uid:')][0].split()[1]
        tap.true(uid != '0', 'still root')
    finally:
        rocade('down')
    nothing_left(before)


if __name__ == '__main__':
    sys.exit(tap.run())
