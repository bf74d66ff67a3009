# SPDX-License-Identifier: BSD-3-Clause
"""Rules about threads: who may call what, said by headers and marked in code (rcd_thread.h)."""
import re

from tree import sources, without_comments

# Libraries whose functions say which thread they belong to.
LIBRARIES = ('base', 'memory', 'lcore', 'port', 'cma', 'engine')

# What a header may say of its threads, or a function of its own: the marks of those that do.
MARKS = {
    'the control thread': r'RCD_ON_CONTROL\(\)', 'Control thread': r'RCD_ON_CONTROL\(\)',
    'the lcore': r'RCD_ON_LCORES?\(', 'On the lcore': r'RCD_ON_LCORES?\(',
    'any': '', 'Any thread': '', 'one': '', 'One thread': '',
}
MARK = re.compile(r'^\tRCD_ON_\w+\(', re.M)

# By these a function comes to be the control thread's, whoever called it.
BECOMING = re.compile(r'\b(rcd_thread_be_control|rcd_engine_take_over)\(')
CALL = re.compile(r'(?<![>.])\b([a-z_]\w*)\(')


def defined(root):
    """(file, name, parameters, body) of each function of the libraries."""
    for path, text in sources(root, '.c', '.h'):
        if path.parts[0] == 'lib':
            for name, parameters, body in re.findall(
                    r'^([a-z_]\w*)\(([^;{}]*)\)\n\{\n(.*?)^\}', without_comments(text),
                    re.M | re.S):
                yield path, name, parameters, body


def declared(root):
    """(header, function, whose it is): as it says itself, or its header of all; None: neither."""
    for path, text in sources(root, '.h'):
        if path.parts[0] != 'lib' or path.parts[1] not in LIBRARIES:
            continue
        paragraphs = text.split('\n\n')
        said = re.search(r'Threads: (the control thread|the lcore|any|one)\b',
                         re.sub(r'\n \*', '', paragraphs[0]))
        for part in paragraphs:
            own = re.search(r'\b(Control thread|On the lcore|Any thread|One thread)\b',
                            ' '.join(re.findall(r'/\*\*.*?\*/', part, re.S)))
            for name in re.findall(r'^(rcd_\w+)\([^;{}]*?\)(?:[^;{}]*;|\n\{)', part, re.M):
                yield path, name, said and (own or said)[1]


def thread_marks(root):
    """A header says whose its functions are, and each of them marks that by a statement, which
    checks it in builds for debugging: a comment alone would not stay true."""
    body = {name: text for _, name, _, text in defined(root)}
    for path, name, whose in declared(root):
        if whose is None:
            yield f'{path}: does not say "Threads: ..."'
        elif MARKS[whose] and name in body and not re.search(
                rf'^\t{MARKS[whose]}', body[name], re.M):
            yield f'{path}: {name}() is of {whose}, and has no such mark'


def marks_first(root):
    """Nothing of ours is called before a mark that may change something: what is given to it by a
    pointer is constant."""
    functions = list(defined(root))
    changing = {name for _, name, parameters, _ in functions
                if any('*' in one and not one.split('*')[0].strip().startswith('const')
                       for one in parameters.split(','))}
    for path, name, _, body in functions:
        mark = MARK.search(body)
        for call in CALL.findall(body[:mark.start()]) if mark else []:
            if call in changing:
                yield f'{path}: {name}() calls {call}() before its mark'


def anybody_calls(root):
    """What is of any thread calls nothing that is of one, itself or by static functions without a
    mark of their own, unless it becomes the control thread."""
    whose = {name: who for _, name, who in declared(root)}
    files = {}
    for path, name, _, body in defined(root):
        files.setdefault(path, {})[name] = body
    for path, body in files.items():
        for name in body:
            if whose.get(name) not in ('any', 'Any thread') or BECOMING.search(body[name]):
                continue
            ways, known = [name], {name}
            while ways:
                for call in CALL.findall(body[ways.pop()]):
                    if MARKS.get(whose.get(call)):
                        yield f'{path}: {name}() is of any thread, {call}() is of {whose[call]}'
                    elif call in body and call not in whose.keys() | known and \
                            not MARK.search(body[call]):
                        known.add(call)
                        ways.append(call)


HEADER = '/** Threads: the control thread. */\n\nint\nrcd_a(int);\n\n' \
    '/** Any thread. */\nint\nrcd_b(int);\n'
FIRST = 'int\nrcd_a(int *a)\n{\n\tint b = %s(a);\n\n\tRCD_ON_CONTROL();\n}\n'

# (rule, files in which it must find something)
RULES = [
    (thread_marks, {'lib/cma/a.h': '/** @file A. */\n\nint\nrcd_a(void);\n'}),
    (thread_marks, {'lib/cma/a.h': '/** Threads: the\n * control thread. */\n\nint\nrcd_a();\n',
                    'lib/cma/a.c': 'int\nrcd_a(int a)\n{\n\tRCD_ON_LCORES();\n}\n'}),
    (thread_marks, {'lib/base/a.h': '/** Threads: the control thread. */\n\nint\nrcd_a(int);\n',
                    'lib/base/a.c': 'int\nrcd_a(int a)\n{\n\treturn a;\n}\n'}),
    (thread_marks, {'lib/cma/a.h': '/** Threads: any. */\n\n/** On the lcore. */\nint\nrcd_a();\n',
                    'lib/cma/a.c': 'int\nrcd_a(int a)\n{\n\treturn a;\n}\n'}),
    (thread_marks, {'lib/cma/a.h': '/** Threads: the control thread. */\n\n/** A. */\n'
                                   'static inline int\nrcd_a(int a)\n{\n\treturn a;\n}\n'}),
    (marks_first, {'lib/cma/a.c': 'static int\na_take(int *a)\n{\n}\n\n' + FIRST % 'a_take'}),
    (marks_first, {'lib/cma/a.c': FIRST % 'rcd_b',
                   'lib/base/b.c': 'int\nrcd_b(const int *b, int *c)\n{\n}\n'}),
    (anybody_calls, {'lib/cma/a.h': HEADER,
                     'lib/cma/b.c': 'int\nrcd_b(int b)\n{\n\trcd_a(b);\n}\n'}),
    (anybody_calls, {'lib/cma/a.h': HEADER,
                     'lib/cma/b.c': 'static int\nb_of(int b)\n{\n\trcd_a(b);\n}\n\n'
                                    'int\nrcd_b(int b)\n{\n\tb_of(b);\n}\n'}),
]
