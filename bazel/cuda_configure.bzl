"""@cuda: where the CUDA toolkit is, if there is one.

Without a toolkit CUDA_AVAILABLE is False, every cuda_library is incompatible
with the platform, and `//...` builds everything else.
"""

def _cuda_configure_impl(ctx):
    candidates = [ctx.os.environ.get("CUDA_HOME", ""), "/usr/local/cuda"]
    nvcc = None
    for home in candidates:
        if home and ctx.path(home + "/bin/nvcc").exists:
            nvcc = home + "/bin/nvcc"
            break
    version = ctx.execute([nvcc, "--version"]).stdout.strip().split("\n")[-1] if nvcc else ""
    ctx.file("defs.bzl", "CUDA_AVAILABLE = %s\nNVCC = %r\nCUDA_HOME = %r\nNVCC_VERSION = %r\n" % (
        bool(nvcc),
        nvcc or "",
        nvcc[:-len("/bin/nvcc")] if nvcc else "",
        version,
    ))
    ctx.file("BUILD", """
cc_library(
    name = "cudart",
    linkopts = {linkopts},
    target_compatible_with = {compatible},
    visibility = ["//visibility:public"],
)
""".format(
        linkopts = repr(["-L" + nvcc[:-len("/bin/nvcc")] + "/lib64", "-lcudart_static", "-ldl", "-lrt", "-lpthread"]) if nvcc else "[]",
        compatible = "[]" if nvcc else "[\"@platforms//:incompatible\"]",
    ))

cuda_configure = repository_rule(
    implementation = _cuda_configure_impl,
    environ = ["CUDA_HOME", "SOFTMOE_TOOLCHAIN"],
    local = True,
    configure = True,
    doc = "Writes @cuda from the toolkit in $CUDA_HOME or /usr/local/cuda.",
)
