# SPDX-License-Identifier: BSD-3-Clause
"""Engines and ends for the system tests: an unmodified program runs as server on one end and as
client on the other. A test's first two arguments are rocaded and the drop-in libibverbs; a third
one, veth, asks for two engines in network namespaces of their own, joined by a veth pair with jumbo
frames, in place of one engine with the embedded wire; udp, for the same by the kernel's sockets, of
an ordinary user without any capability; udp-lcores, for that with two lcores in each engine."""
import concurrent.futures
import contextlib
import itertools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'harness'))
import confine  # noqa: E402
import ending  # noqa: E402
import leash  # noqa: E402
import tap  # noqa: E402
import veth  # noqa: E402

ROCADED, LIBRARY = map(os.path.abspath, sys.argv[1:3])
ROCADE = pathlib.Path(__file__).parents[2] / 'usertools/rocade'
FOLDER = tempfile.mkdtemp(prefix='rcdsys')
SOCKET = f'{FOLDER}/run/rocade.sock'
ENV = {**os.environ, 'ROCADE_ROCADED': ROCADED, 'ROCADE_SOCKET': SOCKET,
       'LD_LIBRARY_PATH': str(pathlib.Path(LIBRARY).parent)}
# Seconds, by which what hangs ends; ten thousand connections take most on a busy machine.
LIMIT = 400


def rocade(*words):
    return subprocess.run([ROCADE, '--log', f'{FOLDER}/run/rocaded.log', *words],
                          capture_output=True, text=True, env=ENV, timeout=LIMIT, check=False)


def run(*command, env=None):
    if shutil.which(command[0]) is None:
        raise tap.Skip(f'no {command[0]} here')
    return subprocess.run(command, capture_output=True, text=True, env=env or ENV, timeout=LIMIT,
                          check=False)


class End:
    """Where a program runs: a device of an engine, perhaps in a namespace."""

    def __init__(self, device, env=None, namespace=None, address='127.0.0.1', netdev=None):
        self.device, self.env, self.address = device, env or ENV, address
        self.prefix = ['ip', 'netns', 'exec', namespace] if namespace else []
        self.netdev = netdev


class Ends(list):
    """Without any, the test that looks is skipped."""

    def __getitem__(self, place):
        self.check()
        return super().__getitem__(place)

    def __iter__(self):
        self.check()
        return super().__iter__()

    def check(self):
        if not len(self):
            raise tap.Skip('no engines')


UDP = sys.argv[3:4] in (['udp'], ['udp-lcores'])
VETH = UDP or sys.argv[3:4] == ['veth']
LCORES = ['--lcores', '0@(0-1),1@0,2@1'] if sys.argv[3:4] == ['udp-lcores'] else []
NOBODY = 65534
ADDRESS4 = '192.168.1.{}' if VETH else '10.77.0.{}'
ADDRESS6 = 'fd01::{}' if VETH else 'fd77::{}'
ENDS = Ends()
STACK = contextlib.ExitStack()


def on(end, *command):
    """Run a program on an end."""
    return run(*end.prefix, *command, env=end.env)


def rocade_on(end, *words):
    return subprocess.run([ROCADE, *words], capture_output=True, text=True, env=end.env,
                          timeout=LIMIT, check=False)


def counters(end):
    done = rocade_on(end, '-j', 'statistic', 'show', 'link', end.device)
    return json.loads(done.stdout)[0]['counters']


