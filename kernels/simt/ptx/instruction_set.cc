// SPDX-License-Identifier: Apache-2.0
#include "kernels/simt/ptx/instruction_set.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <utility>

namespace softmoe::ptx {
namespace {

// ---- One thread: the first operand is f(the others), each of its own type

template <typename Out, typename... In, typename F>
Form Plain(F) {
  Form form;
  form.operands = 1 + sizeof...(In);
  form.results = 1;
  form.run = [](Thread& thread, const Operand* operands) {
    [&]<size_t... kIndices>(std::index_sequence<kIndices...>) {
      thread.Write<Out>(operands[0],
                        F{}(thread.Read<In>(operands[1 + kIndices])...));
    }
    (std::index_sequence_for<In...>());
  };
  return form;
}

template <typename T, typename F>
Form Unary(F f) {
  return Plain<T, T>(f);
}
template <typename T, typename F>
Form Binary(F f) {
  return Plain<T, T, T>(f);
}
template <typename T, typename F>
Form Ternary(F f) {
  return Plain<T, T, T, T>(f);
}
template <typename T, typename F>
Form Compare(F f) {
  return Plain<bool, T, T>(f);
}
template <typename Out, typename In>
Form Convert() {
  return Plain<Out, In>([](In value) { return static_cast<Out>(value); });
}

// ---- Arithmetic

constexpr auto kAdd = [](auto a, auto b) { return a + b; };
constexpr auto kSubtract = [](auto a, auto b) { return a - b; };
constexpr auto kMultiply = [](auto a, auto b) { return a * b; };
constexpr auto kNegate = [](auto a) { return -a; };
constexpr auto kFma = [](auto a, auto b, auto c) { return std::fma(a, b, c); };

template <typename T>
void CheckDivisor(T a, T b) {
  if (b == 0) throw Fault("division by zero");
  if (std::is_signed_v<T> && b == static_cast<T>(-1) &&
      a == std::numeric_limits<T>::min()) {
    throw Fault("the quotient does not fit");
  }
}
constexpr auto kQuotient = [](auto a, auto b) {
  CheckDivisor(a, b);
  return a / b;
};
constexpr auto kRemainder = [](auto a, auto b) {
  CheckDivisor(a, b);
  return a % b;
};
constexpr auto kDivide = [](auto a, auto b) { return a / b; };

// A NaN does not count, and +0 is larger than -0.
constexpr auto kMax = [](auto a, auto b) {
  if constexpr (std::is_floating_point_v<decltype(a)>) {
    if (a != a) return b;
    if (b != b) return a;
    if (a == b) return std::signbit(a) ? b : a;
  }
  return a < b ? b : a;
};
constexpr auto kMin = [](auto a, auto b) { return b < a ? b : a; };

// ---- Bits

constexpr auto kAnd = [](auto a, auto b) { return a & b; };
constexpr auto kOr = [](auto a, auto b) { return a | b; };
constexpr auto kXor = [](auto a, auto b) { return a ^ b; };
constexpr auto kNot = [](auto a) { return ~a; };

// Shifts by the width or more leave nothing, or the sign.
template <typename T>
Form ShiftLeft() {
  return Plain<T, T, uint32_t>([](T a, uint32_t by) {
    return by < 8 * sizeof(T) ? static_cast<T>(a << by) : T{0};
  });
}
template <typename T>
Form ShiftRight() {
  return Plain<T, T, uint32_t>([](T a, uint32_t by) {
    constexpr uint32_t kMost = 8 * sizeof(T) - 1;
    if (by <= kMost) return static_cast<T>(a >> by);
    return std::is_signed_v<T> ? static_cast<T>(a >> kMost) : T{0};
  });
}

// Puts the lowest `count` bits of a into b, from bit `at` on.
template <typename T>
Form InsertField() {
  return Plain<T, T, T, uint32_t, uint32_t>(
      [](T a, T b, uint32_t at, uint32_t count) {
        at &= 255;
        count &= 255;
        for (uint32_t i = 0; i < count && at + i < 8 * sizeof(T); ++i) {
          const T bit = T{1} << (at + i);
          b = ((a >> i) & 1) != 0 ? b | bit : b & ~bit;
        }
        return b;
      });
}

uint32_t ReverseBits(uint32_t a) {
  uint32_t reversed = 0;
  for (int i = 0; i < 32; ++i) reversed |= (a >> i & 1) << (31 - i);
  return reversed;
}

// Four bytes of a and b; the highest bit of a choice asks for the byte's sign.
uint32_t Permute(uint32_t a, uint32_t b, uint32_t choices) {
  const uint64_t bytes = uint64_t{b} << 32 | a;
  uint32_t result = 0;
  for (int i = 0; i < 4; ++i) {
    const uint32_t choice = choices >> 4 * i;
    uint32_t byte = static_cast<uint32_t>(bytes >> 8 * (choice & 7)) & 255;
    if ((choice & 8) != 0) byte = (byte & 128) != 0 ? 255 : 0;
    result |= byte << 8 * i;
  }
  return result;
}

// ---- Conversions and approximations

// Out of range, the nearest integer; for NaN, the least.
int64_t ToInteger(double value) {
  if (value >= 0x1p63) return std::numeric_limits<int64_t>::max();
  if (!(value >= -0x1p63)) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(value);
}

uint32_t ToBf16(float value) {
  if (value != value) return 0x7fff;
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;  // ties to even
}
float FromBf16(uint32_t bits) { return std::bit_cast<float>(bits << 16); }

float PowerOfTwo(float x) {
  if (std::fpclassify(x) == FP_SUBNORMAL) return 1;
  const float power = static_cast<float>(std::exp2(double{x}));
  return std::fpclassify(power) == FP_SUBNORMAL ? 0 : power;
}

double RoughReciprocal(double x) {
  constexpr uint64_t kUpper = ~uint64_t{0xffffffff};
  if (x != x) x += x;  // quiet: its upper half is a NaN, too
  if (std::fpclassify(x) == FP_SUBNORMAL) x = std::copysign(0, x);
  const double upper =
      std::bit_cast<double>(std::bit_cast<uint64_t>(x) & kUpper);
  const double result = 1 / upper;
  if (std::fpclassify(result) == FP_SUBNORMAL) return std::copysign(0, result);
  return std::bit_cast<double>(std::bit_cast<uint64_t>(result) & kUpper);
}

// ---- Memory

template <Space kSpace, typename T, int kCount>
Form Load() {
  Form form;
  form.operands = kCount + 1;
  form.results = kCount;
  form.addresses = 1u << kCount;
  form.run = [](Thread& thread, const Operand* operands) {
    T values[kCount];
    memcpy(values,
           thread.At(Access::kRead, kSpace, thread.Bits(operands[kCount]),
                     sizeof(values)),
           sizeof(values));
    for (int i = 0; i < kCount; ++i) thread.Write<T>(operands[i], values[i]);
  };
  return form;
}

template <Space kSpace, typename T, int kCount>
Form Store() {
  Form form;
  form.operands = kCount + 1;
  form.addresses = 1;
  form.run = [](Thread& thread, const Operand* operands) {
    T values[kCount];
    for (int i = 0; i < kCount; ++i) {
      values[i] = thread.Read<T>(operands[1 + i]);
    }
    memcpy(thread.At(Access::kWrite, kSpace, thread.Bits(operands[0]),
                     sizeof(values)),
           values, sizeof(values));
  };
  return form;
}

void AtomicAdd(Thread& thread, const Operand* operands) {
  char* at =
      thread.At(Access::kAtomic, Space::kShared, thread.Bits(operands[1]), 4);
  uint32_t before;
  memcpy(&before, at, 4);
  const uint32_t after = before + thread.Read<uint32_t>(operands[2]);
  memcpy(at, &after, 4);
  thread.Write<uint32_t>(operands[0], before);
}

// Bits of a register, the lowest first, to or from several of kBits each.
template <int kCount, int kBits>
void Split(Thread& thread, const Operand* operands) {
  const uint64_t bits = thread.Bits(operands[kCount]);
  for (int i = 0; i < kCount; ++i) {
    thread.Write<uint64_t>(operands[i],
                           bits >> kBits * i & ((uint64_t{1} << kBits) - 1));
  }
}
template <int kCount, int kBits>
void Join(Thread& thread, const Operand* operands) {
  uint64_t bits = 0;
  for (int i = 0; i < kCount; ++i) {
    bits |= (thread.Bits(operands[1 + i]) & ((uint64_t{1} << kBits) - 1))
            << kBits * i;
  }
  thread.Write<uint64_t>(operands[0], bits);
}

// ---- Copies to shared memory. A copy lands when its group is waited for, the
// latest that a device may choose; until then its destination has no value, and
// its source must not change, since a device may read it at any time.

void BeginCopy(Thread& thread, const Operand* operands) {
  Copy copy;
  copy.to = thread.Bits(operands[0]);
  copy.from = thread.Bits(operands[1]);
  const uint32_t bytes = thread.Read<uint32_t>(operands[3]);
  if (thread.Bits(operands[2]) != 16 || (bytes != 0 && bytes != 16)) {
    throw Fault("a copy must be of 16 bytes or of 0");
  }
  copy.exists = bytes != 0;
  if (copy.exists) {
    memcpy(copy.bytes, thread.At(Access::kRead, Space::kGlobal, copy.from, 16),
           16);
  }
  memset(thread.At(Access::kWrite, Space::kShared, copy.to, 16), 0xff, 16);
  thread.copies.push_back(copy);
}

void CommitCopies(Thread& thread, const Operand*) {
  for (Copy& copy : thread.copies) {
    if (copy.committed) continue;
    copy.committed = true;
    copy.group = thread.groups;
  }
  ++thread.groups;
}

void WaitForCopies(Thread& thread, const Operand* operands) {
  const int left = thread.Read<int32_t>(operands[0]);
  std::erase_if(thread.copies, [&](const Copy& copy) {
    if (!copy.committed || copy.group >= thread.groups - left) return false;
    if (copy.exists &&
        memcmp(copy.bytes,
               thread.At(Access::kRead, Space::kGlobal, copy.from, 16),
               16) != 0) {
      throw Fault("the source of a copy was written to before the copy landed");
    }
    memcpy(thread.At(Access::kWrite, Space::kShared, copy.to, 16), copy.bytes,
           16);
    return true;
  });
}

// ---- One warp

// Each lane takes another's value, or keeps its own if that is not `inside`.
enum class Shuffle { kButterfly, kIndex };
template <Shuffle kKind>
void ShuffleValues(const Lanes& lanes, const Operand* operands) {
  uint32_t values[32], results[32];
  bool inside[32];
  for (int l = 0; l < 32; ++l) {
    if (lanes.threads[l] == nullptr) continue;
    values[l] = lanes.threads[l]->Read<uint32_t>(operands[2]);
  }
  for (int l = 0; l < 32; ++l) {
    if (lanes.threads[l] == nullptr) continue;
    const int b = lanes.threads[l]->Read<int32_t>(operands[3]) & 31;
    const int c = lanes.threads[l]->Read<int32_t>(operands[4]);
    const int clamp = c & 31, segment = c >> 8 & 31;
    const int last = (l & segment) | (clamp & ~segment);
    const int first = l & segment;
    int source = kKind == Shuffle::kButterfly ? l ^ b : first | (b & ~segment);
    inside[l] = source <= last;
    if (!inside[l]) source = l;
    if (lanes.threads[source] == nullptr) {
      throw Fault("lane " + std::to_string(l) + " takes the value of lane " +
                  std::to_string(source) + ", which is not in the mask");
    }
    results[l] = values[source];
  }
  for (int l = 0; l < 32; ++l) {
    if (lanes.threads[l] == nullptr) continue;
    lanes.threads[l]->Write<uint32_t>(operands[0], results[l]);
    lanes.threads[l]->Write<bool>(operands[1], inside[l]);
  }
}

void Ballot(const Lanes& lanes, const Operand* operands) {
  uint32_t votes = 0;
  for (int l = 0; l < 32; ++l) {
    if (lanes.threads[l] == nullptr) continue;
    votes |= uint32_t{lanes.threads[l]->Read<bool>(operands[1])} << l;
  }
  for (Thread* thread : lanes.threads) {
    if (thread != nullptr) thread->Write<uint32_t>(operands[0], votes);
  }
}

// "Matrix load instruction: ldmatrix", for .m8n8.x4: lane l has the address of
// row l % 8 of matrix l / 8, and gets from each matrix element 2 (l % 4) and
// the next one of row l / 4, or of column l / 4 with .trans.
template <bool kTransposed>
void LoadMatrices(const Lanes& lanes, const Operand* operands) {
  uint16_t rows[32][8];
  for (int l = 0; l < 32; ++l) {
    Thread& thread = *lanes.threads[l];
    memcpy(
        rows[l],
        thread.At(Access::kRead, Space::kShared, thread.Bits(operands[4]), 16),
        16);
  }
  for (int l = 0; l < 32; ++l) {
    for (int matrix = 0; matrix < 4; ++matrix) {
      uint32_t pair = 0;
      for (int i = 0; i < 2; ++i) {
        const int along = l / 4, across = l % 4 * 2 + i;
        const uint32_t element = kTransposed ? rows[8 * matrix + across][along]
                                             : rows[8 * matrix + along][across];
        pair |= element << 16 * i;
      }
      lanes.threads[l]->Write<uint32_t>(operands[matrix], pair);
    }
  }
}

// "Matrix fragments for mma.m16n8k16 with floating point type", .bf16. The
// elements of lane l: group = l / 4, of_group = l % 4.
void MultiplyMatrices(const Lanes& lanes, const Operand* operands) {
  double a[16][16], b[16][8], c[16][8];
  const auto element = [&](int l, int operand, int i) {
    const uint32_t pair =
        lanes.threads[l]->Read<uint32_t>(operands[operand + i / 2]);
    return double{FromBf16(pair >> 16 * (i % 2) & 0xffff)};
  };
  for (int l = 0; l < 32; ++l) {
    const int group = l / 4, of_group = l % 4;
    for (int i = 0; i < 8; ++i) {
      const int row = i < 2 || (i >= 4 && i < 6) ? group : group + 8;
      const int column = of_group * 2 + (i & 1) + (i >= 4 ? 8 : 0);
      a[row][column] = element(l, 4, i);
    }
    for (int i = 0; i < 4; ++i) {
      const int row = of_group * 2 + (i & 1) + (i >= 2 ? 8 : 0);
      b[row][group] = element(l, 8, i);
    }
    for (int i = 0; i < 4; ++i) {
      const int row = i < 2 ? group : group + 8;
      c[row][of_group * 2 + (i & 1)] =
          lanes.threads[l]->Read<float>(operands[10 + i]);
    }
  }
  for (int l = 0; l < 32; ++l) {
    const int group = l / 4, of_group = l % 4;
    for (int i = 0; i < 4; ++i) {
      const int row = i < 2 ? group : group + 8;
      const int column = of_group * 2 + (i & 1);
      double sum = c[row][column];
      for (int k = 0; k < 16; ++k) sum += a[row][k] * b[k][column];
      lanes.threads[l]->Write<float>(operands[i], static_cast<float>(sum));
    }
  }
}

// Where shared memory begins among the generic addresses.
constexpr uint64_t kSharedWindow = uint64_t{1} << 56;

void Nothing(const Lanes&, const Operand*) {}

// ---- The table

class Table {
 public:
  Table() {
    Arithmetic();
    Bits();
    Comparisons();
    Conversions();
    Moves();
    Control();
  }
  const std::map<std::string, Form>& forms() const { return forms_; }

