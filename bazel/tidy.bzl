"""clang-tidy, one cached action per source, and compile_commands.json.

    ./bazelw build -k //core/files:tidy
    ./bazelw build -k //:tidy               all of it: an hour of two cores, once
    ./bazelw run //:compile_commands        writes compile_commands.json
    bazel/tidy_changed.sh HEAD~20 480       what changed of late; .ci/run does that

A source is checked again only when it, a header that it may include, its flags
or .clang-tidy change.
"""

load("//bazel:compilation.bzl", "LANGUAGE", "PROCESSOR")
load("//bazel:layering.bzl", "PACKAGES")
load("//bazel:together.bzl", "sources_of")

_CLANG_TIDY = "/usr/bin/clang-tidy-14"

_KINDS = ["cc_binary", "cc_library", "cc_test"]

# Those of .bazelrc, without the ones that choose the compiler's warnings.
_FLAGS = [LANGUAGE, "-O2", PROCESSOR]

def _context(rule):
    infos = [
        dep[CcInfo]
        for dep in getattr(rule.attr, "deps", [])
        if CcInfo in dep
    ]
    return cc_common.merge_cc_infos(cc_infos = infos).compilation_context

def _arguments(rule, context, generated):
    flags = _FLAGS + ["-iquote", ".", "-iquote", generated] + rule.attr.copts
    flags += ["-D" + define for define in context.defines.to_list()]
    for attribute in ["defines", "local_defines"]:
        flags += ["-D" + define for define in getattr(rule.attr, attribute, [])]
    for folder in context.quote_includes.to_list():
        flags += ["-iquote", folder]
    for folder in context.system_includes.to_list() + context.includes.to_list():
        flags += ["-isystem", folder]
    return flags

def _files(rule, attribute, extensions):
    return [
        file
        for target in getattr(rule.attr, attribute, [])
        for file in target.files.to_list()
        if file.extension in extensions
    ]

def _tidy_impl(target, ctx):
    if ctx.rule.kind not in _KINDS or target.label.workspace_name:
        return []
    context = _context(ctx.rule)
    flags = _arguments(ctx.rule, context, ctx.genfiles_dir.path)
    headers = depset(
        _files(ctx.rule, "srcs", ["h", "inc"]) + _files(ctx.rule, "hdrs", ["h", "inc"]) +
        _files(ctx.rule, "textual_hdrs", ["h", "inc"]),
        transitive = [context.headers],
    )
    stamps = []
    groups = {}
    commands = []
    for source in sources_of(ctx.rule):
        if source.extension != "cc" or not source.is_source:
            continue
        name = "%s.tidy/%s" % (target.label.name, source.basename)
        stamp = ctx.actions.declare_file(name + ".stamp")
        ctx.actions.run_shell(
            outputs = [stamp],
            inputs = depset([source, ctx.file._checks], transitive = [headers]),
            command = '"$1" --quiet --config-file="$2" "$3" -- "${@:5}" >"$4" 2>&1 || { cat "$4" >&2; exit 1; }',
            arguments = [_CLANG_TIDY, ctx.file._checks.path, source.path, stamp.path] + flags,
            mnemonic = "ClangTidy",
            progress_message = "Checking %s with clang-tidy" % source.short_path,
        )
        stamps.append(stamp)
        groups["tidy/" + source.path] = depset([stamp])
        command = ctx.actions.declare_file(name + ".json")
        ctx.actions.write(command, json.encode({
            "directory": "@WORKSPACE@",
            "file": source.path,
            "arguments": ["clang++"] + flags + ["-c", source.path],
        }))
        commands.append(command)

    # Also of each source alone, for tidy_changed.sh: a room has many.
    return [OutputGroupInfo(
        tidy = depset(stamps),
        compile_commands = depset(commands),
        **groups
    )]

tidy = aspect(
    implementation = _tidy_impl,
    attrs = {
        "_checks": attr.label(default = "//:.clang-tidy", allow_single_file = True),
    },
)

def _collect_impl(ctx):
    files = depset(transitive = [
        getattr(target[OutputGroupInfo], ctx.attr.group)
        for target in ctx.attr.targets
        if OutputGroupInfo in target and hasattr(target[OutputGroupInfo], ctx.attr.group)
    ])
    return [DefaultInfo(files = files, runfiles = ctx.runfiles(transitive_files = files))]

_collect = rule(
    implementation = _collect_impl,
    attrs = {
        "targets": attr.label_list(aspects = [tidy]),
        "group": attr.string(values = ["compile_commands", "tidy"]),
    },
)

def package_tidy():
    """Makes :tidy and :compile_commands_parts of the targets defined so far.

    In the root package: of all packages, and :compile_commands.
    """
    if native.package_name() == "":
        native.filegroup(
            name = "tidy",
            testonly = True,
            srcs = ["//%s:tidy" % package for package in PACKAGES if package],
            tags = ["manual"],
        )
        native.sh_binary(
            name = "compile_commands",
            testonly = True,
            srcs = ["//bazel:write_compile_commands.sh"],
            data = ["//%s:compile_commands_parts" % package for package in PACKAGES if package],
            tags = ["manual"],
        )
        return
    targets = [
        ":" + name
        for name, attributes in native.existing_rules().items()
        if attributes["kind"] in _KINDS and not attributes.get("target_compatible_with")
    ]
    for name, group in [("tidy", "tidy"), ("compile_commands_parts", "compile_commands")]:
        _collect(
            name = name,
            testonly = True,
            tags = ["manual"],
            group = group,
            targets = targets,
            visibility = ["//:__pkg__"],
        )
