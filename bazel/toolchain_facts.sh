#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# toolchain_facts.sh [ROOT] - what can change an object file and is not in the
# source tree: the compilers that the build calls, versions of packages, and a
# digest of each name in /usr/local/include (below ROOT, for a test) that hides
# one of Debian's. bazelw and system_configure.bzl make their digests of it.
set -uo pipefail
export LC_ALL=C
root=${1:-}

for compiler in gcc g++ clang++; do
  readlink -f "$(command -v "$compiler")"
  "$compiler" --version
done 2>&1

# What packages.txt names may be empty packages that depend on others: of these
# the libraries' are named here, and `--version` says those of gcc and g++.
dpkg-query -W -f '${Package} ${Version}\n' $(<"${BASH_SOURCE[0]%/*}/packages.txt") \
  'lib*-dev' libc6 binutils 2>/dev/null | sort -u

# Compilers look into /usr/local/include first (but linkers for libraries last).
shopt -s nullglob
for path in "$root"/usr/local/include/*; do
  name=${path##*/}
  if [ -e "$root/usr/include/$name" ] ||
    [ -e "$root/usr/include/x86_64-linux-gnu/$name" ]; then
    echo "$name $(find -L "$path" -type f -printf '%P %s %T@\n' | sort | sha256sum)"
  fi
done
exit 0
