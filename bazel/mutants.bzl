"""Programs with their mutants (core/mutant.h), as data of the mutation driver.

mutant_programs builds tests and programs once more, in a configuration of its
own that defines SOFTMOE_MUTANTS: what is built for use is not touched, and needs
no flag on the command line. mutant_sources are the files that they are made
from, so that a test can look for mutants that the table forgot.
"""

# What switches the macros of core/mutant.h.
MUTANTS_FLAG = "-DSOFTMOE_MUTANTS"

def _with_mutants_impl(settings, _attr):
    # Optimised less than programs for use: mutants are counted, not timed.
    kept = [
        flag
        for flag in settings["//command_line_option:copt"]
        if not flag.startswith("-O") and not flag.startswith("-g")
    ]
    return {"//command_line_option:copt": kept + ["-O1", "-g0", MUTANTS_FLAG]}

_with_mutants = transition(
    implementation = _with_mutants_impl,
    inputs = ["//command_line_option:copt"],
    outputs = ["//command_line_option:copt"],
)

def _merged_runfiles_impl(ctx):
    runfiles = ctx.runfiles()
    for program in ctx.attr.programs:
        runfiles = runfiles.merge(program[DefaultInfo].default_runfiles)
    return [DefaultInfo(runfiles = runfiles)]

mutant_programs = rule(
    implementation = _merged_runfiles_impl,
    attrs = {
        "programs": attr.label_list(
            cfg = _with_mutants,
            mandatory = True,
            doc = "Tests and binaries; in the runfiles under their own paths.",
        ),
        "_allowlist_function_transition": attr.label(
            default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
        ),
    },
)

program_files = rule(
    doc = "Programs whose bytes are looked at: no dependency in the sense of layering.bzl.",
    implementation = _merged_runfiles_impl,
    attrs = {"programs": attr.label_list(mandatory = True)},
)

_Sources = provider(fields = ["files"])

def _sources_aspect_impl(target, ctx):
    direct = []
    transitive = []
    for attribute in ["srcs", "hdrs", "textual_hdrs", "deps", "data", "actual"]:
        values = getattr(ctx.rule.attr, attribute, None)
        if not values:
            continue
        for value in (values if type(values) == "list" else [values]):
            if type(value) != "Target":
                continue
            if _Sources in value:
                transitive.append(value[_Sources].files)
            if attribute in ["srcs", "hdrs", "textual_hdrs"]:
                direct += [file for file in value.files.to_list() if file.is_source]
    if target.label.workspace_name != "":
        direct = []
    return [_Sources(files = depset(direct, transitive = transitive))]

_sources_aspect = aspect(
    implementation = _sources_aspect_impl,
    attr_aspects = ["srcs", "deps", "data", "actual"],
)

def _mutant_sources_impl(ctx):
    files = depset(transitive = [target[_Sources].files for target in ctx.attr.targets])
    listing = ctx.actions.declare_file(ctx.label.name + ".txt")
    ctx.actions.write(listing, "\n".join([file.short_path for file in files.to_list()]) + "\n")
    return [DefaultInfo(
        files = depset([listing]),
        runfiles = ctx.runfiles(files = [listing], transitive_files = files),
    )]

mutant_sources = rule(
    doc = "NAME.txt lists the sources of the targets; they are its runfiles.",
    implementation = _mutant_sources_impl,
    attrs = {"targets": attr.label_list(aspects = [_sources_aspect])},
)
