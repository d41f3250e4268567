#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What skipped_tests.sh tells from a summary and the files beside it.
set -euo pipefail

list=$PWD/bazel/skipped_tests.sh
cd "$TEST_TMPDIR"

case_xml() { # NAME [WHY, as it stands in XML]
  echo "<testcase name=\"$1\" result=\"$([ $# = 1 ] && echo completed || echo skipped)\" classname=\"Suite\"$([ $# = 1 ] && echo /)>"
  if [ $# = 2 ]; then
    echo "<skipped message=\"$2\"><![CDATA[$2]]></skipped>"
    echo "</testcase>"
  fi
}

mkdir -p logs/room/{all,some,none,failed,shell,empty}_test
mkdir -p logs/room/shards_test/shard_{1,2}_of_2
{
  case_xml One 'room/x_test.cc:12&#x0A;no &lt;munged&gt; &amp; &quot;root&quot;'
  case_xml Two ''
} >logs/room/all_test/test.xml
{
  case_xml One
  case_xml Two 'room/x_test.cc:12&#x0A;this CPU lacks v4&#x0A;'
} >logs/room/some_test/test.xml
case_xml One >logs/room/none_test/test.xml
case_xml shell >logs/room/shell_test/test.xml
echo '<testsuites tests="0"></testsuites>' >logs/room/empty_test/test.xml
case_xml One 'failed later' >logs/room/failed_test/test.xml
case_xml One 'why' >logs/room/shards_test/shard_1_of_2/test.xml
case_xml Two >logs/room/shards_test/shard_2_of_2/test.xml

diff - <("$list" logs <<'SUMMARY'
//room:all_test                 PASSED in 0.1s
//room:some_test       (cached) PASSED in 0.1s
//room:none_test                PASSED in 0.1s
//room:shards_test              PASSED in 0.1s
//room:shell_test               PASSED in 0.1s
//room:empty_test               PASSED in 0.1s
//room:failed_test              FAILED in 0.1s
//room:gpu_test                SKIPPED
SUMMARY
) <<'EXPECTED' || { echo "(< expected, > listed)" >&2; exit 1; }
not run: //room:all_test Suite.One: no <munged> & "root"
not run: //room:all_test Suite.Two: ?
skipped: //room:all_test
skipped: //room:empty_test
not run: //room:shards_test Suite.One: why
not run: //room:some_test Suite.Two: this CPU lacks v4
EXPECTED

nothing=$("$list" logs </dev/null)
[ -z "$nothing" ] || { echo "lists without tests" >&2; exit 1; }

# Who does not tell what ran is found among others, which are still listed.
rm logs/room/shell_test/test.xml logs/room/shards_test/shard_2_of_2/test.xml
for silent in shell_test shards_test; do
  ! listed=$("$list" logs 2>said <<SUMMARY
//room:$silent      (cached) PASSED in 0.1s
//room:some_test                PASSED in 0.1s
SUMMARY
) || { echo "$silent without a test.xml has run" >&2; exit 1; }
  grep -q "//room:$silent passed" said
  grep -q '^not run: //room:some_test Suite.Two' <<<"$listed"
done
