// SPDX-License-Identifier: Apache-2.0
#include "kernels/simt/ptx/program.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <map>
#include <optional>
#include <sstream>
#include <string_view>

#include "core/errors.h"
#include "core/text/ascii.h"

namespace softmoe::ptx {
namespace {

// ---- Words

struct Token {
  std::string text;  // empty at the end of the file
  int line = 0;
};

bool IsOfWord(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         std::string_view("_$%.").find(c) != std::string_view::npos;
}

// Words, strings in quotes, and single characters; no comments.
std::vector<Token> Tokens(const std::string& text) {
  std::vector<Token> tokens;
  int line = 1;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    size_t end = i + 1;
    if (c == '\n') {
      ++line;
    } else if (text.compare(i, 2, "//") == 0) {
      end = std::min(text.find('\n', i), text.size());
    } else if (c == '"') {
      end = std::min(text.find('"', i + 1), text.size() - 1) + 1;
      tokens.push_back({text.substr(i, end - i), line});
    } else if (IsOfWord(c)) {
      while (end < text.size() && IsOfWord(text[end])) ++end;
      tokens.push_back({text.substr(i, end - i), line});
    } else if (std::isspace(static_cast<unsigned char>(c)) == 0) {
      tokens.push_back({std::string(1, c), line});
    }
    i = end;
  }
  tokens.push_back({"", line});
  return tokens;
}

std::vector<std::string> Lines(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) {
    line.erase(0, line.find_first_not_of(" \t"));
    std::ranges::replace(line, '\t', ' ');
    lines.push_back(line);
  }
  return lines;
}

bool IsReal(std::string_view word) {
  return word.starts_with("0f") || word.starts_with("0d");
}

// 12, 0x1f, 0f3F800000 (a float's bits), 0d... (a double's); not 017, which is
// octal.
std::optional<uint64_t> Number(std::string_view word) {
  int base = 10;
  if (IsReal(word) || word.starts_with("0x")) {
    base = 16;
    word.remove_prefix(2);
  } else if (word.starts_with("0") && word.size() > 1) {
    return std::nullopt;
  }
  return ParseNumber<uint64_t>(word, base);
}

const std::map<std::string, int>& SpecialRegisters() {
  static const std::map<std::string, int> registers = {
      {"%tid.x", kTid},           {"%tid.y", kTid + 1},
      {"%tid.z", kTid + 2},       {"%ntid.x", kNtid},
      {"%ntid.y", kNtid + 1},     {"%ntid.z", kNtid + 2},
      {"%ctaid.x", kCtaid},       {"%ctaid.y", kCtaid + 1},
      {"%ctaid.z", kCtaid + 2},   {"%nctaid.x", kNctaid},
      {"%nctaid.y", kNctaid + 1}, {"%nctaid.z", kNctaid + 2},
      {"%laneid", kLaneid}};
  return registers;
}

size_t BytesOfType(const std::string& type) {
  static const std::map<std::string, size_t> bytes = {
      {".b8", 1},  {".u8", 1},  {".s8", 1},  {".b16", 2}, {".u16", 2},
      {".s16", 2}, {".b32", 4}, {".u32", 4}, {".s32", 4}, {".f32", 4},
      {".b64", 8}, {".u64", 8}, {".s64", 8}, {".f64", 8}};
  const auto found = bytes.find(type);
  return found == bytes.end() ? 0 : found->second;
}

size_t RoundUp(size_t value, size_t to) { return (value + to - 1) / to * to; }

// The gap between variables in shared memory; also the largest alignment.
constexpr size_t kGap = 256;

// The largest count of anything: elements, bytes, registers, threads.
constexpr uint64_t kMost = uint64_t{1} << 20;

// ---- The reader

class Reader {
 public:
  Reader(const std::string& file, const std::string& text)
      : file_(file), lines_(Lines(text)), tokens_(Tokens(text)) {}

