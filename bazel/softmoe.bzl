"""The macros every BUILD file uses, so that flags and names are said once.

Most targets come from softmoe_unit; the other macros are for what does not fit.
"""

load("@system//:key.bzl", "BUILD_KEY")
load("//bazel:fuzz.bzl", "softmoe_fuzz_test")

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

# Where a program of //:gpu_bundle finds the libraries that lie beside it. Of the
# old kind, which holds for the libraries that libraries need, too.
_BUNDLE_LINKOPTS = ["-Wl,--disable-new-dtags,-rpath,$$ORIGIN/../lib"]

def softmoe_cc_binary(name, copts = [], linkopts = [], in_gpu_bundle = False, **kwargs):
    native.cc_binary(
        name = name,
        copts = _COPTS + copts,
        linkopts = linkopts + (_BUNDLE_LINKOPTS if in_gpu_bundle else []) + _LINKOPTS,
        **kwargs
    )

def softmoe_cc_test(
        name,
        size = "small",
        srcs = None,
        copts = [],
        linkopts = [],
        deps = [],
        main = True,
        **kwargs):
    """A GoogleTest.

    Args:
      name: of the test.
      size: as of a cc_test.
      srcs: default: NAME.cc.
      copts: besides those of every program.
      linkopts: besides those of every program.
      deps: as of a cc_test, without GoogleTest.
      main: False if the test has a main() of its own.
      **kwargs: as of a cc_test.
    """
    native.cc_test(
        name = name,
        size = size,
        srcs = srcs or [name + ".cc"],
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

def _with_prefix(prefix, attributes):
    return {
        key[len(prefix):]: value
        for key, value in attributes.items()
        if key.startswith(prefix)
    }

def _beside_library(macro, name, files, file, library, deps = [], **kwargs):
    """What `macro` makes of `file`, if it is among `files`, and of `library`."""
    if file not in files:
        if deps or kwargs:
            fail("there are attributes for %s, but there is no such file" % file)
        return
    if library in deps:
        fail("%s depends on %s without being told" % (file, library))

    # Sorted, as a list of labels is written: first those of this package.
    here = [dep for dep in deps if dep.startswith(":")]
    elsewhere = [dep for dep in deps if not dep.startswith(":")]
    macro(name = name, deps = sorted(here + [library]) + elsewhere, **kwargs)

def softmoe_unit(name, srcs = None, hdrs = None, library = softmoe_cc_library, **kwargs):
    """The usual unit: a library, its test and its fuzzer, named as their files.

        x.cc, x.h, x_formula.h  ->  x                    softmoe_cc_library
        x_test.cc               ->  x_test               softmoe_cc_test
        x_fuzz.cc               ->  x_fuzz, x_fuzz_test  softmoe_fuzz_test

    BUILD does not say which of these files there are; glob finds them. So a new
    x_test.cc or x_fuzz.cc is built and run at once, and cannot lie there unused.
    Attributes of a test or a fuzzer whose file is missing are an error.

    Args:
      name: x.
      srcs: of the library, if not x.cc.
      hdrs: of the library, if not x.h and x_formula.h.
      library: the macro that makes the library.
      **kwargs: test_deps: deps of the test, fuzz_deps: of the fuzzer, both besides
        the library; likewise every other attribute of the two (test_size,
        fuzz_max_len, ...). All others are attributes of the library.
    """
    files = native.glob(
        [name + end for end in [".cc", ".h", "_formula.h", "_test.cc", "_fuzz.cc"]],
        allow_empty = True,
    )
    if srcs == None:
        srcs = [file for file in files if file == name + ".cc"]
    if hdrs == None:
        hdrs = [file for file in files if file.endswith(".h")]
    if not srcs and not hdrs:
        fail("there is neither %s.cc nor %s.h" % (name, name))
    library(name = name, srcs = srcs, hdrs = hdrs, **{
        key: value
        for key, value in kwargs.items()
        if not key.startswith("test_") and not key.startswith("fuzz_")
    })
    _beside_library(
        softmoe_cc_test,
        name = name + "_test",
        files = files,
        file = name + "_test.cc",
        library = ":" + name,
        **_with_prefix("test_", kwargs)
    )
    _beside_library(
        softmoe_fuzz_test,
        name = name,
        files = files,
        file = name + "_fuzz.cc",
        library = ":" + name,
        **_with_prefix("fuzz_", kwargs)
    )

def softmoe_isa_unit(name, **kwargs):
    """A softmoe_unit whose library is a softmoe_isa_library."""
    softmoe_unit(name = name, library = softmoe_isa_library, **kwargs)
