#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# install.sh SOURCE - what every container of the project does, as root on a
# bare Debian 12: installs what bazel/packages.txt lists, builds //:grid from
# the sources in the folder SOURCE, and leaves it as the command `grid`.
set -euo pipefail
cd "$1"

export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# git: results name the commit that made them. Keep the package lists: the
# stand-in corpora are packages, too.
xargs apt-get install -y -qq --no-install-recommends ca-certificates git \
  <bazel/packages.txt
# The sources may belong to another user.
git config --global --add safe.directory "$PWD"

./bazelw build //:grid
mkdir -p /opt/softmoe
cp -rL bazel-bin/experiments/grid bazel-bin/experiments/grid.runfiles /opt/softmoe
ln -sf /opt/softmoe/grid /usr/local/bin/grid
