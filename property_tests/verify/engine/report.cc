// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/engine/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "core/text/markup.h"
#include "core/text/text_table.h"
#include "property_tests/verify/engine/replay.h"

namespace softmoe::verify {
namespace {

using nlohmann::ordered_json;

const char* VerdictText(ExitCode code) {
  switch (code) {
    case ExitCode::kDone:
      return "PASS";
    case ExitCode::kFailed:
      return "FAIL";
    case ExitCode::kMistrusted:
      return "MISTRUSTED";
    case ExitCode::kNotComparable:
      return "NOT_COMPARABLE";
    case ExitCode::kStopped:
      return "STOPPED";
    case ExitCode::kUsage:
    case ExitCode::kEnvironment:
    case ExitCode::kSelfCheck:
      return "ERROR";
    default:
      return "INCONCLUSIVE";
  }
}

double LargestUtilisation(const UnitStatistics& unit) {
  double largest = 0;
  for (const auto& [name, output] : unit.outputs) {
    largest = std::max(largest, output.utilisation);
  }
  return largest;
}

// The reasons why cases that ran decide nothing; whole lines.
std::string InconclusiveText(const Unit& unit, const UnitStatistics& s) {
  std::string text;
  if (s.Count(Status::kInconclusive) > 0) {
    text += fmt::format("INCONCLUSIVE: {} cases of {} on {}: ill-conditioned\n",
                        s.Count(Status::kInconclusive), unit.op, unit.impl);
  }
  if (s.ran() > s.Count(Status::kFail) && s.elements() == 0) {
    text += fmt::format(
        "nothing compared: no output of {} on {} has elements in {} cases\n",
        unit.op, unit.impl, s.ran());
  }
  return text;
}

// The cases that an implementation declined; a whole line, or "".
std::string DeclinedText(const Unit& unit, const UnitStatistics& s) {
  const int64_t declined = s.Count(Status::kUnsupported);
  if (declined == 0 || s.ran() == 0) return "";
  return fmt::format("declined: {} of {} cases of {} on {}: {}\n", declined,
                     declined + s.ran(), unit.op, unit.impl, s.unsupported);
}

// The reason why a campaign ended early; whole lines, or "".
std::string EndingText(const Suite& suite) {
  const auto& ending = suite.ended_early();
  if (!ending) return "";
  std::string text = fmt::format("ended early: {}\n", ending->why.what());
  if (!ending->in_flight.empty()) text += "  " + ending->in_flight + "\n";
  return text;
}

// For XML, which allows no other bytes.
std::string Escaped(const std::string& text) {
  return EscapeMarkup(AsUtf8(text));
}

std::string UnitTable(const Suite& suite) {
  TextTable table({"operation", "implementation", "cases", "PASS", "FAIL",
                   "MISTRUSTED", "utilisation", "ambiguous", "seconds"});
  for (const auto& [unit, s] : suite.units()) {
    if (s.ran() == 0) {
      table.Add({unit.op, unit.impl, "0", "-", "-", "-", "-", "-", "-"});
      continue;
    }
    table.Add({unit.op, unit.impl, fmt::format("{}", s.ran()),
               fmt::format("{}", s.Count(Status::kPass)),
               fmt::format("{}", s.Count(Status::kFail)),
               fmt::format("{}", s.Count(Status::kMistrusted)),
               fmt::format("{:.3g}", LargestUtilisation(s)),
               fmt::format("{}", s.ambiguous),
               fmt::format("{:.2f}", s.seconds)});
  }
  return table.Text();
}

ordered_json BiasJson(const BiasStatistic& bias) {
  return {{"mean", bias.mean()}, {"z", bias.z()}};
}

std::string OrderText(const Convergence& found) {
  if (std::isnan(found.lowest_order)) return "-";
  return fmt::format("{:.2f} to {:.2f}", found.lowest_order,
                     found.highest_order);
}

// What `verify grad` adds to the report; "" if nothing was differentiated.
std::string GradientTable(const Suite& suite) {
  TextTable table({"operation", "gradient", "compared", "directions", "smooth",
                   "kinks", "undecided", "order", "utilisation"});
  bool any = false;
  for (const auto& [unit, s] : suite.units()) {
    for (const auto& [name, output] : s.outputs) {
      const Convergence& found = output.convergence;
      if (found.directions() == 0) continue;
      any = true;
      table.Add({unit.op, name, fmt::format("{}", output.elements),
                 fmt::format("{}", found.directions()),
                 fmt::format("{}", found.smooth),
                 fmt::format("{}", found.kinks),
                 fmt::format("{}", found.undecided), OrderText(found),
                 fmt::format("{:.3g}", output.utilisation)});
    }
  }
  return any ? table.Text() : "";
}

ordered_json ConvergenceJson(const Convergence& found) {
  const auto number = [](double order) {
    return std::isnan(order) ? ordered_json() : ordered_json(order);
  };
  return {{"smooth", found.smooth},
          {"kinks", found.kinks},
          {"undecided", found.undecided},
          {"lowest_order", number(found.lowest_order)},
          {"highest_order", number(found.highest_order)}};
}

ordered_json FailureJson(const Failure& failure) {
  return {{"repro", ReproLine(failure.smallest)},
          {"text", FailureText(failure)},
          {"first", CaseText(failure.first.c)},
          {"smallest", CaseJson(failure.smallest)},
          {"shrink_runs", failure.shrink_runs},
          {"count", failure.count}};
}

}  // namespace

std::string AsUtf8(const std::string& text) {
  // Writes and reads it, through the decoder of the JSON library.
  return ordered_json::parse(
             ordered_json(text).dump(-1, ' ', false,
                                     ordered_json::error_handler_t::replace))
      .get<std::string>();
}

std::string FailureText(const Failure& failure) {
  const CaseResult& smallest = failure.smallest;
  std::string text = fmt::format("FAIL {} on {}: {}\n", smallest.c.op,
                                 smallest.c.impl, smallest.reason);
  for (const std::string& hint : smallest.hints) {
    text += "  hint: " + hint + "\n";
  }
  if (failure.shrink_runs > 0) {
    text += fmt::format("  shrunk in {} runs from: {}\n", failure.shrink_runs,
                        CaseText(failure.first.c));
  }
  return text + "  " + ReproLine(smallest) + "\n";
}

std::string SuiteText(const Suite& suite) {
  std::string text = UnitTable(suite) + GradientTable(suite);
  // One line for all operations that were not run for the same reason.
  std::map<std::pair<std::string, std::string>, std::vector<std::string>>
      not_run;
  for (const auto& [unit, s] : suite.units()) {
    if (s.ran() == 0 && !s.unsupported.empty()) {
      not_run[{unit.impl, s.unsupported}].push_back(unit.op);
    }
  }
  for (const auto& [where, operations] : not_run) {
    text += fmt::format("not run: {} on {}: {}\n", fmt::join(operations, ", "),
                        where.first, where.second);
  }
  for (const auto& [unit, s] : suite.units()) {
    text += DeclinedText(unit, s) + InconclusiveText(unit, s);
    for (const auto& [name, output] : s.outputs) {
      if (output.missing > 0) {
        text += fmt::format("left out: {} by {}, in {} cases of {}\n", name,
                            unit.impl, output.missing, unit.op);
      }
    }
  }
  for (const std::string& warning : suite.Warnings()) {
    text += "warning: " + warning + "\n";
  }
  for (const std::string& line : suite.Mistrusted()) {
    text += "MISTRUSTED: " + line + "\n";
  }
  for (const Failure& failure : suite.failures()) {
    text += fmt::format("FAIL {}x {}\n", failure.count,
                        ReproLine(failure.smallest));
  }
  text += EndingText(suite);
  const size_t different = suite.failures().size();
  return text + fmt::format("{}: {} cases, {} different failure{}\n",
                            VerdictText(suite.exit_code()), suite.cases(),
                            different, different == 1 ? "" : "s");
}

std::string CaseResultText(const CaseResult& result) {
  std::string text = CaseText(result.c) + "\n";
  if (!result.outputs.empty()) {
    TextTable table({"output", "status", "elements", "utilisation",
                     "relative L2", "mean/bound",
                     "ulps <= 1/2 1 2 4 16 256 more", "derivation"});
    for (const OutputResult& each : result.outputs) {
      const Comparison& found = each.comparison;
      table.Add({each.output, StatusName(found.status),
                 fmt::format("{}", found.count),
                 fmt::format("{:.3g}", found.utilisation),
                 fmt::format("{:.2e}", found.relative_l2),
                 fmt::format("{:.2e}", each.mean_scaled),
                 fmt::format("{}", fmt::join(found.ulps, " ")),
                 each.derivation});
    }
    text += table.Text();
  }
  for (const std::string& name : result.missing) {
    text += name + ": left out by the implementation\n";
  }
  if (result.decisions > 0) {
    text += fmt::format(
        "{} decisions, {} of them within their margin and "
        "decided otherwise\n",
        result.decisions, result.ambiguous);
  }
  text += StatusName(result.status);
  if (!result.reason.empty()) text += ": " + result.reason;
  text += "\n";
  for (const std::string& hint : result.hints) text += "  hint: " + hint + "\n";
  return text;
}

ordered_json CaseJson(const CaseResult& result) {
  ordered_json outputs = ordered_json::object();
  for (const OutputResult& each : result.outputs) {
    outputs[each.output] = {{"status", StatusName(each.comparison.status)},
                            {"utilisation", each.comparison.utilisation},
                            {"elements", each.comparison.count},
                            {"failures", each.comparison.failures},
                            {"mean_scaled", each.mean_scaled},
                            {"derivation", each.derivation}};
    if (each.convergence.directions() > 0) {
      outputs[each.output]["convergence"] = ConvergenceJson(each.convergence);
    }
  }
  return {
      {"case", CaseText(result.c)},    {"status", StatusName(result.status)},
      {"output", result.output},       {"reason", result.reason},
      {"hints", result.hints},         {"outputs", outputs},
      {"missing", result.missing},     {"decisions", result.decisions},
      {"ambiguous", result.ambiguous}, {"seconds", result.seconds}};
}

ordered_json SuiteJson(const Suite& suite) {
  ordered_json units = ordered_json::array();
  for (const auto& [unit, s] : suite.units()) {
    ordered_json cases = ordered_json::object();
    for (const auto& [status, count] : s.cases) {
      cases[StatusName(status)] = count;
    }
    ordered_json outputs = ordered_json::object();
    for (const auto& [name, output] : s.outputs) {
      outputs[name] = {{"compared", output.compared},
                       {"trusted", output.trusted},
                       {"missing", output.missing},
                       {"elements", output.elements},
                       {"utilisation", output.utilisation},
                       {"derivation", output.loosest_derivation},
                       {"decades", output.decades},
                       {"ulps", output.ulps},
                       {"lean_upwards", BiasJson(output.upwards)},
                       {"lean_towards_zero", BiasJson(output.towards_zero)},
                       {"truncation", output.truncation.mean()}};
      if (output.convergence.directions() > 0) {
        outputs[name]["convergence"] = ConvergenceJson(output.convergence);
      }
    }
    units.push_back({{"op", unit.op},
                     {"impl", unit.impl},
                     {"ran", s.ran()},
                     {"cases", cases},
                     {"fills", s.fills},
                     {"unsupported", s.unsupported},
                     {"decisions", s.decisions},
                     {"ambiguous", s.ambiguous},
                     {"seconds", s.seconds},
                     {"outputs", outputs}});
  }
  ordered_json failures = ordered_json::array();
  for (const Failure& failure : suite.failures()) {
    failures.push_back(FailureJson(failure));
  }
  const auto& ending = suite.ended_early();
  const auto text_or_null = [](const std::string& text) {
    return text.empty() ? ordered_json() : ordered_json(text);
  };
  return {{"schema", "softmoe-verify"},
          {"version", 1},
          {"repro_version", kReproVersion},
          {"verdict", VerdictText(suite.exit_code())},
          {"exit_code", static_cast<int>(suite.exit_code())},
          {"stopped", suite.stopped()},
          {"ended_early", text_or_null(ending ? ending->why.what() : "")},
          {"in_flight", text_or_null(ending ? ending->in_flight : "")},
          {"cases", suite.cases()},
          {"units", units},
          {"failures", failures},
          {"mistrusted", suite.Mistrusted()},
          {"warnings", suite.Warnings()}};
}

std::string SuiteJUnit(const Suite& suite) {
  std::string body;
  int64_t failed = 0, errors = 0, skipped = 0;
  for (const auto& [unit, s] : suite.units()) {
    body += fmt::format(
        "  <testcase classname=\"{}\" name=\"{}\" time=\"{:.3f}\">\n",
        Escaped(unit.op), Escaped(unit.impl), s.seconds);
    const Suite alone = suite.Of(unit);
    if (s.Count(Status::kFail) > 0) {
      ++failed;
      std::string lines;
      for (const Failure& failure : suite.failures()) {
        const Case& c = failure.smallest.c;
        if (c.op != unit.op || c.impl != unit.impl) continue;
        lines += FailureText(failure);
      }
      body += fmt::format(
          "    <failure type=\"FAIL\" message=\"{} of {} "
          "cases\">{}</failure>\n",
          s.Count(Status::kFail), s.ran(), Escaped(lines));
    } else if (s.ran() == 0) {
      ++skipped;
      body += fmt::format("    <skipped message=\"{}\"/>\n",
                          Escaped("UNSUPPORTED: " + s.unsupported));
    } else if (alone.exit_code() != ExitCode::kDone &&
               // A unit with nothing to compare is no error beside others.
               suite.verdict() != ExitCode::kDone) {
      ++errors;
      std::string lines = InconclusiveText(unit, s);
      for (const std::string& line : alone.Mistrusted()) lines += line + "\n";
      body += fmt::format(
          "    <error type=\"{0}\" message=\"none of {1} cases failed\">{2}"
          "</error>\n",
          VerdictText(alone.exit_code()), s.ran(), Escaped(lines));
    }
    const std::string declined = DeclinedText(unit, s);
    if (!declined.empty()) {
      body += "    <system-out>" + Escaped(declined) + "</system-out>\n";
    }
    body += "  </testcase>\n";
  }
  // The format has no campaigns, only test cases: one more of them explains why
  // results are missing.
  const auto& ending = suite.ended_early();
  if (ending) {
    ++errors;
    body += fmt::format(
        "  <testcase classname=\"verify\" name=\"ended early\">\n    <error "
        "type=\"{}\" message=\"{}\">{}</error>\n  </testcase>\n",
        VerdictText(ending->why.code()), Escaped(ending->why.what()),
        Escaped(ending->in_flight));
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite "
      "name=\"softmoe-verify\" tests=\"{}\" failures=\"{}\" errors=\"{}\" "
      "skipped=\"{}\">\n"
      "  <properties><property name=\"exit_class\" value=\"{}\"/>"
      "</properties>\n{}</testsuite>\n",
      suite.units().size() + (ending ? 1 : 0), failed, errors, skipped,
      VerdictText(suite.exit_code()), body);
}

}  // namespace softmoe::verify
