"""Sources that are compiled together, a few in one translation unit.

Most of what a compiler reads for a test are headers of GoogleTest and of the
standard library, the same for each of a room's tests. So a unit includes several
of them, which halves the time that a cold build spends on tests, and on what is
compiled once more for fuzzers. Tools that look at sources (clang-tidy, faults)
take each by itself: sources_of().
"""

# More at a time would save little more, and let who changes one wait for all.
AT_A_TIME = 6

Together = provider(fields = {"sources": "the files that people wrote"})

def units_of(ctx, name, sources, at_a_time):
    """NAME_1.cc and so on, each of which includes some of `sources`."""
    units = (len(sources) + at_a_time - 1) // at_a_time
    outputs = []
    for unit in range(units):
        output = ctx.actions.declare_file("%s_%d.cc" % (name, unit + 1))
        ctx.actions.write(output, "".join([
            '#include "%s"\n' % source.short_path
            for source in sources[unit * len(sources) // units:(unit + 1) * len(sources) // units]
        ]))
        outputs.append(output)
    return outputs

def _together_impl(ctx):
    sources = ctx.files.srcs
    return [
        Together(sources = sources),
        DefaultInfo(files = depset(units_of(ctx, ctx.label.name, sources, AT_A_TIME))),
        CcInfo(compilation_context = cc_common.create_compilation_context(
            headers = depset(sources),
        )),
    ]

together = rule(
    doc = "NAME_1.cc and so on, which include `srcs`: for `srcs` and `deps` of a C++ rule.",
    implementation = _together_impl,
    attrs = {"srcs": attr.label_list(allow_files = [".cc"], mandatory = True)},
    provides = [CcInfo],
)

def sources_of(rule):
    """The files in `srcs` of a rule that an aspect visits, as people wrote them."""
    return [
        source
        for target in getattr(rule.attr, "srcs", [])
        for source in (target[Together].sources if Together in target else target.files.to_list())
    ]
