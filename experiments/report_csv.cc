// SPDX-License-Identifier: Apache-2.0
#include "experiments/report_csv.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "experiments/cost_model.h"
#include "experiments/row_summary.h"

namespace softmoe::experiments {
namespace {

using trainer::RunResult;

// RFC 4180: quoted where a separator, a quote or a line end is inside.
std::string Field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

// Shortest text that reads back as the same double.
std::string Number(double value) { return fmt::format("{}", value); }

const char* StateName(RunState state) {
  switch (state) {
    case RunState::kWaiting:
      return "waiting";
    case RunState::kInterrupted:
      return "interrupted";
    case RunState::kFinished:
      return "finished";
    case RunState::kFailed:
      return "failed";
  }
  return "unknown";
}

void AddResult(const RunOutcome& run, std::vector<std::string>* fields) {
  const RunResult& r = *run.result;
  const auto& v = r.final_validation;
  for (const double value :
       {r.tau, r.train_active_experts, v.active_experts,
        ActiveParameters(r.config.model, v.active_experts), v.loss,
        r.unigram_loss, r.at_schedule_temperature.loss, v.zero_active_fraction,
        v.load_variance}) {
    fields->push_back(Number(value));
  }
  fields->push_back(std::to_string(r.parameters));
  fields->push_back(Number(r.seconds));
  fields->push_back(r.config_hash);
}

}  // namespace

std::string RunsCsv(const GridOutcome& outcome) {
  std::string text =
      "run,corpus,row,label,variant,seed,state,k,alpha,tau,"
      "train_active_experts,infer_active_experts,active_parameters,loss,"
      "unigram_loss,loss_at_schedule_temperature,zero_active_fraction,"
      "load_variance,parameters,seconds,config_hash\n";
  constexpr size_t kColumns = 21;
  for (const RunOutcome& run : outcome.runs) {
    const RouterConfig& router = run.run.config.router;
    std::vector<std::string> fields = {Field(run.run.id),
                                       Field(run.run.corpus.id),
                                       Field(run.run.row.id),
                                       Field(run.run.row.label),
                                       Field(run.run.row.variant),
                                       std::to_string(run.run.seed),
                                       StateName(run.state),
                                       Setting(router.mean_active_experts),
                                       router.kind == RouterKind::kSparse
                                           ? ""
                                           : Setting(router.expansion_factor)};
    if (run.state == RunState::kFinished) AddResult(run, &fields);
    fields.resize(kColumns);
    text += fmt::format("{}\n", fmt::join(fields, ","));
  }
  return text;
}

std::string StepsCsv(const GridOutcome& outcome) {
  std::string text =
      "run,step,loss,load_balance_loss,z_loss,active_experts,"
      "zero_active_fraction,temperature,gradient_norm,learning_rate\n";
  for (const RunOutcome& run : outcome.runs) {
    if (run.state != RunState::kFinished) continue;
    const std::string id = Field(run.run.id);
    for (const trainer::StepRecord& s : run.result->steps) {
      text += fmt::format("{},{},{},{},{},{},{},{},{},{}\n", id, s.step, s.loss,
                          s.load_balance_loss, s.z_loss, s.active_experts,
                          s.zero_active_fraction, s.temperature,
                          s.gradient_norm, s.learning_rate);
    }
  }
  return text;
}

std::string InferenceTauCsv(const GridOutcome& outcome) {
  std::string text =
      "run,factor,tau,loss,active_experts,zero_active_fraction,load_variance,"
      "load_cv,load_var_over_mean\n";
  for (const RunOutcome& run : outcome.runs) {
    if (!run.result || !run.result->final_evaluations) continue;
    for (const auto& at : run.result->final_evaluations->inference_tau) {
      const trainer::Validation& v = at.validation;
      text += Field(run.run.id);
      for (const double value :
           {at.factor, at.tau, v.loss, v.active_experts, v.zero_active_fraction,
            v.load_variance, v.load_cv, v.load_var_over_mean}) {
        text += "," + Number(value);
      }
      text += "\n";
    }
  }
  return text;
}

std::string RouterHealthCsv(const GridOutcome& outcome) {
  std::string text =
      "run,layer,load_entropy,relative_load_entropy,dead_experts,"
      "at_cap_fraction,zero_active_fraction,truncated_mass\n";
  for (const RunOutcome& run : outcome.runs) {
    if (!run.result || !run.result->final_evaluations) continue;
    const auto& layers = run.result->final_evaluations->router_health;
    for (size_t l = 0; l < layers.size(); ++l) {
      const trainer::RouterHealth& h = layers[l];
      text +=
          fmt::format("{},{},{},{},{},{},{},{}\n", Field(run.run.id), l,
                      Number(h.load_entropy), Number(h.relative_load_entropy),
                      h.dead_experts, Number(h.at_cap_fraction),
                      Number(h.zero_active_fraction),
                      h.truncated_mass ? Number(*h.truncated_mass) : "");
    }
  }
  return text;
}

}  // namespace softmoe::experiments