 private:
  void Add(const std::string& name, const Form& form) { forms_[name] = form; }
  void AddThread(const std::string& name, int operands, int results,
                 unsigned addresses, void (*run)(Thread&, const Operand*)) {
    Form form;
    form.operands = operands;
    form.results = results;
    form.addresses = addresses;
    form.run = run;
    Add(name, form);
  }
  void AddWarp(const std::string& name, int operands, int results, int mask,
               void (*run)(const Lanes&, const Operand*)) {
    Form form;
    form.flow = Flow::kWarp;
    form.operands = operands;
    form.results = results;
    form.mask = mask;
    form.run_warp = run;
    Add(name, form);
  }
  void AddMatrices(const std::string& name,
                   void (*run)(const Lanes&, const Operand*)) {
    AddWarp(name, 5, 4, -1, run);
    forms_[name].addresses = 1u << 4;
  }
  void AddFlow(const std::string& name, Flow flow, int operands) {
    Form form;
    form.flow = flow;
    form.operands = operands;
    Add(name, form);
  }

  template <typename T>
  void Real(const std::string& type) {
    Add("add.rn" + type, Binary<T>(kAdd));
    Add("sub.rn" + type, Binary<T>(kSubtract));
    Add("mul.rn" + type, Binary<T>(kMultiply));
    Add("div.rn" + type, Binary<T>(kDivide));
    Add("fma.rn" + type, Ternary<T>(kFma));
    Add("rcp.rn" + type, Unary<T>([](T a) { return 1 / a; }));
    Add("sqrt.rn" + type, Unary<T>([](T a) { return std::sqrt(a); }));
    Add("max" + type, Binary<T>(kMax));
    // Flips the sign bit; a NaN keeps its payload.
    using Integer = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
    constexpr auto kSign = Integer{1} << (8 * sizeof(T) - 1);
    Add("neg" + type, Unary<Integer>([](Integer a) { return a ^ kSign; }));
  }
  // Signed numbers are added as unsigned ones: they wrap.
  template <typename Signed>
  void Whole(const std::string& type) {
    using Unsigned = std::make_unsigned_t<Signed>;
    Add("add.s" + type, Binary<Unsigned>(kAdd));
    Add("sub.s" + type, Binary<Unsigned>(kSubtract));
    Add("mul.lo.s" + type, Binary<Unsigned>(kMultiply));
    Add("mad.lo.s" + type,
        Ternary<Unsigned>([](Unsigned a, Unsigned b, Unsigned c) {
          return static_cast<Unsigned>(a * b + c);
        }));
    Add("neg.s" + type, Unary<Unsigned>(kNegate));
    WholeOf<Signed>(".s" + type);
    WholeOf<Unsigned>(".u" + type);
  }
  template <typename T>
  void WholeOf(const std::string& type) {
    Add("div" + type, Binary<T>(kQuotient));
    Add("rem" + type, Binary<T>(kRemainder));
    Add("min" + type, Binary<T>(kMin));
    Add("max" + type, Binary<T>(kMax));
    Add("shr" + type, ShiftRight<T>());
  }
  void Arithmetic() {
    Real<float>(".f32");
    Add("abs.f32", Unary<uint32_t>([](uint32_t a) { return a & 0x7fffffff; }));
    Real<double>(".f64");
    Whole<int32_t>("32");
    Whole<int64_t>("64");
    Add("mul.wide.s32",
        Plain<int64_t, int32_t, int32_t>(
            [](int32_t a, int32_t b) { return int64_t{a} * b; }));
    Add("mul.wide.u32",
        Plain<uint64_t, uint32_t, uint32_t>(
            [](uint32_t a, uint32_t b) { return uint64_t{a} * b; }));
    Add("ex2.approx.ftz.f32",
        Unary<float>([](float a) { return PowerOfTwo(a); }));
    Add("rcp.approx.ftz.f64",
        Unary<double>([](double a) { return RoughReciprocal(a); }));
  }

