#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Goal: programs of the distribution that were made for TCP, and know nothing of RDMA, run over
rsockets as they are.

Method: as test_rsocket.py, with librspreload.so and what it lacks, librocade-sockets.so, before the
C library. Nobody listens to TCP on the servers' ports: what arrives there has come by RDMA.
Afterwards nothing may be left.

    test_preload.py ROCADED LIBIBVERBS [veth]
"""
import contextlib
import hashlib
import os
import pathlib
import re
import shutil
import signal
import sys

from ends import (AS_NOBODY, ENDS, FOLDER, LIBRARY, LIMIT, NOBODY, VETH, address, await_port,
                  begin, counters, finish, ids, kill, listening, on, own_semaphores, so_far, start,
                  stop, tap)

PRELOAD = pathlib.Path('/usr/lib/x86_64-linux-gnu/rsocket/librspreload.so')
# The newest whose first process waits with select(), by which librspreload.so has its listeners.
POSTGRES = 15
OURS = pathlib.Path(LIBRARY).with_name('librocade-sockets.so')


def under(program):
    for needed in (str(PRELOAD), program):
        if shutil.which(needed, os.F_OK) is None:
            raise tap.Skip(f'no {needed} here')
    return ['env', f'LD_PRELOAD={OURS}:{PRELOAD}']


def gone():
    for end in ENDS:
        tap.wait_until(f'no identifiers on {end.device}', lambda: not ids(end))


def client(*command):
    """On the first end, over rsockets. Returns what it printed."""
    done = on(ENDS[0], 'timeout', str(LIMIT), *under(command[0]), *command)
    return done.returncode, done.stdout, done.stderr


def well(server, *command):
    status, out, err = client(*command)
    tap.equal(status, 0, f'{command}\n{out[-2000:]}{err[-2000:]}{so_far(server)[-3000:]}')
    return out


class Server:
    """A server on the second end, until the end of the block."""

    def __init__(self, port, *command):
        self.port, self.command = port, command

    def __enter__(self):
        self.process = begin(ENDS[1], *under(self.command[0]), *self.command)
        try:
            listening(ENDS[1], self.process)
            tables = on(ENDS[1], 'cat', '/proc/net/tcp', '/proc/net/tcp6').stdout
            tap.true('local_address' in tables and
                     not re.search(rf':{self.port:04X} [0-9A-F]+:0000 0A', tables), tables)
        except BaseException:
            print(so_far(self.process), file=sys.stderr)
            kill(self.process)
            raise
        return self.process

    def __exit__(self, *what):
        kill(self.process)
        if what[0] is None:
            gone()


@tap.test
def engines_start():
    start()


@tap.test
def rules_of_programs():
    """The same as they are over TCP; both ends are in one program, so on one machine."""
    program = str(pathlib.Path(LIBRARY).parents[1] / 'test/system/sk_rules')
    done = on(ENDS[0], 'timeout', str(LIMIT), program, '127.0.0.1')
    tap.equal(done.returncode, 0, f'over TCP: {done.stderr}')
    if VETH:
        raise tap.Skip('for one engine')
    status, out, err = client(program, address(1))
    tap.equal(status, 0, out + err)
    gone()


NGINX = '''daemon off;
master_process off;
pid {0}/nginx.pid;
error_log stderr warn;
events {{ worker_connections 256; {2} }}
http {{
    access_log off;
    client_body_temp_path {0}/body;
    proxy_temp_path {0}/proxy;
    fastcgi_temp_path {0}/fastcgi;
    uwsgi_temp_path {0}/uwsgi;
    scgi_temp_path {0}/scgi;
    sendfile {3};
    server {{
        listen {1}:8080;
        root {0}/www;
        location /again/ {{ proxy_pass http://{1}:8080/; }}
    }}
}}
'''


def nginx(more, sendfile):
    """Files of all sizes, one after the other on a connection, and several at a time."""
    www = pathlib.Path(FOLDER) / 'www'
    www.mkdir(exist_ok=True)
    sums = {}
    for size in (1, 1000, 16384, 300_001, 3_000_000):
        data = os.urandom(size)
        (www / f'{size}').write_bytes(data)
        sums[size] = hashlib.sha256(data).hexdigest()
    conf = pathlib.Path(FOLDER) / 'nginx.conf'
    conf.write_text(NGINX.format(FOLDER, address(2), more, sendfile), encoding='utf-8')
    base = f'http://{address(2)}:8080'
    with Server(8080, 'nginx', '-c', str(conf), '-p', FOLDER) as server:
        for how in ([], ['--parallel', '--parallel-immediate']):
            got = pathlib.Path(FOLDER) / 'got'
            got.mkdir(exist_ok=True)
            well(server, 'curl', '-sS', '-f', '--noproxy', '*', *how, '--output-dir', str(got),
                 '--remote-name-all', *(f'{base}/{size}' for size in sums))
            for size, hashed in sums.items():
                file = got / f'{size}'
                tap.equal(hashlib.sha256(file.read_bytes()).hexdigest(), hashed, f'{size} bytes')
                file.unlink()
        out = well(server, 'curl', '-sS', '--noproxy', '*', '-o', '/dev/null', '-w',
                   '%{http_code}', f'{base}/none')
        tap.equal(out, '404', 'what is not there')


@tap.test
def nginx_with_curl():
    for sendfile in ('on', 'off'):
        nginx('', sendfile)


@tap.test
def redis():
    place = ['-h', address(2), '-p', '6380']
    with Server(6380, 'redis-server', '--bind', address(2), '--port', '6380', '--protected-mode',
                'no', '--save', '', '--appendonly', 'no', '--dir', FOLDER) as server:
        tap.equal(well(server, 'redis-cli', *place, 'ping'), 'PONG\n', 'ping')
        tap.equal(well(server, 'redis-cli', *place, 'set', 'road', 'rocade'), 'OK\n', 'set')
        tap.equal(well(server, 'redis-cli', *place, 'get', 'road'), 'rocade\n', 'get')
        out = well(server, 'redis-benchmark', *place, '-c', '20', '-n', '5000', '-q', '-t',
                   'ping,set,get,lrange_100')
        tap.equal(len(re.findall('requests per second', out)), 6, out)
        out = well(server, 'redis-benchmark', *place, '-c', '5', '-n', '200', '-d', '100000', '-q',
                   '-t', 'set,get')
        tap.equal(len(re.findall('requests per second', out)), 2, out)
        tap.wait_until('all clients but one gone', lambda: 'connected_clients:1\n' in well(
            server, 'redis-cli', *place, 'info', 'clients').replace('\r', ''))


def packets():
    return sum(counters(end)['sent_pkts'] for end in ENDS)


@contextlib.contextmanager
def postgres(programs, preload):
    """A server of nobody's, whose processes each make rsockets of their own (RDMAV_FORK_SAFE)."""
    data = pathlib.Path(FOLDER) / 'postgres'
    data.mkdir()
    os.chown(data, NOBODY, NOBODY)
    for path in (FOLDER, f'{FOLDER}/run'):
        os.chmod(path, 0o755)
    for path in pathlib.Path(FOLDER).glob('run/*.sock'):
        path.chmod(0o666)
    made = on(ENDS[1], *AS_NOBODY, programs / 'initdb', '-D', str(data), '-A', 'trust', '-U',
              'bench', '--no-sync', '--no-locale')
    tap.equal(made.returncode, 0, made.stdout + made.stderr)
    with open(data / 'pg_hba.conf', 'a', encoding='utf-8') as rules:
        rules.write('host all all all trust\n')
    server = begin(ENDS[1], *preload, str(programs / 'postgres'), '-D', str(data), '-h',
                   address(2), '-p', '5499', '-k', str(data), '-F', '-c',
                   'dynamic_shared_memory_type=mmap')
    try:
        await_port(ENDS[1], 5499)
        yield server
        # Its processes end with it; timeout tells it.
        server.send_signal(signal.SIGINT)
        finish(server)
    finally:
        kill(server)


