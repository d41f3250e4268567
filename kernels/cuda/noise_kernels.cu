// SPDX-License-Identifier: Apache-2.0
//
// A draw is for four columns of a token. Jitter has two in a thread where it
// can (row_width.h), else one, and is memory-bound, 8 bytes an element, 6 if
// one side is bf16. Noise: one thread per draw, num_experts scores a token.
#include "core/philox.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/noise_kernels.h"
#include "kernels/cuda/row_width.h"
#include "kernels/simt/float_pack.h"

namespace softmoe::kernels::SOFTMOE_ISA {
namespace {

constexpr int kThreads = 256;

// The draws of a token.
__host__ __device__ int64_t Draws(int64_t width) { return (width + 3) / 4; }

// What one thread draws, and for which columns.
struct Draw {
  int64_t token, column;  // the first of four
  r123::Philox4x32::ctr_type words;
};

// Draw i of the tokens of a call.
__device__ Draw DrawAt(int64_t i, int64_t first_token, int64_t width,
                       const RandomKey& key) {
  const int64_t draws = Draws(width);
  return {i / draws, i % draws * 4,
          PhiloxBlock(key, static_cast<uint64_t>(first_token * draws + i))};
}

__device__ int64_t ThreadIndex() {
  return int64_t{blockIdx.x} * kThreads + threadIdx.x;
}

// x as one factor of those of `word` changes it; y as it was.
template <typename X, typename Y>
__device__ float Jittered(const InputJitterArgsOf<X, Y>& a, uint32_t word,
                          float x, float y) {
  const double low = 1.0 - a.amplitude;
  const double range = 2.0 * a.amplitude;
  const double factor = low + range * UniformFromWord(word);
  const double value = factor * x;
  return static_cast<float>(a.accumulate ? y + value : value);
}

template <typename X, typename Y>
__global__ void __launch_bounds__(kThreads)
    InputJitterKernel(InputJitterArgsOf<X, Y> a) {
  const Draw draw = DrawAt(ThreadIndex(), a.first_token, a.d_model, a.key);
  if (draw.token >= a.num_tokens) return;
  SOFTMOE_UNROLL
  for (int i = 0; i < 4; ++i) {
    if (draw.column + i >= a.d_model) break;
    const int64_t at = draw.token * a.d_model + draw.column + i;
    const float before = a.accumulate ? FloatOf(a.y[at]) : 0.0f;
    StoreFloat(Jittered(a, draw.words[i], FloatOf(a.x[at]), before), a.y + at);
  }
}

// The same for eight columns of a token, two draws.
template <typename X, typename Y>
__global__ void __launch_bounds__(kThreads)
    WideInputJitterKernel(InputJitterArgsOf<X, Y> a) {
  const int64_t first = 2 * ThreadIndex();
  if (first >= a.num_tokens * Draws(a.d_model)) return;
  const int64_t at = 4 * first;  // tokens have whole draws
  const FloatPack<kWide> x = LoadReal<kWide>(a.x + at);
  FloatPack<kWide> y(0.0f);
  if (a.accumulate) y = LoadReal<kWide>(a.y + at);
  SOFTMOE_UNROLL
  for (int d = 0; d < 2; ++d) {
    const Draw draw = DrawAt(first + d, a.first_token, a.d_model, a.key);
    SOFTMOE_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int e = 4 * d + i;
      y[e] = Jittered(a, draw.words[i], x[e], y[e]);
    }
  }
  StoreReal(y, a.y + at);
}

// NormalsFromWords (core/philox.h), with a sine and cosine of multiples of pi,
// which need no reduction by pi, and so no local memory.
__device__ void Normals(uint32_t a, uint32_t b, double* first, double* second) {
  const double radius =
      sqrt(-2.0 * log((static_cast<double>(a) + 0.5) * 0x1p-32));
  double sine, cosine;
  sincospi((static_cast<double>(b) + 0.5) * 0x1p-31, &sine, &cosine);
  *first = radius * cosine;
  *second = radius * sine;
}

__global__ void __launch_bounds__(kThreads) LogitNoiseKernel(LogitNoiseArgs a) {
  const Draw draw = DrawAt(ThreadIndex(), a.first_token, a.num_experts, a.key);
  if (draw.token >= a.num_tokens) return;
  double normals[4];
  Normals(draw.words[0], draw.words[1], &normals[0], &normals[1]);
  Normals(draw.words[2], draw.words[3], &normals[2], &normals[3]);
  SOFTMOE_UNROLL
  for (int i = 0; i < 4; ++i) {
    if (draw.column + i >= a.num_experts) break;
    float* score = a.scores + draw.token * a.num_experts + draw.column + i;
    *score = static_cast<float>(*score + a.sigma * normals[i]);
  }
}

template <typename X, typename Y>
void Enqueue(const InputJitterArgsOf<X, Y>& args, cudaStream_t stream) {
  const int64_t draws = args.num_tokens * Draws(args.d_model);
  if (TakesWide({args.d_model}, {args.x, args.y})) {
    Launch("InputJitter", WideInputJitterKernel<X, Y>,
           Blocks(draws / 2, kThreads), kThreads, 0, stream, args);
  } else {
    Launch("InputJitter", InputJitterKernel<X, Y>, Blocks(draws, kThreads),
           kThreads, 0, stream, args);
  }
}

}  // namespace

void InputJitter(const InputJitterArgs& args, cudaStream_t stream) {
  Enqueue(args, stream);
}
void InputJitter(const InputJitterArgsOf<Bf16, float>& args,
                 cudaStream_t stream) {
  Enqueue(args, stream);
}
void InputJitter(const InputJitterArgsOf<float, Bf16>& args,
                 cudaStream_t stream) {
  Enqueue(args, stream);
}

void LogitNoise(const LogitNoiseArgs& args, cudaStream_t stream) {
  Launch("LogitNoise", LogitNoiseKernel,
         Blocks(args.num_tokens * Draws(args.num_experts), kThreads), kThreads,
         0, stream, args);
}

}  // namespace softmoe::kernels::SOFTMOE_ISA
