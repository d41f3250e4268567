"""What every BUILD file ends with: its package's part of what is checked at once."""

load("//bazel:citations.bzl", "package_files")
load("//bazel:layering.bzl", "package_edges")
load("//bazel:tidy.bzl", "package_tidy")

def _check_that_all_is_compiled(folders):
    """A test in no target would be green, since it never runs."""
    compiled = [
        source
        for rule in native.existing_rules().values()
        for attribute in ["srcs", "hdrs", "textual_hdrs"]
        for source in rule.get(attribute) or []
    ]
    named = ["*_test.cc", "*_main.cc", "*_benchmark.cc", "*_fuzz.cc"]
    for source in native.glob(named + (["*/**/*.cc"] if folders else [])):
        if ":" + source not in compiled:
            fail("no target here compiles %s: name it in one, or give its folder a BUILD" % source)

def package_checks(folders = "**/"):
    """Offers the package's files and the targets defined so far to the checks.

    Those look at all packages together: //bazel:citations_test, format_test and
    layering_test, and clang-tidy on demand (tidy.bzl).

    Args:
      folders: "" if only the package's own folder is meant.
    """
    _check_that_all_is_compiled(folders)
    package_files(folders)
    package_edges()
    package_tidy()
