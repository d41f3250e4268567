// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/foreign/lib_calls.h"

#include <dlfcn.h>
#include <fmt/core.h>

#include <array>
#include <deque>
#include <exception>

#include "core/errors.h"
#include "property_tests/verify/foreign/answer_bytes.h"
#include "property_tests/verify/foreign/native_tensor.h"

namespace softmoe::verify {
namespace {

enum : uint64_t { kLoad = 1, kSupports, kCall };

using Words = std::vector<std::pair<std::string, std::string>>;

Words ParametersOf(const Case& c) {
  Words words;
  for (const auto& [name, window] : c.sizes) {
    words.emplace_back(name, fmt::format("{}", window.count));
  }
  for (const auto& [name, value] : c.reals) {
    words.emplace_back(name, fmt::format("{}", value));
  }
  for (const auto& [name, choice] : c.choices) words.emplace_back(name, choice);
  return words;
}

// Sets the library's floating-point mode for a scope, and keeps the changes
// that the library makes to it.
class InMode {
 public:
  explicit InMode(std::fenv_t* mode) : its_(mode) {
    std::fegetenv(&ours_);
    std::fesetenv(its_);
  }
  ~InMode() {
    std::fegetenv(its_);
    std::fesetenv(&ours_);
  }
  InMode(const InMode&) = delete;
  InMode& operator=(const InMode&) = delete;

 private:
  std::fenv_t* its_;
  std::fenv_t ours_;
};

// A sentence from a library, as one line of plain text.
std::string Plain(const char* text, size_t size) {
  std::string plain(text, strnlen(text, size));
  for (char& letter : plain) {
    if (static_cast<unsigned char>(letter) < 0x20) letter = ' ';
  }
  return plain.empty() ? "without a word" : plain;
}

}  // namespace

std::string LoadMessage() {
  ByteWriter writer;
  writer.PutNumber(kLoad);
  return writer.Take();
}

std::string SupportsMessage(const std::string& op, Dtype dtype) {
  ByteWriter writer;
  writer.PutNumber(kSupports);
  writer.PutText(op);
  writer.PutNumber(static_cast<uint64_t>(dtype));
  return writer.Take();
}

std::string CallMessage(const Request& request) {
  ByteWriter writer;
  writer.PutNumber(kCall);
  writer.PutText(request.c.op);
  writer.PutText(CaseText(request.c));
  const Words words = ParametersOf(request.c);
  writer.PutNumber(words.size());
  for (const auto& [name, text] : words) {
    writer.PutText(name);
    writer.PutText(text);
  }
  writer.PutNumber(request.inputs.size());
  for (const auto& [name, tensor] : request.inputs) {
    writer.PutTensor(name, tensor);
  }
  writer.PutNumber(request.outputs.size());
  for (const Wanted& wanted : request.outputs) {
    // Sends the shape only, without values.
    writer.PutText(wanted.name);
    writer.PutNumber(static_cast<uint64_t>(wanted.dtype));
    writer.PutNumber(wanted.shape.size());
    for (const int64_t size : wanted.shape) {
      writer.PutNumber(static_cast<uint64_t>(size));
    }
  }
  return writer.Take();
}

std::string LibCalls::Serve(const std::string& message) {
  ByteReader reader(message);
  const uint64_t kind = reader.Number();
  const std::string defect = Load();
  if (kind == kLoad) return defect;
  if (kind == kSupports) {
    const std::string op = reader.Text();
    const auto dtype = static_cast<Dtype>(reader.Number());
    const int32_t code = AbiDtype(dtype);
    const InMode mode(&its_mode_);
    return defect.empty() && supports_(op.c_str(), code) != 0 ? "1" : "0";
  }
  Request request;
  request.c.op = reader.Text();
  const std::string text = reader.Text();
  Words words(reader.Number());
  for (auto& [name, value] : words) {
    name = reader.Text();
    value = reader.Text();
  }
  for (uint64_t left = reader.Number(); left > 0; --left) {
    std::string name;
    Tensor tensor = reader.TakeTensor(&name);
    request.inputs[name] = std::move(tensor);
  }
  request.outputs.resize(reader.Number());
  for (Wanted& wanted : request.outputs) {
    wanted.name = reader.Text();
    wanted.dtype = static_cast<Dtype>(reader.Number());
    wanted.shape.resize(reader.Number());
    for (int64_t& size : wanted.shape) {
      size = static_cast<int64_t>(reader.Number());
    }
  }
  Answer answer;
  if (!reader.ok() || !defect.empty()) {
    answer.problem = "the library could not be loaded again: " + defect;
  } else {
    answer = Call(request, words, text);
  }
  return EncodeAnswers(std::span(&answer, 1));
}

std::string LibCalls::Load() {
  if (library_ != nullptr) return "";
  const InMode mode(&its_mode_);
  void* library = ::dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return fmt::format("it cannot be loaded: {}", ::dlerror());
  }
  const auto find = [&](const char* name) { return ::dlsym(library, name); };
  const auto version = reinterpret_cast<decltype(&softmoe_verify_abi_version)>(
      find("softmoe_verify_abi_version"));
  supports_ =
      reinterpret_cast<decltype(supports_)>(find("softmoe_verify_supports"));
  run_ = reinterpret_cast<decltype(run_)>(find("softmoe_verify_run"));
  if (version == nullptr || supports_ == nullptr || run_ == nullptr) {
    return fmt::format(
        "it does not export {}; softmoe_verify_abi.h says what it must export "
        "(extern \"C\" in C++)",
        version == nullptr     ? "softmoe_verify_abi_version"
        : supports_ == nullptr ? "softmoe_verify_supports"
                               : "softmoe_verify_run");
  }
  if (version() != SOFTMOE_VERIFY_ABI_VERSION) {
    return fmt::format(
        "it is of ABI version {}, this program calls version {}; compile it "
        "with this program's softmoe_verify_abi.h",
        version(), SOFTMOE_VERIFY_ABI_VERSION);
  }
  library_ = library;
  return "";
}

