# SPDX-License-Identifier: BSD-3-Clause
"""Reports tests written in Python in the Test Anything Protocol, one line a test.

    @tap.test
    def adds_up():
        tap.equal(1 + 1, 2, 'sum')

    sys.exit(tap.run())

A test fails by raising; tap.Skip says that it can't run here. What went wrong goes to stderr, which
meson shows. Standard library only.
"""
import sys
import time
import traceback

# Seconds in which all comes that comes: a busy machine may give a thread no core for a minute.
PATIENCE = 180

_tests = []


class Skip(Exception):
    """Raised by a test that this machine can't run; its text says why."""


def test(func):
    """Register a test, named after the function."""
    _tests.append((func.__name__, func))
    return func


def add(name, func):
    """Register a test under another name."""
    _tests.append((name, func))


def equal(got, expected, what):
    """Fail unless the two are equal."""
    if got != expected:
        raise AssertionError(f'{what}: {got!r}, expected {expected!r}')


def true(condition, what):
    """Fail unless the condition holds."""
    if not condition:
        raise AssertionError(what)


def wait_until(what, func, seconds=PATIENCE):
    """Wait for a condition; fail when it does not come."""
    deadline = time.monotonic() + seconds
    while not func():
        true(time.monotonic() < deadline, f'{what}: not within {seconds} seconds')
        time.sleep(0.05)


def run():
    """Run what was registered. Returns an exit status: 1 when a test failed or none is there."""
    failed = 0
    print(f'1..{len(_tests)}', flush=True)
    for number, (name, func) in enumerate(_tests, 1):
        try:
            func()
            print(f'ok {number} - {name}', flush=True)
        except Skip as skip:
            print(f'ok {number} - {name} # SKIP {skip}', flush=True)
        except Exception:  # a test may fail in any way
            failed += 1
            print(f'not ok {number} - {name}')
            for line in traceback.format_exc().splitlines():
                print('#', line, file=sys.stderr)
    return 1 if failed or not _tests else 0
