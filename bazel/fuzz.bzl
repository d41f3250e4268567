"""libFuzzer targets: code that reads bytes, under clang with sanitizers.

softmoe_fuzz_test(name = "x") makes two targets:

    x_fuzz        the fuzzer:  ./bazelw run //PACKAGE:x_fuzz -- -max_total_time=600
    x_fuzz_test   the same over its seeds and a number of mutations that a seed
                  decides, in seconds, in every `bazel test --config=full //...`

The code under test is instrumented too: an aspect compiles the sources of the
libraries below `deps` once more, with clang, AddressSanitizer,
UndefinedBehaviorSanitizer and coverage, once for all fuzzers together, but for
layers that read no input (_NOT_INSTRUMENTED). What a target defines is in
//core/fuzzing; how to use all this in FUZZING.md.
"""

load("@system//:compilers.bzl", "CLANGXX")
load("@system//:key.bzl", "BUILD_KEY")
load("//bazel:compilation.bzl", "ENVIRONMENT", "SANITIZER_COPTS")

_SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]

_FLAGS = SANITIZER_COPTS + [
    "-fsanitize=fuzzer-no-link",
    "-iquote",
    ".",
] + _SANITIZERS

# What the aspect makes of a library, its own and that of all below it.
_Instrumented = provider(fields = {
    "always": "objects that are linked",
    "objects": "objects that are linked where something asks for them",
    "archives": "of libraries that are not instrumented",
    "linkopts": "link options",
})

def _compile(ctx, source, output, headers, flags):
    arguments = ctx.actions.args()
    arguments.add_all(_FLAGS)
    arguments.add("-DSOFTMOE_BUILD_KEY=" + BUILD_KEY)
    arguments.add_all(flags)
    arguments.add_all(["-c", source, "-o", output])
    ctx.actions.run(
        executable = CLANGXX,
        arguments = [arguments],
        inputs = depset([source], transitive = [headers]),
        outputs = [output],
        mnemonic = "FuzzCompile",
        progress_message = "Compiling %s for fuzzing" % source.short_path,
        env = ENVIRONMENT,
    )

def _headers(targets):
    return [target[CcInfo].compilation_context.headers for target in targets]

def _defines(targets):
    return ["-D" + define for define in depset(transitive = [
        target[CcInfo].compilation_context.defines
        for target in targets
    ]).to_list()]

# Layers that read nobody's bytes; they are linked as they were built for use.
_NOT_INSTRUMENTED = [
    "kernels",
    "optimized",
    "property_tests/verify/implementations",
    "property_tests/verify/operations",
    "reference",
]

def _is_instrumented(label):
    for folder in _NOT_INSTRUMENTED:
        if (label.package + "/").startswith(folder + "/"):
            return False
    return True

def _instrumented_objects(target, ctx):
    objects = []
    headers = depset(transitive = _headers([target]))
    for source in ctx.rule.files.srcs:
        if source.extension != "cc":
            continue
        output = ctx.actions.declare_file("_fuzz/%s/%s.o" % (ctx.label.name, source.basename))

        # g++ has judged these sources; its flags may mean nothing here.
        flags = ctx.rule.attr.copts + _defines([target]) + ["-w"]
        _compile(ctx, source, output, headers, flags)
        objects.append(output)
    return objects

def _libraries_as_built(target):
    """[objects of libraries that are always linked], [archives of others]"""
    libraries = [
        library
        for linker_input in target[CcInfo].linking_context.linker_inputs.to_list()
        if linker_input.owner == target.label
        for library in linker_input.libraries
    ]
    return [
        object
        for library in libraries
        if library.alwayslink
        for object in library.objects or library.pic_objects
    ], [
        library.static_library or library.pic_static_library
        for library in libraries
        if not library.alwayslink
    ]

def _instrument_aspect_impl(target, ctx):
    deps = [dep for dep in getattr(ctx.rule.attr, "deps", []) if _Instrumented in dep]
    always = []
    objects = []
    archives = []
    if target.label.workspace_name == "" and CcInfo in target:  # else it vanished
        if not _is_instrumented(target.label):
            always, archives = _libraries_as_built(target)
        elif ctx.rule.kind == "cc_library":
            objects = _instrumented_objects(target, ctx)
            if ctx.rule.attr.alwayslink:
                always, objects = objects, []
    return [_Instrumented(
        always = depset(always, transitive = [dep[_Instrumented].always for dep in deps]),
        objects = depset(objects, transitive = [dep[_Instrumented].objects for dep in deps]),
        archives = depset(archives, transitive = [dep[_Instrumented].archives for dep in deps]),
        linkopts = depset(
            getattr(ctx.rule.attr, "linkopts", []),
            transitive = [dep[_Instrumented].linkopts for dep in deps],
        ),
    )]