@tap.test
def postgresql():
    """Its server forks for each connection: that is made by TCP, and once more by the process that
    has it, by RDMA."""
    versions = {int(path.parent.name): path
                for path in pathlib.Path('/usr/lib/postgresql').glob('[0-9]*/bin')
                if (path / 'postgres').exists() and (path / 'pgbench').exists()}
    if os.geteuid() != 0:
        raise tap.Skip('needs root')
    if not any(version <= POSTGRES for version in versions):
        raise tap.Skip(f'no PostgreSQL {POSTGRES} here, nor an older one')
    programs = versions[max(version for version in versions if version <= POSTGRES)]
    preload = [*own_semaphores(), *AS_NOBODY, *under(str(programs / 'postgres')),
               'RDMAV_FORK_SAFE=1']
    with postgres(programs, preload) as server:
        place = ['-h', address(2), '-p', '5499', '-U', 'bench', 'postgres']
        for options, wanted in ((['-i', '-q'], 'done in'), (['-t', '30'], ' 30/30'),
                                (['-c', '3', '-t', '20', '-S'], ' 60/60')):
            before = packets()
            done = on(ENDS[0], 'timeout', str(LIMIT), *preload, str(programs / 'pgbench'),
                      *options, *place)
            tap.equal(done.returncode, 0, done.stdout + done.stderr + so_far(server)[-3000:])
            tap.true(wanted in done.stdout + done.stderr, done.stdout + done.stderr)
            tap.true(packets() - before > 60, 'not by RDMA')
    gone()


@tap.test
def nothing_is_left():
    gone()
    stop()


if __name__ == '__main__':
    sys.exit(tap.run())
