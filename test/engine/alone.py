# SPDX-License-Identifier: BSD-3-Clause
"""An engine of a test's own, with its embedded wire, started and asked by the command line. The
first argument of a test is rocaded."""
import atexit
import functools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'harness'))
import leash  # noqa: E402
import tap  # noqa: E402

ROCADED = os.path.abspath(sys.argv[1])
ROCADE = pathlib.Path(__file__).resolve().parents[2] / 'usertools/rocade'


class Alone:
    """An engine that comes and goes, and always on the same socket."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix='rcdalone')
        self.socket = f'{self.folder}/run/rocade.sock'
        self.env = {**os.environ, 'ROCADE_ROCADED': ROCADED, 'ROCADE_SOCKET': self.socket,
                    'LC_ALL': 'C.UTF-8'}
        os.mkdir(f'{self.folder}/run')

    def __enter__(self):
        self.up()
        return self

    def __exit__(self, *_):
        self.rocade('down', check=False)
        shutil.rmtree(self.folder)

    def rocade(self, *words, check=True):
        done = subprocess.run([ROCADE, '--log', f'{self.folder}/rocaded.log', *words],
                              capture_output=True, text=True, env=self.env, timeout=tap.PATIENCE,
                              check=False)
        if check:
            tap.equal(done.returncode, 0, f'{words}: {done.stdout}{done.stderr}')
        return done

    def ask(self, *words):
        return json.loads(self.rocade('-j', *words).stdout)

    def up(self):
        self.rocade('up', '--no-kernel-addresses', '--', '--no-huge', '-m', '256',
                    '--file-prefix', os.path.basename(self.folder))
        leash.leash(self.ask('engine')['pid'])


@functools.cache
def shared():
    """An engine for all tests that leave it as it is."""
    engine = Alone()
    atexit.register(engine.__exit__)
    return engine.__enter__()
