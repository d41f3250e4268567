// SPDX-License-Identifier: Apache-2.0
#include "experiments/testing/slurm_test_util.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <fmt/core.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/paths.h"
#include "core/process/process.h"
#include "experiments/testing/grid_test_util.h"

namespace softmoe::experiments {
namespace {

namespace fs = std::filesystem;

constexpr char kMachine[] = "softmoe";
// A documentation address (RFC 5737): Slurm needs more than a loopback address.
constexpr char kAddress[] = "192.0.2.1";

// Why this process has no namespaces of its own; "" if it has them.
std::string& Obstacle() {
  static std::string text = "CallInNamespaces was not called";
  return text;
}

constexpr char kConfiguration[] = R"(ClusterName=softmoe
SlurmctldHost={machine}({address})
SlurmctldPort=16817
SlurmdPort=16818
AuthType=auth/munge
CredType=cred/munge
# A task that was requeued waits until its credentials have expired.
AuthInfo=socket={folder}/munge.socket,cred_expire=5
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0,sched_min_interval=0
SlurmdParameters=config_overrides
NodeName={machine} NodeAddr={address} CPUs=2
PartitionName=all Nodes=ALL Default=YES State=UP
)";

// Throws std::system_error with `what` if `result` is negative.
void Require(int result, const char* what) {
  if (result < 0) {
    throw std::system_error(errno, std::generic_category(), what);
  }
}

// Gives the loopback device an address.
void MakeNetwork() {
  const int any = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  Require(any, "socket");
  ifreq request = {};
  std::string_view("lo").copy(request.ifr_name, IFNAMSIZ - 1);
  request.ifr_flags = IFF_UP;
  Require(ioctl(any, SIOCSIFFLAGS, &request), "lo");
  request = {};
  std::string_view("lo:1").copy(request.ifr_name, IFNAMSIZ - 1);
  auto* address = reinterpret_cast<sockaddr_in*>(&request.ifr_addr);
  address->sin_family = AF_INET;
  inet_pton(AF_INET, kAddress, &address->sin_addr);
  Require(ioctl(any, SIOCSIFADDR, &request), "address");
  close(any);
}

void Furnish() {
  Require(mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr),
          "private mounts");
  Require(mount("proc", "/proc", "proc", 0, nullptr), "mount /proc");
  Require(mount("tmpfs", "/run", "tmpfs", 0, nullptr), "mount /run");
  Require(sethostname(kMachine, strlen(kMachine)), "sethostname");
  MakeNetwork();
}

// Waits for the child `process`, reaping all others, and returns its exit
// status as a shell does.
int ReapUntil(pid_t process) {
  while (true) {
    int status = 0;
    const pid_t ended = wait(&status);
    if (ended == process) {
      return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    if (ended < 0 && errno != EINTR) return 1;
  }
}

[[noreturn]] void BeTheFirstProcess(const std::function<int()>& body) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  try {
    Furnish();
    Obstacle().clear();
  } catch (const std::system_error& error) {
    Obstacle() = error.what();
  }
  const pid_t process = fork();
  if (process == 0) exit(body());
  _exit(process < 0 ? 1 : ReapUntil(process));
}

std::string End(const fs::path& file) {
  if (!fs::exists(file)) return "";
  const std::string text = ReadWholeFile(file);
  constexpr size_t kEnd = 3000;
  return fmt::format("--- {}\n{}\n", file.filename().string(),
                     text.substr(text.size() - std::min(kEnd, text.size())));
}

}  // namespace

int CallInNamespaces(const std::function<int()>& body) {
  if (unshare(CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC |
              CLONE_NEWNET) != 0) {
    Obstacle() = fmt::format("no namespaces of its own without root: {}",
                             strerror(errno));
    return body();
  }
  const pid_t first = fork();
  if (first == 0) BeTheFirstProcess(body);
  return first < 0 ? 1 : ReapUntil(first);
}

std::string ObstacleToSlurm() {
  if (!Obstacle().empty()) return Obstacle();
  std::string missing;
  for (const char* program : {"munged", "slurmctld", "slurmd", "sbatch", "srun",
                              "squeue", "scontrol", "scancel"}) {
    if (missing.empty() && !HaveProgram(program)) missing = program;
  }
  // srun --mpi=pmix loads it under this name.
  void* const pmix = ::dlopen("libpmix.so", RTLD_LAZY);
  if (pmix != nullptr) ::dlclose(pmix);
  if (missing.empty() && pmix == nullptr) missing = "libpmix.so";
  if (missing.empty()) return "";
  return fmt::format(
      "no {}: apt-get install --no-install-recommends munge slurmctld slurmd "
      "slurm-client libpmix-dev",
      missing);
}

SlurmCluster::SlurmCluster() : folder_("/run/slurm") {
  for (const char* name : {"state", "spool"}) MakeFolder(folder_ / name);
  WriteFileAtomically(
      folder_ / "slurm.conf",
      fmt::format(kConfiguration, fmt::arg("folder", folder_.string()),
                  fmt::arg("machine", kMachine),
                  fmt::arg("address", kAddress)));
  const std::string configuration = (folder_ / "slurm.conf").string();
  ::setenv("SLURM_CONF", configuration.c_str(), 1);
  // Not a secret: nobody else is here.
  const fs::path key = folder_ / "munge.key";
  WriteFileAtomically(key, std::string(64, 'k'));
  fs::permissions(key, fs::perms::owner_read);
  const std::string munge = (folder_ / "munge").string();
  Start("munged",
        {"--foreground", "--socket=" + munge + ".socket",
         "--key-file=" + munge + ".key", "--pid-file=" + munge + ".pid",
         "--seed-file=" + munge + ".seed", "--log-file=" + munge + ".log"});
  if (!WaitFor(60, [&] { return fs::exists(munge + ".socket"); })) {
    throw EnvironmentError("munged does not answer\n" + Logs());
  }
  Start("slurmctld", {"-D", "-f", configuration});
  Start("slurmd", {"-D", "-f", configuration, "-N", kMachine});
  if (!WaitFor(60, [] {
        const ProgramResult nodes =
            RunProgram({"sinfo", "--noheader", "--format=%t"}, "/");
        return nodes.exit_status == 0 && nodes.output == "idle\n";
      })) {
    throw EnvironmentError("the node does not become idle\n" + Logs());
  }
}

void SlurmCluster::Start(const std::string& name,
                         std::vector<std::string> arguments) {
  ProcessOptions options;
  arguments.insert(arguments.begin(), name);
  options.arguments = std::move(arguments);
  options.folder = folder_;
  options.output = ProcessOptions::Output::kFile;
  options.output_file = folder_ / (name + ".output");
  daemons_.push_back(std::make_unique<Process>(options));
}

std::string SlurmCluster::Logs() const {
  std::string logs = End(folder_ / "munge.log");
  for (const char* name : {"munged", "slurmctld", "slurmd"}) {
    logs += End(folder_ / (std::string(name) + ".output"));
  }
  return logs;
}

}  // namespace softmoe::experiments
