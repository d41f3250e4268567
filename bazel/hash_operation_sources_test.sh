#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What changes a hash of hash_operation_sources.sh, and what is refused.
set -euo pipefail
script=$PWD/bazel/hash_operation_sources.sh
cd "$TEST_TMPDIR"
mkdir -p cuda
echo '#include "deep.h"' >shared.h
echo 'int deep;' >deep.h
printf '#include <vector>\n#include "shared.h"\n' >cuda/one.cu
echo 'int two;' >cuda/two.cu
echo 'int other;' >cuda/other.cu
printf '# a comment\n\none one.cu\nboth one.cu two.cu\ntwo two.cu\n- other.cu\n' >cuda/table
files=(cuda/one.cu cuda/two.cu cuda/other.cu shared.h deep.h)

hashes() { "$script" cuda/table "${files[@]}"; }
fail() { echo "FAIL: $*"; exit 1; }
# changed BEFORE - the operations whose hash is another now
changed() { comm -13 <(sort <<<"$1") <(hashes | sort) | cut -d' ' -f1 | tr '\n' ' '; }

before=$(hashes)
[[ $(wc -l <<<"$before") == 3 ]] || fail "three operations, not: $before"
[[ $(changed "$before") == "" ]] || fail "the same files, other hashes"
[[ $("$script" cuda/table deep.h shared.h cuda/o*.cu cuda/two.cu) == "$before" ]] ||
  fail "the order of the files counts"
echo '// more' >>deep.h
[[ $(changed "$before") == "both one " ]] || fail "deep.h: $(changed "$before")"
before=$(hashes)
echo '// more' >>cuda/two.cu
[[ $(changed "$before") == "both two " ]] || fail "two.cu: $(changed "$before")"
before=$(hashes)
echo '// more' >>cuda/other.cu
[[ $(changed "$before") == "" ]] || fail "other.cu is of no operation"

# refused WORD... - the script fails, and says all words
refused() {
  if text=$(hashes 2>&1); then fail "accepted: $text"; fi
  for word; do [[ $text == *$word* ]] || fail "'$word' is not in: $text"; done
}
echo '#include "gone.h"' >>cuda/two.cu
refused "both: gone.h" "not among the files"
echo 'int two;' >cuda/two.cu
: >cuda/new.cu
files+=(cuda/new.cu)
refused "cuda/new.cu is in no line"
echo passed
