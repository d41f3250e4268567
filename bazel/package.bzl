"""What every BUILD file ends with: its package's part of what is checked at once."""

load("//bazel:citations.bzl", "package_files")
load("//bazel:layering.bzl", "package_edges")
load("//bazel:tidy.bzl", "package_tidy")

def package_checks(folders = "**/"):
    """Offers the package's files and the targets defined so far to the checks.

    Those look at all packages together: //bazel:citations_test, format_test and
    layering_test, and clang-tidy on demand (tidy.bzl).

    Args:
      folders: "" if only the package's own folder is meant.
    """
    package_files(folders)
    package_edges()
    package_tidy()