  template <typename T>
  void BitsOf(const std::string& type) {
    Add("and" + type, Binary<T>(kAnd));
    Add("or" + type, Binary<T>(kOr));
    Add("xor" + type, Binary<T>(kXor));
    Add("not" + type, Unary<T>(kNot));
    Add("shl" + type, ShiftLeft<T>());
    Add("bfi" + type, InsertField<T>());
  }
  void Bits() {
    BitsOf<uint32_t>(".b32");
    BitsOf<uint64_t>(".b64");
    Add("and.pred", Binary<bool>([](bool a, bool b) { return a && b; }));
    Add("or.pred", Binary<bool>([](bool a, bool b) { return a || b; }));
    Add("xor.pred", Binary<bool>([](bool a, bool b) { return a != b; }));
    Add("not.pred", Unary<bool>([](bool a) { return !a; }));
    Add("brev.b32", Unary<uint32_t>([](uint32_t a) { return ReverseBits(a); }));
    Add("popc.b32", Unary<uint32_t>([](uint32_t a) {
          return static_cast<uint32_t>(std::popcount(a));
        }));
    // The distance of the highest set bit from the top.
    Add("bfind.shiftamt.u32", Unary<uint32_t>([](uint32_t a) {
          return a == 0 ? ~0u : static_cast<uint32_t>(std::countl_zero(a));
        }));
    Add("prmt.b32",
        Ternary<uint32_t>([](uint32_t a, uint32_t b, uint32_t choices) {
          return Permute(a, b, choices);
        }));
  }

