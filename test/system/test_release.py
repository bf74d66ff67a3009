#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Goal: a build directory is for one rdma-core, and who meets another one is told; and to try
another Debian leaves nothing behind where that can't be done.

Method: the check that meson makes at setup, with a record of another release; the one that the
library makes as it is loaded, compiled as if it were of other releases and loaded into a program
that needs nothing; and rocade run, with a folder of libraries that has another release's name.
rdma-core must be installed, which building needs anyway. rocade-test.sh --on is asked for a system
that is none, and where there is no network.

    test_release.py DROPIN LIBIBVERBS OTHER_RELEASE SAME_RELEASE
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'harness'))
import tap  # noqa: E402

DROPIN, LIBRARY, OTHER, SAME = map(os.path.abspath, sys.argv[1:5])
TOOLS = pathlib.Path(__file__).parents[2] / 'usertools'


def run(*command, **env):
    return subprocess.run(command, capture_output=True, text=True, check=False,
                          env={**os.environ, **env})


@tap.test
def a_build_directory_is_for_one_release():
    with tempfile.TemporaryDirectory() as folder:
        record = pathlib.Path(folder, 'rdma-core')

        def fit(release):
            path = pathlib.Path(folder, f'libibverbs.so.1.14.{release}')
            path.touch()
            return run(sys.executable, DROPIN, '--fit', str(record), str(path))
        for _ in range(2):
            done = fit('56.1')
            tap.equal((done.returncode, done.stdout, done.stderr), (0, '56.1\n', ''), 'first')
        done = fit('57.0')
        tap.equal(done.returncode, 1, 'another')
        for word in ('for rdma-core 56.1', 'rdma-core 57.0 is installed', f'--wipe {folder}'):
            tap.true(word in done.stderr, f'{word}: {done.stderr}')
        tap.equal(done.stderr.count('\n'), 1, 'one sentence')
        tap.equal(fit('56.1').returncode, 0, 'the first again')


@tap.test
def the_library_says_so_as_it_is_loaded():
    done = run('/bin/true', LD_PRELOAD=OTHER)
    tap.equal((done.returncode, done.stderr.count('\n')), (0, 1), done.stderr)
    tap.true('was built for rdma-core 1.0, and rdma-core ' in done.stderr, done.stderr)
    for library in (SAME, LIBRARY):
        done = run('/bin/true', LD_PRELOAD=library)
        tap.equal((done.returncode, done.stderr), (0, ''), library)


@tap.test
def rocade_run_refuses():
    with tempfile.TemporaryDirectory() as folder:
        library = pathlib.Path(folder, 'release/lib/libibverbs.so.1')
        library.parent.mkdir(parents=True)
        library.with_name('libibverbs.so.1.14.1').touch()
        library.symlink_to('libibverbs.so.1.14.1')
        done = run(str(TOOLS / 'rocade'), 'run', '--', '/bin/true', ROCADE_BUILD_DIR=folder)
        tap.equal(done.returncode, 1, done.stderr)
        tap.true(f'{library.parent} are for rdma-core 1, and ' in done.stderr, done.stderr)
        tap.equal(done.stderr.count('\n'), 1, 'one sentence')


@tap.test
def another_debian_by_name():
    for words in (['sid'], [], ['trixie', '--long'], ['trixie', '--short', 'more']):
        done = run(str(TOOLS / 'rocade-test.sh'), '--on', *words)
        tap.equal((done.returncode, done.stdout), (2, ''), words)
        tap.true(done.stderr.startswith('usage: '), done.stderr)


@tap.test
def another_debian_without_a_network():
    if os.geteuid() != 0 or shutil.which('debootstrap') is None:
        raise tap.Skip('needs root, and debootstrap')
    if run('unshare', '--net', '--mount', '--pid', '--fork', '/bin/true').returncode != 0:
        raise tap.Skip('no namespaces here')
    with tempfile.TemporaryDirectory() as folder:
        done = run('unshare', '--net', str(TOOLS / 'rocade-test.sh'), '--on', 'trixie', '--short',
                   ROCADE_SCRATCH=folder)
        tap.equal(done.returncode, 77, done.stdout + done.stderr)
        tap.true('SKIPPED, nothing was tested: ' in done.stdout, done.stdout)
        tap.equal(os.listdir(folder), [], 'what is left')


if __name__ == '__main__':
    sys.exit(tap.run())
