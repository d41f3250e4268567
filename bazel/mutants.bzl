"""Programs with planted faults, as data of the mutation driver.

mutant_build has every source of its targets copied into a tree of its own, with
the faults of the tables in the copies, and compiles and links that tree: a
compiler stands in it, finds no other header of this repository, and what is
built for use is not touched. mutant_programs are some of its programs, and only
they are built; mutant_sources are the sources that targets are made from.

An aspect reads what a target would be compiled from, with which flags. So no
other BUILD file knows of any of this.
"""

load("@system//:compilers.bzl", "CLANGXX", "GXX")
load("@system//:key.bzl", "BUILD_KEY")
load("@bazel_tools//tools/build_defs/cc:action_names.bzl", "CPP_COMPILE_ACTION_NAME")
load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")
load("//bazel:shim.bzl", "ShimProgram")

# PWD keeps the sandbox's path out of the debug information.
_ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "PWD": "/proc/self/cwd"}

# What a target is made of, with everything below it.
_Code = provider(fields = {
    "sources": "depset of every file of this repository",
    "headers": "depset of those that may be included",
    "units": "depset of _unit(), one for each object",
    "archives": "depset of what nvcc has made",
    "linkopts": "depset of flags",
    "files": "depset of what is read at run time",
    "programs": "depset of the programs that are run by it (_program())",
    "program": "this target as a _program(), or None",
})

def _unit(target, source, headers, flags, compiler = None):
    """A source to be compiled; `compiler`: with these flags and no others."""
    return struct(
        key = "%s/%s/%s.o" % (target.label.package, target.label.name, source.basename),
        source = source,
        headers = headers,
        flags = tuple(flags),
        compiler = compiler,
    )

def _program(target, units, archives, linkopts, compiler, script = ""):
    return struct(
        path = target.label.package + "/" + target.label.name,
        units = units,
        archives = archives,
        linkopts = linkopts,
        compiler = compiler,
        script = script,
    )

def _of(ctx, attributes):
    """The targets in these attributes."""
    result = []
    for attribute in attributes:
        values = getattr(ctx.rule.attr, attribute, None) or []
        result += [
            value
            for value in (values if type(values) == "list" else [values])
            if type(value) == "Target"
        ]
    return result

def _paths(files):
    """[path from the root, path of the file] of each file of this repository."""
    return [
        [file.short_path, file.path]
        for file in files
        if not file.short_path.startswith("../")
    ]

def _listing_group(target, ctx, own, units, code):
    """Output group "mutant_listing": NAME.mutants.json, which says what the
    target is made from, and what that names. property_tests/mutation/sampled
    asks for it over //..., and builds for itself."""
    if target.label.workspace_name != "" or not (own or code.program):
        return OutputGroupInfo(mutant_listing = depset())
    is_test = ctx.rule.kind == "cc_test" or ShimProgram in target

    # (The tests of planted faults read every program that there is.)
    is_run = is_test and not target.label.package.startswith("property_tests/mutation")
    program = None
    if code.program:
        program = {
            "path": code.program.path,
            "is_test": is_run,
            "is_sanitizer": ShimProgram in target,
            "units": [unit.key for unit in code.program.units.to_list()],
            "archives": [file.path for file in code.program.archives.to_list()],
            "linkopts": code.program.linkopts.to_list(),
            "compiler": code.program.compiler,
            "script": code.program.script,
            "arguments": getattr(ctx.rule.attr, "args", []),
            "files": _paths(code.files.to_list()),
            "programs": [started.path for started in code.programs.to_list()],
        }
    listing = ctx.actions.declare_file(target.label.name + ".mutants.json")
    ctx.actions.write(listing, json.encode({
        "sources": _paths(own),
        "units": [{
            "key": unit.key,
            "source": unit.source.short_path,
            "flags": unit.flags,
            "compiler": unit.compiler or "",
            "is_test": is_test,
        } for unit in units],
        "program": program,
    }))
    return OutputGroupInfo(mutant_listing = depset(
        [listing] + [file for file in own if not file.is_source],
        transitive = [code.files, code.archives] if is_run else [],
    ))

