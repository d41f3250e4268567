# SPDX-License-Identifier: Apache-2.0
#
# awk -f draw_house.awk EDGES - prints the picture of the house, an SVG; EDGES
# are the dependencies of the built graph (layer_edges in layering.bzl).
#
# Where a box stands is said here. What is drawn between boxes must be in the
# graph, and every dependency between packages must be drawn, but for those on
# core: else it fails and says what to mend. Data that flow between two rooms
# need a dependency too, of the one that gives or of the one that takes.
{
  split($1, from, "/")
  split($2, to, "/")
  depends[$1, $2] = 1
  if (from[1] in known && to[1] in known && from[1] != to[1]) {
    pair = from[1] " " to[1]
    if (!(pair in between)) pairs[++count] = pair
    between[pair] = 1
  }
}
BEGIN {
  split("core kernels optimized trainer golden experiments reference " \
        "property_tests", houses, " ")
  for (i in houses) known[houses[i]] = 1
}

function mend(sentence) {
  print "draw_house.awk: " sentence >"/dev/stderr"
  failed = 1
}

function add(line) { picture = picture line "\n" }

function write_at(x, y, class, text) {
  add("<text x=\"" x "\" y=\"" y "\" class=\"" class "\">" text "</text>")
}

function box(class, x, y, width, height) {
  add("<rect class=\"" class "\" x=\"" x "\" y=\"" y "\" width=\"" width \
      "\" height=\"" height "\" rx=\"6\"/>")
}

function package(name, x, y, width, height, words) {
  box("package", x, y, width, height)
  write_at(x + 12, y + 20, "name", name)
  write_at(x + 12, y + 36, "words", words)
}

function room(name, x, y, words) {
  box("room", x, y, 96, 42)
  write_at(x + 48, y + 18, "middle", name)
  write_at(x + 48, y + 33, "words middle", words)
}

# Data that go from room `from` to room `to` along `path`.
function flow(from, to, path, x, y, words,    source, target) {
  if (!((from, to) in depends) && !((to, from) in depends)) {
    mend("data flow from " from " to " to ", but neither uses the other")
  }
  split(from, source, "/")
  split(to, target, "/")
  drawn[source[1] " " target[1]] = drawn[target[1] " " source[1]] = 1
  add("<path class=\"flow\" d=\"" path "\"/>")
  write_at(x, y, "words middle", words)
}

# Package `from` uses package `to`.
function use(from, to, path) {
  if (!((from " " to) in between)) {
    mend(from " does not use " to " any more: take the line away")
  }
  drawn[from " " to] = 1
  add("<path class=\"use\" d=\"" path "\"/>")
}

