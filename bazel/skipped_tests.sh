#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# skipped_tests.sh TESTLOGS <SUMMARY - what passed without having run: of the
# targets that PASSED in Bazel's summary on stdin, one line for each test case
# that skipped itself ("not run: //room:test Suite.Case: why"), and one for each
# target with nothing else, or with nothing at all ("skipped: //room:test").
# TESTLOGS is bazel-testlogs.
# Ends with 1 if a target that passed, or a shard of it, left no test.xml.
set -euo pipefail
shopt -s nullglob
testlogs=$1

{ grep -oE '^//[^ ]+ +(\(cached\) )?PASSED' || [ $? = 1 ]; } | cut -d' ' -f1 | sort -u | {
  untold=0
  while read -r target; do
    path=${target#//}
    parts=("$testlogs/${path/://}"/shard_*/)
    [ ${#parts[@]} -gt 0 ] || parts=("$testlogs/${path/://}/")
    cat "${parts[@]/%/test.xml}" | awk -v target="$target" '
      function attribute(name,   text) {
        if (!match($0, "[ <]" name "=\"[^\"]*\"")) return ""
        text = substr($0, RSTART + length(name) + 3,
                      RLENGTH - length(name) - 4)
        gsub(/&#x0A;/, " ", text); gsub(/&lt;/, "<", text)
        gsub(/&gt;/, ">", text); gsub(/&quot;/, "\"", text)
        gsub(/&apos;/, "\047", text); gsub(/&amp;/, "\\&", text)
        return text
      }
      /<testcase / {
        ++cases
        name = attribute("classname") "." attribute("name")
      }
      /<skipped message=/ {
        ++skipped
        why = attribute("message")
        sub(/^[^ ]+:[0-9]+ /, "", why)
        sub(/ +$/, "", why)
        print "not run: " target " " name ": " (why == "" ? "?" : why)
      }
      END { if (cases + 0 == skipped + 0) print "skipped: " target }' || {
      echo "skipped_tests.sh: $target passed, but does not tell what ran" >&2
      untold=1
    }
  done
  exit $untold
}
