#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Whether the totals of a test run count what went wrong, whatever way it went: logs as meson
writes them, one program a line, against the last line that harness/totals.py prints of them."""
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'harness'))
import tap  # noqa: E402  (the folder is added above)

TOTALS = pathlib.Path(tap.__file__).with_name('totals.py')


def totals(*logs):
    """(exit status, last line, all lines) for logs, each a list of programs, or None if missing."""
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for number, programs in enumerate(logs):
            paths.append(pathlib.Path(folder) / f'{number}.json')
            if programs is not None:
                paths[-1].write_text('\n'.join(json.dumps(program) for program in programs))
        run = subprocess.run([sys.executable, TOTALS, *paths], capture_output=True, text=True,
                             check=False)
    lines = run.stdout.splitlines()
    return run.returncode, lines[-1], lines


def program(stdout, result='OK', status=0):
    """One program's line in the log."""
    return {'name': 'unit / x', 'stdout': stdout, 'result': result, 'returncode': status}


@tap.test
def what_programs_report_is_added_up():
    status, last, _ = totals([program('1..3\nok 1 - a\nok 2 - b # SKIP no\nok 3 c\n')],
                             [program('1..1\nok 1 - d\n'), program('', 'SKIP', 77)])
    tap.equal((status, last), (0, '3 passed, 0 failed, 2 skipped'), 'totals')


@tap.test
def a_test_that_failed_is_named_with_its_output():
    log = [program('1..2\nok 1 - a\nnot ok 2 - b\n# why\n', 'FAIL', 1)]
    status, last, lines = totals(log)
    tap.equal((status, last), (1, '1 passed, 1 failed, 0 skipped'), 'totals')
    tap.equal('FAILED: unit / x: b' in lines and '    # why' in lines, True, lines)


@tap.test
def an_end_that_no_report_tells_of_is_a_failure():
    for result, status in (('ERROR', -11), ('TIMEOUT', -15), ('ERROR', 23)):
        got = totals([program('1..3\nok 1 - a\n', result, status)])
        tap.equal(got[:2], (1, '1 passed, 1 failed, 0 skipped'), f'{result} {status}')


@tap.test
def programs_without_reports_count_as_one():
    status, last, _ = totals([program('hello'), program('', 'FAIL', 1)])
    tap.equal((status, last), (1, '1 passed, 1 failed, 0 skipped'), 'totals')


@tap.test
def nothing_tested_is_no_success():
    tap.equal(totals([])[:2], (1, '0 passed, 0 failed, 0 skipped'), 'an empty log')
    tap.equal(totals(None, [program('1..1\nok 1 - a\n')])[:2],
              (1, '1 passed, 1 failed, 0 skipped'), 'a log that is missing')


sys.exit(tap.run())