def both(program, *options, ends=None):
    """Server on one end, client on the other. Returns what both printed."""
    if shutil.which(program) is None:
        raise tap.Skip(f'no {program} here')
    server, client = ends or ENDS
    command = ['timeout', str(LIMIT), program, '-d']
    first = subprocess.Popen([*server.prefix, *command, server.device, *options], env=server.env,
                             text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        deadline = time.monotonic() + tap.PATIENCE
        while True:
            second = run(*client.prefix, *command, client.device, *options, server.address,
                         env=client.env)
            text = second.stdout + second.stderr
            early = re.search("Couldn't connect|Connection refused|Failed to connect", text)
            if not early or time.monotonic() > deadline:
                break
            time.sleep(0.1)
        out, _ = first.communicate(timeout=LIMIT)
    finally:
        first.kill()
        first.wait()
    what = f'{program} {" ".join(options)}: server {first.returncode}, client ' \
           f'{second.returncode}\n{out}{text}'
    tap.equal((first.returncode, second.returncode), (0, 0), what)
    return out + text


def address(number, v6=False):
    return (ADDRESS6 if v6 else ADDRESS4).format(number)


def begin(end, *command):
    if shutil.which(command[0]) is None:
        raise tap.Skip(f'no {command[0]} here')
    # A file: nobody reads while it runs.
    out = tempfile.TemporaryFile('w+')
    process = subprocess.Popen([*end.prefix, 'timeout', str(LIMIT), *command], env=end.env,
                               stdout=out, stderr=subprocess.STDOUT)
    process.out = out
    return process


def ended(process, seconds=3):
    """Whether it ends within some time."""
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def finish(process):
    """What it has printed, when it has ended."""
    process.wait(timeout=LIMIT)
    process.out.seek(0)
    return process.out.read()


def so_far(process):
    """What it has printed; its own place in the file stays."""
    return pathlib.Path(f'/proc/self/fd/{process.out.fileno()}').read_text(encoding='utf-8')


def kill(process):
    """Not timeout, but what it runs."""
    subprocess.run(['pkill', '-9', '-P', str(process.pid)], check=False)
    process.wait()
    process.out.close()


def await_port(end, port=18515):
    """Until a server listens to TCP, where programs begin that know no connection manager."""
    def is_open():
        tables = on(end, 'cat', '/proc/net/tcp', '/proc/net/tcp6').stdout
        return re.search(rf':{port:04X} [0-9A-F]+:0000 0A', tables)
    tap.wait_until(f'port {port} to be open', is_open)


def transferring(*ends):
    """Until all queue pairs of these ends have sent something: both programs are connected then."""
    def sent(end):
        pairs = json.loads(rocade_on(end, '-j', 'resource', 'show', 'qp').stdout)
        return pairs and all(pair['tx_messages'] > 0 for pair in pairs)
    tap.wait_until('a transfer', lambda: all(sent(end) for end in ends))


def ids(end):
    return json.loads(rocade_on(end, '-j', 'resource', 'show', 'cm_id').stdout)


def members(end):
    """Queue pairs in multicast groups."""
    every = json.loads(rocade_on(end, '-j', 'resource', 'show', 'quota').stdout)
    return sum(one['quota']['groups']['used'] for one in every if one['of'] == 'all')


def children(process):
    """What timeout runs."""
    done = subprocess.run(['pgrep', '-P', str(process.pid)], capture_output=True, text=True,
                          check=False)
    return {int(pid) for pid in done.stdout.split()}


def listening(end, server=None):
    """Waits for a listener; of a server that was begun: the one before may not be gone yet."""
    def there():
        pids = children(server) if server else ()
        return any(i['state'] == 'LISTEN' and (not server or i['pid'] in pids) for i in ids(end))
    tap.wait_until('a listener', there)


def pair(server, client, bound=True):
    """A server on the second end, a client on the first. Returns what both printed."""
    first = begin(ENDS[1], *server)
    try:
        if bound:
            listening(ENDS[1], first)
        else:
            tap.wait_until('a member of a group', lambda: members(ENDS[1]))
        second = on(ENDS[0], 'timeout', str(LIMIT), *client)
        # Who has joined has not attached its queue pair yet: what came in between is lost.
        while not bound and second.returncode == 0 and not ended(first):
            second = on(ENDS[0], 'timeout', str(LIMIT), *client)
        # Who has lost its client may wait for it until the limit.
        out = finish(first) if second.returncode == 0 else so_far(first)
    finally:
        kill(first)
    text = second.stdout + second.stderr
    tap.equal((first.returncode, second.returncode), (0, 0),
              f'{server} {client}\n{out[-3000:]}\n{text[-3000:]}')
    return out + text


def perftest(program, *options):
    return both(program, '-x', '1', '-F', *options)


PORTS = itertools.count(19000)


def several(func, runs, at_once=4):
    """Some runs of perftest at a time, each with a port of its own: what takes long is that they
    find out how fast the processor is, in a loop that ends by the clock, and sleep."""
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        for done in [pool.submit(func, *run, '-p', str(next(PORTS))) for run in runs]:
            done.result()


def start(config=None, veth_lines=''):
    """The engines. A configuration for the one, or lines for the devices of the two."""
    os.makedirs(f'{FOLDER}/run', exist_ok=True)
    if VETH:
        ENDS.extend(veth_ends(STACK, veth_lines))
        return
    words = confine.OPTIONS + (['--config', str(config)] if config else [])
    done = rocade('up', *words, '--', '--file-prefix', f'rcdsys{os.getpid()}', '--no-huge', '-m',
                  '256')
    tap.equal(done.returncode, 0, done.stdout + done.stderr)
    leash.leash(json.loads(rocade('-j', 'engine').stdout)['pid'])
    ENDS.extend([End('roce0'), End('roce1')])


def idle(end):
    """Whether nothing is left of any program on one end."""
    out = rocade_on(end, 'resource').stdout
    return out and all(f' {kind} 0' in line for line in out.splitlines()
                       for kind in ('pd', 'cq', 'qp', 'cm_id', 'mr', 'ctx'))


def all_gone():
    """Soon after the last program has ended nothing is left of any."""
    for end in ENDS:
        tap.wait_until(f'nothing left on {end.device}', lambda: idle(end))


def stop():
    """Nothing is left of any program; the engines end."""
    all_gone()
    if VETH:
        STACK.close()
    else:
        done = rocade('down')
        tap.equal(done.returncode, 0, done.stderr)


AS_NOBODY = ['setpriv', f'--reuid={NOBODY}', f'--regid={NOBODY}', '--clear-groups',
             '--inh-caps=-all', '--bounding-set=-all', '--no-new-privs']


def yield_to_nobody():
    """What the engines of an ordinary user read, and where they write."""
    os.chmod(FOLDER, 0o755)
    os.chown(f'{FOLDER}/run', NOBODY, NOBODY)
    if run(*AS_NOBODY, 'test', '-x', ROCADED).returncode:
        raise tap.Skip(f'nobody can not run {ROCADED}')


def own_semaphores():
    """What runs a program with a /dev/shm of its own. librspreload.so's semaphore there is the
    machine's: one that was killed by others may have left it taken, or another user's."""
    prefix = ['unshare', '-m', 'sh', '-c', 'mount -t tmpfs none /dev/shm && exec "$@"', '-']
    if run(*prefix, 'true').returncode:
        raise tap.Skip('no mount namespaces here')
    return prefix


def has_no_rights(pid):
    """Not a capability, and no user's but nobody's."""
    status = pathlib.Path(f'/proc/{pid}/status').read_text(encoding='utf-8')
    words = dict(line.split(':', 1) for line in status.splitlines())
    tap.equal([int(words[f'Cap{kind}'], 16) for kind in ('Inh', 'Prm', 'Eff', 'Bnd', 'Amb')],
              [0] * 5, status)
    tap.equal(words['Uid'].split(), [str(NOBODY)] * 4, status)


def veth_ends(stack, more):
    """Two namespaces joined by a veth pair, an engine in each, with more lines for its device."""
    if os.geteuid() != 0:
        raise tap.Skip('needs root')
    ends = []
    spaces = [f'rcdsys{os.getpid()}{letter}' for letter in 'ab']
    for space in spaces:
        if run('ip', 'netns', 'add', space).returncode:
            raise tap.Skip('no network namespaces here')
        stack.callback(run, 'ip', 'netns', 'del', space)
        if run('ip', 'netns', 'exec', space, 'true').returncode:
            raise tap.Skip('no program can enter a network namespace here')
        # Or the kernel looks for a second or two whether another has its link-local address, and
        # asks for no neighbour before.
        run('ip', 'netns', 'exec', space, 'sh', '-c',
            'echo 0 > /proc/sys/net/ipv6/conf/default/accept_dad')
    run('ip', 'link', 'add', 'va', 'netns', spaces[0], 'type', 'veth', 'peer', 'name', 'vb',
        'netns', spaces[1])
    for number, (space, dev) in enumerate(zip(spaces, ('va', 'vb')), 1):
        run('ip', '-n', space, 'link', 'set', 'lo', 'up')
        run('ip', '-n', space, 'link', 'set', dev, 'mtu', '9000', 'up')
        run('ip', '-n', space, 'addr', 'add', f'192.168.1.{number}/24', 'dev', dev)
        run('ip', '-n', space, 'addr', 'add', f'fd01::{number}/64', 'dev', dev, 'nodad')
    for space, dev in zip(spaces, ('va', 'vb')):
        veth.wait(space, dev)
    if UDP:
        yield_to_nobody()
    for number, (space, dev) in enumerate(zip(spaces, ('va', 'vb')), 1):
        socket = f'{FOLDER}/run/{space}.sock'
        config = pathlib.Path(FOLDER) / f'{space}.conf'
        config.write_text(f'[engine]\nsocket = {socket}\n[device rxe_{dev}]\n'
                          f'type = netdev\nmode = {"udp" if UDP else "packet"}\n'
                          f'netdev = {dev}\n{more}')
        env = {**ENV, 'ROCADE_SOCKET': socket}
        command = ['ip', 'netns', 'exec', space, *(AS_NOBODY if UDP else []), ROCADED,
                   '--file-prefix', space, '--no-huge', '-m', '256', '--no-telemetry', *LCORES,
                   '--', '--config', str(config),
                   *(['-o', 'seccomp=kill'] if UDP else confine.OPTIONS)]
        bare = {key: val for key, val in ENV.items() if key != 'LD_LIBRARY_PATH'}
        engine = subprocess.Popen(command, env=bare, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL)
        leash.leash(engine.pid)
        stack.callback(ending.end, engine)
        deadline = time.monotonic() + tap.PATIENCE
        # A command takes longer to begin than an engine to make its socket.
        while not (os.path.exists(socket) or engine.poll() is not None or
                   time.monotonic() > deadline):
            time.sleep(0.01)
        while engine.poll() is None and time.monotonic() < deadline:
            if run(str(ROCADE), 'engine', env=env).returncode == 0:
                break
            time.sleep(0.05)
        tap.true(engine.poll() is None, f'{space}: no engine')
        if UDP:
            has_no_rights(engine.pid)
        ends.append(End(f'rxe_{dev}', env, space, f'192.168.1.{number}', dev))
    return ends
