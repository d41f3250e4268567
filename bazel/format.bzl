"""Sources look as clang-format 14 writes them."""

_KINDS = ["cc", "cu", "h", "inc"]

def package_sources(folders = "**/"):
    """The sources of this package that clang-format knows."""
    return native.glob([folders + "*." + kind for kind in _KINDS])

def package_format_test(folders = "**/"):
    """Tests that clang-format would change nothing in this package's sources.

    Args:
      folders: "" if only the package's own folder is meant.
    """
    native.sh_test(
        name = "format_test",
        size = "small",
        srcs = ["//bazel:check_format.sh"],
        args = ["$(location //:.clang-format)", native.package_name() or "."],
        data = ["//:.clang-format"] + package_sources(folders),
    )
