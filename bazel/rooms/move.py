#!/usr/bin/env python3
"""Moves files into rooms (DESIGN.md, "Rooms"), once; then this folder goes.

    bazel/rooms/move.py bazel/rooms/rules.txt      in a clean checkout

git mv, include paths and guards, BUILD files and labels, mentions in comments
and texts, and the list of packages in bazel/citations.bzl. Each line of the
rules is a pattern of paths without ending, a tab, and a room. Branches begun
before the move are brought over by running it on them, too.
"""
import ast, os, re, subprocess, sys
from collections import OrderedDict, defaultdict

ROOT = os.getcwd()
RULES = []
for line in open(sys.argv[1]):
    line = line.rstrip("\n")
    if not line or line.startswith("#"): continue
    pattern, room = line.split("\t")
    RULES.append((re.compile("^" + pattern), room))
EXTRA_TARGETS = {}   # old label -> room, for targets without files
for line in open(sys.argv[2]) if len(sys.argv) > 2 else []:
    line = line.strip()
    if not line or line.startswith("#"): continue
    label, room = line.split()
    EXTRA_TARGETS[label] = room

def git(*a): return subprocess.check_output(["git", *a], text=True)
FILES = git("ls-files").split()

def room_of(path):
    base = os.path.basename(path)
    if base == "BUILD": return None
    stem = os.path.splitext(path)[0]
    for pattern, room in RULES:
        if pattern.match(stem): return room
    return None

MOVE = OrderedDict()
for f in FILES:
    r = room_of(f)
    if r and r != os.path.dirname(f): MOVE[f] = r + "/" + os.path.basename(f)

AFFECTED = sorted({os.path.dirname(f) for f in MOVE})   # old packages with a BUILD
PACKAGES = {os.path.dirname(f) for f in FILES if os.path.basename(f) == "BUILD"}

def package_of(path):
    d = os.path.dirname(path)
    while d not in PACKAGES and d: d = os.path.dirname(d)
    return d

# ---- parse BUILD files
class Stmt: pass
def parse_build(pkg):
    path = os.path.join(pkg, "BUILD") if pkg else "BUILD"
    text = open(path).read()
    lines = text.split("\n")
    out = []
    prev_end = 0
    for node in ast.parse(text).body:
        s = Stmt()
        start = node.lineno - 1
        # comments directly above belong to it
        b = start
        while b > prev_end and lines[b-1].startswith("#"): b -= 1
        s.lead = "\n".join(lines[prev_end:b]).strip("\n")
        s.text = "\n".join(lines[b:node.end_lineno])
        s.node = node
        s.call = node.value if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) else None
        s.func = s.call.func.id if s.call and isinstance(s.call.func, ast.Name) else None
        s.args = {k.arg: k.value for k in s.call.keywords} if s.call else {}
        s.name = None
        if "name" in s.args and isinstance(s.args["name"], ast.Constant): s.name = s.args["name"].value
        out.append(s)
        prev_end = node.end_lineno
    tail = "\n".join(lines[prev_end:]).strip("\n")
    return out, tail

def strings_of(node):
    return [n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)]

ALLPKG = PACKAGES | {os.path.dirname(v) for v in MOVE.values()}
def file_label(f, newpkg):
    """Label of the (old) file f as seen from newpkg; None if it is no file."""
    if f not in FILES_SET: return None
    n = MOVE.get(f, f)
    d = os.path.dirname(n)
    while d and d not in ALLPKG: d = os.path.dirname(d)
    rest = n[len(d) + 1:] if d else n
    if d != newpkg and newpkg != "\0" and newpkg.split("/")[0] == d.split("/")[0] and (MOVE or True):
        EXPORTS.setdefault(d, set()).add(rest)
    return rest if d == newpkg else f"//{d}:{rest}"
