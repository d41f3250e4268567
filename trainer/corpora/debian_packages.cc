// SPDX-License-Identifier: Apache-2.0
#include "trainer/corpora/debian_packages.h"

#include <fmt/core.h>

#include <algorithm>
#include <sstream>
#include <vector>

#include "core/errors.h"
#include "core/files/paths.h"
#include "core/files/sha256.h"
#include "core/process/process.h"

namespace softmoe::trainer {
namespace {

namespace fs = std::filesystem;

// NAME_*.deb in `folder`, the last by name; empty if there is none.
fs::path FindDeb(const fs::path& folder, const std::string& package) {
  fs::path found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(package + "_") && name.ends_with(".deb")) {
      found = std::max(found, entry.path());
    }
  }
  return found;
}

// The last `count` distinct lines that apt marks as errors or warnings.
std::string Complaints(const std::string& output, size_t count) {
  std::vector<std::string> lines;
  std::istringstream stream(output);
  for (std::string line; std::getline(stream, line);) {
    const bool complaint = line.starts_with("E:") || line.starts_with("W:");
    if (complaint &&
        std::find(lines.begin(), lines.end(), line) == lines.end()) {
      lines.push_back(line);
    }
  }
  std::string text;
  for (size_t i = lines.size() - std::min(count, lines.size());
       i < lines.size(); ++i) {
    text += lines[i] + "\n";
  }
  return text;
}

// The last `count` lines.
std::string LastLines(const std::string& text, int count) {
  size_t begin = text.size();
  while (begin > 0 && count > 0) {
    --begin;
    const bool line_begins = begin == 0 || text[begin - 1] == '\n';
    if (line_begins) --count;
  }
  return text.substr(begin);
}

class Downloader {
 public:
  Downloader(std::string package, fs::path folder, fs::path local)
      : package_(std::move(package)),
        folder_(std::move(folder)),
        local_(std::move(local)) {}

  fs::path Download(const std::function<void(const std::string&)>& notify) {
    if (!HaveProgram("apt-get")) {
      Fail("there is no apt-get here: this is not Debian or Ubuntu", "");
    }
    notify(fmt::format("downloading Debian package {}", package_));
    ProgramResult result = Apt({"download", package_});
    std::string output = result.output;
    if (result.exit_status != 0) {
      // The lists are missing, or older than the archive: fetch our own.
      notify("fetching Debian's package lists");
      MakeFolder(folder_ / "lists" / "partial");
      MakeFolder(folder_ / "archives" / "partial");
      options_ = {"-o", "Dir::State::Lists=" + (folder_ / "lists").string(),
                  "-o", "Dir::Cache=" + folder_.string()};
      output += Apt({"update"}).output;  // 0 even if nothing was reached
      result = Apt({"download", package_});
      output += result.output;
    }
    fs::path deb = FindDeb(folder_, package_);
    if (result.exit_status != 0 || deb.empty()) {
      Fail("apt-get download failed", output);
    }
    return deb;
  }

 private:
  ProgramResult Apt(const std::vector<std::string>& command) const {
    std::vector<std::string> arguments = {
        "apt-get", "-q", "-o", "Acquire::Retries=2", "-o",
        "Acquire::http::Timeout=20", "-o", "Acquire::https::Timeout=20", "-o",
        // The folder is ours alone; apt's own user could not write there.
        "APT::Sandbox::User=root"};
    arguments.insert(arguments.end(), options_.begin(), options_.end());
    arguments.insert(arguments.end(), command.begin(), command.end());
    return RunProgram(arguments, folder_);
  }

  [[noreturn]] void Fail(const std::string& what,
                         const std::string& output) const {
    throw EnvironmentError(fmt::format(
        "cannot get the Debian package {}: {}\n{}connect to the network and "
        "try again; or put {}_*.deb (from https://packages.debian.org/{}) "
        "into {}; or use a text file of your own: `--corpus path:FILE` (key "
        "data.corpus)",
        package_, what, Complaints(output, 6), package_, package_,
        local_.string()));
  }

  std::string package_;
  fs::path folder_;
  fs::path local_;
  std::vector<std::string> options_;
};

std::string Field(const fs::path& deb, const std::string& name) {
  const ProgramResult result =
      RunProgram({"dpkg-deb", "--field", deb.string(), name}, "/");
  std::string value = result.output;
  while (value.ends_with('\n')) value.pop_back();
  return result.exit_status == 0 ? value : "";
}

}  // namespace

DebianPackage UnpackDebianPackage(
    const std::string& package, const fs::path& folder, const fs::path& local,
    const std::function<void(const std::string&)>& notify) {
  MakeFolder(folder);
  if (!HaveProgram("dpkg-deb")) {
    throw EnvironmentError(fmt::format(
        "cannot unpack the Debian package {}: there is no dpkg-deb; install "
        "the package dpkg, or use a text file of your own: `--corpus "
        "path:FILE` (key data.corpus)",
        package));
  }
  const fs::path work = folder / ".download";
  MakeFolder(work);
  fs::path deb = FindDeb(local, package);
  if (deb.empty()) deb = Downloader(package, work, local).Download(notify);
  if (Field(deb, "Package") != package) {
    throw EnvironmentError(
        fmt::format("{}: not the Debian package {}; delete it, and it will be "
                    "downloaded again",
                    deb.string(), package));
  }
  DebianPackage result = {package, Field(deb, "Version"), Sha256OfFile(deb)};
  const ProgramResult unpacked =
      RunProgram({"dpkg-deb", "-x", deb.string(), folder.string()}, "/");
  if (unpacked.exit_status != 0) {
    throw EnvironmentError(
        fmt::format("cannot unpack {}: {}; delete it if it is damaged, and "
                    "make sure that the disk is not full",
                    deb.string(), LastLines(unpacked.output, 3)));
  }
  fs::remove_all(work);
  return result;
}

}  // namespace softmoe::trainer
