"""@system: the distribution's libraries as targets, and the build key.

Headers are found under /usr/include without flags, so a target only says what
to link, and a library of headers alone has none. BUILD_KEY is a digest of
everything outside the source tree that can change an object file (compilers,
library versions, resolved ISA, headers of /usr/local/include that hide those of
/usr/include): the macros of //bazel:softmoe.bzl put it on every command line, so a
disk cache that several machines or clones share never serves an object made with
something else.
"""

# name -> (link options, header that must exist)
_LIBRARIES = {
    "archive": (["-larchive"], "archive.h"),
    "benchmark": (["-lbenchmark", "-lpthread"], "benchmark/benchmark.h"),
    "boost_math": ([], "boost/math/distributions/students_t.hpp"),
    "cli11": ([], "CLI/CLI.hpp"),
    "crypto": (["-lcrypto"], "openssl/evp.h"),
    "eigen": ([], "eigen3/Eigen/Dense"),
    "fmt": (["-lfmt"], "fmt/format.h"),
    "gtest": (["-lgtest", "-lpthread"], "gtest/gtest.h"),
    "hdf5": (["-lhdf5_serial"], "hdf5/serial/hdf5.h"),
    "nlohmann_json": ([], "nlohmann/json.hpp"),
    "random123": ([], "Random123/philox.h"),
    "rapidcheck": (["-lrapidcheck"], "rapidcheck.h"),
    "sentencepiece": (["-lsentencepiece", "-lsentencepiece_train"], "sentencepiece_trainer.h"),
    "tomlplusplus": ([], "toml++/toml.h"),
    "zlib": (["-lz"], "zlib.h"),
}

_TARGET = """
cc_library(
    name = "{name}",
    linkopts = {linkopts},
    visibility = ["//visibility:public"],
)
"""

def _output(ctx, arguments):
    result = ctx.execute(arguments)
    return result.stdout if result.return_code == 0 else "absent"

def _system_configure_impl(ctx):
    missing = [
        header
        for _, header in _LIBRARIES.values()
        if not ctx.path("/usr/include/" + header).exists
    ]
    if missing:
        fail("\n\nThese headers are not installed: %s\n".replace("%s", ", ".join(missing)) +
             "Build through ./bazelw: it installs what is missing, or says what to install.\n")

    for _, header in _LIBRARIES.values():
        if ctx.path("/usr/local/include/" + header).exists:
            print("compilers take /usr/local/include/%s, not the one that Debian installed" % header)

    # bazelw passes its own digest of the same facts (SOFTMOE_TOOLCHAIN), which
    # makes Bazel run this rule again when they change; what is read here also
    # covers somebody who calls bazel directly.
    facts = [
        ctx.os.environ.get("SOFTMOE_TOOLCHAIN", ""),
        _output(ctx, ["bash", ctx.path(Label("//bazel:toolchain_facts.sh"))]),
        _output(ctx, ["c++", "-march=native", "-Q", "--help=target"]),
    ]
    digest = ctx.execute(
        ["sh", "-c", "printf %s \"$FACTS\" | sha256sum | cut -c1-32"],
        environment = {"FACTS": "\n".join(facts)},
    ).stdout.strip()
    if len(digest) != 32:
        fail("could not compute the build key: sha256sum is missing (package coreutils)")

    # For the rules that call a compiler by themselves (//bazel:shim.bzl).
    compilers = {"GXX": ctx.which("g++"), "CLANGXX": ctx.which("clang++")}
    for compiler in compilers:
        if not compilers[compiler]:
            fail("\n\n%s is not installed\nBuild through ./bazelw: it installs what is missing, or says what to install.\n" %
                 {"GXX": "g++", "CLANGXX": "clang++"}[compiler])
    ctx.file("compilers.bzl", "".join([
        "%s = \"%s\"\n" % (name, path)
        for name, path in compilers.items()
    ]))

    ctx.file("key.bzl", "BUILD_KEY = \"%s\"\n" % digest)
    ctx.file("BUILD", "".join([
        _TARGET.format(name = name, linkopts = repr(linkopts))
        for name, (linkopts, _) in _LIBRARIES.items()
        if linkopts
    ]))

system_configure = repository_rule(
    implementation = _system_configure_impl,
    environ = ["SOFTMOE_TOOLCHAIN", "PATH"],
    local = True,
    configure = True,
    doc = "Writes @system from what the distribution has installed.",
)
