"""The packages, and the files that comments and texts can cite."""

# Every package, since Bazel offers no list of them.
PACKAGES = [
    "",
    "bazel",
    "core",
    "core/config",
    "core/files",
    "core/fuzzing",
    "core/hdf5",
    "core/process",
    "core/testing",
    "core/text",
    "experiments",
    "experiments/container",
    "experiments/grids",
    "experiments/plan",
    "experiments/report",
    "experiments/run",
    "experiments/testing",
    "golden",
    "golden/document",
    "golden/gpu_runs",
    "golden/oracles",
    "golden/paper",
    "golden/testing",
    "golden/verdict",
    "kernels",
    "kernels/cuda",
    "kernels/simd",
    "kernels/simt",
    "kernels/simt/device",
    "kernels/simt/ptx",
    "kernels/simt/shim",
    "kernels/testing",
    "optimized",
    "optimized/communicator",
    "optimized/communicator/testing",
    "optimized/testing",
    "property_tests",
    "property_tests/gpu",
    "property_tests/mutation",
    "property_tests/mutation/sampled",
    "property_tests/testing",
    "property_tests/verify",
    "property_tests/verify/engine",
    "property_tests/verify/examples",
    "property_tests/verify/foreign",
    "property_tests/verify/gradients",
    "property_tests/verify/implementations",
    "property_tests/verify/operations",
    "reference",
    "reference/testing",
    "trainer",
    "trainer/corpora",
    "trainer/evaluation",
    "trainer/identity",
    "trainer/results",
    "trainer/run",
    "trainer/tasks",
    "trainer/testing",
    "trainer/tokens",
]

# Files of other projects that are cited as theirs.
_FOREIGN_FILES = [
    # Megatron-LM
    "megatron/core/datasets/indexed_dataset.py",
    "tools/preprocess_data.py",
    # gmum/LapSum
    "soft_topk.py",
]

def repository_files(name):
    """Every file of the repository, for tests of what lies where."""
    native.filegroup(
        name = name,
        testonly = True,
        srcs = ["//%s:citable_files" % package for package in PACKAGES],
        visibility = ["//visibility:public"],
    )

def _file_names_impl(ctx):
    # Only names are written: what is in a file makes no test run again.
    names = [file.short_path for file in ctx.files.srcs] + _FOREIGN_FILES
    ctx.actions.write(ctx.outputs.list, "".join([name + "\n" for name in names]))
    return [DefaultInfo(
        files = depset([ctx.outputs.list]),
        runfiles = ctx.runfiles([ctx.outputs.list]),
    )]

file_names = rule(
    implementation = _file_names_impl,
    doc = "A list of paths, one a line: those of `srcs`, and the foreign files.",
    attrs = {"srcs": attr.label_list(allow_files = True)},
    outputs = {"list": "%{name}.txt"},
)

def package_files(folders = "**/"):
    """The package's files: what can be cited, and what cites.

    Args:
      folders: "" if only the package's own folder is meant.
    """
    package = native.package_name()
    if package not in PACKAGES:
        fail("\"%s\" is missing in PACKAGES of bazel/citations.bzl" % package)
    native.filegroup(
        name = "citable_files",
        testonly = False,  # also where that is the package's default
        srcs = native.glob(
            [folders + "*"] if folders else ["*", ".ci/*", ".github/**"],
            exclude = [".git"],  # a file, where "git worktree" made the folder
        ),
        visibility = ["//visibility:public"],
    )
