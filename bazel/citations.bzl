"""The files that comments and texts can cite."""

load("//bazel:layering.bzl", "PACKAGES")

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
        fail("\"%s\" is missing in ROOMS and UNORDERED of bazel/layering.bzl" % package)
    files = native.glob(
        [folders + "*"] if folders else ["*", ".ci/*", ".github/**"],
        exclude = [".git"],  # a file, where "git worktree" made the folder
    )
    native.filegroup(
        name = "citable_files",
        testonly = False,  # also where that is the package's default
        srcs = files,
        visibility = ["//visibility:public"],
    )

    # So that other packages may name one of them.
    native.exports_files(files)