_instrument_aspect = aspect(
    implementation = _instrument_aspect_impl,
    attr_aspects = ["deps"],
)

def _fuzz_impl(ctx):
    objects = []
    for source in ctx.files.srcs:
        output = ctx.actions.declare_file("_fuzz/%s/%s.o" % (ctx.label.name, source.basename))
        flags = _defines(ctx.attr.deps) + ["-Wall", "-Wextra", "-Werror"]
        _compile(ctx, source, output, depset(transitive = _headers(ctx.attr.deps)), flags)
        objects.append(output)
    always = depset(objects, transitive = [dep[_Instrumented].always for dep in ctx.attr.deps])
    of_libraries = depset(transitive = [dep[_Instrumented].objects for dep in ctx.attr.deps])
    archives = depset(transitive = [dep[_Instrumented].archives for dep in ctx.attr.deps])
    linkopts = depset(transitive = [dep[_Instrumented].linkopts for dep in ctx.attr.deps])

    program = ctx.actions.declare_file(ctx.label.name + ".bin")
    arguments = ctx.actions.args()
    arguments.add("-fsanitize=fuzzer")
    arguments.add_all(_SANITIZERS)
    arguments.add("-fuse-ld=gold")  # which can take objects as a library
    arguments.add_all(always)
    for _ in range(2):  # archives may ask for objects in their turn
        arguments.add("-Wl,--start-lib")
        arguments.add_all(of_libraries)
        arguments.add("-Wl,--end-lib,--start-group")
        arguments.add_all(archives)
        arguments.add("-Wl,--end-group")
    arguments.add_all(linkopts)
    arguments.add_all(["-Wl,--build-id=0x" + BUILD_KEY, "-o", program])
    ctx.actions.run(
        executable = CLANGXX,
        arguments = [arguments],
        inputs = depset(transitive = [always, of_libraries, archives]),
        outputs = [program],
        mnemonic = "FuzzLink",
        progress_message = "Linking %s" % ctx.label,
        env = ENVIRONMENT,
    )
    return [
        DefaultInfo(files = depset([program]), runfiles = ctx.runfiles([program])),
        OutputGroupInfo(program = depset([program])),
    ]

_fuzz_program = rule(
    implementation = _fuzz_impl,
    attrs = {
        "srcs": attr.label_list(allow_files = [".cc"]),
        "deps": attr.label_list(providers = [CcInfo], aspects = [_instrument_aspect]),
    },
)

def softmoe_fuzz_test(
        name,
        deps = [],
        max_len = 4096,
        test_runs = 2000,
        timeout_seconds = 10,
        malloc_limit_mb = 256,
        test_size = "small"):
    """A fuzzer NAME_fuzz and the test NAME_fuzz_test of the same program.

    Args:
      name: NAME, without the endings. NAME_fuzz.cc defines FuzzOne and Seeds of
        //core/fuzzing.
      deps: what they call, besides //core/fuzzing and what that depends on; all
        of it is instrumented.
      max_len: bytes of the longest input that is made.
      test_runs: executions in the test, seeds included.
      timeout_seconds: an input that takes longer is a finding.
      malloc_limit_mb: a larger single allocation is a finding.
      test_size: the size of the test.
    """
    _fuzz_program(
        name = name + "_fuzz_program",
        testonly = True,
        srcs = [name + "_fuzz.cc"],
        tags = ["full"],
        deps = deps + ["//core/fuzzing"],
    )
    arguments = [
        "$(rootpath :%s_fuzz_program)" % name,
        native.package_name() + "/" + name,
        "-max_len=%d" % max_len,
        "-timeout=%d" % timeout_seconds,
        "-malloc_limit_mb=%d" % malloc_limit_mb,
        "-rss_limit_mb=2560",
        "-print_final_stats=1",
    ]
    data = [":%s_fuzz_program" % name]
    native.sh_binary(
        name = name + "_fuzz",
        testonly = True,
        tags = ["manual"],  # built where it is named, without --config=full, too
        srcs = ["//bazel:run_fuzzer.sh"],
        args = ["explore"] + arguments,
        data = data,
    )
    native.sh_test(
        name = name + "_fuzz_test",
        size = test_size,
        tags = ["full"],
        srcs = ["//bazel:run_fuzzer.sh"],
        args = ["replay"] + arguments + ["-runs=%d" % test_runs, "-seed=20260120"],
        data = data,
    )
