#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Programs that were made for TCP, over TCP and over rsockets, by veth pairs of the same kind, in
rounds that take turns. Prints medians as a table; in brackets how many cores were busy.

    rsockets.py [--rounds N] [BUILD]      as root, for network namespaces
"""
import argparse
import contextlib
import os
import pathlib
import re
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'usertools'))
from rocade_compare import Bench, Pair, describe, make_veth, middle  # noqa: E402
from rocade_run import preloaded  # noqa: E402

FILE_BYTES = 50_000_000
SECONDS = 3
REQUESTS = 1000  # and no more: each takes milliseconds where others want the cores
NGINX = '''daemon off; master_process off; pid {0}/pid; error_log {0}/error.log;
events {{ }}
http {{ access_log off; sendfile on; client_body_temp_path {0}/a; proxy_temp_path {0}/b;
fastcgi_temp_path {0}/c; uwsgi_temp_path {0}/d; scgi_temp_path {0}/e;
server {{ listen {1}:8080; root {0}; }} }}
'''


class Programs:
    """The programs, over one kind of sockets: each returns a figure and the cores that were busy.
    """

    def __init__(self, name, pair, host, work):
        self.name, self.pair, self.host = name, pair, host
        self.work = pathlib.Path(work)

    def iperf3(self):
        # Told to end while it is in a call of an rsocket, it leaves that by longjmp(), with its
        # lock, and waits for that: it ends by itself.
        out, cores = self.pair.run(['sh', '-c', 'iperf3 -s -1 -B "$0" & wait', self.host],
                                   ['iperf3', '-c', self.host, '-f', 'm', '-t', str(SECONDS)])
        return float(re.search(r'([\d.]+) Mbits/sec.*receiver', out).group(1)) / 1000, cores

    def curl(self):
        conf = self.work / f'{self.host}.conf'
        conf.write_text(NGINX.format(self.work, self.host), encoding='utf-8')
        out, cores = self.pair.run(['nginx', '-c', str(conf), '-p', str(self.work)],
                                   ['curl', '-sS', '-f', '--noproxy', '*', '-o', '/dev/null', '-w',
                                    '%{speed_download}', f'http://{self.host}:8080/file'])
        return float(out) * 8 / 1e9, cores

    def redis(self, clients):
        out, cores = self.pair.run(
            ['redis-server', '--bind', self.host, '--protected-mode', 'no', '--save', '', '--dir',
             str(self.work)],
            ['redis-benchmark', '-h', self.host, '-c', str(clients), '-n', str(REQUESTS), '-t',
             'get', '--csv'])
        return float(re.search(r'"GET","([\d.]+)"', out).group(1)) / 1000, cores


ROWS = {
    'iperf3, one stream, Gbit/s': Programs.iperf3,
    'curl of 50 MB from nginx, Gbit/s': Programs.curl,
    'redis-benchmark GET, 1 client, thousands a second': lambda one: one.redis(1),
    'redis-benchmark GET, 50 clients, thousands a second': lambda one: one.redis(50),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('build', nargs='?', type=pathlib.Path, default=ROOT / 'build/release')
    parser.add_argument('--rounds', type=int, default=5)
    args = parser.parse_args()
    args.build = args.build.resolve()
    args.keys, args.seconds = [], SECONDS
    results = {}
    with contextlib.ExitStack() as stack:
        work = stack.enter_context(tempfile.TemporaryDirectory())
        with open(f'{work}/file', 'wb') as file:
            file.truncate(FILE_BYTES)
        # nginx of root serves files as nobody's.
        os.chmod(work, 0o755)
        make_veth(stack, 9000)
        bench = Bench(args, stack, pathlib.Path(work))
        rocade = bench.make_veth()
        preload = {'LD_PRELOAD': preloaded(args.build / 'lib')}
        over = Pair(rocade.pair.before, tuple({**env, **preload} for env in rocade.pair.envs))
        systems = (Programs('TCP', *bench.tcp_pair(), work),
                   Programs('rsockets', over, rocade.host, work))
        for _ in range(args.rounds):
            for row, measure in ROWS.items():
                for system in systems:
                    bench.only(rocade if system.name == 'rsockets' else system)
                    results.setdefault((row, system.name), []).append(measure(system))
    print(f'{describe()}; medians of {args.rounds} rounds\n')
    print('| | TCP | rsockets |\n|---|---|---|')
    for row in ROWS:
        cells = [middle(results[row, name]) for name in ('TCP', 'rsockets')]
        print(f'| {row} | ' + ' | '.join(f'{val:.3g} ({cores:.1f})' for val, cores in cells) +
              ' |')


if __name__ == '__main__':
    main()
