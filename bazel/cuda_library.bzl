"""cuda_library: .cu files compiled by nvcc, usable as a cc_library dependency;
cuda_resources_test: their kernels spill no register and need no stack frame;
cuda_access_test: their wide kernels access memory 16 bytes at a time.
"""

load(
    "@cuda//:defs.bzl",
    "NEEDS_CUDA",
    "NVCC",
    "NVCC_ARCHITECTURES",
    "NVCC_COMPRESSION",
    "NVCC_VERSION",
)
load("@system//:key.bzl", "BUILD_KEY")
load("//bazel:compilation.bzl", "LANGUAGE", "listed_inputs", "run_compiler")
load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

# Of each source a file with what ptxas reports of its kernels' registers and
# memory, and one with their PTX.
_CudaReports = provider(fields = ["resources", "ptx"])

def _cuda_library_impl(ctx):
    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(ctx = ctx, cc_toolchain = toolchain)
    context = cc_common.merge_cc_infos(cc_infos = [dep[CcInfo] for dep in ctx.attr.deps])

    # As for g++: contraction is decided in the source (DESIGN.md, ruling 9).
    flags = [LANGUAGE, "-O3", "--fmad=false"] + [
        "-I.",  # nvcc knows no -iquote
        "-DSOFTMOE_BUILD_KEY=" + BUILD_KEY,
    ] + ctx.attr.copts
    inputs = listed_inputs(
        ctx,
        depset(ctx.files.srcs + ctx.files.hdrs, transitive = [context.compilation_context.headers]),
    )

    # The version is in the environment so that it is in the key.
    environment = {"NVCC_VERSION": NVCC_VERSION, "PATH": "/usr/local/bin:/usr/bin:/bin"}

    objects = []
    resources = []
    ptx = []
    for source in ctx.files.srcs:
        resource = ctx.actions.declare_file("_cuda/%s/%s.resources" % (ctx.label.name, source.basename))
        output = ctx.actions.declare_file("_cuda/%s/%s.o" % (ctx.label.name, source.basename))
        arguments = ctx.actions.args()
        arguments.add_all(["-c", "-lineinfo", "-Xcompiler", "-fPIC,-Wall", "-Xptxas", "-v"])
        arguments.add_all(NVCC_ARCHITECTURES + NVCC_COMPRESSION + flags)
        arguments.add_all(["-o", output, source])
        run_compiler(
            ctx,
            compiler = NVCC,
            arguments = arguments,
            inputs = inputs,
            output = output,
            report = resource,
            mnemonic = "CudaCompile",
            progress_message = "Compiling %s with nvcc" % source.short_path,
            env = environment,
        )
        objects.append(output)
        resources.append(resource)

        # Made only for those who read it: tests, and impl=ptx of //:verify.
        output = ctx.actions.declare_file("_cuda/%s/%s.ptx" % (ctx.label.name, source.basename))
        arguments = ctx.actions.args()
        arguments.add_all(["-ptx", "-arch=compute_80"] + flags)
        arguments.add_all(["-o", output, source])
        run_compiler(
            ctx,
            compiler = NVCC,
            arguments = arguments,
            inputs = inputs,
            output = output,
            mnemonic = "CudaPtx",
            progress_message = "Compiling %s to PTX" % source.short_path,
            env = environment,
        )
        ptx.append(output)

    linking, _ = cc_common.create_linking_context_from_compilation_outputs(
        actions = ctx.actions,
        feature_configuration = features,
        cc_toolchain = toolchain,
        name = ctx.label.name,
        compilation_outputs = cc_common.create_compilation_outputs(
            objects = depset(objects),
            pic_objects = depset(objects),
        ),
        linking_contexts = [context.linking_context],
    )
    compilation = cc_common.create_compilation_context(headers = depset(
        ctx.files.hdrs,
        transitive = [context.compilation_context.headers],
    ))
    return [
        DefaultInfo(files = depset(objects)),
        CcInfo(compilation_context = compilation, linking_context = linking),
        OutputGroupInfo(ptx = depset(ptx)),
        _CudaReports(resources = resources, ptx = ptx),
    ]

_cuda_library = rule(
    implementation = _cuda_library_impl,
    attrs = {
        "srcs": attr.label_list(allow_files = [".cu"]),
        "hdrs": attr.label_list(allow_files = [".h"]),
        "deps": attr.label_list(providers = [CcInfo]),
        "copts": attr.string_list(),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)

def cuda_library(name, deps = [], **kwargs):
    """Compiles .cu files with nvcc; vanishes where there is no toolkit."""
    _cuda_library(
        name = name,
        deps = deps + ["@cuda//:cudart"],
        target_compatible_with = NEEDS_CUDA,
        **kwargs
    )

def _cuda_report_test_impl(ctx):
    reports = ctx.attr.library[_CudaReports]
    files = reports.resources
    if ctx.attr.ptx_of:
        files = [
            file
            for file in reports.ptx
            if file.basename[:-len(".ptx")] in ctx.attr.ptx_of
        ]
        if len(files) != len(ctx.attr.ptx_of):
            fail("not all of ptx_of are the library's sources")
    ctx.actions.write(
        ctx.outputs.executable,
        "#!/bin/sh\nexec %s %s %s\n" % (
            ctx.file.checker.short_path,
            " ".join(["'%s'" % word for word in ctx.attr.words]),
            " ".join([file.short_path for file in files]),
        ),
        is_executable = True,
    )
    return [DefaultInfo(runfiles = ctx.runfiles(files + [ctx.file.checker]))]

_cuda_report_test = rule(
    doc = "CHECKER WORDS FILES, where FILES are what nvcc reports of a cuda_library.",
    implementation = _cuda_report_test_impl,
    attrs = {
        "library": attr.label(providers = [_CudaReports]),
        "checker": attr.label(allow_single_file = True),
        "words": attr.string_list(),
        "ptx_of": attr.string_list(doc = "PTX of these sources, instead of all resources."),
    },
    test = True,
)

def cuda_resources_test(name, library, expect_violation = False):
    """Fails if a kernel of a cuda_library spills or has a stack frame, on any architecture.

    Args:
      name: of the test.
      library: a cuda_library.
      expect_violation: for the test of this test.
    """
    _cuda_report_test(
        name = name,
        size = "small",
        library = library,
        checker = "//bazel:check_cuda_resources.sh",
        words = [
            "violation" if expect_violation else "none",
            # sm_80 and so on, of the flags that nvcc gets.
            " ".join(["sm_" + flag.split("compute_")[1].split(",")[0] for flag in NVCC_ARCHITECTURES]),
        ],
        target_compatible_with = NEEDS_CUDA,
    )

def cuda_access_test(name, library, sources, only_loads = ""):
    """Fails if a wide kernel does not load and store 16 bytes at a time.

    Args:
      name: of the test.
      library: a cuda_library.
      sources: those of its sources that have wide kernels.
      only_loads: words in the names of kernels that store nothing wide.
    """
    _cuda_report_test(
        name = name,
        size = "small",
        library = library,
        checker = "//bazel:check_cuda_access.sh",
        words = [only_loads],
        ptx_of = sources,
        target_compatible_with = NEEDS_CUDA,
    )
