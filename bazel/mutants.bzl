"""What programs are made from, as data of the mutation driver.

An aspect reads what a target would be compiled from, with which flags, and
writes that down: the driver (//property_tests/mutation) copies the sources,
writes faults into the copies, and compiles and links these by itself. What is
built for use is not touched, and no other BUILD file knows of any of this.
"""

load("@system//:compilers.bzl", "CLANGXX", "GXX")
load("@system//:key.bzl", "BUILD_KEY")
load("@bazel_tools//tools/build_defs/cc:action_names.bzl", "CPP_COMPILE_ACTION_NAME")
load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")
load("//bazel:shim.bzl", "ShimProgram")
load("//bazel:together.bzl", "sources_of")

# What a target is made of, with everything below it.
_Code = provider(fields = {
    "units": "depset of _unit(), one for each object",
    "archives": "depset of what nvcc has made",
    "linkopts": "depset of flags",
    "files": "depset of what is read at run time",
    "programs": "depset of the programs that are run by it (_program())",
    "program": "this target as a _program(), or None",
    "listings": "depset of NAME.mutants.json, and of what these name",
})

def _unit(target, source, flags, always_linked = True, compiler = ""):
    """A source to be compiled; `compiler`: with these flags and no others. Of a
    library, the linker takes an object only if it is asked for, unless it is
    `always_linked`."""
    return struct(
        key = "%s/%s/%s.o" % (target.label.package, target.label.name, source.basename),
        source = source.short_path,
        flags = tuple(flags),
        always_linked = always_linked,
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

def _listing(target, ctx, own, units, code_files, code_programs, program):
    """NAME.mutants.json, which says what the target is made from, and the files
    that it names and that must be built (project.h reads it)."""
    if target.label.workspace_name != "" or not (own or program):
        return []
    is_test = ctx.rule.kind == "cc_test" or ShimProgram in target
    listing = ctx.actions.declare_file(target.label.name + ".mutants.json")
    ctx.actions.write(listing, json.encode({
        "sources": _paths(own),
        "units": [{
            "key": unit.key,
            "source": unit.source,
            "flags": unit.flags,
            "always_linked": unit.always_linked,
            "compiler": unit.compiler,
            "is_test": is_test,
        } for unit in units],
        "program": {
            "path": program.path,
            # (Not the tests of planted faults, which build programs themselves.)
            "is_test": is_test and not target.label.package.startswith("property_tests/mutation"),
            "units": [unit.key for unit in program.units.to_list()],
            "archives": [file.path for file in program.archives.to_list()],
            "linkopts": program.linkopts.to_list(),
            "compiler": program.compiler,
            "script": program.script,
            "arguments": getattr(ctx.rule.attr, "args", []),
            "files": _paths(code_files.to_list()),
            "programs": [started.path for started in code_programs.to_list()],
        } if program else None,
    }))
    return [listing] + [file for file in own if not file.is_source]

def _code_aspect_impl(target, ctx):
    deps = [dep for dep in _of(ctx, ["deps", "runtime", "_variant"]) if _Code in dep]
    own = depset(sources_of(ctx.rule), transitive = [
        value.files
        for value in _of(ctx, ["hdrs", "textual_hdrs", "_sanitizer_options"])
    ]).to_list() if CcInfo in target or ShimProgram in target or ctx.rule.kind.startswith("cc_") else []
    if target.label.workspace_name != "":
        own = []

    units = []
    archives = []
    if ctx.rule.kind in ["cc_library", "cc_binary", "cc_test"]:
        defines = depset(ctx.rule.attr.defines, transitive = [
            dep[CcInfo].compilation_context.defines
            for dep in deps
            if CcInfo in dep
        ]).to_list()
        flags = ctx.rule.attr.copts + ["-D" + define for define in defines + ctx.rule.attr.local_defines]
        always_linked = ctx.rule.kind != "cc_library" or ctx.rule.attr.alwayslink
        units = [
            _unit(target, source, flags, always_linked)
            for source in sources_of(ctx.rule)
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
        units = [_unit(target, source, flags, compiler = shim.compiler) for source, flags in shim.sources]
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
    files = depset(transitive = files)
    programs = depset(started, transitive = [
        value[_Code].programs
        for value in deps + data
        if _Code in value
    ])
    is_mutation = target.label.package.startswith("property_tests/mutation")
    listings = depset(
        _listing(target, ctx, own, units, files, programs, program),
        transitive = [value[_Code].listings for value in deps + data if _Code in value] +
                     ([files, all_archives] if program and not is_mutation else []),
    )
    return [
        _Code(
            units = all_units,
            archives = all_archives,
            linkopts = linkopts,
            files = files,
            programs = programs,
            program = program,
            listings = listings,
        ),
        OutputGroupInfo(mutant_listing = listings),
    ]

code_aspect = aspect(
    implementation = _code_aspect_impl,
    attr_aspects = ["deps", "data", "runtime", "_variant"],
)

def _flags(ctx):
    """The flags of every compilation. They optimise less than those of programs
    for use: mutants are counted, not timed. Warnings are for sources that
    people write. clang takes these flags, too, and has no use for --param."""
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
        if not flag.startswith("-O") and not flag.startswith("-g") and
           not flag.startswith("--param")
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
