"""The built dependency graph obeys the one-way layers of packages and rooms.

Visibility says who may depend on whom; //bazel:layering_test looks at who does.
An aspect walks everything that the packages' targets are built from and collects
the edges between top-level packages, and between rooms of one. An edge that the
tables do not allow is printed and fails the test, and so is a room that they do
not have. So an oracle that the tested code could link never goes unnoticed,
whatever a visibility list says.
"""

# package -> packages it may depend on. "testonly" targets may also use the
# second list.
ALLOWED = {
    "core": ([], []),
    "kernels": (["core"], []),
    "optimized": (["core", "kernels"], []),
    "trainer": (["core", "kernels", "optimized"], []),
    "golden": (["core"], []),
    "experiments": (["core", "kernels", "optimized", "trainer", "golden"], []),
    "reference": (["core"], []),
    "property_tests": ([], ["core", "reference", "kernels", "optimized", "trainer", "golden"]),
}

# The rooms of each package, from the lowest: product code of a room uses only
# rooms before it. "" is what stands in the package itself.
ROOMS = {
    "core": ["", "text", "files", "config", "hdf5", "process"],
    "reference": [""],
    "golden": ["document", "paper", "verdict", "gpu_runs", ""],
    "trainer": ["corpora", "identity", "tokens", "results", "tasks", "evaluation", "run", ""],
    "experiments": ["grids", "plan", "run", "report", ""],
    "kernels": ["simd", "simt", "", "cuda"],
    "optimized": ["communicator", ""],
    # Testonly as a whole: its libraries are held to the order.
    "property_tests": [
        "verify/engine",
        "verify/implementations",
        "verify/operations",
        "verify/gradients",
        "verify/foreign",
        "verify",
        "gpu",
    ],
}

# Rooms without a place in that order: no product code may use them.
UNORDERED = [
    "core/fuzzing",
    "core/testing",
    "experiments/container",
    "experiments/testing",
    "golden/oracles",
    "golden/testing",
    "kernels/simt/device",
    "kernels/simt/ptx",
    "kernels/simt/shim",
    "kernels/testing",
    "optimized/communicator/testing",
    "optimized/testing",
    "property_tests/",
    "property_tests/mutation",
    "property_tests/mutation/sampled",
    "property_tests/testing",
    "property_tests/verify/examples",
    "reference/testing",
    "trainer/testing",
]

# Every package, since Bazel offers no list of them.
PACKAGES = ["", "bazel"] + sorted([
    room.rstrip("/")
    for room in UNORDERED + [layer + "/" + room for layer in ROOMS for room in ROOMS[layer]]
])

def users_of(package):
    """Visibility for the package's layer, and for those that may depend on it."""
    layer = package.split("/")[0]
    return [
        "//%s:__subpackages__" % user
        for user, used in ALLOWED.items()
        if user == layer or layer in used[0] + used[1]
    ]

_Edges = provider(fields = ["edges"])

# Attributes through which code is linked, included or run.
_ATTRIBUTES = ["deps", "srcs", "hdrs", "textual_hdrs", "data", "implementation_deps", "actual", "tools"]

def _layer(label):
    # Subfolders (kernels/simt) belong to their top-level package.
    return label.package.split("/")[0]

def _room(label):
    return label.package.partition("/")[2]

def _rank(room, rooms):
    """The room's place among `rooms`, -1 if it has none."""
    return rooms.index(room) if room in rooms else -1

def _has_place(layer, room):
    """Whether ROOMS or UNORDERED has the room, if the tables have its package."""
    return (
        layer not in ALLOWED or
        room in ROOMS.get(layer, []) or
        layer + "/" + room in UNORDERED
    )

def _rooms_allow(edge, reverse):
    rooms = ROOMS.get(edge.source, [])
    if reverse:
        rooms = reversed(rooms)
    source = _rank(edge.source_room, rooms)
    destination = _rank(edge.destination_room, rooms)
    if edge.free or -1 in [source, destination] or edge.source_room == edge.destination_room:
        return True
    return destination < source

def _edges_aspect_impl(target, ctx):
    direct = []
    transitive = []
    testonly = getattr(ctx.rule.attr, "testonly", False)
    free = ctx.rule.kind != "cc_library" if _layer(target.label) == "property_tests" else testonly
    for attribute in _ATTRIBUTES:
        values = getattr(ctx.rule.attr, attribute, None)
        if not values:
            continue
        for value in (values if type(values) == "list" else [values]):
            if type(value) != "Target":
                continue
            if _Edges in value:
                transitive.append(value[_Edges].edges)
            if value.label.workspace_name == "" and target.label.workspace_name == "":
                direct.append(struct(
                    source = _layer(target.label),
                    source_label = str(target.label),
                    source_room = _room(target.label),
                    destination = _layer(value.label),
                    destination_room = _room(value.label),
                    destination_label = str(value.label),
                    testonly = testonly,
                    free = free,
                ))
    return [_Edges(edges = depset(direct, transitive = transitive))]

