"""The macros every BUILD file uses, so that flags are said once."""

load("@system//:key.bzl", "BUILD_KEY")

_COPTS = [
    "-Wall",
    "-Wextra",
    "-Werror",
    # Contraction is decided in the source, with std::fma, never by the
    # compiler: results must not depend on its mood (DESIGN.md, ruling 9).
    "-ffp-contract=off",
    "-DSOFTMOE_BUILD_KEY=" + BUILD_KEY,
]

# Bazel does not hash what -l finds; the key on the command line does.
_LINKOPTS = ["-Wl,--build-id=0x" + BUILD_KEY]

# Every program is linked statically, so one object per source is enough. Left
# to itself Bazel compiles each source of a library twice, the second time for
# a shared library that nobody loads: a third of the time of a cold build.
_ONE_OBJECT = {"features": ["-supports_pic"], "linkstatic": True}

def softmoe_cc_library(name, copts = [], in_shared_library = False, **kwargs):
    """A library; `in_shared_library`: also for a binary with linkshared = True."""
    kwargs = kwargs if in_shared_library else dict(kwargs, **_ONE_OBJECT)
    native.cc_library(name = name, copts = _COPTS + copts, **kwargs)

def softmoe_cc_binary(name, copts = [], linkopts = [], **kwargs):
    native.cc_binary(
        name = name,
        copts = _COPTS + copts,
        linkopts = linkopts + _LINKOPTS,
        **kwargs
    )

def softmoe_cc_test(name, size, copts = [], linkopts = [], deps = [], main = True, **kwargs):
    """A GoogleTest. `size` is required; set `main = False` for an own main()."""
    native.cc_test(
        name = name,
        size = size,
        copts = _COPTS + copts,
        linkopts = linkopts + _LINKOPTS,
        deps = deps + (["@system//:gtest_main"] if main else []),
        linkstatic = True,
        **kwargs
    )

# The instruction sets that the CPU kernels are compiled for; the program
# chooses at start-up. Level "v3" is x86-64-v3 (AVX2+FMA), "v4" x86-64-v4 (AVX-512).
ISA_LEVELS = {
    "v3": ["-march=x86-64-v3"],
    "v4": ["-march=x86-64-v4", "-mprefer-vector-width=512"],
}

def softmoe_isa_library(name, srcs, hdrs = [], deps = [], copts = [], **kwargs):
    """Compiles `srcs` once per ISA level into namespace SOFTMOE_ISA_NAMESPACE.

    Each source wraps its code in `namespace softmoe::kernels::SOFTMOE_ISA {`;
    see //kernels:isa.h for how the level is chosen at run time.
    """
    for level, flags in ISA_LEVELS.items():
        native.cc_library(
            name = name + "_" + level,
            srcs = srcs,
            hdrs = hdrs,
            deps = deps,
            copts = _COPTS + ["-O3"] + flags + ["-DSOFTMOE_ISA=isa_" + level] + copts,
            **dict(kwargs, **_ONE_OBJECT)
        )
    native.cc_library(
        name = name,
        hdrs = hdrs,
        deps = deps + [":" + name + "_" + level for level in ISA_LEVELS],
        **kwargs
    )
