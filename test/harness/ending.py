# SPDX-License-Identifier: BSD-3-Clause
"""Ends engines, and says of one that does not end what it is doing.

A core may give a thread no time for a minute, while others run on it: kernel 6.18 was seen to do so
to its own workers, too ("workqueue lockup"). What is told sets one apart that waits for something
from one that waits for a core. Standard library only.
"""
import os
import pathlib
import shutil
import signal
import subprocess
import time

import tap


def _read(path):
    try:
        return path.read_text(encoding='utf-8', errors='replace').strip()
    except OSError as err:
        return err.strerror


def _stat(task):
    """State, and the core it ran on last. Its name, before these, may have blanks."""
    words = _read(task / 'stat').rpartition(')')[2].split()
    return (words[0], words[36]) if len(words) > 36 else ('gone', '')


def _tasks(pid):
    return sorted(pathlib.Path(f'/proc/{pid}/task').glob('*'), key=lambda task: int(task.name))


def _times(pid):
    """Of each thread how long it ran, and how long it waited for a core, in ms."""
    found = {}
    for task in _tasks(pid):
        words = _read(task / 'schedstat').split()
        if len(words) == 3 and words[0].isdigit():
            found[task] = tuple(int(word) // 1000000 for word in words[:2])
    return found


def state(pid):
    """What the threads of a process do, and who runs on this machine, as text."""
    before = _times(pid)
    time.sleep(1)
    after = _times(pid)
    lines = [f'load {_read(pathlib.Path("/proc/loadavg"))}']
    for task in _tasks(pid):
        doing, core = _stat(task)
        ran, waited = (after[task][i] - before[task][i] if task in before and task in after else '?'
                       for i in (0, 1))
        lines.append(f'thread {task.name} {_read(task / "comm")}: {doing} on core {core}, within a '
                     f'second it ran {ran} ms and waited {waited} ms for a core; in '
                     f'{_read(task / "wchan")}, system call {_read(task / "syscall")}')
        lines += [f'    {line}' for line in _read(task / 'stack').splitlines()]
    for task in pathlib.Path('/proc').glob('[0-9]*/task/*'):
        doing, core = _stat(task)
        if doing == 'R':
            lines.append(f'runs, or wants to: {task.name} {_read(task / "comm")} on core {core}')
    if shutil.which('gdb'):
        try:
            lines.append(subprocess.run(
                ['gdb', '-p', str(pid), '-batch', '-ex', 'thread apply all bt'],
                capture_output=True, text=True, timeout=tap.PATIENCE, check=False).stdout)
        except subprocess.TimeoutExpired:
            lines.append('gdb does not end')
    return '\n'.join(lines)


def end(process, log=None, seconds=tap.PATIENCE):
    """
    Ask a process to end, by SIGTERM; log is a file of what it says. Returns its status. One that
    does not end is killed, and the failure says what it was doing.
    """
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            doing = state(process.pid)
            process.kill()
            process.wait()
            said = log.read_text(errors='replace') if log and os.path.exists(log) else ''
            raise AssertionError(f'{process.args} did not end within {seconds} seconds of '
                                 f'SIGTERM:\n{doing}\n{said}') from None
    return process.returncode
