#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Goal: rdma-core's own Python tests pass against the drop-in libibverbs.

Method: the tests that the distribution ships with python3-pyverbs, unpacked into a folder of ours,
on an engine with the embedded wire. Each of their tests is one of ours; the skipped ones need
hardware of a vendor, device memory, XRC, ODP or raw packets (doc/verbs.md lists them).

    test_pyverbs.py ROCADED LIBIBVERBS
"""
import gzip
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'harness'))
import tap  # noqa: E402

ROCADED, LIBRARY = map(os.path.abspath, sys.argv[1:3])
ROCADE = pathlib.Path(__file__).parents[2] / 'usertools/rocade'
SHIPPED = pathlib.Path('/usr/share/doc/rdma-core/tests')
FOLDER = tempfile.mkdtemp(prefix='rcdpy')
ENV = {**os.environ, 'ROCADE_ROCADED': ROCADED, 'ROCADE_SOCKET': f'{FOLDER}/run/rocade.sock'}


def rocade(*words):
    done = subprocess.run([ROCADE, '--log', f'{FOLDER}/run/rocaded.log', *words],
                          capture_output=True, text=True, env=ENV, timeout=60, check=False)
    tap.equal(done.returncode, 0, done.stdout + done.stderr)
    return done.stdout


def unpack():
    if not SHIPPED.is_dir():
        raise tap.Skip('no tests of rdma-core here')
    folder = pathlib.Path(FOLDER) / 'tests'
    shutil.copytree(SHIPPED, folder)
    for path in folder.glob('*.gz'):
        path.with_suffix('').write_bytes(gzip.decompress(path.read_bytes()))
    return folder


def run_all(gid):
    folder = unpack() if not (pathlib.Path(FOLDER) / 'tests').exists() else \
        pathlib.Path(FOLDER) / 'tests'
    os.makedirs(f'{FOLDER}/run', exist_ok=True)
    rocade('up', '--', '--file-prefix', f'rcdpy{os.getpid()}', '--no-huge', '-m', '256')
    try:
        env = {**ENV, 'LD_LIBRARY_PATH': str(pathlib.Path(LIBRARY).parent)}
        done = subprocess.run(['/usr/bin/python3', 'run_tests.py', '--dev', 'roce0', '--gid', gid,
                               '-v'], cwd=folder, env=env, capture_output=True, text=True,
                              timeout=300, check=False)
        passed = len(re.findall(r' \.\.\. ok$', done.stderr, re.M))
        tap.equal(done.returncode, 0, done.stderr[-6000:])
        tap.true(passed >= 97, f'only {passed} tests passed\n{done.stderr}')
        left = rocade('resource')
        tap.true(' qp 0 ' in left and ' ctx 0 ' in left, left)
    finally:
        rocade('down')


@tap.test
def over_ipv4():
    run_all('1')


@tap.test
def over_ipv6():
    run_all('2')


if __name__ == '__main__':
    sys.exit(tap.run())