END {
  print "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 900 566\"" \
        " font-family=\"system-ui, sans-serif\" font-size=\"13\" role=\"img\">"
  print "<title>How data flow through the house</title>"
  print "<!-- Drawn by bazel/draw_house.awk: do not edit. -->"
  print "<style>"
  print ".page{fill:#fff}.package{fill:#f6f8fa;stroke:#8c959f}" \
        ".room{fill:#fff;stroke:#8c959f}"
  print "text{fill:#1f2328}.name{font-weight:600}.middle{text-anchor:middle}" \
        ".words{font-size:11px;fill:#59636e}"
  print ".flow,.use{fill:none;stroke-width:2;stroke:#0969da;" \
        "marker-end:url(#flow)}"
  print ".use{stroke-width:1.2;stroke:#8c959f;marker-end:url(#use)}"
  print ".both path{marker-start:url(#flow)}"
  print "#flow path{fill:#0969da}#use path{fill:#8c959f}"
  print "@media(prefers-color-scheme:dark){"
  print ".page{fill:#0d1117}.package{fill:#151b23;stroke:#656c76}" \
        ".room{fill:#0d1117;stroke:#656c76}"
  print "text{fill:#f0f6fc}.words{fill:#b1bac4}" \
        ".flow{stroke:#4493f8}#flow path{fill:#4493f8}}"
  print "</style>"
  print "<defs>"
  for (i = 1; i <= 2; ++i) {
    print "<marker id=\"" (i == 1 ? "flow" : "use") "\" viewBox=\"0 0 8 8\"" \
          " refX=\"7\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\"" \
          " markerUnits=\"userSpaceOnUse\" orient=\"auto-start-reverse\">" \
          "<path d=\"M0,0 8,4 0,8z\"/></marker>"
  }
  print "</defs>"
  print "<rect class=\"page\" width=\"900\" height=\"566\"/>"

  package("experiments", 44, 12, 580, 100,
          "the paper's grids, run and reported")
  room("grids", 58, 58, "as data")
  room("run", 362, 58, "run by run")
  room("report", 514, 58, "tables, curves")

  package("trainer", 44, 158, 580, 144,
          "one run: the same bits for any number of threads")
  room("corpora", 58, 204, "documents")
  room("tokens", 210, 204, "ids, batches")
  room("run", 362, 204, "step by step")
  room("results", 514, 204, "every number")
  room("evaluation", 438, 252, "held-out text")

  package("golden", 690, 12, 190, 290, "numbers, and verdicts on them")
  box("room", 702, 58, 166, 76)
  write_at(785, 76, "middle", "verdict")
  write_at(785, 93, "words middle", "PASS, FAIL, MISTRUSTED,")
  write_at(785, 108, "words middle", "INCONCLUSIVE,")
  write_at(785, 123, "words middle", "NOT_COMPARABLE")
  room("paper", 737, 204, "eight tables")

  package("optimized", 44, 346, 380, 50,
          "the fast model: layers, gradients, AdamW")
  package("kernels", 44, 430, 380, 50,
          "its operations, for CPUs; the CUDA source, simulated")
  package("property_tests", 470, 346, 180, 134, "hold both against each")
  write_at(482, 397, "words", "other under derived bounds,")
  write_at(482, 412, "words", "and against laws; plant")
  write_at(482, 427, "words", "faults to test the tests")
  package("reference", 700, 346, 180, 134, "the method in double,")
  write_at(712, 397, "words", "one function per formula;")
  write_at(712, 412, "words", "nothing that is tested")
  write_at(712, 427, "words", "can link it")
  write_at(44, 500, "words",
           "blue: where data go; grey: what a package is built on, besides core")
  package("core", 44, 510, 836, 44,
          "used by all: errors, configurations, files, threads, random numbers")

  flow("trainer/corpora", "trainer/tokens", "M154,225 H208", 181, 219, "text")
  flow("trainer/tokens", "trainer/run", "M306,225 H360", 333, 219, "batches")
  flow("trainer/run", "trainer/results", "M458,225 H512", 485, 219, "steps")
  flow("trainer/run", "trainer/evaluation", "M400,246 V273 H436", 0, 0, "")
  flow("trainer/evaluation", "trainer/results", "M534,273 H562 V248", 0, 0, "")
  flow("experiments/grids", "experiments/run",
       "M154,79 H360", 257, 73, "rows, seeds, sizes")
  flow("experiments/run", "trainer/run",
       "M410,100 V202", 370, 134, "configuration")
  flow("trainer/results", "experiments/report",
       "M562,204 V102", 592, 134, "result.h5")
  flow("experiments/report", "golden/verdict",
       "M610,79 H700", 657, 73, "results.h5")
  flow("golden/paper", "golden/verdict",
       "M785,204 V136", 820, 176, "as printed")
  add("<g class=\"both\">")
  flow("trainer/run", "optimized/",
       "M376,248 V344", 324, 328, "tokens, gradients")
  add("</g>")

  use("optimized", "kernels", "M234,396 V428")
  use("trainer", "kernels", "M44,270 H30 V445 H42")
  use("experiments", "optimized", "M44,84 H20 V371 H42")
  use("experiments", "kernels", "M44,64 H10 V463 H42")
  use("property_tests", "optimized", "M470,371 H426")
  use("property_tests", "kernels", "M470,455 H426")
  use("property_tests", "reference", "M650,413 H698")
  use("property_tests", "trainer", "M545,346 V304")
  use("property_tests", "golden", "M630,346 V324 H740 V304")

  for (i = 1; i <= count; ++i) {
    split(pairs[i], ends, " ")
    if (pairs[i] in drawn || ends[2] == "core") continue
    mend(ends[1] " uses " ends[2] ", which is not drawn: add a line")
  }
  for (i in houses) {
    if (houses[i] != "core" && !((houses[i] " core") in between)) {
      mend(houses[i] " does not use core, which says that all do")
    }
  }
  if (failed) exit 1
  printf "%s</svg>\n", picture
}
