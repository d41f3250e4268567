#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What toolchain_facts.sh says of compilers, packages and headers.
set -euo pipefail

facts=$PWD/bazel/toolchain_facts.sh
cd "$TEST_TMPDIR"

fail() {
  echo "$*" >&2
  exit 1
}

text=$("$facts")
for compiler in gcc g++ clang++; do
  grep -qxF "$(LC_ALL=C "$compiler" --version | head -n 1)" <<<"$text" ||
    fail "no version of $compiler"
done
# Named by packages.txt, a library that another package brings, and tools.
for package in zlib1g-dev libc6-dev libc6 binutils; do
  grep -qE "^$package [^ ]+$" <<<"$text" || fail "no version of $package"
done
[ "$text" = "$("$facts")" ] || fail "not the same twice"

# Where headers hide none of Debian's they are no fact; those that do are one,
# with all that stands in their folder and whatever links lead there.
mkdir -p root/usr/{local/include/{fmt,cccl},include/{fmt,openssl,x86_64-linux-gnu}}
touch root/usr/local/include/{cuda.h,cccl/x.h}
rmdir root/usr/local/include/fmt
bare=$("$facts" root)
! grep -qE '^(cuda|cccl|fmt)' <<<"$bare" || fail "nothing is hidden: $bare"

mkdir elsewhere
touch -d 2020-01-01 elsewhere/core.h
ln -s "$PWD/elsewhere" root/usr/local/include/fmt
hidden=$("$facts" root)
grep -qE '^fmt [0-9a-f]{64}' <<<"$hidden" || fail "fmt is hidden: $hidden"
touch -d 2020-01-02 elsewhere/core.h
[ "$hidden" != "$("$facts" root)" ] || fail "a change of a header is none"

touch root/usr/{local/include/gmp.h,include/x86_64-linux-gnu/gmp.h}
grep -q '^gmp.h ' <<<"$("$facts" root)" || fail "a header of this architecture is hidden"
