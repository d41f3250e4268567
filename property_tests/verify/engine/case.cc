// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/engine/case.h"

#include <fmt/core.h>

#include <optional>
#include <sstream>

#include "core/errors.h"
#include "core/text/ascii.h"
#include "core/text/suggestion.h"

namespace softmoe::verify {
namespace {

template <typename T>
const T& Find(const std::map<std::string, T>& map, const Case& c,
              const std::string& name) {
  const auto found = map.find(name);
  SOFTMOE_CHECK(found != map.end())
      << "operation " << c.op << " asks for its parameter " << name
      << ", which it does not declare";
  return found->second;
}

std::string SimplificationText(const Simplification& s) {
  switch (s.how) {
    case Simplification::How::kZero:
      return s.tensor + ":zero";
    case Simplification::How::kOne:
      return s.tensor + ":one";
    case Simplification::How::kBits:
      return fmt::format("{}:bits{}", s.tensor, s.argument);
    case Simplification::How::kOnly:
      return fmt::format("{}:only{}", s.tensor, s.argument);
  }
  return "";
}

Simplification ParseSimplification(const std::string& text) {
  const size_t colon = text.find(':');
  Simplification s;
  s.tensor = text.substr(0, colon);
  const std::string how =
      colon == std::string::npos ? "" : text.substr(colon + 1);
  const std::string kind = how.substr(0, 4);
  const auto number = ParseNumber<int64_t>(how.substr(kind.size()));
  if (how == "zero") return s;
  if (how == "one") {
    s.how = Simplification::How::kOne;
  } else if (kind == "bits" && number >= 1 && number <= 53) {
    s.how = Simplification::How::kBits;
    s.argument = *number;
  } else if (kind == "only" && number >= 0) {
    s.how = Simplification::How::kOnly;
    s.argument = *number;
  } else {
    throw ConfigError("simplify: '" + text +
                      "' is not one of TENSOR:zero, TENSOR:one, "
                      "TENSOR:bitsN (1 <= N <= 53) and TENSOR:onlyI");
  }
  return s;
}

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) {
    parts.push_back(part);
  }
  return parts;
}

}  // namespace

int64_t Case::Size(const std::string& name) const {
  return Find(sizes, *this, name).count;
}
double Case::Real(const std::string& name) const {
  return Find(reals, *this, name);
}
const std::string& Case::Choice(const std::string& name) const {
  return Find(choices, *this, name);
}

Case OtherData(const Case& c) {
  Case other = c;
  ++other.number;
  other.simplify.clear();
  return other;
}

std::string FillText(const FillName& fill) {
  return fill.argument == 0 ? fill.name
                            : fmt::format("{}:{}", fill.name, fill.argument);
}

FillName ParseFill(const std::string& text) {
  const size_t colon = text.find(':');
  FillName fill{text.substr(0, colon), 0};
  if (colon == std::string::npos) return fill;
  const auto number = ParseNumber<int64_t>(text.substr(colon + 1));
  if (!number || *number == 0) {  // 0: there is none
    throw ConfigError("fill=" + text +
                      ": a whole number above 0 is needed after the colon");
  }
  fill.argument = *number;
  return fill;
}

std::string CaseText(const Case& c) {
  std::string text = fmt::format("op={} impl={} dtype={} fill={}", c.op, c.impl,
                                 DtypeName(c.dtype), FillText(c.fill));
  for (const auto& [name, window] : c.sizes) {
    text += fmt::format(" {}={}", name, window.count);
    if (window.first != 0) text += fmt::format("@{}", window.first);
  }
  for (const auto& [name, choice] : c.choices) {
    text += fmt::format(" {}={}", name, choice);
  }
  for (const auto& [name, value] : c.reals) {
    text += fmt::format(" {}={}", name, value);  // reads back as the same bits
  }
  for (size_t i = 0; i < c.simplify.size(); ++i) {
    text += (i == 0 ? " simplify=" : ",") + SimplificationText(c.simplify[i]);
  }
  return text + fmt::format(" seed={:#x} case={}", c.seed, c.number);
}

CasePattern ParseWords(const std::string& text) {
  CasePattern pattern;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0 ||
        equals + 1 == word.size()) {
      throw ConfigError("'" + word +
                        "' is not KEY=VALUE; a case reads like \"op=lapsum "
                        "impl=cpu:v4 rows=7\"");
    }
    if (!pattern.emplace(word.substr(0, equals), word.substr(equals + 1))
             .second) {
      throw ConfigError("'" + word.substr(0, equals) +
                        "' is given twice; leave one of them out");
    }
  }
  return pattern;
}

int64_t ParseWhole(const std::string& key, const std::string& text) {
  if (const auto number = ParseNumber<int64_t>(text)) return *number;
  throw ConfigError(key + "=" + text + ": a whole number is needed");
}

uint64_t ParseSeed(const std::string& key, const std::string& text) {
  const bool hex = text.starts_with("0x") || text.starts_with("0X");
  if (const auto seed = hex ? ParseNumber<uint64_t>(text.substr(2), 16)
                            : ParseNumber<uint64_t>(text)) {
    return *seed;
  }
  throw ConfigError(key + "=" + text +
                    ": a whole number, or hexadecimal as 0x5eed, is needed");
}

uint32_t ParseCaseNumber(const std::string& text) {
  const int64_t number = ParseWhole("case", text);
  if (number < 0 || number > 0xffffffff) {
    throw ConfigError("case=" + text + ": a number of 32 bits is needed");
  }
  return static_cast<uint32_t>(number);
}

double ParseDecimal(const std::string& key, const std::string& text) {
  if (const auto number = ParseNumber<double>(text)) return *number;
  throw ConfigError(key + "=" + text + ": a number is needed");
}

Window ParseWindow(const std::string& key, const std::string& text) {
  const size_t at = text.find('@');
  if (at == std::string::npos) return {ParseWhole(key, text), 0};
  const auto count = ParseNumber<int64_t>(text.substr(0, at));
  const auto first = ParseNumber<int64_t>(text.substr(at + 1));
  if (!count || !first) {
    throw ConfigError(key + "=" + text +
                      ": a window COUNT@FIRST has two whole numbers");
  }
  if (*first < 0) {
    throw ConfigError(key + "=" + text +
                      ": a window COUNT@FIRST must begin at 0 or later");
  }
  return {*count, *first};
}

std::vector<Simplification> ParseSimplify(const std::string& text) {
  std::vector<Simplification> list;
  for (const std::string& part : Split(text, ',')) {
    list.push_back(ParseSimplification(part));
  }
  return list;
}

}  // namespace softmoe::verify
