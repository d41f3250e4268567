#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Tells Bazel the commit of the sources (core/code_version.h). Prints nothing in
# a folder that is not a git checkout (though perhaps inside another), or where
# git is missing.
set -u
[ -z "$(git rev-parse --show-prefix 2>/dev/null)" ] || exit 0
commit=$(git rev-parse --short=12 HEAD 2>/dev/null) || exit 0
git diff --quiet HEAD -- 2>/dev/null || commit+=+changes
echo "STABLE_SOFTMOE_COMMIT $commit"
