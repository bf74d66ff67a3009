# SPDX-License-Identifier: BSD-3-Clause
"""rocade top: the tables of rocade_rates.py, live in a terminal or line by line."""
import contextlib
import curses
import json
import locale
import os
import signal
import sys
import time

import rocade_rates as rates
from rocade_engine import STRANGE, STRANGE_TEXT, Engine, Failure

SECONDS_LEAST, SECONDS_MOST = 0.1, 3600
ANSWER_SECONDS = 10
# An engine with tens of thousands of queue pairs has better things to do than to list them.
SHARE_OF_ASKING = 0.2
NAMES = list(rates.COLUMNS)
SORTS = {'links': None, 'lcores': None, 'clients': 'out_bytes', 'queue pairs': 'out_bytes'}
KEYS = 'q quit  1-4 table  < > sort  r reverse  / filter  + - interval  p pause  arrows  h help'
HELP = '''rocade top

  1 2 3 4, Tab    the table that the keys below are about
  < >             sort by the column to the left, to the right; then by none
  r               the other way round
  up, down, PgUp, PgDn, Home   move in the table
  /               clients and queue pairs with a text in their row alone; empty: all
  + -             a longer, a shorter interval
  space           look now
  p               pause
  h ?             this; any key goes back
  q               quit

  LINKS    frames of the port; DROPS/s: received or to be sent, and thrown away; AGAIN/s: sent again
  LCORES   BUSY: share of its polls that found work; LONGEST: units of work of the largest poll ever
  CLIENTS  sums of their queue pairs; QUOTA: of what they have most, OF what, the share of the limit
  QPS      messages: requests completed and received; bytes: as on the wire, headers included'''


class Watch:
    """Looks at an engine again and again; it may go and come back meanwhile."""

    def __init__(self, path):
        self.path, self.engine = path, None
        self.before = self.after = None
        self.trouble = ''
        self.asked = 0

    def look(self):
        """Take a look. Returns whether there are tables."""
        begin = time.monotonic()
        try:
            if self.engine is None:
                self.engine = Engine(self.path, ANSWER_SECONDS)
            sample = rates.take(self.engine)
        except (Failure, OSError, *STRANGE) as err:
            self.trouble = STRANGE_TEXT if isinstance(err, STRANGE) else str(err)
            if self.engine is not None:
                self.engine.close()
            self.engine = self.before = self.after = None
            return False
        # Of another engine the numbers are others.
        if self.after and self.after.engine['pid'] != sample.engine['pid']:
            self.after = None
        self.before, self.after, self.trouble = self.after, sample, ''
        self.asked = time.monotonic() - begin
        return self.before is not None

    def tables(self):
        return rates.between(self.before, self.after)

    def pause(self, seconds):
        """How long to wait for the next look."""
        return max(seconds, self.asked / SHARE_OF_ASKING)


def batch(args):
    """Line by line, for files and pipes."""
    watch = Watch(args.socket)
    count = 0
    watch.look()
    while count != args.count:
        if watch.trouble:
            raise Failure(watch.trouble)
        time.sleep(watch.pause(args.interval))
        if not watch.look():
            continue
        count += 1
        tables = {name: rates.select(name, rows, args.sort or SORTS[name], text=args.filter)
                  for name, rows in watch.tables().items()}
        if args.json:
            print(json.dumps({'seconds': watch.after.at - watch.before.at, **tables},
                             indent=4 if args.pretty else None), flush=True)
            continue
        print(rates.summary(watch.after, watch.tables()))
        for name, rows in tables.items():
            print('', *rates.lines(name, rows), sep='\n')
        print('', flush=True)


def heights(wants, space, chosen):
    """Lines for each table, its heading among them, where not all have room: the chosen one keeps
    most, others keep a line, and go from the last on when even that is too much."""
    given = list(wants)
    while sum(given) > space:
        others = [at for at in range(len(given)) if at != chosen and given[at] > 2]
        if others:
            given[max(others, key=lambda at: given[at])] -= 1
        elif given[chosen] > 2:
            given[chosen] -= 1
        else:
            last = [at for at in range(len(given)) if at != chosen and given[at] > 0]
            if not last:
                given[chosen] = max(space, 0)
                break
            given[last[-1]] = 0
    return given


