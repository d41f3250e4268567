"""Repositories that Bazel 4.2.3 insists on and would otherwise download.

Debian's Bazel is a bootstrap build without network rules. Its C++ rules still
ask for @rules_cc, and every cc_test asks for @remote_coverage_tools.
"""

_RULES_CC = """
# Debian's own bazel-rules-cc 0.0.4 does not load in Debian's Bazel 4.2.3, so
# the names are the native rules.
cc_binary = native.cc_binary
cc_import = native.cc_import
cc_library = native.cc_library
cc_proto_library = native.cc_proto_library
cc_test = native.cc_test
cc_toolchain = native.cc_toolchain
cc_toolchain_suite = native.cc_toolchain_suite
objc_library = native.objc_library
"""

# Where Debian's packages put the repositories that Bazel's own toolchains load.
_DEBIAN_REPOSITORIES = {
    "bazel_skylib": "/usr/share/bazel/tools/skylib",
    "platforms": "/usr/share/bazel/platforms",
    "rules_java": "/usr/share/bazel/rules/java",
    "rules_proto": "/usr/share/bazel/rules/proto",
}

def _stub_impl(ctx):
    ctx.file("WORKSPACE", "workspace(name = \"%s\")\n" % ctx.name)
    for path, text in ctx.attr.files.items():
        ctx.file(path, text)

_stub = repository_rule(
    implementation = _stub_impl,
    attrs = {"files": attr.string_dict()},
    local = True,
)

def offline_stubs():
    """Declares the stub repositories; call once from WORKSPACE."""
    _stub(name = "rules_cc", files = {
        "BUILD": "",
        "cc/BUILD": "",
        "cc/defs.bzl": _RULES_CC,
    })
    _stub(name = "remote_coverage_tools", files = {"BUILD": """
package(default_visibility = ["//visibility:public"])
filegroup(name = "coverage_report_generator")
filegroup(name = "lcov_merger")
"""})
    for name, path in _DEBIAN_REPOSITORIES.items():
        native.local_repository(name = name, path = path)