  template <typename T>
  void EqualityOf(const std::string& type) {
    Add("setp.eq" + type, Compare<T>([](T a, T b) { return a == b; }));
    // Ordered comparison: false if either operand is NaN.
    Add("setp.ne" + type, Compare<T>([](T a, T b) { return a < b || a > b; }));
  }
  template <typename T>
  void OrderOf(const std::string& type) {
    EqualityOf<T>(type);
    Add("setp.lt" + type, Compare<T>([](T a, T b) { return a < b; }));
    Add("setp.le" + type, Compare<T>([](T a, T b) { return a <= b; }));
    Add("setp.gt" + type, Compare<T>([](T a, T b) { return a > b; }));
    Add("setp.ge" + type, Compare<T>([](T a, T b) { return a >= b; }));
  }
  // The u forms are true for NaN, too.
  template <typename T>
  void OrderOfReals(const std::string& type) {
    OrderOf<T>(type);
    Add("setp.equ" + type,
        Compare<T>([](T a, T b) { return !(a < b || a > b); }));
    Add("setp.neu" + type, Compare<T>([](T a, T b) { return a != b; }));
    Add("setp.ltu" + type, Compare<T>([](T a, T b) { return !(a >= b); }));
    Add("setp.leu" + type, Compare<T>([](T a, T b) { return !(a > b); }));
    Add("setp.gtu" + type, Compare<T>([](T a, T b) { return !(a <= b); }));
    Add("setp.geu" + type, Compare<T>([](T a, T b) { return !(a < b); }));
    Add("setp.num" + type,
        Compare<T>([](T a, T b) { return a == a && b == b; }));
    Add("setp.nan" + type,
        Compare<T>([](T a, T b) { return a != a || b != b; }));
  }
  void Comparisons() {
    OrderOfReals<float>(".f32");
    OrderOfReals<double>(".f64");
    OrderOf<int16_t>(".s16");
    OrderOf<int32_t>(".s32");
    OrderOf<int64_t>(".s64");
    OrderOf<uint16_t>(".u16");
    OrderOf<uint32_t>(".u32");
    OrderOf<uint64_t>(".u64");
    EqualityOf<uint16_t>(".b16");
    EqualityOf<uint32_t>(".b32");
    EqualityOf<uint64_t>(".b64");
  }