def _code_aspect_impl(target, ctx):
    deps = [dep for dep in _of(ctx, ["deps", "runtime", "_variant"]) if _Code in dep]
    own = depset(transitive = [
        value.files
        for value in _of(ctx, ["srcs", "hdrs", "textual_hdrs", "_sanitizer_options"])
    ]).to_list() if CcInfo in target or ShimProgram in target or ctx.rule.kind.startswith("cc_") else []
    if target.label.workspace_name != "":
        own = []
    headers = depset(own, transitive = [dep[_Code].headers for dep in deps])

    units = []
    archives = []
    if ctx.rule.kind in ["cc_library", "cc_binary", "cc_test"]:
        defines = depset(ctx.rule.attr.defines, transitive = [
            dep[CcInfo].compilation_context.defines
            for dep in deps
            if CcInfo in dep
        ]).to_list()
        flags = ctx.rule.attr.copts + ["-D" + define for define in defines + ctx.rule.attr.local_defines]
        for value in ctx.rule.attr.srcs:
            units += [
                _unit(target, source, headers, flags)
                for source in value.files.to_list()
                if source.extension == "cc"
            ]
    elif CcInfo in target and ctx.rule.kind != "cc_library":  # made by nvcc
        for linker_input in target[CcInfo].linking_context.linker_inputs.to_list():
            if linker_input.owner == target.label:
                archives += [
                    library.static_library or library.pic_static_library
                    for library in linker_input.libraries
                ]

    all_units = depset(units, transitive = [dep[_Code].units for dep in deps])

    # An archive before those that it uses, as the linker wants them.
    all_archives = depset(
        archives,
        order = "topological",
        transitive = [dep[_Code].archives for dep in deps],
    )
    linkopts = depset(getattr(ctx.rule.attr, "linkopts", []), transitive = [
        dep[_Code].linkopts
        for dep in deps
    ])
    program = None

    # A shared library is an example of what users bring. It has nothing of ours
    # in it, so it is a file like others.
    is_shared = getattr(ctx.rule.attr, "linkshared", False)
    if ctx.rule.kind in ["cc_binary", "cc_test"] and not is_shared:
        program = _program(target, all_units, all_archives, linkopts, GXX)
    elif ShimProgram in target:
        shim = target[ShimProgram]
        units = [_unit(target, source, headers, flags, shim.compiler) for source, flags in shim.sources]
        all_units = depset(units, transitive = [ctx.rule.attr.runtime[_Code].units])
        program = _program(target, all_units, depset(), depset(shim.linkopts), shim.compiler, shim.script)

    data = _of(ctx, ["data"])
    started = [value[_Code].program for value in data if _Code in value and value[_Code].program]
    files = [dep[_Code].files for dep in deps]
    for value in data:
        if _Code in value:
            files.append(value[_Code].files)
        if not (_Code in value and value[_Code].program):
            files += [value.files, value[DefaultInfo].default_runfiles.files]
    code = _Code(
        sources = depset(own, transitive = [value[_Code].sources for value in deps + data if _Code in value]),
        headers = headers,
        units = all_units,
        archives = all_archives,
        linkopts = linkopts,
        files = depset(transitive = files),
        programs = depset(started, transitive = [
            value[_Code].programs
            for value in deps + data
            if _Code in value
        ]),
        program = program,
    )
    return [code, _listing_group(target, ctx, own, units, code)]

code_aspect = aspect(
    implementation = _code_aspect_impl,
    attr_aspects = ["deps", "data", "runtime", "_variant"],
)

def _flags(ctx):
    """The flags of every compilation. They optimise less than those of programs
    for use: mutants are counted, not timed. Warnings are for sources that
    people write."""
    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(ctx = ctx, cc_toolchain = toolchain)
    of_toolchain = cc_common.get_memory_inefficient_command_line(
        feature_configuration = features,
        action_name = CPP_COMPILE_ACTION_NAME,
        variables = cc_common.create_compile_variables(
            feature_configuration = features,
            cc_toolchain = toolchain,
        ),
    )
    kept = [
        flag
        for flag in ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts
        if not flag.startswith("-O") and not flag.startswith("-g")
    ]
    return of_toolchain + kept + ["-O1", "-iquote", "."]

