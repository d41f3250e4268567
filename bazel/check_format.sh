#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# check_format.sh STYLE FOLDER - fails if clang-format 14 would change a source
# under FOLDER. The version is pinned, since each formats a little differently.
set -euo pipefail
style=file:$1
folder=$2

formatted() { clang-format-14 --style="$style" --dry-run --Werror "$@"; }

# Before the check may find nothing, it must find what is planted here.
spoilt=$(mktemp --suffix=.cc)
trap 'rm -f "$spoilt"' EXIT
echo 'int  x ;' >"$spoilt"
if formatted "$spoilt" 2>/dev/null; then
  echo "check_format.sh: clang-format accepts even a badly formatted file" >&2
  exit 1
fi

mapfile -t sources < <(find -L "$folder" -name '*.cc' -o -name '*.cu' \
  -o -name '*.h' -o -name '*.inc')
if [ ${#sources[@]} -eq 0 ]; then
  echo "check_format.sh: no sources under $folder" >&2
  exit 1
fi
if ! formatted "${sources[@]}"; then
  echo "fix it with: clang-format-14 -i FILE" >&2
  exit 1
fi
echo "${#sources[@]} sources of $folder are formatted"