  std::vector<Kernel> Module() {
    std::vector<Kernel> kernels;
    while (!Next().empty()) {
      const std::string word = Take();
      if (word == ".version") {
        const std::string version = Take();
        if (version.size() != 3 || version < "7.0" || version > "9.9") {
          Fail("PTX ISA 7.0 to 9.9 is known, not " + version);
        }
      } else if (word == ".address_size") {
        if (Take() != "64") Fail("addresses must have 64 bits");
      } else if (word == ".target") {
        Take();
      } else if (word == ".visible" || word == ".weak") {
        continue;
      } else if (word == ".extern") {
        Expect(".shared");
        DeclareInModule(/*is_dynamic=*/true);
      } else if (word == ".shared") {
        DeclareInModule(/*is_dynamic=*/false);
      } else if (word == ".entry") {
        kernels.push_back(Entry());
      } else {
        Fail("unknown directive " + word);
      }
    }
    return kernels;
  }

 private:
  // What names of one block stand for.
  using Scope = std::map<std::string, Operand>;

  // A variable in shared memory.
  struct Declared {
    std::string name;
    size_t alignment, size;
    bool is_dynamic;
  };

  [[noreturn]] void Fail(const std::string& why) const {
    const size_t line =
        static_cast<size_t>(tokens_[at_ > 0 ? at_ - 1 : 0].line);
    throw DataError(
        fmt::format("{}:{}: {}: {}", file_, line, why, lines_.at(line - 1)));
  }
  const std::string& Next() const { return tokens_[at_].text; }
  std::string Take() {
    if (Next().empty()) Fail("unexpected end of file");
    return tokens_[at_++].text;
  }
  bool TakeIf(const std::string& text) {
    if (Next() != text) return false;
    ++at_;
    return true;
  }
  void Expect(const std::string& text) {
    const std::string found = Take();
    if (found != text) Fail("'" + found + "' where '" + text + "' should be");
  }
  uint64_t TakeNumber() {
    const std::string word = Take();
    const std::optional<uint64_t> number = Number(word);
    if (!number) Fail("'" + word + "' is not a number");
    return *number;
  }

  uint64_t TakeCount() {
    const uint64_t count = TakeNumber();
    if (count > kMost) Fail(fmt::format("more than {}", kMost));
    return count;
  }

  // [.align N] .type: the bytes of one element, and their alignment.
  size_t Type(size_t* alignment) {
    *alignment = 1;
    if (TakeIf(".align")) *alignment = TakeCount();
    if (*alignment > kGap || !std::has_single_bit(*alignment)) {
      Fail("unknown alignment");
    }
    const std::string type = Take();
    const size_t bytes = BytesOfType(type);
    if (bytes == 0) Fail("unknown type " + type);
    *alignment = std::max(*alignment, bytes);
    return bytes;
  }
  // [N], or nothing; [] is 0.
  size_t Count() {
    if (!TakeIf("[")) return 1;
    if (TakeIf("]")) return 0;
    const size_t count = TakeCount();
    Expect("]");
    return count;
  }

  // The rest of .shared .align N .type name[size];
  Declared Declare(bool is_dynamic) {
    size_t alignment;
    const size_t bytes = Type(&alignment);
    const std::string name = Take();
    const Declared declared = {name, alignment, bytes * Count(), is_dynamic};
    Expect(";");
    return declared;
  }

  void DeclareInModule(bool is_dynamic) {
    const Declared declared = Declare(is_dynamic);
    if (!module_shared_.emplace(declared.name, declared).second) {
      Fail(declared.name + " is declared twice");
    }
  }

  // Gives the kernel a variable of its module at the first operand that names
  // it: it has no others.
  void PlaceOfModule(const std::string& name) {
    const auto found = module_shared_.find(name);
    if (found == module_shared_.end() || Find(name) != nullptr) return;
    if (std::ranges::count(dynamic_, name) > 0) return;
    Place(found->second, &scopes_.front());
  }

  // Aligns no variable more than it says, so that relying on more is found.
  void Place(const Declared& variable, Scope* scope) {
    if (variable.is_dynamic) {
      kernel_.has_dynamic_shared = true;
      dynamic_alignment_ = std::max(dynamic_alignment_, variable.alignment);
      dynamic_.push_back(variable.name);
      return;
    }
    const size_t begin = kernel_.shared_bytes + variable.alignment;
    Name(variable.name, {kZero, begin}, scope);
    kernel_.shared.push_back({variable.name, begin, variable.size});
    kernel_.shared_bytes = RoundUp(begin + variable.size, kGap) + kGap;
  }