  void Conversions() {
    Add("cvt.u32.u16", Convert<uint32_t, uint16_t>());
    Add("cvt.u32.u64", Convert<uint32_t, uint64_t>());
    Add("cvt.u64.u32", Convert<uint64_t, uint32_t>());
    Add("cvt.s64.s32", Convert<int64_t, int32_t>());
    Add("cvt.f64.f32", Convert<double, float>());
    Add("cvt.rn.f32.f64", Convert<float, double>());
    Add("cvt.rn.f32.s32", Convert<float, int32_t>());
    Add("cvt.rn.f32.s64", Convert<float, int64_t>());
    Add("cvt.rn.f64.s32", Convert<double, int32_t>());
    Add("cvt.rn.f64.u32", Convert<double, uint32_t>());
    Add("cvt.rn.f64.s64", Convert<double, int64_t>());
    Add("cvt.rzi.s64.f64",
        Plain<int64_t, double>([](double a) { return ToInteger(a); }));
    Add("cvt.rzi.f64.f64",
        Unary<double>([](double a) { return std::trunc(a); }));
    Add("cvt.rni.f64.f64",
        Unary<double>([](double a) { return std::nearbyint(a); }));
    // The first operand is the upper half.
    Add("cvt.rn.bf16x2.f32",
        Plain<uint32_t, float, float>([](float upper, float lower) {
          return ToBf16(upper) << 16 | ToBf16(lower);
        }));
  }

