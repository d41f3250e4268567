"""What every BUILD file ends with: the checks of its package."""

load("//bazel:citations.bzl", "package_citations_test")
load("//bazel:format.bzl", "package_format_test", "package_sources")
load("//bazel:layering.bzl", "package_layering_test")
load("//bazel:tidy.bzl", "package_tidy")

def package_checks(folders = "**/", at_least_edges = 1):
    """Tests what holds of every package, of the targets defined so far.

    What it cites exists (citations.bzl), clang-format would change nothing
    (format.bzl), and it depends on lower layers and rooms only (layering.bzl).
    clang-tidy is there on demand (tidy.bzl).

    Args:
      folders: "" if only the package's own folder is meant.
      at_least_edges: how many edges between layers there are to check; fewer
        mean that the check looks at nothing.
    """
    package_citations_test(folders)
    if package_sources(folders):
        package_format_test(folders)
    kinds = [rule["kind"] for rule in native.existing_rules().values()]
    if [kind for kind in kinds if kind in ["cc_binary", "cc_library", "cc_test"]]:
        package_layering_test(at_least = at_least_edges)
    package_tidy()
