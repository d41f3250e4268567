"""The macros every BUILD file uses, so that flags and names are said once.

A folder is a room: softmoe_room makes its library and its test program. The
other macros are for what differs.
"""

load("@system//:key.bzl", "BUILD_KEY")
load("//bazel:fuzz.bzl", "softmoe_fuzz_test")
load("//bazel:layering.bzl", "users_of")
load("//bazel:package.bzl", "package_checks")
load("//bazel:together.bzl", "together")

_COPTS = [
    "-Wall",
    "-Wextra",
    "-Werror",
    # Contraction is decided in the source, with std::fma, never by the
    # compiler: results must not depend on its mood (DESIGN.md, ruling 9).
    "-ffp-contract=off",
    "-DSOFTMOE_BUILD_KEY=" + BUILD_KEY,
]

# Sources of programs, and of tests even more, cost more to compile than to run;
# what they call is compiled as for use. Of an inline function that several
# objects hold, however, the linker takes the first, so the test's: where that
# costs more than it saves, copts = ["-O1"].
_PROGRAM_COPTS = ["-O1"]
_TEST_COPTS = ["-O0"]

# Rooms that read files, check them and write text: compilers take a third less
# time for them, too, and no command takes longer.
_LIGHT_ROOMS = [
    "core/config",
    "core/process",
    "experiments/grids",
    "experiments/plan",
    "experiments/report",
    "experiments/run",
    "golden/gpu_runs",
    "property_tests/gpu",
    "property_tests/mutation",
    "property_tests/mutation/sampled",
    "trainer/results",
    "trainer/run",
    "trainer/tasks",
]
_LIGHT_COPTS = ["-O1"]

# Bazel does not hash what -l finds; the key on the command line does.
LINK_KEY = ["-Wl,--build-id=0x" + BUILD_KEY]

# Every program is linked statically, so one object per source is enough. Left
# to itself Bazel compiles each source of a library twice, the second time for
# a shared library that nobody loads: a third of the time of a cold build.
_ONE_OBJECT = {"features": ["-supports_pic"], "linkstatic": True}

def softmoe_cc_library(
        name,
        srcs = [],
        alone = [],
        copts = [],
        in_shared_library = False,
        **kwargs):
    """A library, whose sources are compiled together.

    Args:
      name: of the library.
      srcs: as of a cc_library.
      alone: those of `srcs` that are compiled each by itself: they name something
        as another does, or leave a function to the programs that use them.
      copts: besides those of every library.
      in_shared_library: whether it is also for a binary with linkshared = True.
      **kwargs: as of a cc_library.
    """
    units = [source for source in srcs if source.endswith(".cc") and source not in alone]
    if len(units) > 1:
        together(
            name = name + "_units",
            testonly = kwargs.get("testonly"),
            srcs = units,
        )
        srcs = [source for source in srcs if source not in units] + [":%s_units" % name]
    kwargs = kwargs if in_shared_library else dict(kwargs, **_ONE_OBJECT)
    light = native.package_name() in _LIGHT_ROOMS
    native.cc_library(
        name = name,
        srcs = srcs,
        copts = _COPTS + (_LIGHT_COPTS if light else []) + copts,
        **kwargs
    )

# Where a program of //:gpu_bundle finds the libraries that lie beside it. Of the
# old kind, which holds for the libraries that libraries need, too.
_BUNDLE_LINKOPTS = ["-Wl,--disable-new-dtags,-rpath,$$ORIGIN/../lib"]