  template <Space kSpace, typename T>
  void Accesses(const std::string& space, const std::string& type) {
    Add("ld" + space + type, Load<kSpace, T, 1>());
    Add("ld" + space + ".v2" + type, Load<kSpace, T, 2>());
    Add("ld" + space + ".v4" + type, Load<kSpace, T, 4>());
    if constexpr (kSpace != Space::kParameters) {
      Add("st" + space + type, Store<kSpace, T, 1>());
      Add("st" + space + ".v2" + type, Store<kSpace, T, 2>());
      Add("st" + space + ".v4" + type, Store<kSpace, T, 4>());
    }
  }
  template <Space kSpace>
  void AccessesOf(const std::string& space) {
    Accesses<kSpace, uint8_t>(space, ".u8");
    Accesses<kSpace, uint16_t>(space, ".u16");
    Accesses<kSpace, uint32_t>(space, ".u32");
    Accesses<kSpace, uint32_t>(space, ".f32");  // NaNs stay as they are
    Accesses<kSpace, uint64_t>(space, ".u64");
    Accesses<kSpace, uint64_t>(space, ".f64");
    Accesses<kSpace, int32_t>(space, ".s32");
  }
  template <typename T>
  void MovesOf(const std::string& type) {
    Add("mov" + type, Unary<T>([](T a) { return a; }));
    Add("selp" + type, Plain<T, T, T, bool>(
                           [](T a, T b, bool first) { return first ? a : b; }));
  }
  void Moves() {
    AccessesOf<Space::kGlobal>(".global");
    AccessesOf<Space::kShared>(".shared");
    AccessesOf<Space::kParameters>(".param");
    AddThread("atom.shared.add.u32", 3, 1, 2, AtomicAdd);
    for (const char* type : {".b16", ".u16", ".s16"}) MovesOf<uint16_t>(type);
    for (const char* type : {".b32", ".u32", ".s32", ".f32"}) {
      MovesOf<uint32_t>(type);
    }
    for (const char* type : {".b64", ".u64", ".s64", ".f64"}) {
      MovesOf<uint64_t>(type);
    }
    Add("mov.pred", Unary<bool>([](bool a) { return a; }));
    // A vector is split or joined.
    AddThread("mov.b32 {2},", 3, 2, 0, Split<2, 16>);
    AddThread("mov.b32 ,{2}", 3, 1, 0, Join<2, 16>);
    AddThread("mov.b64 {2},", 3, 2, 0, Split<2, 32>);
    AddThread("mov.b64 ,{2}", 3, 1, 0, Join<2, 32>);
    // No generic address is accessed here, but some are compared with null.
    Add("cvta.to.global.u64", Unary<uint64_t>([](uint64_t a) { return a; }));
    Add("cvta.shared.u64",
        Unary<uint64_t>([](uint64_t a) { return a + kSharedWindow; }));
    Add("cvta.to.shared.u64",
        Unary<uint64_t>([](uint64_t a) { return a - kSharedWindow; }));
    AddThread("cp.async.cg.shared.global", 4, 0, 3, BeginCopy);
    AddThread("cp.async.commit_group", 0, 0, 0, CommitCopies);
    AddThread("cp.async.wait_group", 1, 0, 0, WaitForCopies);
  }

