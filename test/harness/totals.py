#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Adds up what meson logged of several test runs. Names each test that failed, with the end of what
its program printed, and last of all prints one line:

    N passed, N failed, N skipped

Before that, how long the unit tests of each run took together.

    totals.py TESTLOG_JSON...
    totals.py --doubtful TESTLOG_JSON

A log whose name ends in -alone is that of programs that failed in the log of the same name without
it, and ran once more with nothing beside them: what they say then is what counts. They are named,
with what failed at first.

--doubtful names the programs of a log for which that is fair: all that is wrong with them is what
their own reports say. One that crashed, took too long or was stopped by a sanitizer is not.

A program that reports its tests in the Test Anything Protocol counts as many as it reports, any
other one as one. One that ended otherwise than its reports say (by a signal, out of time, with what
a sanitizer found at its exit, or before all tests that it planned) has failed once more: meson's
JUnit file leaves that out, and meson itself takes an early end with status 0 for a skip.

Exit status 1 when a test failed, a log is missing, or no test ran.
"""
import json
import re
import sys

REPORT = re.compile(r'(not )?ok\b *\d* *(?:- *)?(.*?)(?: *# *((?i:skip|todo)\b).*)?$')
PLAN = re.compile(r'1\.\.(\d+)')
GOOD = {'OK', 'SKIP', 'EXPECTEDFAIL'}
SKIPPED_STATUS = 77
ALONE = '-alone.json'
SANITIZERS = re.compile(r'\w+Sanitizer\b|runtime error:')
# Lines of a failed program's output that are shown again: a log that others shorten keeps its end.
SHOWN = 30


def reports(lines):
    """Yields (name, 'passed', 'failed' or 'skipped') for each test that a program told of. One that
    fails though it is marked has failed: nobody here marks what is to be done."""
    for line in lines:
        found = REPORT.match(line)
        if found:
            bad, name, directive = found.groups()
            yield name, 'failed' if bad else 'skipped' if directive else 'passed'


def bad_end(program, lines, count, failed):
    """What is wrong with a program's end beside the tests that it said have failed, or None."""
    result, status = program['result'], program.get('returncode')
    plans = [int(found[1]) for found in map(PLAN.match, lines) if found]
    bail = next((line for line in lines if line.startswith('Bail out!')), None)
    if bail:
        return bail
    # A program that fails tests ends with 1.
    if result not in GOOD and not (result in ('FAIL', 'ERROR') and status in (0, 1) and failed):
        return f'{result}, status {status}'
    if plans and plans[0] != count:
        return f'it ended after {count} of {plans[0]} tests, status {status}'
    if not plans and result == 'SKIP' and status != SKIPPED_STATUS:
        return f'it reported nothing, status {status}'
    return None


def output(program):
    return f'{program.get("stdout") or ""}\n{program.get("stderr") or ""}'


def look(program):
    """(what a program told of its tests, names of those that failed, what is wrong with its end)"""
    lines = (program.get('stdout') or '').splitlines()
    told = list(reports(lines))
    failed = [name for name, result in told if result == 'failed']
    return told, failed, bad_end(program, lines, len(told), len(failed))


def is_doubtful(program):
    _, failed, end = look(program)
    return failed and not end and not SANITIZERS.search(output(program))


def judge(program):
    """Counts a program's tests by result; prints those that failed."""
    told, failed, end = look(program)
    if end:
        failed.append(end)
    counts = {result: [each for _, each in told].count(result) for result in ('passed', 'skipped')}
    if not told and not end:
        counts['skipped' if program['result'] == 'SKIP' else 'passed'] += 1
    for name in failed:
        print(f'FAILED: {program["name"]}: {name}')
    if failed:
        for line in output(program).splitlines()[-SHOWN:]:
            print(f'    {line}')
    return {**counts, 'failed': len(failed)}


def read(path):
    with open(path, encoding='utf-8', errors='replace') as log:
        return [json.loads(line) for line in log]


def without(programs, alone):
    """Those of a log that did not run once more alone; says what of the others failed at first."""
    again = {program['name'] for program in alone}
    for program in programs:
        if program['name'] in again:
            print(f'FAILED BESIDE OTHERS, and ran again alone: {program["name"]}: '
                  f'{", ".join(look(program)[1])}')
            for line in output(program).splitlines()[-SHOWN:]:
                print(f'    {line}')
    return [program for program in programs if program['name'] not in again]


def is_unit(program):
    return 'unit' in re.split(r'[:+ ]', program['name'].split(' / ')[0])


def unit_seconds(programs):
    """Says how long the unit tests among the programs of a run took, one after the other."""
    seconds = [program['duration'] for program in programs
               if is_unit(program) and 'duration' in program]
    if seconds:
        print(f'{len(seconds)} programs of unit tests took {sum(seconds):.1f} s together')


def main():
    totals = {'passed': 0, 'failed': 0, 'skipped': 0}
    paths = sys.argv[1:]
    if paths[:1] == ['--doubtful']:
        for program in filter(is_doubtful, read(paths[1])):
            print(program['name'].split(' / ')[-1])
        return 0
    for path in paths:
        try:
            programs = read(path)
            alone = path.removesuffix('.json') + ALONE
            if alone in paths:
                programs = without(programs, read(alone))
            counts = [judge(program) for program in programs]
            unit_seconds(programs)
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            print(f'FAILED: no log of tests: {path}: {error}')
            counts = [{'failed': 1}]
        for each in counts:
            for result, count in each.items():
                totals[result] += count
    print('{passed} passed, {failed} failed, {skipped} skipped'.format(**totals))
    return 1 if totals['failed'] or not totals['passed'] else 0


sys.exit(main())
