# SPDX-License-Identifier: BSD-3-Clause
"""A user that no account has, without any right, and their folders. Standard library only.

    with nobody.Home(64327, env, [ROCADED]) as home:
        home.run('id', status=0)
"""
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile

import leash
import tap

NO_RIGHTS = ['--clear-groups', '--inh-caps=-all', '--bounding-set=-all', '--no-new-privs']
# "rocade up" and "down" wait 120 seconds themselves.
WAIT_SECONDS = tap.PATIENCE + 60


def words(user, group=None):
    """What a command of that user begins with."""
    return ['setpriv', f'--reuid={user}', f'--regid={group or user}', *NO_RIGHTS]


def need(user, paths, **how):
    """Skip where no command can be that user's, or where they can't read what it takes."""
    if os.geteuid() != 0:
        raise tap.Skip('needs root')
    for path in paths:
        if subprocess.run([*words(user), 'test', '-r', str(path)], check=False, **how).returncode:
            raise tap.Skip(f'user {user} can not read {path}')


def pingpong(port):
    """A script whose two ends are roce0 and its first argument, $0, on 127.0.0.1."""
    return f'''
ibv_rc_pingpong -p {port} -d roce0 -g 1 & server=$!
until ibv_rc_pingpong -p {port} -d $0 -g 1 127.0.0.1; do
    kill -0 $server || exit 9
    sleep 0.1
done
wait $server
'''


class Home:
    """Their home, and the folder of their session in it; gone with the engines that they have."""

    def __init__(self, user, env, paths):
        self.user, self.env, self.paths = user, env, paths

    def __enter__(self):
        need(self.user, self.paths)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='rcdhome'))
        self.runtime = self.folder / 'run'
        self.ends = contextlib.ExitStack()
        self.ends.callback(shutil.rmtree, self.folder, ignore_errors=True)
        self.runtime.mkdir(mode=0o700)
        for path in (self.folder, self.runtime):
            os.chown(path, self.user, self.user)
        self.env = {**self.env, 'HOME': str(self.folder), 'XDG_RUNTIME_DIR': str(self.runtime)}
        return self

    def __exit__(self, *_):
        self.ends.close()

    def run(self, *command, status=None, cwd='/', **more):
        """Their command. With a status: it must end so."""
        done = subprocess.run([*words(self.user), *map(str, command)], capture_output=True,
                              text=True, cwd=cwd, timeout=WAIT_SECONDS, check=False,
                              env={**self.env, **more})
        if status is not None:
            tap.equal(done.returncode, status, f'{command}: {done.stdout}{done.stderr}')
        return done

    def keep(self, said):
        """An engine of which "rocade up" said this does not outlive the home. Returns its pid."""
        pid = int(said.split('process ')[1].split(',')[0])
        leash.leash(pid)
        self.ends.callback(end, os.pidfd_open(pid))
        return pid


def end(pidfd):
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    os.close(pidfd)
