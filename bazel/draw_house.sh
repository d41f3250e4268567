#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# draw_house.sh draw_house.awk EDGES - draws house.svg, the picture in
# README.md, again.
set -euo pipefail
workspace=${BUILD_WORKSPACE_DIRECTORY:?use ./bazelw run //bazel:draw_house}
picture=$workspace/bazel/house.svg
awk -f "$1" "$2" >"$picture.new"
mv "$picture.new" "$picture"
echo "drawn: $picture"
