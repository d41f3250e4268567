"""Compilations of our own rules, which are only repeated for what they read.

A rule gives each of its sources all headers that any of them might include. For
C++, Bazel itself leaves out those that a compiler did not read; here the compiler
says what it read (-MD), and the rest are named in a file of unused inputs.

And flags that several of our rules share.
"""

# As in .bazelrc, whose flags reach only the C++ rules of Bazel itself.
LANGUAGE = "-std=c++20"
PROCESSOR = "-march=x86-64-v3"

# What programs that are instrumented as a whole are compiled with.
SANITIZER_COPTS = [
    LANGUAGE,
    "-O1",
    "-g1",
    PROCESSOR,
    "-ffp-contract=off",
    "-fno-omit-frame-pointer",
]

# PWD keeps the sandbox's path out of the debug information.
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "PWD": "/proc/self/cwd"}

# "$@" compiles. $1 lists the inputs; $2 becomes those that were not read; $3,
# unless it is "", what ptxas reports of kernels, which is no warning.
#
# nvcc names its temporary files by its process number, which is the same in every
# sandbox: in /tmp, they would be those of its neighbours.
#
# nvcc says what it reads for the host, so no include may depend on __CUDA_ARCH__.
#
# Where the list of what was read cannot be written, as on a full disk, compiling
# fails: what it lacks would count as unused, and be changed without effect.
_COMPILE = """
    set -o pipefail
    TMPDIR=$(mktemp -d) || exit; export TMPDIR
    trap 'rm -rf "$TMPDIR"' EXIT
    inputs=$1 unused=$2 report=${3:-$TMPDIR/report}; shift 3
    "$@" -MD -MF "$TMPDIR/read.d" 2> "$report" || status=$?
    grep -v -e '^ptxas info' -e '^    [0-9]* bytes stack frame' "$report" >&2
    [ -z "$status" ] || exit "$status"
    tr -s ' \\\\' '\\n' < "$TMPDIR/read.d" | sed 's|^\\./||' | sort -u > "$TMPDIR/read" || exit
    sort "$inputs" | comm -23 - "$TMPDIR/read" > "$unused" """

def listed_inputs(ctx, inputs):
    """Returns `inputs`, a depset of files, as run_compiler takes them."""
    paths = ctx.actions.args()
    paths.set_param_file_format("multiline")
    paths.add_all(inputs)
    listed = ctx.actions.declare_file(ctx.label.name + ".inputs")
    ctx.actions.write(listed, paths)
    return struct(files = depset([listed], transitive = [inputs]), listed = listed)

def run_compiler(ctx, compiler, arguments, inputs, output, report = None, **kwargs):
    """Compiles one source.

    Args:
      ctx: of the rule.
      compiler: g++, clang or nvcc, by its path.
      arguments: ctx.actions.args(), with the source and -o `output`.
      inputs: of listed_inputs: the source, and what it might include.
      output: a file.
      report: becomes what ptxas says of registers and memory, if it is wanted.
      **kwargs: as for ctx.actions.run.
    """
    unused = ctx.actions.declare_file(output.basename + ".unused", sibling = output)
    ctx.actions.run(
        executable = "/bin/bash",
        arguments = [
            "-c",
            _COMPILE,
            "compile",
            inputs.listed.path,
            unused.path,
            report.path if report else "",
            compiler,
            arguments,
        ],
        inputs = inputs.files,
        outputs = [output, unused] + ([report] if report else []),
        unused_inputs_list = unused,
        **kwargs
    )