_edges_aspect = aspect(
    implementation = _edges_aspect_impl,
    attr_aspects = _ATTRIBUTES,
)

def _package_edges_impl(ctx):
    return [_Edges(edges = depset(transitive = [target[_Edges].edges for target in ctx.attr.targets]))]

_package_edges = rule(
    implementation = _package_edges_impl,
    attrs = {"targets": attr.label_list(aspects = [_edges_aspect])},
)

def package_edges():
    """Makes :edges, of every C++ target that this BUILD file has defined so far."""
    _package_edges(
        name = "edges",
        testonly = True,
        visibility = ["//bazel:__pkg__"],
        targets = [
            ":" + name
            for name, attributes in native.existing_rules().items()
            if attributes["kind"] in ["cc_library", "cc_binary", "cc_test"] and
               # Targets that vanish without a CUDA toolkit must not take this
               # test with them.
               not attributes.get("target_compatible_with")
        ],
    )

def _all_edges(packages):
    return depset(transitive = [package[_Edges].edges for package in packages]).to_list()

def _layering_test_impl(ctx):
    violations = []
    checked = 0
    for edge in _all_edges(ctx.attr.packages):
        for layer, room, label in [
            (edge.source, edge.source_room, edge.source_label),
            (edge.destination, edge.destination_room, edge.destination_label),
        ]:
            if not _has_place(layer, room):
                violations.append("%s is in a room that is in neither ROOMS nor UNORDERED" % label)
        if edge.source == edge.destination and not _rooms_allow(edge, ctx.attr.reverse_rooms):
            violations.append("%s depends on %s, a later room" % (edge.source_label, edge.destination_label))
        own = edge.source == edge.destination and edge.source_room == edge.destination_room
        product = edge.source in ALLOWED and not edge.testonly
        if product and not own and edge.destination + "/" + edge.destination_room in UNORDERED:
            violations.append("%s is no test, but depends on %s" % (edge.source_label, edge.destination_label))
        if edge.source == edge.destination or edge.source not in ALLOWED:
            continue
        if edge.destination not in ALLOWED:
            continue
        checked += 1
        always, in_tests = ALLOWED[edge.source]
        allowed = always + (in_tests if edge.testonly else [])
        if edge.destination not in allowed or edge.destination in ctx.attr.also_forbidden:
            violations.append("%s depends on %s" % (edge.source_label, edge.destination_label))

    # A walk that saw nothing has checked nothing.
    failed = len(violations) > 0 or checked < ctx.attr.at_least
    verdict = 1 if failed != ctx.attr.expect_violation else 0
    ctx.actions.write(
        ctx.outputs.executable,
        "#!/bin/sh\ncat <<'END'\n%d edges between layers checked, %d not allowed\n%s\nEND\nexit %d\n" %
        (checked, len(violations), "\n".join(violations), verdict),
        is_executable = True,
    )
    return []

_layering_test = rule(
    implementation = _layering_test_impl,
    attrs = {
        "packages": attr.label_list(providers = [_Edges]),
        "at_least": attr.int(doc = "Fewer edges than this: the walk is broken."),
        "also_forbidden": attr.string_list(doc = "For the test of this test."),
        "reverse_rooms": attr.bool(doc = "For the test of this test."),
        "expect_violation": attr.bool(doc = "For the test of this test."),
    },
    test = True,
)

def layering_test(**kwargs):
    _layering_test(size = "small", testonly = True, **kwargs)

def _layer_edges_impl(ctx):
    lines = {
        "%s/%s %s/%s %s\n" % (
            edge.source,
            edge.source_room,
            edge.destination,
            edge.destination_room,
            "test" if edge.testonly else "product",
        ): None
        for edge in _all_edges(ctx.attr.packages)
    }
    ctx.actions.write(ctx.outputs.list, "".join(sorted(lines)))
    return [DefaultInfo(
        files = depset([ctx.outputs.list]),
        runfiles = ctx.runfiles([ctx.outputs.list]),
    )]

layer_edges = rule(
    implementation = _layer_edges_impl,
    doc = """Who depends on whom, as "trainer/run trainer/tokens product".

    One line for each pair of rooms; "test" instead of "product" if the
    dependency is that of a test or of another testonly target.""",
    attrs = {"packages": attr.label_list(providers = [_Edges], doc = "their :edges")},
    outputs = {"list": "%{name}.txt"},
)