FILES_SET = set(FILES)
EXPORTS = {}
GENERATED = {}
NEWPKG = {}   # canonical old label "//pkg:name" -> new package
BUILDS = {}
for pkg in PACKAGES:
    stmts, tail = parse_build(pkg)
    BUILDS[pkg] = (stmts, tail)
    for s in stmts:
        s.room = pkg
        if s.func in ("package", "load", "licenses", "package_citations_test", "package_format_test", "package_layering_test", "exports_files"): continue
        if s.call is None: continue
        room = None
        own = f"//{pkg}:{s.name}"
        if own in EXTRA_TARGETS: room = EXTRA_TARGETS[own]
        else:
            for key in ("srcs", "hdrs", "program", "data"):
                if key in s.args:
                    for x in strings_of(s.args[key]):
                        p = f"{pkg}/{x}" if pkg else x
                        if p in MOVE: room = os.path.dirname(MOVE[p]); break
                        if p in FILES_SET:
                            l = file_label(p, "\0"); room = l[2:].split(":")[0]; break
                if room: break
            if room is None and s.name and s.func and "fuzz" in s.func:
                p = f"{pkg}/{s.name}_fuzz.cc"
                room = os.path.dirname(MOVE[p]) if p in MOVE else pkg
            if room is None and s.name:
                r = room_of(f"{pkg}/{s.name}.cc")
                room = r or pkg
        s.room = room or pkg
        if "outs" in s.args and s.room != pkg:
            for o in strings_of(s.args["outs"]):
                NEWPKG[f"//{pkg}:{o}"] = s.room
                GENERATED[f"{pkg}/{o}"] = f"{s.room}/{os.path.basename(o)}"
        if s.name:
            NEWPKG[own] = s.room
            if s.func and "fuzz" in s.func:
                for suf in ("_fuzz", "_fuzz_test", "_fuzz_program"): NEWPKG[own + suf] = s.room
            if s.func and "isa" in s.func:
                for suf in ("_v3", "_v4"): NEWPKG[own + suf] = s.room

def shorten(pkg, name, here):
    if pkg == here: return ":" + name
    if pkg.split("/")[-1] == name: return "//" + pkg
    return f"//{pkg}:{name}"

def new_label(text, oldpkg, newpkg, warn=True):
    """Rewrites one string that may be a label."""
    m = re.match(r"^//([\w/\-.]*)(?::([\w/\-.+]+))?$", text)
    if m:
        pkg, name = m.group(1), m.group(2) or m.group(1).split("/")[-1]
        if name == "__pkg__" and pkg in AFFECTED: return f"//{pkg}:__subpackages__"
        if name in ("__pkg__", "__subpackages__"):
            return text
        key = f"//{pkg}:{name}"
        f = f"{pkg}/{name}" if pkg else name
        if NEWPKG.get(key) == pkg != newpkg: return text
        if key in NEWPKG: return shorten(NEWPKG[key], name, newpkg)
        if f in FILES_SET: return file_label(f, newpkg)
        if pkg == newpkg: return ":" + name
        return text
    m = re.match(r"^:([\w/\-.+]+)$", text)
    if m:
        name = m.group(1); key = f"//{oldpkg}:{name}"
        f = f"{oldpkg}/{name}"
        if key in NEWPKG: return shorten(NEWPKG[key], name, newpkg)
        if f in FILES_SET: return file_label(f, newpkg)
        if newpkg != oldpkg: return shorten(oldpkg, name, newpkg)
        return text
    f = f"{oldpkg}/{text}" if oldpkg else text
    if file_label(f, newpkg): return file_label(f, newpkg)
    # "golden/verdict_test", as mutants are listed
    m = re.match(r"^([\w/]+)/([\w.+]+)$", text)
    if m and f"//{m.group(1)}:{m.group(2)}" in NEWPKG:
        return NEWPKG[f"//{m.group(1)}:{m.group(2)}"] + "/" + m.group(2)
    return text

def rewrite_strings(text, oldpkg, newpkg, skip_keys=()):
    def sub(m):
        s = m.group(1)
        # $(rootpath //x:y) and the like
        s2 = re.sub(r"\$\((rootpaths?|locations?|execpaths?) ([^)]+)\)",
                    lambda k: f"$({k.group(1)} {new_label(k.group(2), oldpkg, newpkg)})", s)
        if s2 != s: return '"' + s2 + '"'
        return '"' + new_label(s, oldpkg, newpkg) + '"'
    out = []
    for line in text.split("\n"):
        if line.lstrip().startswith("#"): out.append(line); continue
        if re.match(r'^\s*name = ', line): out.append(line); continue
        out.append(re.sub(r'"([^"\n]*)"', sub, line))
    return "\n".join(out)

def sort_list_strings(text):
    """Sorts multi-line lists of plain strings (deps, data, visibility) as buildifier would."""
    lines = text.split("\n"); out = []; i = 0
    while i < len(lines):
        out.append(lines[i])
        if re.match(r"^\s*(\w+ = )?.*\[$", lines[i]):
            j = i + 1
            block = []
            while j < len(lines) and re.match(r'^\s*"[^"]*",(\s*#.*)?$', lines[j]): block.append(lines[j]); j += 1
            if block and j < len(lines) and lines[j].strip().startswith("]") and re.match(r"^\s*(deps|data|visibility|test_deps)\b", lines[i]):
                def key(l):
                    s = re.search(r'"([^"]*)"', l).group(1)
                    phase = 0 if s.startswith(":") else 1 if s.startswith("//") else 2 if s.startswith("@") else -1
                    return (phase, s.replace(":", "!"))
                block = sorted(dict.fromkeys(block), key=key)
            out.extend(block); i = j; continue
        i += 1
    return "\n".join(out)

