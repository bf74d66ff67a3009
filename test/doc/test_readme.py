#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Goal: the README says what it has to in its first screen, the picture is what its text draws, and
no link leads nowhere.

Method: all links of README and doc/ are followed, with their headings; the picture is drawn again.

    test_readme.py
"""
import os
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'harness'))
import tap  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
README = (ROOT / 'README.md').read_text()
FIRST_SCREEN = 45   # lines, with the picture among them
COMMANDS = 'usertools/rocade-quickstart.sh', 'usertools/rocade-test.sh'
USERS = {'dpdk-devbind.py': 'doc/engine.md', 'verbs programs': 'doc/verbs.md',
         'measure': 'doc/performance.md', 'NFV': 'doc/nfv.md'}


@tap.test
def picture_is_drawn_from_its_text():
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(ROOT / 'doc'))
    import draw
    text = (ROOT / 'doc/architecture.txt').read_text()
    drawn = draw.draw(text, 'Rocade: architecture')
    tap.true((ROOT / 'doc/architecture.svg').read_text() == drawn,
             'run doc/draw.py doc/architecture.txt >doc/architecture.svg')
    tap.true(drawn.count('<rect') > text.count('\nbox'), 'a box is missing')


@tap.test
def first_screen():
    head = '\n'.join(README.splitlines()[:FIRST_SCREEN])
    tap.true('](doc/architecture.svg)' in head, 'the picture')
    for command in COMMANDS:
        tap.true(re.search(rf'^{command}\s+# ', head, re.M), command)
        tap.true(os.access(ROOT / command, os.X_OK), f'{command} can not be run')
    for user, page in USERS.items():
        row = [line for line in head.splitlines() if line.startswith('|') and user in line]
        tap.true(len(row) == 1 and f'({page})' in row[0], f'{user}: {row}')


@tap.test
def what_the_commands_print():
    """Lines of the README that a script has a form for."""
    quickstart = (ROOT / COMMANDS[0]).read_text()
    totals = (ROOT / 'test/harness/totals.py').read_text()
    tap.true('rocade-quickstart: on this machine, in this run\n' in README and
             'rocade-quickstart: on this machine, in this run"' in quickstart, 'quickstart')
    for program in re.findall(r'^  (ib_\w+) ', README, re.M):
        tap.true(program in quickstart, program)
    tap.true('N passed, N failed, N skipped' in README and
             '{passed} passed, {failed} failed, {skipped} skipped' in totals, 'totals')


def headings(path):
    """Anchors of a page, as GitHub and others make them."""
    text = re.sub(r'^```.*?^```', '', path.read_text(), flags=re.M | re.S)
    return {re.sub(r'[^\w -]', '', line.lower()).strip().replace(' ', '-')
            for line in re.findall(r'^#+ (.*)$', text, re.M)}


def targets(page):
    """Links of a page that stay in the tree."""
    return [target for target in re.findall(r'\]\(([^)\s]+)\)', page.read_text())
            if not re.match(r'[a-z]+:', target)]


@tap.test
def links():
    count = 0
    for page in [ROOT / 'README.md', *(ROOT / 'doc').glob('*.md')]:
        for target in targets(page):
            name, _, anchor = target.partition('#')
            path = page.parent / name if name else page
            tap.true(path.exists(), f'{page.name}: {target}')
            tap.true(not anchor or anchor in headings(path), f'{page.name}: {target}')
            count += 1
    tap.true(count > 40, f'only {count} links')


@tap.test
def every_guide_is_reached():
    """From the README, by links."""
    reached, ahead = set(), [ROOT / 'README.md']
    while ahead:
        page = ahead.pop().resolve()
        if page not in reached and page.suffix == '.md':
            reached.add(page)
            ahead += [page.parent / target.partition('#')[0] for target in targets(page)]
    lost = {page.name for page in (ROOT / 'doc').glob('*.md')} - {page.name for page in reached}
    tap.equal(lost, set(), 'pages that no link leads to')


sys.exit(tap.run())
