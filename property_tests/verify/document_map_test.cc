// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/document_map.h"

#include <gtest/gtest.h>

#include <string>

namespace softmoe::verify {
namespace {

using document_map::CodeOf;
using document_map::Declares;

TEST(Declares, NeedsMoreThanAWordOrACall) {
  const std::string code = CodeOf(R"(
// void Comment(int x);
Settings Plain(int x) {
  return Called(x) + a * Product(x);
}
const std::vector<double>& Reference();
StepOutcome Class::Member(int64_t a) { Statement(a); }
std::vector<double>
Wrapped(double x);
inline constexpr Metric kConstant = {};
struct Type {
TEST_P(Suite, Tested) {
RC_GTEST_PROP(Suite, Drawn, ()) {
)");
  for (const char* name : {"Plain", "Reference", "Member", "Wrapped",
                           "kConstant", "Type", "Tested", "Drawn"}) {
    EXPECT_TRUE(Declares(code, name)) << name;
  }
  for (const char* name : {"Comment", "Called", "Product", "Statement", "Class",
                           "Suite", "Settings", "Plai"}) {
    EXPECT_FALSE(Declares(code, name)) << name;
  }
}

}  // namespace
}  // namespace softmoe::verify
