#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# check_citations.sh DOCUMENT FOLDER - whether the sections of DOCUMENT that
# files under FOLDER cite by number are headings there. "SPEC.md 2.3-2.5, 4"
# cites three; a citation may go on in the next line of a comment.
set -euo pipefail
export LC_ALL=C
document=$1
folder=$2
name=$(basename "$document")

cited_sections() { # in the text on stdin, one per line
  local number='[0-9][0-9a-c.]*'
  sed -E 's,^[[:space:]]*(//|#)?[[:space:]]*,,' | tr '\n' ' ' |
    { grep -aoE "\<${name/./\\.},? +$number((, |-)$number)*" || true; } |
    { grep -oE "$number" || true; } | sed 's/\.$//'
}

is_section() {
  grep -qE "^#+ ${1//./\\.} " "$document"
}

# A check that finds nothing has to be able to.
example=$(printf '// (%s 1.1,\n// 98.7-98.9). %s\n# 99a.\n' "$name" "$name" |
  cited_sections | tr '\n' ' ')
[ "$example" = "1.1 98.7 98.9 99a " ] || { echo "saw: $example" >&2; exit 1; }
if is_section 99a || ! is_section 1.1; then
  echo "$document: no headings such as '## 1.1 Title'" >&2
  exit 1
fi

citations=0
failed=0
while IFS= read -r file; do
  for section in $(cited_sections <"$file"); do
    citations=$((citations + 1))
    is_section "$section" && continue
    echo "$file cites $name $section; $document has no such section" >&2
    failed=1
  done
done < <(find -L "$folder" -type f | sort)
echo "$citations citations of $name checked"
exit "$failed"
