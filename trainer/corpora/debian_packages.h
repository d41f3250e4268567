// SPDX-License-Identifier: Apache-2.0
//
// debian_packages.h - gets files of Debian packages without installing them.
#ifndef SOFTMOE_TRAINER_CORPORA_DEBIAN_PACKAGES_H_
#define SOFTMOE_TRAINER_CORPORA_DEBIAN_PACKAGES_H_

#include <filesystem>
#include <functional>
#include <string>

namespace softmoe::trainer {

struct DebianPackage {
  std::string name;
  std::string version;
  std::string sha256;  // of the .deb
};

// Unpacks `package` below `folder`. The .deb comes from `local` (a folder that
// need not exist: NAME_*.deb) or is downloaded by `apt-get download`, with
// package lists fetched into a folder of our own if that fails, so that neither
// root nor a previous `apt-get update` is needed. apt checks the download
// against the archive's signatures. Throws EnvironmentError with the remedy.
DebianPackage UnpackDebianPackage(
    const std::string& package, const std::filesystem::path& folder,
    const std::filesystem::path& local,
    const std::function<void(const std::string&)>& notify);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_CORPORA_DEBIAN_PACKAGES_H_
