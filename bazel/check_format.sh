#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# check_format.sh - fails if clang-format 14 would change a source, or a comment is
# wider than 80 columns. The version is pinned, since each formats a little
# differently.
set -euo pipefail

formatted() { clang-format-14 --style=file:.clang-format --dry-run --Werror "$@"; }

# Before the check may find nothing, it must find what is planted here.
spoilt=$(mktemp --suffix=.cc)
trap 'rm -f "$spoilt"' EXIT
echo 'int  x ;' >"$spoilt"
if formatted "$spoilt" 2>/dev/null; then
  echo "check_format.sh: clang-format accepts even a badly formatted file" >&2
  exit 1
fi

mapfile -t sources < <(find -L . -name '*.cc' -o -name '*.cu' -o -name '*.h' \
  -o -name '*.inc')
if [ ${#sources[@]} -lt 500 ]; then
  echo "check_format.sh: only ${#sources[@]} sources" >&2
  exit 1
fi
if ! formatted "${sources[@]}"; then
  echo "fix it with: clang-format-14 -i FILE" >&2
  exit 1
fi
# Since clang-format leaves comments as they are.
if grep -nE '^.{81}' "${sources[@]}" | grep -E '^[^:]+:[0-9]+: *//' | grep -v 'https\?:'; then
  echo "comments are at most 80 columns wide" >&2
  exit 1
fi
echo "${#sources[@]} sources are formatted"
