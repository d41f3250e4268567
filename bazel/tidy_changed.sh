#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# tidy_changed.sh [COMMIT [SECONDS]] - clang-tidy on what changed since COMMIT.
#
#   bazel/tidy_changed.sh HEAD~20 480     what .ci/run does, if it has the time
#   bazel/tidy_changed.sh                 what is not committed yet
#
# Checks the sources of ours that changed, and those whose header did, a few at a
# time, and begins none after SECONDS (600); prints findings and how many sources
# it left out. Ends with 1 on findings, 5 without clang-tidy; running out of time
# is no finding.
set -uo pipefail
cd "$(dirname "$0")/.."

since=${1:-HEAD} limit=${2:-600} at_a_time=12

if ! command -v clang-tidy-14 >/dev/null; then
  echo "tidy: clang-tidy-14 is missing (apt-get install clang-tidy-14): nothing was checked" >&2
  exit 5
fi
if ! git rev-parse -q --verify "$since^{commit}" >/dev/null; then
  echo "tidy: no commit $since here; clone with more history, or name another" >&2
  exit 2
fi
mapfile -t sources < <(git diff --name-only --diff-filter=d "$since" -- '*.cc' '*.h' |
  sed 's/\.h$/.cc/' | sort -u | while read -r file; do [ ! -f "$file" ] || echo "$file"; done)
if [ ${#sources[@]} -eq 0 ]; then
  echo "tidy: nothing that is compiled changed since $since"
  exit 0
fi

# The targets that compile these sources: rules of a file's own package, some
# through a target of together.bzl.
targets_of() {
  ./bazelw query --noshow_progress -k "let users = same_pkg_direct_rdeps(set($(
      for file in "$@"; do
        folder=$(dirname "$file")
        while [ ! -f "$folder/BUILD" ]; do folder=$(dirname "$folder"); done
        echo "//${folder#.}:${file#"$folder"/} "
      done
    ))) in kind('cc_(library|binary|test) rule',
      \$users + same_pkg_direct_rdeps(kind('together rule', \$users)))" 2>/dev/null
}

status=0 checked=0
while [ "$checked" -lt "${#sources[@]}" ]; do
  left=$((limit - SECONDS))
  [ "$left" -gt 0 ] || break
  batch=("${sources[@]:checked:at_a_time}")
  mapfile -t targets < <(targets_of "${batch[@]}")
  if [ ${#targets[@]} -gt 0 ]; then
    timeout --signal=INT "$left" ./bazelw build -k --noshow_progress \
      --aspects=//bazel:tidy.bzl%tidy \
      --output_groups="$(printf 'tidy/%s,' "${batch[@]}")" "${targets[@]}" 2>&1 |
      grep -E '^[^ ]+:[0-9]+:[0-9]+: (error|warning)|^ERROR.*clang-tidy' |
      sed 's|^/.*/execroot/softmoe/||'
    case ${PIPESTATUS[0]} in
      0) ;;
      124) break ;;  # these were not all checked
      *) status=1 ;;
    esac
  else
    echo "tidy: no target compiles any of ${batch[*]}"
  fi
  checked=$((checked + at_a_time))
done
[ "$checked" -le "${#sources[@]}" ] || checked=${#sources[@]}
echo "tidy: $checked of ${#sources[@]} sources that changed since $since checked in $SECONDS s"
exit $status