  void Name(const std::string& name, Operand operand, Scope* scope) {
    if (!scope->emplace(name, operand).second) {
      Fail(name + " is declared twice");
    }
  }
  const Operand* Find(const std::string& name) const {
    for (size_t i = scopes_.size(); i-- > 0;) {
      const auto found = scopes_[i].find(name);
      if (found != scopes_[i].end()) return &found->second;
    }
    return nullptr;
  }

  Kernel Entry() {
    kernel_ = {};
    kernel_.file = file_;
    kernel_.name = Take();
    labels_.clear();
    branches_.clear();
    dynamic_.clear();
    dynamic_alignment_ = 1;
    scopes_.emplace_back();
    Expect("(");
    while (!TakeIf(")")) {
      TakeIf(",");
      Expect(".param");
      size_t alignment;
      const size_t bytes = Type(&alignment);
      const std::string name = Take();
      const size_t end = kernel_.parameters.empty()
                             ? 0
                             : kernel_.parameters.back().begin +
                                   kernel_.parameters.back().size;
      const Parameter parameter = {RoundUp(end, alignment), bytes * Count()};
      kernel_.parameters.push_back(parameter);
      Name(name, {kZero, parameter.begin}, &scopes_.back());
    }
    while (!TakeIf("{")) {
      const std::string word = Take();
      if (word == ".maxntid") {
        kernel_.max_threads = TakeCount();
        while (TakeIf(",")) kernel_.max_threads *= TakeCount();
      } else if (word == ".minnctapersm") {
        TakeNumber();
      } else {
        Fail("unknown directive " + word);
      }
    }
    scopes_.emplace_back();
    for (size_t depth = 1; depth > 0;) {
      if (TakeIf("{")) {
        scopes_.emplace_back();
        ++depth;
      } else if (TakeIf("}")) {
        scopes_.pop_back();
        --depth;
      } else {
        Statement();
      }
    }
    scopes_.pop_back();
    Finish();
    return std::move(kernel_);
  }

  void Finish() {
    // Dynamic variables share one place, after all others.
    if (kernel_.code.empty()) Fail("a kernel without instructions");
    if (kernel_.has_dynamic_shared) {
      kernel_.shared_bytes += dynamic_alignment_;
      kernel_.shared.push_back({"dynamic", kernel_.shared_bytes, 0});
    }
    for (const auto& [instruction, operand] : of_dynamic_) {
      kernel_.code[instruction].operands[operand].number +=
          kernel_.shared_bytes;
    }
    of_dynamic_.clear();
    for (const auto& [instruction, label] : branches_) {
      const auto found = labels_.find(label);
      if (found == labels_.end()) Fail("no label " + label);
      kernel_.code[instruction].target = found->second;
    }
  }

  void Statement() {
    if (TakeIf(".reg")) {
      Registers();
    } else if (TakeIf(".shared")) {
      Place(Declare(/*is_dynamic=*/false), &scopes_.back());
    } else if (TakeIf(".pragma")) {
      Take();
      Expect(";");
    } else if (Next().starts_with(".")) {
      Fail("unknown directive " + Take());
    } else if (const std::string word = Take(); TakeIf(":")) {
      if (!labels_.emplace(word, kernel_.code.size()).second) {
        Fail(word + " is used as a label twice");
      }
    } else {
      --at_;
      ReadInstruction();
    }
  }

  // .type name<N>; or .type name;
  void Registers() {
    const std::string type = Take();
    if (type != ".pred" && BytesOfType(type) == 0) Fail("unknown type " + type);
    const std::string name = Take();
    if (!TakeIf("<")) {
      NameRegister(name);
    } else {
      const uint64_t count = TakeCount();
      Expect(">");
      for (uint64_t i = 0; i < count; ++i) {
        NameRegister(name + std::to_string(i));
      }
    }
    Expect(";");
  }
  void NameRegister(const std::string& name) {
    Name(name, {static_cast<int>(kernel_.num_registers++), 0}, &scopes_.back());
  }