class View:
    """What is on the screen, and what keys have made of it."""

    def __init__(self, screen, watch, args):
        self.screen, self.watch = screen, watch
        self.seconds, self.text = args.interval, args.filter
        self.sorts = {name: args.sort or SORTS[name] for name in NAMES}
        self.reversed = dict.fromkeys(NAMES, False)
        self.first = dict.fromkeys(NAMES, 0)
        self.chosen, self.paused, self.typing, self.helping = NAMES[-1], False, None, False
        self.page = 1
        self.tables = None

    def put(self, line, text, look=curses.A_NORMAL):
        rows, columns = self.screen.getmaxyx()
        if 0 <= line < rows:
            try:
                self.screen.addnstr(line, 0, text.ljust(columns), columns - 1, look)
            except curses.error:
                pass  # it has become smaller meanwhile, and is drawn again at once

    def draw(self):
        self.screen.erase()
        rows, _ = self.screen.getmaxyx()
        if self.helping:
            for line, text in enumerate(HELP.splitlines()):
                self.put(line, text)
        else:
            self.put(0, self.head())
            if self.tables is not None:
                self.draw_tables(1, rows - 2)
            self.put(rows - 1, self.foot(), curses.A_REVERSE)
        self.screen.refresh()

    def head(self):
        if self.watch.trouble:
            return f'rocade: {self.watch.trouble}'
        if self.tables is None:
            return 'rocade top: the first figures are there after one interval'
        return f'{time.strftime("%H:%M:%S")}  {rates.summary(self.watch.after, self.tables)}'

    def foot(self):
        if self.typing is not None:
            return f'show rows with: {self.typing}_'
        state = [f'every {self.seconds:g} s', *(['PAUSED'] if self.paused else []),
                 *([f'filter: {self.text}'] if self.text else [])]
        return ' '.join(f'[{word}]' for word in state) + '  ' + KEYS

    def draw_tables(self, line, space):
        tables = [rates.select(name, self.tables[name], self.sorts[name], self.reversed[name],
                               self.text) for name in NAMES]
        given = heights([len(rows) + 1 for rows in tables], space, NAMES.index(self.chosen))
        # An empty line between them, where there is room for that.
        gap = sum(given) + len(NAMES) <= space
        for name, rows, height in zip(NAMES, tables, given):
            if height == 0:
                continue
            line += gap
            shown = height - 1
            if name == self.chosen:
                self.page = max(shown, 1)
            self.first[name] = max(0, min(self.first[name], len(rows) - shown))
            texts = rates.lines(name, rows)
            self.put(line, self.title(name, texts[0], len(rows), shown),
                     curses.A_REVERSE | (curses.A_BOLD if name == self.chosen else 0))
            begin = self.first[name] + 1
            for offset, text in enumerate(texts[begin:begin + shown], 1):
                self.put(line + offset, text)
            line += height

    def title(self, name, heading, count, shown):
        """The heading, and behind it what it does not say itself."""
        more = [f'{self.first[name] + 1}-{self.first[name] + shown} of {count}'] \
            if count > shown else []
        column = next((column for column in rates.COLUMNS[name]
                       if column.key == self.sorts[name]), None)
        if column is not None:
            more.append(f'by {column.head}' + (', reversed' if self.reversed[name] else ''))
        return f'{heading}   [{NAMES.index(name) + 1}] ' + \
            ', '.join([name + (' *' if name == self.chosen else ''), *more])

    def sort(self, step):
        keys = [None] + [column.key for column in rates.COLUMNS[self.chosen]]
        at = keys.index(self.sorts[self.chosen]) if self.sorts[self.chosen] in keys else 0
        self.sorts[self.chosen] = keys[(at + step) % len(keys)]

    def type(self, key):
        if key in (curses.KEY_ENTER, 10, 13):
            self.text, self.typing = self.typing, None
        elif key == 27:
            self.typing = None
        elif key in (curses.KEY_BACKSPACE, 8, 127):
            self.typing = self.typing[:-1]
        elif 32 <= key < 127 and len(self.typing) < 60:
            self.typing += chr(key)

    def move(self, key):
        steps = {curses.KEY_UP: -1, curses.KEY_DOWN: 1, curses.KEY_PPAGE: -self.page,
                 curses.KEY_NPAGE: self.page, curses.KEY_HOME: -1 << 20, curses.KEY_END: 1 << 20}
        self.first[self.chosen] = max(0, self.first[self.chosen] + steps.get(key, 0))

    def press(self, key):
        """Returns False to quit, and True in place of None to look at once."""
        letter = chr(key) if 0 < key < 127 else ''
        if self.helping and key != curses.KEY_RESIZE:
            self.helping = False
        elif self.typing is not None:
            self.type(key)
        elif letter == 'q':
            return False
        elif letter == ' ':
            return True
        elif letter in ('1', '2', '3', '4'):
            self.chosen = NAMES[int(letter) - 1]
        elif letter == '\t':
            self.chosen = NAMES[(NAMES.index(self.chosen) + 1) % len(NAMES)]
        elif letter in ('<', '>'):
            self.sort(1 if letter == '>' else -1)
        elif letter == 'r':
            self.reversed[self.chosen] = not self.reversed[self.chosen]
        elif letter == '/':
            self.typing = ''
        elif letter in ('+', '-'):
            longer = self.seconds * (2 if letter == '+' else 0.5)
            self.seconds = min(max(longer, SECONDS_LEAST), SECONDS_MOST)
        elif letter == 'p':
            self.paused = not self.paused
        elif letter in ('h', '?'):
            self.helping = True
        else:
            self.move(key)
        return None

    def loop(self):
        due = time.monotonic()
        while True:
            if time.monotonic() >= due and not self.paused:
                if self.watch.look():
                    self.tables = self.watch.tables()
                elif self.watch.trouble:
                    self.tables = None
                due = time.monotonic() + self.watch.pause(self.seconds)
            self.draw()
            left = due - time.monotonic() if not self.paused else SECONDS_MOST
            self.screen.timeout(max(0, int(left * 1000) + 1))
            key = self.screen.getch()
            if key == curses.KEY_RESIZE:
                curses.update_lines_cols()
            elif key != -1:
                answer = self.press(key)
                if answer is False:
                    return
                if answer is True or chr(key) in '+-':
                    due = min(due, time.monotonic() + (0 if answer else self.seconds))


