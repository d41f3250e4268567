// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/foreign/request.h"

#include <fmt/core.h>

#include <filesystem>
#include <system_error>

#include "core/errors.h"
#include "core/files/paths.h"
#include "property_tests/verify/engine/implementation.h"

namespace softmoe::verify {

Request Requests::Make(const Operation& op, const Case& c,
                       const TensorMap& inputs) {
  std::string key = c.op + " " + DtypeName(c.dtype);
  for (const auto& [name, window] : c.sizes) {
    key += fmt::format(" {}={}", name, window.count);
  }
  for (const auto& [name, choice] : c.choices) key += " " + choice;
  auto found = outputs_.find(key);
  if (found == outputs_.end()) {
    const Expected expected = ExpectOf(op, c, inputs, {});
    std::vector<Wanted> outputs;
    for (const OutputSpec& spec : op.outputs()) {
      const auto output = expected.outputs.find(spec.name);
      SOFTMOE_CHECK(output != expected.outputs.end()) << spec.name;
      const Tensor& values = output->second.values;
      outputs.push_back(
          {spec.name,
           values.dtype == Dtype::kF64 ? spec.DtypeAt(c.dtype) : values.dtype,
           values.shape, spec.optional});
    }
    found = outputs_.emplace(key, std::move(outputs)).first;
  }
  return {c, inputs, found->second};
}

TensorMap TakeOutputs(Answer answer) {
  if (!answer.unsupported.empty()) {
    throw RunUnsupported("it says: " + answer.unsupported);
  }
  if (!answer.problem.empty()) throw RunFailure(answer.problem, answer.output);
  return std::move(answer.outputs);
}

int64_t OutputBytes(const Request& request) {
  int64_t bytes = 0;
  for (const Wanted& wanted : request.outputs) {
    bytes += 8 * NumElements(wanted.shape);
  }
  return bytes;
}

std::string CheckedPath(const std::string& family,
                        const std::string& argument) {
  if (argument.empty()) {
    throw ConfigError(
        fmt::format("impl {0} needs a path, as {0}:./mine", family));
  }
  if (argument.find_first_of(" \t\r\n\v\f#'\"") != std::string::npos) {
    throw ConfigError(fmt::format(
        "impl {}:{}: a REPRO line cannot hold a path with white space, quotes "
        "or '#'; make a link with a plain name",
        family, argument));
  }
  const std::filesystem::path path = UserPath(argument);
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) {
    throw EnvironmentError(fmt::format(
        "impl {}:{}: there is no file '{}'; a relative path begins at your "
        "working directory",
        family, argument, path.string()));
  }
  if (error || status.type() != std::filesystem::file_type::regular) {
    throw ConfigError(fmt::format("impl {}:{}: '{}' is not a file", family,
                                  argument, path.string()));
  }
  return path.string();
}

}  // namespace softmoe::verify
