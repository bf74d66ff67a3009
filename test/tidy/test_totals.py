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


def totals(*logs, names=(), options=()):
    """(exit status, last line, all lines) for logs, each a list of programs, or None if missing."""
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for number, programs in enumerate(logs):
            name = names[number] if names else number
            paths.append(pathlib.Path(folder) / f'{name}.json')
            if programs is not None:
                paths[-1].write_text('\n'.join(json.dumps(program) for program in programs))
        run = subprocess.run([sys.executable, TOTALS, *options, *paths], capture_output=True,
                             text=True, check=False)
    lines = run.stdout.splitlines()
    return run.returncode, lines[-1] if lines else '', lines


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
    for stdout, result, status, wanted in (
            ('1..3\nok 1 - a\n', 'ERROR', -11, '1 passed, 1 failed, 0 skipped'),
            ('1..3\nok 1 - a\n', 'TIMEOUT', -15, '1 passed, 1 failed, 0 skipped'),
            ('1..1\nok 1 - a\n', 'ERROR', 23, '1 passed, 1 failed, 0 skipped'),
            ('1..3\nok 1 - a\nnot ok 2 - b\n', 'ERROR', -11, '1 passed, 2 failed, 0 skipped'),
            ('1..2\nok 1 - a\nnot ok 2 - b\n', 'FAIL', 23, '1 passed, 2 failed, 0 skipped'),
            ('1..1\nok 1 - a\n', 'UNEXPECTEDPASS', 0, '1 passed, 1 failed, 0 skipped')):
        got = totals([program(stdout, result, status)])
        tap.equal(got[:2], (1, wanted), f'{stdout!r} {result} {status}')


@tap.test
def an_early_end_is_no_skip():
    for stdout in ('', '1..5\n', '1..5\nok 1 - a # SKIP no\n', '1..5\nBail out! no room\n'):
        status, last, _ = totals([program(stdout, 'SKIP', 0)])
        tap.equal((status, last.split(', ')[1]), (1, '1 failed'), repr(stdout))
    tap.equal(totals([program('1..0 # SKIP no kit\n', 'SKIP'), program('1..1\nok 1\n')])[:2],
              (0, '1 passed, 0 failed, 1 skipped'), 'a plan of none')


@tap.test
def names_may_have_what_looks_like_more():
    lines = ('1..4', 'ok 1 - qp #3 waits # SKIP none', 'ok 2 - skip # of it', 'ok 3 - a',
             'not ok 4 # TODO b', 'OK, said in prose', '# ok')
    status, last, _ = totals([program('\n'.join(lines), 'FAIL', 1)])
    tap.equal((status, last), (1, '2 passed, 1 failed, 1 skipped'), 'totals')


@tap.test
def what_is_shown_is_the_end():
    lines = ''.join(f'# line {number}\n' for number in range(100))
    _, _, said = totals([program('1..1\nnot ok 1 - a\n' + lines, 'FAIL', 1)])
    tap.equal((said[1], len(said)), ('    # line 71', 32), 'lines')


@tap.test
def programs_without_reports_count_as_one():
    status, last, _ = totals([program('hello'), program('', 'FAIL', 1)])
    tap.equal((status, last), (1, '1 passed, 1 failed, 0 skipped'), 'totals')


@tap.test
def unit_tests_are_timed():
    log = [{**program('1..1\nok 1 - a\n'), 'name': f'{suites} / x', 'duration': seconds}
           for suites, seconds in (('unit', 1.25), ('rocade:unit+security', 2.5),
                                   ('rocade:security', 30), ('rocade:engine', 40))]
    _, _, lines = totals(log, log[2:])
    tap.equal(lines, ['2 programs of unit tests took 3.8 s together',
                      '6 passed, 0 failed, 0 skipped'], 'lines')


def named(name, stdout, result='OK', status=0, stderr=''):
    return {**program(stdout, result, status), 'name': f'rocade:drivers+security / {name}',
            'stderr': stderr}


BAD = ('1..2\nok 1 - a\nnot ok 2 - b\n', 'FAIL', 1)


@tap.test
def what_ran_again_alone_counts():
    for alone, wanted in ((('1..2\nok 1 - a\nok 2 - b\n',), (0, '3 passed, 0 failed, 0 skipped')),
                          (BAD, (1, '2 passed, 1 failed, 0 skipped'))):
        status, last, lines = totals([named('x', *BAD), named('y', '1..1\nok 1 - c\n')],
                                     [named('x', *alone)], names=('t', 't-alone'))
        tap.equal((status, last), wanted, alone)
        tap.equal(lines[0], 'FAILED BESIDE OTHERS, and ran again alone: rocade:drivers+security / x'
                  ': b', lines)
    # Of another run, nothing.
    status, last, _ = totals([named('x', *BAD)], [named('x', '1..1\nok 1 - a\n')],
                             names=('t', 'u-alone'))
    tap.equal((status, last), (1, '2 passed, 1 failed, 0 skipped'), 'another')


@tap.test
def who_may_run_again():
    log = [named('x', *BAD), named('good', '1..1\nok 1 - a\n'),
           named('ended', '1..2\nnot ok 1 - a\n', 'FAIL', 1), named('killed', BAD[0], 'ERROR', -11),
           named('late', '1..1\nok 1 - a\n', 'TIMEOUT', -15), named('mute', '', 'FAIL', 1),
           named('found', *BAD, stderr='==1==ERROR: AddressSanitizer: heap-use-after-free'),
           named('undefined', *BAD, stderr='a.c:1:2: runtime error: left shift'), named('z', *BAD)]
    tap.equal(totals(log, options=['--doubtful'])[2], ['x', 'z'], 'names')


@tap.test
def nothing_tested_is_no_success():
    tap.equal(totals([])[:2], (1, '0 passed, 0 failed, 0 skipped'), 'an empty log')
    tap.equal(totals(None, [program('1..1\nok 1 - a\n')])[:2],
              (1, '1 passed, 1 failed, 0 skipped'), 'a log that is missing')
    tap.equal(totals([{'stdout': ''}], [program('1..1\nok 1 - a\n')])[:2],
              (1, '1 passed, 1 failed, 0 skipped'), 'a line of another kind')


sys.exit(tap.run())
