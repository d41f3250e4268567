// SPDX-License-Identifier: Apache-2.0
//
// mpfr_number.h - a number of many bits with the usual operators (tests only).
//
// kMpfrBits = 320 bits are 96 decimal digits, so that a central difference with
// step 2^-80 errs by 2^-150 at most. Every operation rounds to nearest; the
// exponent range is MPFR's own, so e^-1e6 is an ordinary number.
#ifndef SOFTMOE_REFERENCE_TESTING_MPFR_NUMBER_H_
#define SOFTMOE_REFERENCE_TESTING_MPFR_NUMBER_H_

#include <mpfr.h>

#include <utility>

namespace softmoe::reference::testing {

inline constexpr mpfr_prec_t kMpfrBits = 320;

class Mpfr {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): as for the built-in types
  Mpfr(double value = 0) {  // exact
    mpfr_init2(value_, kMpfrBits);
    mpfr_set_d(value_, value, MPFR_RNDN);
  }
  Mpfr(const Mpfr& other) {
    mpfr_init2(value_, kMpfrBits);
    mpfr_set(value_, other.value_, MPFR_RNDN);
  }
  Mpfr(Mpfr&& other) noexcept : Mpfr() { mpfr_swap(value_, other.value_); }
  Mpfr& operator=(Mpfr other) {
    mpfr_swap(value_, other.value_);
    return *this;
  }
  ~Mpfr() { mpfr_clear(value_); }

  double ToDouble() const { return mpfr_get_d(value_, MPFR_RNDN); }
  int Sign() const { return mpfr_sgn(value_); }

  Mpfr& operator+=(const Mpfr& b) {
    mpfr_add(value_, value_, b.value_, MPFR_RNDN);
    return *this;
  }
  Mpfr& operator-=(const Mpfr& b) {
    mpfr_sub(value_, value_, b.value_, MPFR_RNDN);
    return *this;
  }
  Mpfr& operator*=(const Mpfr& b) {
    mpfr_mul(value_, value_, b.value_, MPFR_RNDN);
    return *this;
  }
  Mpfr& operator/=(const Mpfr& b) {
    mpfr_div(value_, value_, b.value_, MPFR_RNDN);
    return *this;
  }
  Mpfr operator-() const {
    Mpfr result(*this);
    mpfr_neg(result.value_, value_, MPFR_RNDN);
    return result;
  }

  friend Mpfr operator+(Mpfr a, const Mpfr& b) { return a += b; }
  friend Mpfr operator-(Mpfr a, const Mpfr& b) { return a -= b; }
  friend Mpfr operator*(Mpfr a, const Mpfr& b) { return a *= b; }
  friend Mpfr operator/(Mpfr a, const Mpfr& b) { return a /= b; }
  friend bool operator<(const Mpfr& a, const Mpfr& b) {
    return mpfr_less_p(a.value_, b.value_) != 0;
  }
  friend bool operator>(const Mpfr& a, const Mpfr& b) { return b < a; }
  friend bool operator<=(const Mpfr& a, const Mpfr& b) {
    return mpfr_lessequal_p(a.value_, b.value_) != 0;
  }

  friend Mpfr Exp(const Mpfr& a) {
    Mpfr result;
    mpfr_exp(result.value_, a.value_, MPFR_RNDN);
    return result;
  }
  friend Mpfr Log(const Mpfr& a) {
    Mpfr result;
    mpfr_log(result.value_, a.value_, MPFR_RNDN);
    return result;
  }
  friend Mpfr Abs(const Mpfr& a) { return a.Sign() < 0 ? -a : a; }
  // a * 2^exponent, exactly.
  friend Mpfr Scale(const Mpfr& a, long exponent) {
    Mpfr result;
    mpfr_mul_2si(result.value_, a.value_, exponent, MPFR_RNDN);
    return result;
  }

 private:
  mpfr_t value_;
};

}  // namespace softmoe::reference::testing

#endif  // SOFTMOE_REFERENCE_TESTING_MPFR_NUMBER_H_
