#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Goal: rocade top shows what goes on, in a terminal and without one, and leaves the terminal as it
was.

Method: an engine with a pair of clients that transfer, each text waited for. The terminal is one of
tmux's, with keys and sizes as a user would have them.

    test_top.py ROCADED PAIR
"""
import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / 'usertools'))
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'harness'))
sys.dont_write_bytecode = True
import alone  # noqa: E402
import rocade_rates as rates  # noqa: E402
import rocade_top  # noqa: E402
import tap  # noqa: E402

PAIR = os.path.abspath(sys.argv[2])


@contextlib.contextmanager
def transferring(engine):
    """A pair that transfers until it is stopped."""
    with subprocess.Popen([PAIR, engine.socket, 'roce0', engine.socket, 'roce1', '4', '1000000'],
                          stdout=subprocess.DEVNULL) as pair:
        try:
            tap.wait_until('no queue pairs in RTS', lambda: [
                entry['state'] for entry in engine.ask('resource', 'show', 'qp')] == ['RTS'] * 2)
            yield pair
        finally:
            pair.kill()


class Terminal:
    """A terminal of tmux's, with a server of its own."""

    def __init__(self, engine, command, columns=130, rows=40):
        if shutil.which('tmux') is None:
            raise tap.Skip('no tmux here')
        self.base = ['tmux', '-S', f'{engine.folder}/tmux', '-f', '/dev/null']
        self.tmux('new-session', '-d', '-x', str(columns), '-y', str(rows),
                  f'{command}; echo ended with $?; read never',
                  env={**engine.env, 'SHELL': '/bin/bash'})

    def tmux(self, *words, env=None):
        done = subprocess.run([*self.base, *words], capture_output=True, text=True, env=env,
                              timeout=tap.PATIENCE, check=False)
        tap.equal(done.returncode, 0, f'{words}: {done.stderr}')
        return done.stdout

    def screen(self):
        return self.tmux('capture-pane', '-p')

    def shows(self, *texts, without=()):
        def there():
            screen = self.screen()
            return all(re.search(text, screen, re.M) for text in texts) and \
                not any(re.search(text, screen, re.M) for text in without)
        try:
            tap.wait_until(f'{texts} and not {without}', there)
        except AssertionError as err:
            raise AssertionError(f'{err}; there is:\n{self.screen()}') from None

    def press(self, *keys):
        self.tmux('send-keys', *keys)

    def size(self, columns, rows):
        self.tmux('resize-window', '-x', str(columns), '-y', str(rows))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.tmux('kill-server')


@tap.test
def what_one_sends_the_other_receives():
    engine = alone.shared()
    # With a window a READ comes in parts, each of which is a message to who answers.
    for name in 'roce0', 'roce1':
        engine.rocade('link', 'set', name, 'cc', 'none')
    with transferring(engine) as pair:
        tap.wait_until('no messages', lambda: all(
            entry['tx_messages'] > 0 for entry in engine.ask('resource', 'show', 'qp')))
        # Stopped, it asks for nothing more, and what is under way comes to its end.
        pair.send_signal(signal.SIGSTOP)
        pairs = []

        def equal():
            pairs[:] = engine.ask('resource', 'show', 'qp')
            # What is sent again may come twice, or not at all: of messages there is one of each.
            return all(mine['tx_messages'] == theirs['rx_messages']
                       for mine, theirs in (pairs, reversed(pairs)))
        tap.wait_until('what is sent is not received', equal)
        one, other = pairs
        # Five sizes each way, by SEND, WRITE and READ, the largest a million: headers are little.
        tap.true(one['tx_bytes'] > one['tx_messages'] * 1000, one)
        tap.equal((one['rqpn'], other['rqpn']), (other['lqpn'], one['lqpn']), 'peers')
        tap.equal({one['dgid'], other['dgid']}, {'::ffff:10.77.0.1', '::ffff:10.77.0.2'}, 'GIDs')


@tap.test
def once_and_batch():
    engine = alone.shared()
    with transferring(engine) as pair:
        tables = {}

        def moves():
            tables.update(engine.ask('top', '--once', '-i', '0.2'))
            return all(row['in_bytes'] > 0 and row['out_messages'] > 0
                       for row in tables['queue pairs'] + tables['clients']) and \
                all(row['in_gbits'] > 0 for row in tables['links'])
        tap.wait_until('no rates', moves)
        tap.equal([row['link'] for row in tables['links']], ['roce0', 'roce1'], 'links')
        tap.true(all(row['drops'] >= 0 for row in tables['links']), tables)
        tap.true(all(0 < row['busy'] <= 1 for row in tables['lcores']), tables['lcores'])
        tap.equal([(row['pid'], row['program'], row['queue_pairs'])
                   for row in tables['clients']], [(pair.pid, 'pair', 1)] * 2, 'clients')
        tap.true(all(0 < row['quota'] <= 1 and row['quota_of'] for row in tables['clients']),
                 tables['clients'])
        text = engine.rocade('top', '--once', '-i', '0.1').stdout
        for what in (r'^LINK .* DROPS/s', r'^roce0 +ACTIVE +wire +roce1 ', r'^ *LCORE +BUSY',
                     r'^ *PID +USER +PROGRAM', rf'^ *{pair.pid} +\w+ +pair',
                     r'^ *\d+ +RC +RTS +roce0 .* 10\.77\.0\.2 qp \d+$'):
            tap.true(re.search(what, text, re.M), f'{what} in {text}')
        text = engine.rocade('top', '-b', '-n', '2', '-i', '0.1', '--filter', 'roce1').stdout
        tap.equal(len(re.findall(r'^rocaded ', text, re.M)), 2, 'screens')
        tap.equal(len(re.findall(r' RTS ', text)), 2, 'queue pairs of roce1, twice')
        tap.true(not re.search(r' RTS +roce0', text), text)


