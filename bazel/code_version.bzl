"""The commit that a program is built from, as a C++ source."""

def _code_version_source_impl(ctx):
    source = ctx.actions.declare_file(ctx.label.name + ".cc")
    ctx.actions.run_shell(
        inputs = [ctx.info_file],
        outputs = [source],
        command = """
            commit=$(sed -n 's/^STABLE_SOFTMOE_COMMIT //p' "$1")
            echo "namespace softmoe {" > "$2"
            echo "const char* StampedCommit() { return \\"$commit\\"; }" >> "$2"
            echo "}  // namespace softmoe" >> "$2"
        """,
        arguments = [ctx.info_file.path, source.path],
    )
    return [DefaultInfo(files = depset([source]))]

code_version_source = rule(
    implementation = _code_version_source_impl,
    doc = "Defines softmoe::StampedCommit(); rebuilt when the commit changes.",
)