PUBLIC = {}
for pkg in PACKAGES:
    for s in BUILDS[pkg][0]:
        if s.func == "package":
            v = strings_of(s.args.get("default_visibility", ast.Constant("")))
            if "//visibility:public" in v: PUBLIC[pkg] = "//visibility:public"

def widen_visibility(text, pkg, oldpkg=None):
    """Rooms of one package see each other; a list for a package is for its rooms."""
    m = re.search(r"^(\s*visibility = )\[([^\]]*)\]", text, re.M)
    if not m: return text
    if oldpkg and oldpkg.split("/")[0] != pkg.split("/")[0] and PUBLIC.get(pkg.split("/")[0]):
        return re.sub(r"^\s*visibility = \[[^\]]*\],\n", "", text, flags=re.M)
    entries = re.findall(r'"([^"]*)"', m.group(2))
    if "//visibility:public" in entries: return text
    new = set()
    for e in entries:
        n = re.match(r"//([\w/]+):__pkg__$", e)
        if n and n.group(1) in AFFECTED: e = f"//{n.group(1)}:__subpackages__"
        if e == "//visibility:private": continue
        new.add(e)
    new.add(f"//{pkg.split('/')[0]}:__subpackages__")
    indent = re.match(r"\s*", m.group(1)).group(0)
    items = sorted(new)
    body = f'["{items[0]}"]' if len(items) == 1 else "[\n" + "".join(f'{indent}    "{i}",\n' for i in items) + indent + "]"
    return text[:m.start()] + m.group(1) + body + text[m.end():]

# ---- write BUILD files
new_builds = defaultdict(list)      # pkg -> [(stmt, oldpkg)]
for pkg in sorted(PACKAGES):
    for s in BUILDS[pkg][0]:
        new_builds[s.room].append((s, pkg))

LOADS = {}  # symbol -> bzl
for pkg in PACKAGES:
    for s in BUILDS[pkg][0]:
        if s.func == "load":
            a = [x.value for x in s.call.args]
            for sym in a[1:]: LOADS[sym] = a[0]

def used_symbols(text):
    return {sym for sym in LOADS if re.search(r"\b%s\b" % re.escape(sym), text)}

git_mv = list(MOVE.items())
for old, new in git_mv:
    os.makedirs(os.path.dirname(new), exist_ok=True)
    subprocess.check_call(["git", "mv", old, new])

TEXTS = {}
TOUCHED = set(AFFECTED) | {os.path.dirname(v) for v in MOVE.values()}
for pkg in sorted(set(new_builds) | TOUCHED):
    entries = new_builds.get(pkg, [])
    moved_here = pkg not in PACKAGES
    changed = moved_here or pkg in TOUCHED
    body = []
    package_stmt = None; licenses = None; tail_tests = []
    for s, oldpkg in entries:
        if s.func == "load": continue
        if s.func == "licenses": licenses = s.text; continue
        if s.func == "package":
            if pkg in TOUCHED: s.text = s.text.replace("//visibility:private", PUBLIC.get(pkg.split("/")[0]) or f"//{pkg.split('/')[0]}:__subpackages__")
            if pkg in TOUCHED and "default_visibility" not in s.text:
                seen = PUBLIC.get(pkg.split("/")[0]) or f"//{pkg.split('/')[0]}:__subpackages__"
                s.text = s.text.replace("package(", f'package(default_visibility = ["{seen}"], ')
            package_stmt = (s.lead, s.text); continue
        if s.func in ("package_citations_test", "package_format_test", "package_layering_test"): tail_tests.append(s.text); continue
        text = s.text
        text = rewrite_strings(text, oldpkg, pkg)
        if pkg.split("/")[0] in {a.split("/")[0] for a in AFFECTED}: text = widen_visibility(text, pkg, oldpkg)
        text = sort_list_strings(text)
        if s.lead: text = s.lead + "\n\n" + text
        body.append(text)
    if moved_here:
        top = pkg.split("/")[0]
        testonly = pkg.endswith("/testing")
        licenses = 'licenses(["notice"])'
        seen = PUBLIC.get(top) or f"//{top}:__subpackages__"
        package_stmt = ("", ('package(\n    default_testonly = True,\n' if testonly else "package(") +
          (f'    default_visibility = ["{seen}"],\n)' if testonly else f'default_visibility = ["{seen}"])'))
        tail_tests = ["package_citations_test()", "package_format_test()", "package_layering_test(at_least = 0)" if top == "core" or testonly else "package_layering_test()"] 
    text = "\n\n".join(x for x in [
        licenses, (package_stmt[0] + "\n\n" + package_stmt[1]).strip("\n") if package_stmt else None, *body, *tail_tests] if x)
    old_tail = BUILDS[pkg][1] if pkg in BUILDS else ""
    if old_tail: text += "\n\n" + old_tail
    TEXTS[pkg] = text
