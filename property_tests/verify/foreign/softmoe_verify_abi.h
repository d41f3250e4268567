/* SPDX-License-Identifier: Apache-2.0
 *
 * softmoe_verify_abi.h - what a shared library offers to be verified by
 * `verify run impl=lib:./mine.so`. Plain C, and all that is needed: copy it.
 *
 * Export three functions (extern "C" in C++):
 *
 *   int32_t softmoe_verify_abi_version(void);
 *       returns SOFTMOE_VERIFY_ABI_VERSION.
 *
 *   int32_t softmoe_verify_supports(const char* op, int32_t dtype);
 *       1 if softmoe_verify_run computes operation `op` ("lapsum", ...; see
 *       `verify list`) with floating tensors of `dtype`, else 0.
 *
 *   int32_t softmoe_verify_run(const softmoe_verify_call* call);
 *       reads call->inputs and fills call->outputs. Returns SOFTMOE_VERIFY_OK,
 *       or another status after writing one sentence into call->message.
 *
 * Tensors are dense and row-major; names, shapes and meaning are those of
 * `verify list` and `verify explain op=...`; reference/SPEC.md has the formulas
 * and the order of what is packed. Outputs come filled with NaN (f64,
 * f32, bf16) or INT32_MIN. The data of every tensor is 64-byte aligned, and the
 * 64 elements before and after it are watched: a write there fails the case,
 * and so does a change of an input. An output that is optional may be left out
 * by setting its `data` to NULL.
 *
 * The library is loaded in a process of its own, which stays alive from case to
 * case: a crash or a hang fails that case, and the next one finds it loaded
 * anew. Calls come one at a time, from one thread.
 *
 * Versions: a change that an old library would not survive raises the version,
 * and a library of another version is refused.
 */
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_SOFTMOE_VERIFY_ABI_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_SOFTMOE_VERIFY_ABI_H_

#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SOFTMOE_VERIFY_ABI_VERSION 1

/* dtype */
#define SOFTMOE_VERIFY_F64 1
#define SOFTMOE_VERIFY_F32 2
#define SOFTMOE_VERIFY_BF16 3 /* uint16_t: the upper half of a float's bits */
#define SOFTMOE_VERIFY_I32 4

/* status of softmoe_verify_run */
#define SOFTMOE_VERIFY_OK 0
/* the case fails, with the message */
#define SOFTMOE_VERIFY_FAILED 1
/* the case is reported as not run, with the message */
#define SOFTMOE_VERIFY_UNSUPPORTED 2

typedef struct softmoe_verify_tensor {
  const char* name;
  const int64_t* dims; /* `rank` of them; a scalar has rank 0 */
  void* data;          /* of an input: read only */
  int32_t rank;
  int32_t dtype;
} softmoe_verify_tensor;

/* A parameter of the operation as text: "rows" "7", "kind" "soft". A real one
 * that enters a formula is an input, too: take it from there. Sizes and choices
 * are often nowhere else: shapes may have only the product of several, and some
 * ("completed", "max_active") are in none. */
typedef struct softmoe_verify_parameter {
  const char* name;
  const char* text;
} softmoe_verify_parameter;

typedef struct softmoe_verify_call {
  const char* op;
  const char* case_text; /* what a REPRO line says: for messages */
  const softmoe_verify_parameter* parameters;
  const softmoe_verify_tensor* inputs;
  softmoe_verify_tensor* outputs;
  int32_t num_parameters;
  int32_t num_inputs;
  int32_t num_outputs;
  int32_t message_size; /* room in `message`, the final NUL included */
  char* message;        /* "" on entry */
} softmoe_verify_call;

int32_t softmoe_verify_abi_version(void);
int32_t softmoe_verify_supports(const char* op, int32_t dtype);
int32_t softmoe_verify_run(const softmoe_verify_call* call);

/* The tensor of that name among `count`, or NULL. */
static inline softmoe_verify_tensor* softmoe_verify_find(
    const softmoe_verify_tensor* tensors, int32_t count, const char* name) {
  int32_t i;
  for (i = 0; i < count; ++i) {
    if (strcmp(tensors[i].name, name) == 0) {
      return (softmoe_verify_tensor*)(tensors + i);
    }
  }
  return NULL;
}

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_SOFTMOE_VERIFY_ABI_H_ */