  void Control() {
    AddFlow("bra", Flow::kBranch, 0);
    AddFlow("bra.uni", Flow::kBranch, 0);
    AddFlow("ret", Flow::kReturn, 0);
    AddFlow("bar.sync", Flow::kBlock, 1);
    AddWarp("bar.warp.sync", 1, 0, 0, Nothing);
    forms_["bar.warp.sync"].orders_memory = true;
    AddWarp("shfl.sync.bfly.b32", 6, 2, 5, ShuffleValues<Shuffle::kButterfly>);
    AddWarp("shfl.sync.idx.b32", 6, 2, 5, ShuffleValues<Shuffle::kIndex>);
    AddWarp("vote.sync.ballot.b32", 3, 1, 2, Ballot);
    AddMatrices("ldmatrix.sync.aligned.m8n8.x4.shared.b16",
                LoadMatrices<false>);
    AddMatrices("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16",
                LoadMatrices<true>);
    AddWarp("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", 14, 4, -1,
            MultiplyMatrices);
  }

  std::map<std::string, Form> forms_;
};

const std::map<std::string, Form>& Forms() {
  static const Table table;
  return table.forms();
}

}  // namespace

const Form* FindForm(const std::string& name) {
  const auto form = Forms().find(name);
  return form == Forms().end() ? nullptr : &form->second;
}

}  // namespace softmoe::ptx
