// SPDX-License-Identifier: Apache-2.0
//
// adapter_table.h - the adapters of all operations.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_ADAPTER_TABLE_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_ADAPTER_TABLE_H_

#include "property_tests/verify/implementations/adapters.h"

namespace softmoe::verify {

const Adapters& AdapterTable();

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_ADAPTER_TABLE_H_