def live(screen, args):
    try:
        curses.curs_set(0)
    except curses.error:
        pass  # a terminal that can't hide its cursor
    View(screen, Watch(args.socket), args).loop()


def end(_signal, _frame):
    """Leave by the way that puts the terminal in order."""
    sys.exit(0)


def top(args):
    if not SECONDS_LEAST <= args.interval <= SECONDS_MOST:
        raise Failure(f'an interval is {SECONDS_LEAST} to {SECONDS_MOST} seconds')
    known = {column.key for columns in rates.COLUMNS.values() for column in columns}
    if args.sort is not None and args.sort not in known:
        raise Failure(f'no column {args.sort}; there are {", ".join(sorted(known))}')
    if args.once or args.batch or args.json:
        args.count = 1 if args.once else args.count
        batch(args)
        return
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Failure('top needs a terminal to draw on; "rocade top --once" prints one screen, '
                      '"rocade top --batch" one after another')
    # Who looks for nothing is told so in a line, and not on a screen of its own.
    Engine(args.socket, ANSWER_SECONDS).close()
    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGHUP, end)
    os.environ.setdefault('ESCDELAY', '25')
    with contextlib.suppress(locale.Error):
        locale.setlocale(locale.LC_ALL, '')
    try:
        curses.wrapper(live, args)
    except curses.error as err:
        raise Failure(f'the terminal "{os.environ.get("TERM", "")}" does not do: {err}; '
                      '"rocade top --once" prints one screen') from None