  void ReadInstruction() {
    Instruction instruction;
    if (TakeIf("@")) {
      instruction.unless = TakeIf("!");
      const std::string name = Take();
      const Operand* guard = Find(name);
      if (guard == nullptr || guard->slot == kZero) Fail("no register " + name);
      instruction.guard = guard->slot;
    }
    std::string name = Take();
    addresses_ = 0;
    instruction.line = tokens_[at_ - 1].line;
    instruction.text = lines_.at(static_cast<size_t>(instruction.line) - 1);
    if (name.starts_with("bra")) {
      branches_.emplace_back(kernel_.code.size(), Take());
    } else {
      ReadOperands(&instruction, &name);
    }
    const Form* const form = FindForm(name);
    if (form == nullptr) {
      Fail("the interpreter has no instruction " + name +
           " (kernels/simt/ptx/instruction_set.cc)");
    }
    instruction.form = *form;
    if (static_cast<int>(instruction.operands.size()) != form->operands) {
      Fail(fmt::format("{} operands of {}, which takes {}",
                       instruction.operands.size(), name, form->operands));
    }
    if (addresses_ != form->addresses) {
      Fail("brackets are missing or out of place in the operands of " + name);
    }
    for (int i = 0; i < form->results; ++i) {
      if (instruction.operands[static_cast<size_t>(i)].slot <
          kFirstFreeRegister) {
        Fail("the result of " + name + " is not a register of the kernel's");
      }
    }
    Expect(";");
    kernel_.code.push_back(std::move(instruction));
  }

  // A mov of a vector has another form than one of a register: {2}, or ,{2}.
  void ReadOperands(Instruction* instruction, std::string* name) {
    const bool is_mov = name->starts_with("mov.");
    for (bool first = true; Next() != ";"; first = false) {
      if (!first && !TakeIf("|")) Expect(",");
      if (!TakeIf("{")) {
        instruction->operands.push_back(ReadOperand(*instruction));
        continue;
      }
      size_t count = 0;
      do {
        instruction->operands.push_back(ReadOperand(*instruction));
        ++count;
      } while (TakeIf(","));
      Expect("}");
      if (is_mov) {
        *name += fmt::format(" {}{{{}}}{}", first ? "" : ",", count,
                             first ? "," : "");
      }
    }
  }

  Operand ReadOperand(const Instruction& instruction) {
    if (!TakeIf("[")) return ReadValue(instruction);
    addresses_ |= 1u << instruction.operands.size() % 32;
    Operand operand = ReadValue(instruction);
    if (TakeIf("+")) {
      const Operand added = ReadValue(instruction);
      if (added.slot != kZero) {
        Fail("the address is a sum of two registers, which is not supported");
      }
      operand.number += added.number;
    }
    Expect("]");
    return operand;
  }

  Operand ReadValue(const Instruction& instruction) {
    if (TakeIf("-")) {
      if (IsReal(Next())) Fail("unknown number");
      return {kZero, -TakeNumber()};
    }
    const std::string word = Take();
    if (const auto number = Number(word)) return {kZero, *number};
    const auto special = SpecialRegisters().find(word);
    if (special != SpecialRegisters().end()) return {special->second, 0};
    PlaceOfModule(word);
    if (std::ranges::count(dynamic_, word) > 0) {
      of_dynamic_.emplace_back(kernel_.code.size(),
                               instruction.operands.size());
      return {};
    }
    const Operand* declared = Find(word);
    if (declared == nullptr) Fail("nothing is called " + word);
    return *declared;
  }

  const std::string file_;
  const std::vector<std::string> lines_;
  const std::vector<Token> tokens_;
  size_t at_ = 0;
  std::map<std::string, Declared> module_shared_;

  // The kernel being read.
  Kernel kernel_;
  // First the scope of its parameters and module variables, then nested ones.
  std::vector<Scope> scopes_;
  std::map<std::string, size_t> labels_;
  std::vector<std::pair<size_t, std::string>> branches_;  // to labels
  std::vector<std::string> dynamic_;                      // variables
  size_t dynamic_alignment_ = 1;
  std::vector<std::pair<size_t, size_t>> of_dynamic_;  // operands
  unsigned addresses_ = 0;  // bit i: operand i is in brackets
};

}  // namespace

std::vector<Kernel> ReadProgram(const std::string& file,
                                const std::string& text) {
  return Reader(file, text).Module();
}

}  // namespace softmoe::ptx
