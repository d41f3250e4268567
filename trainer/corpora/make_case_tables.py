#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints case_tables.h: what Python's str.lower and str.title do to each character.

    python3 make_case_tables.py | clang-format-14 --style=file > case_tables.h

Both are asked about every code point; nothing is read from files of Unicode.
"""
import sys
import unicodedata

POINTS = [c for c in range(sys.maxunicode + 1) if not 0xD800 <= c < 0xE000]


def mappings(method):
    """Runs of [first, last, step, offset], and what becomes several characters."""
    runs, several = [], []
    for c in POINTS:
        to = method(chr(c))
        if to == chr(c):
            continue
        if len(to) > 1:
            several.append((c, to))
            continue
        offset, last = ord(to) - c, runs[-1] if runs else None
        if last and last[3] == offset and (
                c - last[1] == last[2] or (last[0] == last[1] and c - last[1] == 2)):
            last[1:3] = c, c - last[1]
        else:
            runs.append([c, c, 1, offset])
    return runs, several


def ranges(holds):
    found = []
    for c in POINTS:
        if not holds(chr(c)):
            continue
        if found and found[-1][1] == c - 1:
            found[-1][1] = c
        else:
            found.append([c, c])
    return found


# A sigma that ends a word shows what str.lower takes for a letter with case, and what
# it looks through on its way to the next one.
def is_cased(c):
    return (c + "Σ").lower().endswith("ς")


def is_ignorable(c):
    return not is_cased(c) and ("a" + c + "Σ").lower().endswith("ς")


def table(kind, name, comment, rows):
    print(f"\n// {comment}\ninline constexpr {kind} {name}[] = {{")
    print(", ".join("{" + ", ".join(row) + "}" for row in rows))
    print("};")


def numbers(rows):
    return [[hex(n) if n >= 0 else str(n) for n in row] for row in rows]


def utf8(text):
    return '"' + "".join(f"\\x{byte:02x}" for byte in text.encode()) + '"'


def main():
    print(f"""// SPDX-License-Identifier: Apache-2.0
//
// case_tables.h - Unicode {unicodedata.unidata_version}'s case, as Python's str knows it. Made by
// make_case_tables.py; nobody edits it.
#ifndef SOFTMOE_TRAINER_CORPORA_CASE_TABLES_H_
#define SOFTMOE_TRAINER_CORPORA_CASE_TABLES_H_

#include <cstdint>

namespace softmoe::trainer {{

// Every `step`-th character from `first` to `last` becomes the one `offset` on.
struct CaseRun {{ uint32_t first, last, step; int32_t offset; }};
// One that becomes several.
struct CaseText {{ uint32_t character; const char* text; }};
struct CharacterRange {{ uint32_t first, last; }};""")
    for name, method in [("Lower", str.lower), ("Title", str.title)]:
        runs, several = mappings(method)
        table("CaseRun", f"k{name}Runs", f"str.{name.lower()}.", numbers(runs))
        table("CaseText", f"k{name}Texts", f"str.{name.lower()}, of one to several.",
              [[hex(c), utf8(to)] for c, to in several])
    table("CharacterRange", "kCased", "Letters with case that count in a word.",
          numbers(ranges(is_cased)))
    table("CharacterRange", "kCaseIgnorable", "What a word's end does not hang on.",
          numbers(ranges(is_ignorable)))
    print("""
}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_CORPORA_CASE_TABLES_H_""")


if __name__ == "__main__":
    main()