Answer LibCalls::Call(const Request& request, const Words& words,
                      const std::string& text) {
  std::deque<NativeTensor> inputs, outputs;  // elements must not move
  std::vector<softmoe_verify_tensor> abi_inputs, abi_outputs;
  std::vector<softmoe_verify_parameter> parameters;
  for (const auto& [name, tensor] : request.inputs) {
    abi_inputs.push_back(inputs.emplace_back(name, tensor).Abi());
  }
  for (const Wanted& wanted : request.outputs) {
    abi_outputs.push_back(outputs.emplace_back(wanted).Abi());
  }
  for (const auto& [name, value] : words) {
    parameters.push_back({name.c_str(), value.c_str()});
  }
  std::array<char, 1024> message{};
  const softmoe_verify_call call = {request.c.op.c_str(),
                                    text.c_str(),
                                    parameters.data(),
                                    abi_inputs.data(),
                                    abi_outputs.data(),
                                    static_cast<int32_t>(parameters.size()),
                                    static_cast<int32_t>(abi_inputs.size()),
                                    static_cast<int32_t>(abi_outputs.size()),
                                    static_cast<int32_t>(message.size()),
                                    message.data()};
  const std::vector<softmoe_verify_tensor> before = abi_outputs;

  Answer answer;
  try {
    const int32_t status = [&] {
      const InMode mode(&its_mode_);
      return run_(&call);
    }();
    if (status == SOFTMOE_VERIFY_UNSUPPORTED) {
      answer.unsupported = Plain(message.data(), message.size());
      return answer;
    }
    if (status != SOFTMOE_VERIFY_OK) {
      answer.problem =
          fmt::format("the library reports an error, status {}: {}", status,
                      Plain(message.data(), message.size()));
      return answer;
    }
    for (const NativeTensor& input : inputs) input.CheckUnchanged();
    for (size_t i = 0; i < outputs.size(); ++i) {
      answer.output = request.outputs[i].name;
      const Tensor content = outputs[i].Take();
      if (abi_outputs[i].data == nullptr) continue;  // left out
      if (abi_outputs[i].data != before[i].data) {
        throw NumericsError(answer.output +
                            ": the library moved the pointer; fill what it "
                            "points to");
      }
      answer.outputs[answer.output] = content;
    }
    answer.output.clear();
  } catch (const NumericsError& error) {
    answer.outputs.clear();
    answer.problem = error.what();
  } catch (const std::exception& error) {
    answer.problem =
        std::string("the library let an exception escape: ") + error.what();
  } catch (...) {
    answer.problem = "the library let an exception escape";
  }
  return answer;
}

}  // namespace softmoe::verify
