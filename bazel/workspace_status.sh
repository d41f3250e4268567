#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What Bazel may know of the sources beyond their text (//core:code_version).
# Says nothing in a folder that is no git checkout, or where git is missing.
set -u
commit=$(git rev-parse --short=12 HEAD 2>/dev/null) || exit 0
git diff --quiet HEAD -- 2>/dev/null || commit+=+changes
echo "STABLE_SOFTMOE_COMMIT $commit"
