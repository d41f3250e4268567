"""gpu_bundle: programs and all that they need, in one archive for a machine with a GPU."""

load("@cuda//:defs.bzl", "CUDA_HOME", "NEEDS_CUDA", "NVCC_VERSION")
load("@system//:key.bzl", "BUILD_KEY")

def _gpu_bundle_impl(ctx):
    lines = []
    files = []
    executables = [program[DefaultInfo].files_to_run.executable for program in ctx.attr.programs]
    for program in ctx.attr.programs:
        executable = program[DefaultInfo].files_to_run.executable
        lines.append("program %s %s" % (executable.basename, executable.path))
        for file in program[DefaultInfo].default_runfiles.files.to_list():
            # There a device executes the kernels, and nothing is judged.
            if file.extension == "ptx" or file.short_path.startswith("golden/runs/"):
                continue
            files.append(file)
            # They find each other in bin/.
            if file not in executables:
                lines.append("runfile %s %s %s" % (executable.basename, file.short_path, file.path))
    for file in ctx.files.share:
        lines.append("share %s %s" % (file.basename, file.path))
    for file in ctx.files.texts:
        # Of whole packages; all their documents, and nothing else.
        if file.extension == "md":
            lines.append("text %s" % file.path)
    lines.append("script %s" % ctx.file.script.path)
    lines.append("tokenizer %s" % ctx.executable.tokenizer.path)
    lines.append("toolkit " + CUDA_HOME)
    manifest = ctx.actions.declare_file(ctx.label.name + ".manifest")
    ctx.actions.write(manifest, "".join([line + "\n" for line in lines]))
    ctx.actions.run(
        executable = ctx.executable._maker,
        arguments = [manifest.path, ctx.outputs.archive.path],
        inputs = depset(
            [manifest, ctx.file.script] + files + ctx.files.share + ctx.files.texts,
        ),
        tools = [ctx.executable.tokenizer],
        outputs = [ctx.outputs.archive],
        mnemonic = "GpuBundle",
        progress_message = "Packing %s" % ctx.outputs.archive.short_path,
        # The distribution's libraries go into it, and what the toolkit needs: the
        # key changes with them.
        env = {
            "BUILD_KEY": BUILD_KEY,
            "NVCC_VERSION": NVCC_VERSION,
            "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
        },
    )
    return [DefaultInfo(
        files = depset([ctx.outputs.archive]),
        runfiles = ctx.runfiles([ctx.outputs.archive]),
    )]

_gpu_bundle = rule(
    implementation = _gpu_bundle_impl,
    attrs = {
        "programs": attr.label_list(doc = "go to bin/, with their runfiles"),
        "share": attr.label_list(allow_files = True, doc = "go to share/"),
        "texts": attr.label_list(allow_files = True, doc = "whose .md files become share/text.txt"),
        "script": attr.label(allow_single_file = True, doc = "goes to the top"),
        "tokenizer": attr.label(executable = True, cfg = "target", doc = "//:prepare_data"),
        "_maker": attr.label(default = "//bazel:make_gpu_bundle.sh", allow_single_file = True, executable = True, cfg = "exec"),
    },
    outputs = {"archive": "%{name}.tar.gz"},
)

def gpu_bundle(name, **kwargs):
    """NAME.tar.gz, see make_gpu_bundle.sh; vanishes where there is no toolkit."""
    _gpu_bundle(
        name = name,
        testonly = True,
        target_compatible_with = NEEDS_CUDA,
        **kwargs
    )
