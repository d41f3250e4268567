"""What comments cite exists: places in //reference:SPEC.md and //:DESIGN.md."""

_KINDS = ["bzl", "cc", "cu", "h", "md", "py", "sh", "toml"]

_DOCUMENTS = ["//reference:SPEC.md", "//:DESIGN.md"]

def package_citations_test(folders = "**/"):
    """Tests that the sections and rulings which this package's files cite exist.

    Args:
      folders: "" if only the package's own folder is meant.
    """
    native.sh_test(
        name = "citations_test",
        size = "small",
        srcs = ["//bazel:check_citations.sh"],
        args = [native.package_name() or "."] +
               ["$(location %s)" % document for document in _DOCUMENTS],
        data = _DOCUMENTS + native.glob(
            [folders + "*." + kind for kind in _KINDS],
            exclude = ["SPEC.md", "DESIGN.md"],  # named already
        ),
    )
