// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <functional>
#include <optional>
#include <set>

#include "core/errors.h"
#include "core/text/suggestion.h"
#include "property_tests/verify/implementations/implementations.h"

namespace softmoe::verify {
namespace {

struct Context {
  const TensorMap& inputs;
  const Tensor* previous;  // this output of the previous call, or null
};
using Spoil = std::function<void(Tensor& output, const Context& context)>;

int64_t Columns(const Tensor& t) {
  return t.shape.empty() ? 1 : t.shape.back();
}

double Temperature(const TensorMap& inputs) {
  const auto found = inputs.find("temperature");
  return found == inputs.end() ? 2.0 : found->second.values[0];
}

void Scale(Tensor& t, double factor) {
  for (double& x : t.values) x = RoundTo(t.dtype, x * factor);
}

// Large enough to be wrong wherever an output is of the order of 1.
void Shift(double& x) { x += 0.25; }

struct Fault {
  FaultInfo info;
  Spoil spoil;
};

const std::vector<Fault>& AllFaults() {
  static const std::vector<Fault> faults = {
      {{"none", "nothing is spoilt: must be accepted"},
       [](Tensor&, const Context&) {}},
      {{"zero", "all zeros"},
       [](Tensor& t, const Context&) { t.values.assign(t.values.size(), 0); }},
      {{"sign", "the sign is flipped"},
       [](Tensor& t, const Context&) { Scale(t, -1); }},
      {{"times_temperature", "multiplied by the temperature"},
       [](Tensor& t, const Context& c) { Scale(t, Temperature(c.inputs)); }},
      {{"twice", "multiplied by 2"},
       [](Tensor& t, const Context&) { Scale(t, 2); }},
      {{"one_part_in_1e4", "multiplied by 1.0001"},
       [](Tensor& t, const Context&) { Scale(t, 1.0001); }},
      {{"one_part_in_1e9", "multiplied by 1 + 1e-9: for f64"},
       [](Tensor& t, const Context&) { Scale(t, 1 + 1e-9); }},
      {{"truncate", "rounded towards zero: half of the elements 1 ulp less"},
       [](Tensor& t, const Context&) {
         for (int64_t i = 0; i < t.size(); ++i) {
           if (i * 0x9e3779b97f4a7c15u >> 63 == 0) continue;
           t.values[i] = StepBy(t.dtype, t.values[i], t.values[i] > 0 ? -1 : 1);
         }
       }},
      {{"tail", "off in the columns after the last whole group of 8"},
       [](Tensor& t, const Context&) {
         const int64_t n = Columns(t);
         if (n < 8) return;
         for (int64_t i = 0; i < t.size(); ++i) {
           if (i % n >= n / 8 * 8) Shift(t.values[i]);
         }
       }},
      {{"batch", "off in every row but the first"},
       [](Tensor& t, const Context&) {
         for (int64_t i = Columns(t); i < t.size(); ++i) Shift(t.values[i]);
       }},
      {{"neighbour", "row t holds row t+1's values"},
       [](Tensor& t, const Context&) {
         const int64_t n = Columns(t);
         for (int64_t i = 0; i + n < t.size(); ++i) {
           t.values[i] = t.values[i + n];
         }
       }},
      {{"one_nan", "the last element is NaN"},
       [](Tensor& t, const Context&) {
         if (!t.values.empty()) t.values.back() = NAN;
       }},
      {{"flip_one", "the first element is 1 where it was 0, else 0"},
       [](Tensor& t, const Context&) {
         if (!t.values.empty()) t.values[0] = t.values[0] == 0 ? 1 : 0;
       }},
      {{"stale",
        "the output of the previous call is added, where the size is the same"},
       [](Tensor& t, const Context& c) {
         if (c.previous == nullptr || c.previous->shape != t.shape) return;
         for (int64_t i = 0; i < t.size(); ++i) {
           t.values[i] = RoundTo(t.dtype, t.values[i] + c.previous->values[i]);
         }
       }},
  };
  return faults;
}

class FaultyImplementation : public Implementation {
 public:
  FaultyImplementation(const Fault& fault, std::string output,
                       std::unique_ptr<Implementation> base)
      : fault_(fault), output_(std::move(output)), base_(std::move(base)) {}

  std::string name() const override {
    return "faulty:" + fault_.info.name + ":" + output_ + ":" + base_->name();
  }
  std::string WhyUnsupported(const Operation& op, Dtype dtype) const override {
    return base_->WhyUnsupported(op, dtype);
  }
  void Prepare(const Operation& op, const std::vector<Case>& cases) override {
    base_->Prepare(op, cases);
  }
  int batch() const override { return base_->batch(); }
  bool Holds(const Case& c) const override { return base_->Holds(c); }
  void Finish() override { base_->Finish(); }
  bool stores_as_ours() const override { return base_->stores_as_ours(); }
  TensorMap Run(const Operation& op, const Case& c, const TensorMap& inputs,
                int schedule) override {
    TensorMap outputs = base_->Run(op, c, inputs, schedule);
    const auto found = outputs.find(output_);
    if (found == outputs.end()) return outputs;
    const Tensor clean = found->second;
    fault_.spoil(found->second, {inputs, previous_ ? &*previous_ : nullptr});
    previous_ = clean;
    return outputs;
  }

 private:
  const Fault& fault_;
  std::string output_;
  std::unique_ptr<Implementation> base_;
  std::optional<Tensor> previous_;
};

}  // namespace

const std::vector<FaultInfo>& Faults() {
  static const std::vector<FaultInfo> infos = [] {
    std::vector<FaultInfo> list;
    for (const Fault& fault : AllFaults()) list.push_back(fault.info);
    return list;
  }();
  return infos;
}

std::unique_ptr<Implementation> MakeFaultyImplementation(
    const std::string& argument) {
  const size_t first = argument.find(':');
  const size_t second =
      first == std::string::npos ? first : argument.find(':', first + 1);
  if (second == std::string::npos) {
    throw ConfigError("implementation 'faulty:" + argument +
                      "' must read faulty:FAULT:OUTPUT:BASE, such as "
                      "faulty:sign:d_scores:reference_f32");
  }
  const std::string name = argument.substr(0, first);
  const std::string output = argument.substr(first + 1, second - first - 1);
  std::set<std::string> outputs;
  for (const Operation* op : Operations()) {
    for (const OutputSpec& each : op->outputs()) outputs.insert(each.name);
  }
  if (!outputs.contains(output)) {
    throw ConfigError("no operation has an output '" + output + "'; " +
                      Suggestion(output, {outputs.begin(), outputs.end()}));
  }
  std::vector<std::string> names;
  for (const Fault& fault : AllFaults()) {
    if (fault.info.name == name) {
      return std::make_unique<FaultyImplementation>(
          fault, output, MakeImplementation(argument.substr(second + 1)));
    }
    names.push_back(fault.info.name);
  }
  throw ConfigError("unknown fault '" + name + "'; " + Suggestion(name, names));
}

}  // namespace softmoe::verify
