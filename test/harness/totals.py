#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Adds up what meson logged of several test runs. Names each test that failed, with the end of what
its program printed, and last of all prints one line:

    N passed, N failed, N skipped

Before that, how long the unit tests of each run took together.

    totals.py TESTLOG_JSON...

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


def judge(program):
    """Counts a program's tests by result; prints those that failed."""
    lines = (program.get('stdout') or '').splitlines()
    told = list(reports(lines))
    failed = [name for name, result in told if result == 'failed']
    end = bad_end(program, lines, len(told), len(failed))
    if end:
        failed.append(end)
    counts = {result: [each for _, each in told].count(result) for result in ('passed', 'skipped')}
    if not told and not end:
        counts['skipped' if program['result'] == 'SKIP' else 'passed'] += 1
    for name in failed:
        print(f'FAILED: {program["name"]}: {name}')
    if failed:
        said = f'{program.get("stdout") or ""}\n{program.get("stderr") or ""}'
        for line in said.splitlines()[-SHOWN:]:
            print(f'    {line}')
    return {**counts, 'failed': len(failed)}


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
    for path in sys.argv[1:]:
        try:
            with open(path, encoding='utf-8', errors='replace') as log:
                programs = [json.loads(line) for line in log]
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