@tap.test
def live():
    engine = alone.shared()
    with transferring(engine) as pair, \
            Terminal(engine, f'{alone.ROCADE} top -i 0.2') as terminal:
        terminal.shows(r'^roce1 +ACTIVE +wire +roce0 ', r'^ *LCORE +BUSY', rf'^ *{pair.pid} ',
                       r' RC +RTS +roce0 ', r' RC +RTS +roce1 ', r'\[4\] queue pairs \*')
        terminal.press('/')
        terminal.shows('show rows with: _')
        terminal.press('-l', 'roce1x')
        terminal.press('BSpace', 'Enter')
        terminal.shows(r'\[filter: roce1\]', r' RTS +roce1 ', without=[r' RTS +roce0 '])
        terminal.press('/', 'Enter')
        terminal.shows(r' RTS +roce0 ', without=['filter:'])
        terminal.press('1')
        terminal.shows(r'\[1\] links \*$')
        terminal.press('>', '>')
        terminal.shows(r'\[1\] links \*, by STATE')
        terminal.press('r')
        terminal.shows(r'by STATE, reversed')
        terminal.press('+', '+')
        terminal.shows(r'\[every 0\.8 s\]')
        terminal.press('-', '-', '-')
        terminal.shows(r'\[every 0\.1 s\]')
        terminal.press('p')
        terminal.shows(r'\[PAUSED\]')
        terminal.press('p', 'h')
        terminal.shows(r'^  q +quit', without=[r'LCORE +BUSY'])
        terminal.press('x')
        terminal.shows(r'^ *LCORE +BUSY')


@tap.test
def sizes():
    engine = alone.shared()
    with transferring(engine), \
            Terminal(engine, f'{alone.ROCADE} top -i 0.2') as terminal:
        terminal.shows(r' RTS +roce0 ')
        # The chosen table is the last to go.
        terminal.size(50, 4)
        terminal.shows(r'^ *QPN ', without=['LCORE', 'PROGRAM  .*QPS'])
        for columns, rows in ((12, 2), (1, 1), (200, 3), (3, 60)):
            terminal.size(columns, rows)
        terminal.size(150, 50)
        terminal.shows(r'^ *LCORE +BUSY', r' RTS +roce0 .* qp \d+$', r'^ *QPN .*\[4\] queue pairs')
        terminal.press('q')
        terminal.shows(r'^ended with 0')


@tap.test
def engine_goes_and_comes():
    with alone.Alone() as engine, \
            Terminal(engine, f'{alone.ROCADE} top -i 0.1') as terminal:
        terminal.shows(r'^roce0 +ACTIVE')
        engine.rocade('down')
        terminal.shows(r'^rocade: no engine answers on ', without=['roce0'])
        engine.up()
        terminal.shows(r'^roce0 +ACTIVE', without=['no engine'])
        terminal.press('C-c')
        terminal.shows(r'^ended with 130')


@tap.test
def without_a_terminal():
    with alone.Alone() as engine:
        done = engine.rocade('top', check=False)
        tap.equal((done.returncode, done.stdout), (1, ''), done.stderr)
        tap.equal(done.stderr, 'rocade: top needs a terminal to draw on; "rocade top --once" '
                  'prints one screen, "rocade top --batch" one after another\n', 'what it says')
        for words, text in ((['--sort', 'cow'], 'no column cow'), (['-i', '0'], 'an interval is'),
                            (['-i', 'nan'], 'an interval is')):
            done = engine.rocade('top', '--once', *words, check=False)
            tap.true(done.returncode == 1 and done.stderr.startswith(f'rocade: {text}'), done)
        with Terminal(engine, f'TERM=nosuch {alone.ROCADE} top') as terminal:
            terminal.shows(r'^rocade: the terminal "nosuch" does not do', r'^ended with 1$')
        engine.rocade('down')
        done = engine.rocade('top', '--once', check=False)
        tap.true(done.returncode == 1 and 'no engine answers' in done.stderr, done)


@tap.test
def room_is_shared():
    for wants, space, chosen, given in (
            ([3, 2, 3, 3], 20, 3, [3, 2, 3, 3]), ([3, 2, 30, 300], 20, 3, [2, 2, 2, 14]),
            ([3, 2, 30, 300], 20, 2, [2, 2, 14, 2]), ([3, 2, 3, 300], 5, 3, [2, 0, 0, 2]),
            ([3, 2, 3, 300], 1, 1, [0, 1, 0, 0]), ([3, 2, 3, 300], -1, 1, [0, 0, 0, 0])):
        tap.equal(rocade_top.heights(wants, space, chosen), given, (wants, space, chosen))
    for value, text in ((0, '0'), (0.25, '0.2'), (7, '7'), (99.94, '99.9'), (100.4, '100'),
                        (999.4, '999'), (999.6, '1.00k'), (12345, '12.3k'), (999600, '1.00M'),
                        (2.5e9, '2.50G'), (7e13, '70.0T')):
        tap.equal(rates.scaled(value), text, value)
    # Across the end of 32 bits; begun again; not there before.
    for step, text in (((5, rates.WRAP - 5, rates.WRAP), 10), ((5, 900, rates.WRAP), 0),
                       ((5, 900), 0), ((900, 5), 895), ((900, None), 0)):
        tap.equal(rates.grown(*step), text, step)


if __name__ == '__main__':
    sys.exit(tap.run())
