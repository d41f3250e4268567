"""CUDA sources compiled by g++ and clang, and run without a GPU.

Each CUDA thread is a fiber of the simulator in //kernels/simt/shim, on the
simulated device of //kernels/simt/device (README.md there). shim_library is for
tests that use such code like any other; shim_test makes a program of its own,
without GoogleTest, in variants:

    _asan    g++, AddressSanitizer and UndefinedBehaviorSanitizer
    _tsan    clang, ThreadSanitizer: the detector of races
    _msan    clang, MemorySanitizer: values that were never written
    _plain   g++ alone, of planted bugs only: else _asan asserts the same

The sanitizers' flags are for these few files alone, so all variants but _msan
belong to every `bazel test //...`, and _msan to `--config=full` (DESIGN.md,
ruling 15). The tests of planted bugs and simulated_update_shim_test have the
tag "full", so all their variants belong there. (clang's TSan creates fibers ten
times as fast as that of g++ 12.)
"""

load("@system//:compilers.bzl", "CLANGXX", "GXX")
load("@system//:key.bzl", "BUILD_KEY")
load(
    "//bazel:compilation.bzl",
    "ENVIRONMENT",
    "SANITIZER_COPTS",
    "listed_inputs",
    "run_compiler",
)
load("//bazel:softmoe.bzl", "LINK_KEY", "softmoe_cc_library")

_INCLUDE = "kernels/simt/device/include"

# Compiles a .cu file for the simulator; nvcc, too, includes a header first.
_CUDA_FLAGS = ["-DSOFTMOE_CUDA_SHIM", "-I" + _INCLUDE, "-include", _INCLUDE + "/cuda_runtime.h"]

# The simulator is not part of the program under test: it is compiled without
# sanitizers even where everything else is compiled with them.
UNINSTRUMENTED = [
    "-O2",
    "-fno-sanitize=all",
    "-fno-omit-frame-pointer",
]

_FLAGS = SANITIZER_COPTS + [
    "-Wall",
    "-Wextra",
    "-Werror",
    "-I.",
    "-DSOFTMOE_BUILD_KEY=" + BUILD_KEY,
]

