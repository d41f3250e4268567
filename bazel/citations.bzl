"""What comments cite exists: the sections of //reference:SPEC.md."""

_KINDS = ["bzl", "cc", "cu", "h", "md", "py", "sh", "toml"]

def package_citations_test(folders = "**/"):
    """Tests that the sections which this package's files cite are headings.

    Args:
      folders: "" if only the package's own folder is meant.
    """
    native.sh_test(
        name = "citations_test",
        size = "small",
        srcs = ["//bazel:check_citations.sh"],
        args = [
            "$(location //reference:SPEC.md)",
            native.package_name() or ".",
        ],
        data = ["//reference:SPEC.md"] + native.glob(
            [folders + "*." + kind for kind in _KINDS],
            exclude = ["SPEC.md"],  # named already, and cites nothing
        ),
    )