def _mutant_flags_impl(ctx):
    listing = ctx.actions.declare_file(ctx.label.name + ".json")
    ctx.actions.write(listing, json.encode({
        "compiler": GXX,
        "clang": CLANGXX,
        "flags": _flags(ctx),
        "linkopts": ctx.fragments.cpp.linkopts + ["-Wl,--build-id=0x" + BUILD_KEY],
    }))
    return [DefaultInfo(
        files = depset([listing]),
        runfiles = ctx.runfiles([listing]),
    )]

mutant_flags = rule(
    doc = "NAME.json: the compilers, and the flags of every compilation and link.",
    implementation = _mutant_flags_impl,
    attrs = {
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)

def _compile(ctx, tree, copies, unit, flags):
    output = ctx.actions.declare_file("%s_objects/%s" % (ctx.label.name, unit.key))
    switch = ctx.file.switch_header
    arguments = ctx.actions.args()
    arguments.add_all([tree, output.path, unit.compiler or GXX])
    arguments.add_all([] if unit.compiler else flags)
    arguments.add_all(unit.flags)
    arguments.add_all(["-g0", "-w", "-include", switch.short_path])
    arguments.add_all(["-c", unit.source.short_path])
    wanted = {file.short_path: None for file in [switch, unit.source] + unit.headers.to_list()}
    ctx.actions.run_shell(
        # Where the compiler stands, "." is the tree of the copies.
        command = 'output=$(pwd -P)/$2; cd "$1"; shift 2; exec env PWD=/proc/self/cwd "$@" -o "$output"',
        arguments = [arguments],
        inputs = [copies[path] for path in wanted],
        outputs = [output],
        mnemonic = "MutantCompile",
        progress_message = "Compiling %s with its faults" % unit.source.short_path,
        env = _ENVIRONMENT,
    )
    return output

def _link(ctx, program, objects):
    output = ctx.actions.declare_file("%s_programs/%s" % (ctx.label.name, program.path))
    archives = program.archives.to_list()
    arguments = ctx.actions.args()
    arguments.add_all(["-o", output])
    arguments.add_all(objects + archives)
    arguments.add_all(["-Wl,--start-group"] + program.linkopts.to_list() + ["-Wl,--end-group"])
    arguments.add_all([] if program.script else ctx.fragments.cpp.linkopts)
    arguments.add("-Wl,--build-id=0x" + BUILD_KEY)
    ctx.actions.run(
        executable = program.compiler,
        arguments = [arguments],
        inputs = objects + archives,
        outputs = [output],
        mnemonic = "MutantLink",
        env = _ENVIRONMENT,
    )
    if not program.script:
        return {program.path: output}
    script = ctx.actions.declare_file("%s_programs/%s.sh" % (ctx.label.name, program.path))
    ctx.actions.write(script, program.script, is_executable = True)
    return {program.path: script, program.path + ".bin": output}

_Build = provider(fields = {
    "runfiles": "of each program, by its path",
    "copies": "of each source, by its path",
})

def _listing(ctx, name, lines):
    listing = ctx.actions.declare_file(name)
    ctx.actions.write(listing, "\n".join(lines) + "\n")
    return listing

def _mutant_build_impl(ctx):
    codes = [target[_Code] for target in ctx.attr.targets + [ctx.attr.switch]]
    sources = depset(transitive = [code.sources for code in codes]).to_list()
    folder = ctx.label.name + "_tree"
    tree = "/".join([ctx.bin_dir.path, ctx.label.package, folder])
    copies = {
        source.short_path: ctx.actions.declare_file(folder + "/" + source.short_path)
        for source in sources
    }
    listing = _listing(ctx, ctx.label.name + "_sources.txt", [
        source.short_path + "\t" + source.path
        for source in sources
    ])
    arguments = ctx.actions.args()
    arguments.add_all(["--sources", listing, "--tree", tree])
    arguments.add_all(ctx.files.faults)
    ctx.actions.run(
        executable = ctx.executable.rewriter,
        arguments = [arguments],
        inputs = sources + ctx.files.faults + [listing],
        outputs = copies.values(),
        mnemonic = "PlantFaults",
        progress_message = "Planting faults in copies of %d sources" % len(sources),
    )

    flags = _flags(ctx)
    units = depset(transitive = [code.units for code in codes]).to_list()
    objects = {unit.key: _compile(ctx, tree, copies, unit, flags) for unit in units}
    links = {}  # of a program: path among the runfiles -> file
    runfiles = {}
    for target in ctx.attr.targets:
        code = target[_Code]
        needed = {}
        for program in depset([code.program], transitive = [code.programs]).to_list():
            if program.path not in links:
                links[program.path] = _link(ctx, program, [
                    objects[unit.key]
                    for unit in depset(transitive = [program.units, ctx.attr.switch[_Code].units]).to_list()
                ])
            needed.update(links[program.path])
        runfiles[code.program.path] = ctx.runfiles(
            transitive_files = code.files,
            symlinks = needed,
        )
    return [
        OutputGroupInfo(tree = depset(copies.values())),
        _Build(runfiles = runfiles, copies = copies),
    ]

mutant_build = rule(
    doc = "Builds nothing by itself: mutant_programs and mutant_tree choose.",
    implementation = _mutant_build_impl,
    attrs = {
        "targets": attr.label_list(aspects = [code_aspect], mandatory = True, doc = "Tests and binaries."),
        "faults": attr.label_list(allow_files = [".toml"], mandatory = True),
        "rewriter": attr.label(cfg = "target", executable = True, mandatory = True),
        "switch": attr.label(aspects = [code_aspect], mandatory = True, doc = "Linked into every program."),
        "switch_header": attr.label(allow_single_file = True, mandatory = True, doc = "Included before every source."),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)

def _mutant_programs_impl(ctx):
    runfiles = ctx.runfiles()
    for program in ctx.attr.programs:
        runfiles = runfiles.merge(ctx.attr.build[_Build].runfiles[program])
    return [DefaultInfo(runfiles = runfiles)]

mutant_programs = rule(
    doc = "Programs of a mutant_build, in the runfiles under their own paths.",
    implementation = _mutant_programs_impl,
    attrs = {
        "build": attr.label(providers = [_Build], mandatory = True),
        "programs": attr.string_list(mandatory = True, doc = "Paths: PACKAGE/NAME."),
    },
)

def _mutant_tree_impl(ctx):
    copies = ctx.attr.build[_Build].copies
    return [DefaultInfo(runfiles = ctx.runfiles(symlinks = {
        ctx.attr.folder + "/" + path: copy
        for path, copy in copies.items()
    }))]

mutant_tree = rule(
    doc = "The copies of a mutant_build, as runfiles in `folder`.",
    implementation = _mutant_tree_impl,
    attrs = {
        "build": attr.label(providers = [_Build], mandatory = True),
        "folder": attr.string(mandatory = True),
    },
)

def _mutant_sources_impl(ctx):
    files = depset(transitive = [target[_Code].sources for target in ctx.attr.targets])
    listing = _listing(ctx, ctx.label.name + ".txt", [file.short_path for file in files.to_list()])
    return [DefaultInfo(
        files = depset([listing]),
        runfiles = ctx.runfiles(files = [listing], transitive_files = files),
    )]

mutant_sources = rule(
    doc = "NAME.txt lists the sources of the targets; they are its runfiles.",
    implementation = _mutant_sources_impl,
    attrs = {"targets": attr.label_list(aspects = [code_aspect])},
)

def _program_files_impl(ctx):
    runfiles = ctx.runfiles()
    for program in ctx.attr.programs:
        runfiles = runfiles.merge(program[DefaultInfo].default_runfiles)
    return [DefaultInfo(runfiles = runfiles)]

program_files = rule(
    doc = "Programs whose bytes a test reads: not a dependency in the sense of layering.bzl.",
    implementation = _program_files_impl,
    attrs = {"programs": attr.label_list(mandatory = True)},
)