# variant -> (compiler, its flags, its name in variant.h)
_VARIANTS = {
    "plain": (GXX, [], "kPlain"),
    "asan": (GXX, ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"], "kAsanUbsan"),
    "tsan": (CLANGXX, ["-fsanitize=thread"], "kTsan"),
    "msan": (CLANGXX, ["-fsanitize=memory", "-fsanitize-memory-track-origins"], "kMsan"),
}

# How a variant is made, for //bazel:mutants.bzl, which uses other files.
ShimProgram = provider(fields = {
    "compiler": "of all its sources",
    "sources": "[(source, flags)]",
    "linkopts": "flags",
    "script": "text of what starts the program PATH.bin",
})

def _archives(target):
    result = []
    for linker_input in target[CcInfo].linking_context.linker_inputs.to_list():
        for library in linker_input.libraries:
            archive = library.static_library or library.pic_static_library
            if archive:
                result.append(archive)
    return result

def _shim_variant_test_impl(ctx):
    compiler, flags, variant = _VARIANTS[ctx.attr.variant]
    inputs = listed_inputs(ctx, depset(
        ctx.files.srcs + ctx.files.hdrs + [ctx.file._sanitizer_options],
        transitive = [
            dep[CcInfo].compilation_context.headers
            for dep in ctx.attr.deps + [ctx.attr.runtime, ctx.attr._variant]
        ],
    ))

    sources = []
    objects = []
    for source in ctx.files.srcs + [ctx.file._sanitizer_options]:
        source_flags = _FLAGS + ["-DSOFTMOE_SHIM_VARIANT=" + variant]
        if source != ctx.file._sanitizer_options:  # read before the runtime is ready
            source_flags = source_flags + flags
        if source.extension == "cu":
            source_flags = source_flags + _CUDA_FLAGS + ["-x", "c++"]
        sources.append((source, source_flags))
        output = ctx.actions.declare_file("_shim/%s/%s.o" % (ctx.label.name, source.basename))
        arguments = ctx.actions.args()
        arguments.add_all(source_flags)
        arguments.add_all(["-c", source, "-o", output])
        run_compiler(
            ctx,
            compiler = compiler,
            arguments = arguments,
            inputs = inputs,
            output = output,
            mnemonic = "ShimCompile",
            progress_message = "Compiling %s for the simulator, %s" % (source.short_path, ctx.attr.variant),
            env = ENVIRONMENT,
        )
        objects.append(output)

    # Of the dependencies only the simulator is linked: the rest are headers.
    objects += _archives(ctx.attr.runtime)
    program = ctx.actions.declare_file(ctx.label.name + ".bin")
    arguments = ctx.actions.args()
    arguments.add_all(flags + LINK_KEY + objects + ["-o", program])
    ctx.actions.run(
        executable = compiler,
        arguments = [arguments],
        inputs = objects,
        outputs = [program],
        mnemonic = "ShimLink",
        env = ENVIRONMENT,
    )

    # The sanitizers' shadow memory does not fit newer kernels' address
    # randomisation. A container may refuse to switch it off.
    script = "#!/bin/sh\nsetarch -R true 2>/dev/null && exec setarch -R %s \"$@\"\nexec %s \"$@\"\n" % (
        program.short_path,
        program.short_path,
    )
    ctx.actions.write(ctx.outputs.executable, script, is_executable = True)
    return [
        DefaultInfo(runfiles = ctx.runfiles([program])),
        ShimProgram(compiler = compiler, sources = sources, linkopts = flags + LINK_KEY, script = script),
    ]

_shim_variant_test = rule(
    implementation = _shim_variant_test_impl,
    attrs = {
        "srcs": attr.label_list(allow_files = [".cc", ".cu"]),
        "hdrs": attr.label_list(allow_files = [".h", ".cc"]),
        "deps": attr.label_list(providers = [CcInfo]),
        "variant": attr.string(values = _VARIANTS.keys()),
        "_sanitizer_options": attr.label(
            default = "//kernels/simt/shim:sanitizer_options.cc",
            allow_single_file = True,
        ),
        "_variant": attr.label(default = "//kernels/simt/shim", providers = [CcInfo]),
        "runtime": attr.label(default = "//kernels/simt/device", providers = [CcInfo]),
    },
    test = True,
)

def shim_test(name, size, srcs, variants = ["asan", "msan", "tsan"], tags = [], **kwargs):
    """A program with a main() of its own, mostly over CUDA sources, in variants.

    Args:
      name: the tests are called <name>_asan, _msan, _tsan.
      size: the size of each.
      srcs: .cu and .cc files; all are instrumented.
      variants: without "msan" where the program uses compiled parts of the C++
        library, which is not instrumented: what it writes counts as unwritten;
        with "plain" where tables say what is caught without a sanitizer.
      tags: of all; _msan has "full" besides.
      **kwargs: hdrs, and sources that others include; deps, of which only the
        headers are used; runtime, what is linked, if the simulated CUDA runtime
        is not enough.
    """
    for variant in variants:
        _shim_variant_test(
            name = name + "_" + variant,
            size = size,
            srcs = srcs,
            variant = variant,
            tags = tags + (["full"] if variant == "msan" else []),
            **kwargs
        )

def sources_with_defines(name, srcs, defines):
    """Makes a source of a shim_test that has others compiled its way.

    Args:
      name: of the source, without .cc.
      srcs: those that it includes, and that the test needs among its hdrs.
      defines: ["NAME VALUE", ...], for all of them.
    """
    lines = ["#define " + define for define in defines] + [
        # Sources switch off warnings of g++ that clang does not know.
        "#ifdef __clang__",
        '#pragma clang diagnostic ignored "-Wunknown-warning-option"',
        "#endif",
    ]
    native.genrule(
        name = name,
        srcs = srcs,
        outs = [name + ".cc"],
        cmd = "(%sfor source in $(SRCS); do echo \"#include \\\"$$source\\\"\"; done) > $@" %
              "".join(["echo '%s'; " % line for line in lines]),
    )

def shim_library(name, srcs, deps = [], **kwargs):
    """CUDA sources for the simulator as a library; its kernels are in isa_shim.

    Args:
      name: the library's name.
      srcs: .cu files of this package.
      deps: as for a cc_library.
      **kwargs: as for a cc_library.
    """
    wrappers = []
    for source in srcs:
        wrapper = "_shim_%s_%s.cc" % (name, source)
        native.genrule(
            name = wrapper + "_rule",
            outs = [wrapper],
            cmd = "echo '#include \"%s/%s\"' > $@" % (native.package_name(), source),
        )
        wrappers.append(wrapper)
    softmoe_cc_library(
        name = name,
        testonly = True,
        srcs = wrappers,
        alone = wrappers,
        textual_hdrs = srcs,
        copts = _CUDA_FLAGS,
        deps = deps + ["//kernels/simt/device"],
        **kwargs
    )
