"""Sources that are compiled together, a few in one translation unit.

Most of what a compiler reads for a source are headers of the standard library, of
Eigen or of GoogleTest, the same ones for each of a room's. So a unit is several
sources, one after the other, which nearly halves the time of their compilers. Who
often changes one, and waits for the others of its unit, has each by itself with

    build --//bazel:at_a_time=1

in user.bazelrc. Tools that look at sources (clang-tidy, planted faults) always take
each by itself: sources_of().
"""

Together = provider(fields = {"sources": "the files that people wrote"})

_AtATime = provider(fields = ["value"])

def _at_a_time_impl(ctx):
    if ctx.build_setting_value < 1:
        fail("//bazel:at_a_time is %d: a unit has one source or more" % ctx.build_setting_value)
    return _AtATime(value = ctx.build_setting_value)

at_a_time = rule(
    doc = "How many sources a unit has at most.",
    implementation = _at_a_time_impl,
    build_setting = config.int(flag = True),
)

# g++ warns of a type that has internal parts unless the unit itself defines it,
# for which it takes no line that comes from elsewhere.
_UNIT = """
    echo '#pragma GCC diagnostic ignored "-Wsubobject-linkage"' >"$1"
    awk 'FNR == 1 { printf "#line 1 \\"%s\\"\\n", FILENAME } { print }' "${@:2}" >>"$1" """

def _unit(ctx, number, sources):
    unit = ctx.actions.declare_file("%s_%d.cc" % (ctx.label.name, number))
    ctx.actions.run_shell(
        command = _UNIT,
        arguments = [unit.path] + [source.path for source in sources],
        inputs = sources,
        outputs = [unit],
        mnemonic = "Together",
    )
    return unit

def _together_impl(ctx):
    sources = ctx.files.srcs
    at_a_time = ctx.attr._at_a_time[_AtATime].value
    units = (len(sources) + at_a_time - 1) // at_a_time
    return [
        DefaultInfo(files = depset([
            _unit(ctx, i + 1, sources[i * len(sources) // units:(i + 1) * len(sources) // units])
            for i in range(units)
        ])),
        Together(sources = sources),
    ]

together = rule(
    doc = "NAME_1.cc and so on, which are `srcs`: for `srcs` of a C++ rule.",
    implementation = _together_impl,
    attrs = {
        "srcs": attr.label_list(allow_files = [".cc"], mandatory = True),
        "_at_a_time": attr.label(default = "//bazel:at_a_time"),
    },
)

def sources_of(rule):
    """The files in `srcs` of a rule that an aspect visits, as people wrote them."""
    return [
        source
        for target in getattr(rule.attr, "srcs", [])
        for source in (target[Together].sources if Together in target else target.files.to_list())
    ]
