#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# tidy_changed.sh [COMMIT [SECONDS]] - clang-tidy on what changed since COMMIT.
#
#   bazel/tidy_changed.sh HEAD~20 480     what .ci/run does, if it has the time
#   bazel/tidy_changed.sh                 what is not committed yet
#
# Checks the targets that have a changed C++ file of ours, a few at a time, and
# begins none after SECONDS (600); prints findings and the targets it left out.
# A header is checked where its own unit includes it. Ends with 1 on findings, 5
# without clang-tidy; running out of time is no finding.
set -uo pipefail
cd "$(dirname "$0")/.."

since=${1:-HEAD} limit=${2:-600} at_a_time=8

if ! command -v clang-tidy-14 >/dev/null; then
  echo "tidy: clang-tidy-14 is missing (apt-get install clang-tidy-14): nothing was checked" >&2
  exit 5
fi
if ! git rev-parse -q --verify "$since^{commit}" >/dev/null; then
  echo "tidy: no commit $since here; clone with more history, or name another" >&2
  exit 2
fi
changed=$(git diff --name-only --diff-filter=d "$since" -- '*.cc' '*.h')
[ -n "$changed" ] || { echo "tidy: no C++ file changed since $since"; exit 0; }

# `same_pkg_direct_rdeps`: the rules of a file's own package that name it.
query="kind('cc_(library|binary|test) rule',
            same_pkg_direct_rdeps(set($(
  while read -r file; do
    folder=$(dirname "$file")
    while [ ! -f "$folder/BUILD" ]; do folder=$(dirname "$folder"); done
    echo "//${folder#.}:${file#"$folder"/} "
  done <<<"$changed"
))))"
targets=$(./bazelw query --noshow_progress -k "$query" 2>/dev/null | sort)
mapfile -t targets <<<"$targets"
if [ -z "${targets[0]}" ]; then
  echo "tidy: nothing that is compiled changed since $since"
  exit 0
fi

status=0 checked=0
while [ "$checked" -lt "${#targets[@]}" ]; do
  left=$((limit - SECONDS))
  [ "$left" -gt 0 ] || break
  timeout --signal=INT "$left" ./bazelw build -k --noshow_progress \
    --aspects=//bazel:tidy.bzl%tidy --output_groups=tidy \
    "${targets[@]:checked:at_a_time}" 2>&1 |
    grep -E '^[^ ]+:[0-9]+:[0-9]+: (error|warning)|^ERROR.*clang-tidy' |
    sed 's|^/.*/execroot/softmoe/||'
  case ${PIPESTATUS[0]} in
    0) ;;
    124) break ;;  # these were not all checked
    *) status=1 ;;
  esac
  checked=$((checked + at_a_time))
done
[ "$checked" -le "${#targets[@]}" ] || checked=${#targets[@]}
echo "tidy: $checked of ${#targets[@]} targets that changed since $since checked in $SECONDS s"
for target in "${targets[@]:checked}"; do echo "tidy: left out: $target"; done
exit $status