def softmoe_cc_binary(name, copts = [], in_gpu_bundle = False, **kwargs):
    native.cc_binary(
        name = name,
        copts = _COPTS + _PROGRAM_COPTS + copts,
        linkopts = (_BUNDLE_LINKOPTS if in_gpu_bundle else []) + LINK_KEY,
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
    """A GoogleTest: a room's, or one that needs a program of its own.

    It may be planted with faults (//property_tests/mutation).

    Args:
      name: of the test.
      size: as of a cc_test.
      srcs: default: NAME.cc.
      copts: besides those of every test.
      linkopts: besides those of every program.
      deps: besides //core/testing:test_main, and what that depends on.
      main: False if the test has a main() of its own, which also names all deps.
      **kwargs: as of a cc_test.
    """
    native.cc_test(
        name = name,
        size = size,
        srcs = srcs or [name + ".cc"],
        copts = _COPTS + _TEST_COPTS + copts,
        linkopts = linkopts + LINK_KEY,
        deps = deps + (["//core/testing:test_main"] if main else []),
        linkstatic = True,
        visibility = ["//property_tests:__subpackages__"],
        **kwargs
    )

# The instruction sets that the CPU kernels are compiled for; the program
# chooses at start-up. Level "v3" is x86-64-v3 (AVX2+FMA), "v4" x86-64-v4 (AVX-512).
ISA_LEVELS = {
    "v3": ["-march=x86-64-v3"],
    "v4": ["-march=x86-64-v4", "-mprefer-vector-width=512"],
}

def softmoe_isa_library(name, srcs, hdrs = [], deps = [], **kwargs):
    """Compiles `srcs` once per ISA level into namespace SOFTMOE_ISA.

    Each source wraps its code in `namespace softmoe::kernels::SOFTMOE_ISA {`;
    see //kernels:isa.h for how the level is chosen at run time.
    """
    for level, flags in ISA_LEVELS.items():
        native.cc_library(
            name = name + "_" + level,
            srcs = srcs,
            hdrs = hdrs,
            deps = deps,
            copts = _COPTS + ["-O3"] + flags + ["-DSOFTMOE_ISA=isa_" + level],
            **dict(kwargs, **_ONE_OBJECT)
        )
    native.cc_library(
        name = name,
        hdrs = hdrs,
        deps = deps + [":" + name + "_" + level for level in ISA_LEVELS],
        **kwargs
    )

# Sources that are no part of a room's library.
_NOT_OF_LIBRARY = ["*_test.cc", "*_fuzz.cc", "*_main.cc", "*_benchmark.cc"]

def _taken():
    """The sources that targets above in the same BUILD file have for themselves.

    What is compiled once more for a simulator or a sanitizer stays the room's.
    """
    return [
        source[1:]
        for rule in native.existing_rules().values()
        for source in rule.get("srcs", [])
        if source.startswith(":") and source.endswith(".cc") and
           (rule["kind"] == "together" or rule["kind"].startswith("cc_") or
            source.endswith("_test.cc") or source.endswith("_fuzz.cc"))
    ]

def softmoe_room(
        name = None,
        library = True,
        srcs = [],
        hdrs = [],
        deps = [],
        visibility = None,
        **kwargs):
    """The room that a folder is, with all that no target above has for itself:

        *.cc, *.h   a library of the folder's name
        *_test.cc   one program of all tests, :test, compiled together;
                    --test_arg=--file=x_test runs those of one file
        x_fuzz.cc   a fuzzer x_fuzz, and x_fuzz_test

    glob finds the files, so a new one is built and run at once. (*_main.cc and
    *_benchmark.cc are for targets above.) It stands last in its BUILD file.

    Args:
      name: of the library, if not the folder's.
      library: False if there is none.
      srcs: sources besides those of the folder, even if a target above has them.
      hdrs: headers besides those of the folder.
      deps: of the library: rooms, and what it links of the system's libraries;
        not those of headers alone, nor fmt, which comes with //core.
      visibility: of the library, if not all that may use its layer (layering.bzl).
      **kwargs: test_deps, test_data, test_size and so on are attributes of the
        test (test_srcs: as srcs of the library), all others of the library.
    """
    name = name or native.package_name().split("/")[-1]
    taken = _taken()
    own = [":" + name] if library else []
    if library:
        softmoe_cc_library(
            name = name,
            srcs = srcs + native.glob(
                ["*.cc"],
                allow_empty = True,
                exclude = taken + srcs + _NOT_OF_LIBRARY,
            ),
            hdrs = hdrs + native.glob(["*.h"], allow_empty = True, exclude = hdrs),
            deps = deps,
            visibility = visibility or users_of(native.package_name()),
            **{key: value for key, value in kwargs.items() if not key.startswith("test_")}
        )
    test = {key[len("test_"):]: value for key, value in kwargs.items() if key.startswith("test_")}
    tests = test.pop("srcs", []) + native.glob(["*_test.cc"], allow_empty = True, exclude = taken)
    if tests:
        together(
            name = "tests",
            testonly = True,
            srcs = tests,
        )
        softmoe_cc_test(
            name = "test",
            srcs = [":tests"],
            deps = own + deps + test.pop("deps", []),
            **test
        )
    elif test:
        fail("there are attributes of a test, but there is no *_test.cc")
    for fuzzer in native.glob(["*_fuzz.cc"], allow_empty = True, exclude = taken):
        softmoe_fuzz_test(name = fuzzer[:-len("_fuzz.cc")], deps = own)
    package_checks()
