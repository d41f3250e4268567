#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# skipped_tests.sh TESTLOGS <SUMMARY - what passed without having run: of the
# targets that PASSED in Bazel's summary on stdin, one line for each test case
# that skipped itself ("not run: //room:test Suite.Case: why"), and one for each
# target with nothing else ("skipped: //room:test"). TESTLOGS is bazel-testlogs.
set -euo pipefail
testlogs=$1

{ grep -oE '^//[^ ]+ +(\(cached\) )?PASSED' || [ $? = 1 ]; } | cut -d' ' -f1 | sort -u |
  while read -r target; do
    path=${target#//}
    for xml in "$testlogs/${path/://}"/test.xml \
      "$testlogs/${path/://}"/shard_*/test.xml; do
      [ ! -e "$xml" ] || cat "$xml"
    done | awk -v target="$target" '
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
      END { if (cases > 0 && cases == skipped) print "skipped: " target }'
  done
