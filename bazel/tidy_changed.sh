#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# tidy_changed.sh [COMMIT [SECONDS]] - clang-tidy on what changed since COMMIT.
#
#   bazel/tidy_changed.sh HEAD~20 480     what .ci/run does, if it has the time
#   bazel/tidy_changed.sh                 what is not committed yet
#
# Checks the sources of ours that changed, and those whose header did, a batch at
# a time, and begins none after SECONDS (600); prints findings, Bazel's errors,
# and how many sources are in batches without either. Ends with 1 on either, at
# once if Bazel cannot say what compiles a source, and with 5 without clang-tidy;
# running out of time is no finding, but what was found by then is one.
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
changed=$(git diff --name-only --diff-filter=d "$since" -- '*.cc' '*.h' &&
  git ls-files --others --exclude-standard -- '*.cc' '*.h')
mapfile -t sources < <(sed 's/\.h$/.cc/' <<<"$changed" | sort -u |
  while read -r file; do [ ! -f "$file" ] || echo "$file"; done)
for header in $(grep '\.h$' <<<"$changed"); do
  [ -f "${header%.h}.cc" ] || echo "tidy: not checked, since no source has its name: $header"
done
if [ ${#sources[@]} -eq 0 ]; then
  echo "tidy: nothing that is compiled changed since $since"
  exit 0
fi

labels_of() {
  for file in "$@"; do
    folder=$(dirname "$file")
    while [ ! -f "$folder/BUILD" ]; do folder=$(dirname "$folder"); done
    echo "//${folder#.}:${file#"$folder"/}"
  done
}

# The targets that compile sources with these labels: rules of a file's own
# package, some through a target of together.bzl. Those that need a CUDA toolkit
# cannot be named without one, even with -k.
targets_of() {
  ./bazelw query --noshow_progress "let users = same_pkg_direct_rdeps(set($1))
    in let targets = kind('cc_(library|binary|test) rule',
      \$users + same_pkg_direct_rdeps(kind('together rule', \$users)))
    in \$targets except attr(target_compatible_with, no_toolkit, \$targets)"
}

finding='^[^ ]+:[0-9]+:[0-9]+: (error|warning)'
said=$(mktemp)
trap 'rm -f "$said"' EXIT

status=0 next=0 clean=0
while [ "$next" -lt "${#sources[@]}" ]; do
  left=$((limit - SECONDS))
  [ "$left" -gt 0 ] || break
  batch=("${sources[@]:next:at_a_time}")
  next=$((next + at_a_time))
  mapfile -t labels < <(labels_of "${batch[@]}")
  found=$(targets_of "${labels[*]}") || exit 1
  compiled=""
  if [ -n "$found" ]; then
    compiled=$(./bazelw query --noshow_progress \
      "set(${labels[*]}) intersect deps(set($found), 2)") || exit 1
  fi
  for i in "${!batch[@]}"; do
    grep -qxF -e "${labels[i]}" <<<"$compiled" ||
      echo "tidy: not checked, since nothing that is built here compiles it: ${batch[i]}"
  done
  [ -n "$compiled" ] || continue
  mapfile -t targets <<<"$found"
  timeout --signal=INT "$left" ./bazelw build --config=full -k --noshow_progress \
    --aspects=//bazel:tidy.bzl%tidy \
    --output_groups="$(printf 'tidy/%s,' "${batch[@]}")" "${targets[@]}" 2>&1 |
    grep -E "$finding|^ERROR|^bazelw:" |
    sed 's|^/.*/execroot/softmoe/||' | tee "$said"
  case ${PIPESTATUS[0]} in
    0) clean=$((clean + $(wc -l <<<"$compiled"))) ;;
    124)  # not all were checked; an ERROR may only say that it was interrupted
      ! grep -qE "$finding" "$said" || status=1
      break
      ;;
    *) status=1 ;;
  esac
done
echo "tidy: $clean of ${#sources[@]} sources that changed since $since found clean in $SECONDS s"
exit $status
