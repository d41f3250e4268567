// SPDX-License-Identifier: Apache-2.0
//
// router_testing.h - what the router's tests share: score generators, outputs
// with canaries, a naive double-precision router (bisection), and the bound on
// the difference between it and the kernel.
//
// The bound, with u = 2^-24. The kernel computes
//     u_i = z_i - t,   z_i = (r_i - anchor)/T
// Products and differences contribute at most 4u(|z_i| + |t|). t is the log of
// a quotient of positive sums: n/4 additions in each of four chains, 6
// roundings for each of the m recurrence steps, and
// sum |z|e^z / (1 + sum e^z) <= ln n <= 6 for the arguments of exp, 2.5u each:
// together C u with C = n/4 + 6m + 32. So
//     |du_i| <= u (C + 4 (|z_i| + |t|))
//     |dp_i| <= f_i (e^{du_i} - 1) + 3u p_i
// and results below 1.7e-38 are flushed. Nothing here is fitted.
#ifndef SOFTMOE_KERNELS_TESTING_ROUTER_TESTING_H_
#define SOFTMOE_KERNELS_TESTING_ROUTER_TESTING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/philox.h"
#include "kernels/router.h"

namespace softmoe::kernels {

// Uniform draws in [0, 1) addressed by a number.
class Draws {
 public:
  explicit Draws(uint32_t what)
      : key_{20260120, RandomStream::kTestData, what, 0} {}
  double Next() {
    const double value =
        UniformFromWord(PhiloxWords(key_, next_ / 4)[next_ % 4]);
    ++next_;
    return value;
  }
  float Signed() { return static_cast<float>(2 * Next() - 1); }
  int64_t Below(int64_t n) { return static_cast<int64_t>(Next() * n); }

 private:
  RandomKey key_;
  uint64_t next_ = 0;
};

// Kinds of rows; row t of a case has kind t % kNumRowKinds.
inline constexpr int kNumRowKinds = 9;
std::vector<float> MakeScores(int64_t num_tokens, int64_t num_experts,
                              float scale, uint32_t what);

// Everything RouterForward writes, with canaries after every array.
struct RouterOutputs {
  std::vector<float> soft_weights, root, gates;
  std::vector<int32_t> num_active, selected;
  std::vector<double> probability_sums, scratch;
  std::vector<int64_t> balance_counts, active_counts;
  double z_sum = -1;
  int64_t bad_score = -2;
  bool operator==(const RouterOutputs&) const = default;
};

// Runs the forward pass at level `isa`.
RouterOutputs RunForward(const RouterShape& shape,
                         const std::vector<float>& scores, int threads,
                         Isa isa);

// Fails the test if a canary was overwritten.
void ExpectCanaries(const RouterShape& shape, const RouterOutputs& out);

// One row in double.
struct NaiveRow {
  std::vector<double> u, f, q, p;  // LapSum; sparse: p = softmax
  std::vector<double> softmax;     // of the scores
  double root = 0;                 // (x - max score) / T
  double log_sum_exp = 0;
  std::vector<double> u_error;  // bound on the kernel's u
  std::vector<double> p_error;  // bound on the kernel's p
  std::vector<int> order;       // experts, larger score then lower index
};
NaiveRow SolveNaively(const RouterShape& shape, const float* scores);

// The root by bisection: (x - max)/T with sum_i F((r_i - x)/T) = mean_active.
double BisectRoot(const std::vector<double>& scores, double mean_active,
                  double temperature);

RouterShape SoftShape(int64_t num_tokens, int64_t num_experts,
                      float mean_active, float temperature, double tau,
                      double expansion);
std::string Describe(const RouterShape& shape);

}  // namespace softmoe::kernels

#endif  // SOFTMOE_KERNELS_TESTING_ROUTER_TESTING_H_