for pkg, text in TEXTS.items():
    moved_here = pkg not in PACKAGES
    exported = {x for s, _ in new_builds.get(pkg, []) if s.func == "exports_files" for x in strings_of(s.call.args[0])}
    new = sorted(EXPORTS.get(pkg, set()) - exported)
    if new:
        top = pkg.split("/")[0]
        block = "exports_files(\n    [" + ", ".join('"%s"' % x for x in new) + f'],\n    visibility = ["//{top}:__subpackages__"],\n)\n\n'
        at = text.find("package_citations_test(")
        text = text[:at] + block + text[at:]
    by_bzl = defaultdict(list)
    for sym in used_symbols(text): by_bzl[LOADS[sym]].append(sym)
    loads = "\n".join('load("%s", %s)' % (b, ", ".join('"%s"' % x for x in sorted(v))) for b, v in sorted(by_bzl.items(), key=lambda kv: (kv[0].startswith("@"), kv[0])))
    os.makedirs(pkg or ".", exist_ok=True)
    path = os.path.join(pkg, "BUILD") if pkg else "BUILD"
    head = ""
    if pkg in BUILDS:  # file comment or docstring
        pass
    open(path, "w").write((loads + "\n\n" if loads else "") + text + "\n")
    if moved_here: subprocess.check_call(["git", "add", "-N", path])

# ---- text
paths = sorted(MOVE, key=len, reverse=True)
# also stems: "core/config_fields" without extension, mentioned in prose
stems = {}
for o, n in MOVE.items():
    so, sn = os.path.splitext(o)[0], os.path.splitext(n)[0]
    stems[so] = sn
table = dict(MOVE)
table.update(GENERATED)
for so, sn in stems.items(): table.setdefault(so, sn)
# "golden/verdict*.cc"
pattern = re.compile(r"(?<![\w/.\-])(//)?(" + "|".join(re.escape(k) for k in sorted(table, key=len, reverse=True)) + r")(?![\w\-])(?!/)")
lab = re.compile(r"//([\w/]+):([\w.\-+]+)")
def fix(text, path):
    def sub(m):
        return (m.group(1) or "") + table[m.group(2)]
    def sub_label(m):
        key = m.group(0)
        if key in NEWPKG:
            return shorten(NEWPKG[key], m.group(2), "\0")
        f = m.group(1) + "/" + m.group(2)
        if f in MOVE: return "//" + os.path.dirname(MOVE[f]) + ":" + os.path.basename(f)
        return key
    text = lab.sub(sub_label, text)
    return pattern.sub(sub, text)
for f in git("ls-files").split():
    base = os.path.basename(f)
    if base == "BUILD" or not os.path.exists(f) or f.startswith("bazel/rooms/"): continue
    if not re.search(r"\.(h|cc|cu|cuh|md|bzl|toml|sh|py|inc|txt)$", base) and base not in ("bazelw", ".bazelrc", "run"): continue
    try: t = open(f).read()
    except UnicodeDecodeError: continue
    n = fix(t, f)
    if base.endswith(".h") and f in MOVE.values():
        guard = "SOFTMOE_" + re.sub(r"[^A-Za-z0-9]", "_", f).upper() + "_"
        m = re.search(r"#ifndef (SOFTMOE_\w+_H_)", n)
        if m: n = n.replace(m.group(1), guard)
    if n != t: open(f, "w").write(n)

# the list of packages
c = open("bazel/citations.bzl").read()
m = re.search(r"PACKAGES = \[\n(.*?)\]", c, re.S)
have = re.findall(r'"([^"]*)"', m.group(1))
rooms = sorted(set(have) | {os.path.dirname(v) for v in MOVE.values()})
open("bazel/citations.bzl", "w").write(c[:m.start(1)] + "".join(f'    "{x}",\n' for x in rooms) + c[m.end(1):])

# relative links in moved markdown are left to the reader: list them
for f in MOVE.values():
    if f.endswith(".md"): print("markdown moved, look at its links:", f)
unmapped = [f for f in FILES if os.path.dirname(f) in AFFECTED and f not in MOVE and os.path.basename(f) != "BUILD"]
print("stay:", " ".join(unmapped))
print(len(MOVE), "files moved")
