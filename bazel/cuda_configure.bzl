"""@cuda: where the CUDA toolkit is, if there is one.

$CUDA_HOME, if it is set, decides alone (a folder without a toolkit hides the
one in /usr/local/cuda); otherwise it is /usr/local/cuda. Without a usable
toolkit CUDA_AVAILABLE is False, `//...` leaves out every target that has
target_compatible_with = NEEDS_CUDA, as each cuda_library has, and builds
everything else.
"""

# C++20 in device code needs nvcc 12.0.
_OLDEST_NVCC = [12, 0]

# (flags of nvcc for an architecture, first release that knows it). One SASS
# image for each architecture that the paper's readers have, and PTX of the
# newest for later ones.
_ARCHITECTURES = [
    ("-gencode=arch=compute_80,code=sm_80", [12, 0]),
    ("-gencode=arch=compute_90a,code=sm_90a", [12, 0]),
    ("-gencode=arch=compute_100,code=[sm_100,compute_100]", [12, 8]),
]

# Half the size of what nvcc makes by default; a driver of 12.4 reads it.
_COMPRESSION = [("--compress-mode=size", [12, 8])]

# The constraint of targets that this platform cannot have.
# (@platforms//:incompatible is newer than Debian's bazel-platforms.)
_BUILD = """
constraint_setting(name = "toolkit")

constraint_value(
    name = "no_toolkit",
    constraint_setting = ":toolkit",
    visibility = ["//visibility:public"],
)

cc_library(
    name = "cudart",
    linkopts = {linkopts},
    target_compatible_with = {compatible},
    visibility = ["//visibility:public"],
)
"""

def _release(ctx, nvcc):
    """[major, minor] of `nvcc --version`, and its last line; [0, 0] if it does not run."""
    result = ctx.execute([nvcc, "--version"])
    if result.return_code != 0:
        return [0, 0], ""
    for word in result.stdout.replace(",", " ").split(" "):
        parts = word.strip().split(".")
        if len(parts) == 3 and parts[0].startswith("V") and parts[0][1:].isdigit() and parts[1].isdigit():
            return [int(parts[0][1:]), int(parts[1])], result.stdout.strip().split("\n")[-1]
    return [0, 0], ""

def _find_toolkit(ctx):
    """(folder, release, version line) of a usable toolkit, or None."""
    chosen = ctx.os.environ.get("CUDA_HOME", "")
    home = chosen or "/usr/local/cuda"
    if not home.startswith("/") or not ctx.path(home + "/bin/nvcc").exists:
        if chosen:
            print("no nvcc in $CUDA_HOME/bin (%s): building without CUDA" % chosen)
        return None
    for file in ["include/cuda_runtime.h", "include/cublasLt.h", "lib64/libcudart_static.a"]:
        # Mostly one of the two folders of headers is a link to the other.
        folders = ["/", "/targets/x86_64-linux/"] if file.endswith(".h") else ["/"]
        if not any([ctx.path(home + folder + file).exists for folder in folders]):
            print("%s has nvcc but not %s: building without CUDA" % (home, file))
            return None
    release, version = _release(ctx, home + "/bin/nvcc")
    if release < _OLDEST_NVCC:
        print("%s/bin/nvcc does not run or is older than 12.0: building without CUDA" % home)
        return None
    return home, release, version

def _known(flags, release):
    return [flag for flag, first in flags if release >= first]

def _nccl_copts(ctx, home):
    """Flags for sources that need NCCL's header, with its version: none without it."""
    header = home + "/include/nccl.h"
    if not home or not ctx.path(header).exists:
        return []
    for line in ctx.read(header).split("\n"):
        words = [word for word in line.split(" ") if word]
        if words[:2] == ["#define", "NCCL_VERSION_CODE"]:
            return ["-DSOFTMOE_NCCL=" + words[2]]
    return []

def _cuda_configure_impl(ctx):
    toolkit = _find_toolkit(ctx)
    home, release, version = toolkit or ("", [0, 0], "")
    ctx.file("defs.bzl", "\n".join([
        "CUDA_AVAILABLE = %r" % bool(toolkit),
        "NEEDS_CUDA = %r" % ([] if toolkit else ["@cuda//:no_toolkit"]),
        "CUDA_HOME = %r" % home,
        "NVCC = %r" % (home + "/bin/nvcc" if toolkit else ""),
        "NVCC_VERSION = %r" % version,
        "NCCL_COPTS = %r" % _nccl_copts(ctx, home),
        "NVCC_ARCHITECTURES = %r" % _known(_ARCHITECTURES, release),
        "NVCC_COMPRESSION = %r" % _known(_COMPRESSION, release),
        "",
    ]))
    ctx.file("BUILD", _BUILD.format(
        linkopts = repr(["-L" + home + "/lib64", "-lcudart_static", "-ldl", "-lrt", "-lpthread"] if toolkit else []),
        compatible = repr([] if toolkit else [":no_toolkit"]),
    ))

cuda_configure = repository_rule(
    implementation = _cuda_configure_impl,
    environ = ["CUDA_HOME", "SOFTMOE_TOOLCHAIN", "SOFTMOE_CUDA"],
    local = True,
    configure = True,
    doc = "Writes @cuda from the toolkit in $CUDA_HOME or /usr/local/cuda.",
)
