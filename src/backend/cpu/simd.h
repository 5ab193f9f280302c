// Sixteen lanes on every instruction set: the same operations, each IEEE exact, so the same bits (row law).
// Kernels are templates over one of these structs and are compiled once for each (kernels_*.cc). Sixteen is part of the
// arithmetic: a lane is a feature, a dimension or a class of keys, whatever the register's width is.
// F: 16 floats. I: 16 int32. B: 64 bytes, four consecutive k of each of 16 lanes.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace steadfast::cpu {
namespace {  // internal to each translation unit: the linker must never share code between instruction sets

template <int kValue>
struct Int {
  static constexpr int value = kValue;
};

struct Scalar {
  static constexpr const char* kName = "scalar";
  struct F {
    float v[16];
  };
  struct I {
    std::int32_t v[16];
  };
  struct B {
    std::uint8_t v[64];
  };

  template <typename Fn>
  static F each(Fn fn) {
    F r;
    for (int i = 0; i < 16; ++i) r.v[i] = fn(i);
    return r;
  }
  template <typename Fn>
  static I each_int(Fn fn) {
    I r;
    for (int i = 0; i < 16; ++i) r.v[i] = fn(i);
    return r;
  }

  static F zero() { return set1(0.0f); }
  static F set1(float x) {
    return each([&](int) { return x; });
  }
  static F load(const float* p) {
    return each([&](int i) { return p[i]; });
  }
  static void store(float* p, F a) { std::memcpy(p, a.v, sizeof a.v); }
  static F load_bf16(const std::uint16_t* p) {
    return each([&](int i) { return as_float(static_cast<std::uint32_t>(p[i]) << 16); });
  }
  static F load_f16(const std::uint16_t* p) {
    return each([&](int i) { return half(p[i]); });
  }
  // e4m3, with 480 for its NaN, which the cache never stores.
  static F load_f8(const std::uint8_t* p) {
    return each([&](int i) {
      const std::uint32_t bits = p[i];
      return as_float((bits & 0x80u) << 24 | (bits & 0x7Fu) << 20) * 0x1p120f;
    });
  }
  static F add(F a, F b) {
    return each([&](int i) { return a.v[i] + b.v[i]; });
  }
  static F sub(F a, F b) {
    return each([&](int i) { return a.v[i] - b.v[i]; });
  }
  static F mul(F a, F b) {
    return each([&](int i) { return a.v[i] * b.v[i]; });
  }
  static F div(F a, F b) {
    return each([&](int i) { return a.v[i] / b.v[i]; });
  }
  static F fma(F a, F b, F c) {
    return each([&](int i) { return std::fma(a.v[i], b.v[i], c.v[i]); });
  }
  // As x86's: b where either is NaN, b where both are zero.
  static F max(F a, F b) {
    return each([&](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
  }
  static F min(F a, F b) {
    return each([&](int i) { return a.v[i] < b.v[i] ? a.v[i] : b.v[i]; });
  }
  static F abs(F a) {
    return each([&](int i) { return std::fabs(a.v[i]); });
  }
  static F round(F a) {
    return each([&](int i) { return std::nearbyintf(a.v[i]); });
  }
  // a where lane < count, else b.
  static F first(int count, F a, F b) {
    return each([&](int i) { return i < count ? a.v[i] : b.v[i]; });
  }
  static F less_then(F a, F b, F yes, F no) {
    return each([&](int i) { return a.v[i] < b.v[i] ? yes.v[i] : no.v[i]; });
  }
  // a * 2^n for whole n in [-126, 127].
  static F scale2(F a, F n) {
    return each([&](int i) {
      return a.v[i] * as_float(static_cast<std::uint32_t>(static_cast<std::int32_t>(n.v[i]) + 127) << 23);
    });
  }
  static I izero() {
    return each_int([](int) { return 0; });
  }
  static I iset1(std::int32_t x) {
    return each_int([&](int) { return x; });
  }
  static I isub(I a, I b) {
    return each_int([&](int i) { return a.v[i] - b.v[i]; });
  }
  static I iadd(I a, I b) {
    return each_int([&](int i) { return a.v[i] + b.v[i]; });
  }
  template <int kShift>
  static I ishift(I a) {  // a * 2^kShift; no result overflows
    return each_int([&](int i) { return a.v[i] * (1 << kShift); });
  }
  static F to_float(I a) {
    return each([&](int i) { return static_cast<float>(a.v[i]); });
  }
  // Round to nearest even, for values in [-128, 127]; NaN gives -128, as on x86.
  static void store_int8(std::int8_t* p, F a) {
    for (int i = 0; i < 16; ++i) {
      const float x = std::nearbyintf(a.v[i]);
      p[i] = x >= -128.0f && x <= 127.0f ? static_cast<std::int8_t>(x) : static_cast<std::int8_t>(-128);
    }
  }
  static void store_bf16(std::uint16_t* p, F a) {
    for (int i = 0; i < 16; ++i) p[i] = bf16(a.v[i]);
  }
  static F round_bf16(F a) {
    return each([&](int i) { return as_float(static_cast<std::uint32_t>(bf16(a.v[i])) << 16); });
  }
  static B load_bytes(const std::uint8_t* p) {
    B r;
    std::memcpy(r.v, p, 64);
    return r;
  }
  template <int kShift>
  static B field(B a, std::uint8_t mask) {
    B r;
    for (int i = 0; i < 64; ++i) r.v[i] = static_cast<std::uint8_t>((a.v[i] >> kShift) & mask);
    return r;
  }
  template <int kShift>
  static B merge(B a, B high) {  // a + (high << kShift), fields that do not overlap
    B r;
    for (int i = 0; i < 64; ++i) r.v[i] = static_cast<std::uint8_t>(a.v[i] | (high.v[i] << kShift));
    return r;
  }
  // acc + sum over the lane's four bytes of w * x. x: four int8, the same for all lanes. Exact.
  template <int kBits>
  static I dot(I acc, B w, const std::int8_t* x) {
    for (int i = 0; i < 16; ++i)
      for (int j = 0; j < 4; ++j) acc.v[i] += static_cast<std::int32_t>(w.v[4 * i + j]) * x[j];
    return acc;
  }
  // Byte j of every lane as a float.
  template <int kByte>
  static F byte_to_float(B w) {
    return each([&](int i) { return static_cast<float>(w.v[4 * i + kByte]); });
  }

 private:
  static float as_float(std::uint32_t bits) {
    float r;
    std::memcpy(&r, &bits, 4);
    return r;
  }
  static std::uint16_t bf16(float x) {
    std::uint32_t b;
    std::memcpy(&b, &x, 4);
    if ((b & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<std::uint16_t>((b >> 16) | 0x40u);
    return static_cast<std::uint16_t>((b + 0x7FFFu + ((b >> 16) & 1u)) >> 16);
  }
  static float half(std::uint16_t h) {
    const std::uint32_t sign = static_cast<std::uint32_t>(h & 0x8000u) << 16;
    const std::uint32_t exponent = (h >> 10) & 0x1Fu;
    const std::uint32_t mantissa = h & 0x3FFu;
    if (exponent == 0x1Fu) return as_float(sign | 0x7F800000u | (mantissa << 13));
    if (exponent != 0) return as_float(sign | ((exponent + 112) << 23) | (mantissa << 13));
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return sign != 0 ? -magnitude : magnitude;
  }
};

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
struct Avx2 {
  static constexpr const char* kName = "avx2";
  struct F {
    __m256 a, b;
  };
  struct I {
    __m256i a, b;
  };
  struct B {
    __m256i a, b;
  };

  static F zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
  static F set1(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
  static F load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
  static void store(float* p, F x) {
    _mm256_storeu_ps(p, x.a);
    _mm256_storeu_ps(p + 8, x.b);
  }
  static F load_bf16(const std::uint16_t* p) {
    const auto wide = [](const std::uint16_t* q) {
      const __m128i raw = _mm_loadu_si128(reinterpret_cast<const __m128i*>(q));
      return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(raw), 16));
    };
    return {wide(p), wide(p + 8)};
  }
  static F load_f16(const std::uint16_t* p) {
    return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))),
            _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 8)))};
  }
  static F load_f8(const std::uint8_t* p) {
    const auto wide = [](const std::uint8_t* q) {
      const __m256i codes = _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(q)));
      const __m256i sign = _mm256_and_si256(codes, _mm256_set1_epi32(static_cast<int>(0x80000000u)));
      const __m256i rest = _mm256_slli_epi32(_mm256_and_si256(codes, _mm256_set1_epi32(0x7F)), 20);
      return _mm256_mul_ps(_mm256_castsi256_ps(_mm256_or_si256(sign, rest)), _mm256_set1_ps(0x1p120f));
    };
    return {wide(p), wide(p + 8)};
  }
  static F add(F x, F y) { return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)}; }
  static F sub(F x, F y) { return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)}; }
  static F mul(F x, F y) { return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)}; }
  static F div(F x, F y) { return {_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)}; }
  static F fma(F x, F y, F z) { return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)}; }
  static F max(F x, F y) { return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)}; }
  static F min(F x, F y) { return {_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)}; }
  static F abs(F x) {
    const __m256 mask = _mm256_castsi256_ps(_mm256_set1_epi32(0x7FFFFFFF));
    return {_mm256_and_ps(x.a, mask), _mm256_and_ps(x.b, mask)};
  }
  static F round(F x) {
    return {_mm256_round_ps(x.a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC),
            _mm256_round_ps(x.b, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
  }
  static F first(int count, F x, F y) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256 low = _mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32(count), lane));
    const __m256 high = _mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32(count - 8), lane));
    return {_mm256_blendv_ps(y.a, x.a, low), _mm256_blendv_ps(y.b, x.b, high)};
  }
  static F less_then(F x, F y, F yes, F no) {
    return {_mm256_blendv_ps(no.a, yes.a, _mm256_cmp_ps(x.a, y.a, _CMP_LT_OQ)),
            _mm256_blendv_ps(no.b, yes.b, _mm256_cmp_ps(x.b, y.b, _CMP_LT_OQ))};
  }
  static F scale2(F x, F n) {
    const auto power = [](__m256 k) {
      return _mm256_castsi256_ps(
          _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(k), _mm256_set1_epi32(127)), 23));
    };
    return {_mm256_mul_ps(x.a, power(n.a)), _mm256_mul_ps(x.b, power(n.b))};
  }
  static I izero() { return {_mm256_setzero_si256(), _mm256_setzero_si256()}; }
  static I iset1(std::int32_t x) { return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)}; }
  static I isub(I x, I y) { return {_mm256_sub_epi32(x.a, y.a), _mm256_sub_epi32(x.b, y.b)}; }
  static I iadd(I x, I y) { return {_mm256_add_epi32(x.a, y.a), _mm256_add_epi32(x.b, y.b)}; }
  template <int kShift>
  static I ishift(I x) {
    return {_mm256_slli_epi32(x.a, kShift), _mm256_slli_epi32(x.b, kShift)};
  }
  static F to_float(I x) { return {_mm256_cvtepi32_ps(x.a), _mm256_cvtepi32_ps(x.b)}; }
  static void store_int8(std::int8_t* p, F x) {
    __m256i words = _mm256_packs_epi32(_mm256_cvtps_epi32(x.a), _mm256_cvtps_epi32(x.b));
    words = _mm256_permute4x64_epi64(words, 0xD8);
    const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), bytes);
  }
  static void store_bf16(std::uint16_t* p, F x) {
    __m256i words = _mm256_packus_epi32(_mm256_srli_epi32(bf16_bits(x.a), 16), _mm256_srli_epi32(bf16_bits(x.b), 16));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_permute4x64_epi64(words, 0xD8));
  }
  static F round_bf16(F x) { return {_mm256_castsi256_ps(bf16_bits(x.a)), _mm256_castsi256_ps(bf16_bits(x.b))}; }
  static B load_bytes(const std::uint8_t* p) {
    return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)),
            _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32))};
  }
  template <int kShift>
  static B field(B x, std::uint8_t mask) {
    const __m256i m = _mm256_set1_epi8(static_cast<char>(mask));
    return {_mm256_and_si256(_mm256_srli_epi16(x.a, kShift), m), _mm256_and_si256(_mm256_srli_epi16(x.b, kShift), m)};
  }
  template <int kShift>
  static B merge(B x, B high) {
    return {_mm256_or_si256(x.a, _mm256_slli_epi16(high.a, kShift)),
            _mm256_or_si256(x.b, _mm256_slli_epi16(high.b, kShift))};
  }
  template <int kBits>
  static I dot(I acc, B w, const std::int8_t* x) {
    std::int32_t four;
    std::memcpy(&four, x, 4);
    const __m256i xs = _mm256_set1_epi32(four);
    return {_mm256_add_epi32(acc.a, dot4<kBits>(w.a, xs)), _mm256_add_epi32(acc.b, dot4<kBits>(w.b, xs))};
  }
  template <int kByte>
  static F byte_to_float(B w) {
    const __m256i m = _mm256_set1_epi32(0xFF);
    return {_mm256_cvtepi32_ps(_mm256_and_si256(_mm256_srli_epi32(w.a, 8 * kByte), m)),
            _mm256_cvtepi32_ps(_mm256_and_si256(_mm256_srli_epi32(w.b, 8 * kByte), m))};
  }

 private:
  // The 32-bit patterns of x rounded to bf16 (low half zero); NaN stays NaN.
  static __m256i bf16_bits(__m256 x) {
    const __m256i bits = _mm256_castps_si256(x);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7FFF)));
    const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    return _mm256_and_si256(_mm256_blendv_epi8(rounded, quiet, nan), _mm256_set1_epi32(static_cast<int>(0xFFFF0000u)));
  }
  // maddubs saturates at 16 bits: up to 7-bit weights fit (2 * 127 * 127 < 32768), 8-bit ones go as two nibbles.
  template <int kBits>
  static __m256i dot4(__m256i w, __m256i x) {
    const __m256i ones = _mm256_set1_epi16(1);
    if constexpr (kBits <= 7) {
      return _mm256_madd_epi16(_mm256_maddubs_epi16(w, x), ones);
    } else {
      const __m256i nibble = _mm256_set1_epi8(15);
      const __m256i low = _mm256_maddubs_epi16(_mm256_and_si256(w, nibble), x);
      const __m256i high = _mm256_maddubs_epi16(_mm256_and_si256(_mm256_srli_epi16(w, 4), nibble), x);
      return _mm256_add_epi32(_mm256_madd_epi16(low, ones), _mm256_slli_epi32(_mm256_madd_epi16(high, ones), 4));
    }
  }
};
#endif

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VNNI__)
struct Avx512 {
  static constexpr const char* kName = "avx512";
  using F = __m512;
  using I = __m512i;
  struct B {
    __m512i v;
  };

  static F zero() { return _mm512_setzero_ps(); }
  static F set1(float x) { return _mm512_set1_ps(x); }
  static F load(const float* p) { return _mm512_loadu_ps(p); }
  static void store(float* p, F x) { _mm512_storeu_ps(p, x); }
  static F load_bf16(const std::uint16_t* p) {
    const __m256i raw = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(raw), 16));
  }
  static F load_f16(const std::uint16_t* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static F load_f8(const std::uint8_t* p) {
    const __m512i codes = _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    const __m512i rest = _mm512_slli_epi32(_mm512_and_si512(codes, _mm512_set1_epi32(0x7F)), 20);
    // Bits of the sign where the mask has them, else the rest's.
    const __m512i bits = _mm512_ternarylogic_epi32(_mm512_set1_epi32(static_cast<int>(0x80000000u)), codes, rest, 0xEA);
    return _mm512_mul_ps(_mm512_castsi512_ps(bits), _mm512_set1_ps(0x1p120f));
  }
  static F add(F x, F y) { return _mm512_add_ps(x, y); }
  static F sub(F x, F y) { return _mm512_sub_ps(x, y); }
  static F mul(F x, F y) { return _mm512_mul_ps(x, y); }
  static F div(F x, F y) { return _mm512_div_ps(x, y); }
  static F fma(F x, F y, F z) { return _mm512_fmadd_ps(x, y, z); }
  static F max(F x, F y) { return _mm512_max_ps(x, y); }
  static F min(F x, F y) { return _mm512_min_ps(x, y); }
  static F abs(F x) { return _mm512_abs_ps(x); }
  static F round(F x) { return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  static F first(int count, F x, F y) {
    const __mmask16 mask = count >= 16 ? 0xFFFF : static_cast<__mmask16>((1u << (count > 0 ? count : 0)) - 1);
    return _mm512_mask_blend_ps(mask, y, x);
  }
  static F less_then(F x, F y, F yes, F no) {
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(x, y, _CMP_LT_OQ), no, yes);
  }
  static F scale2(F x, F n) {
    const __m512i power = _mm512_slli_epi32(_mm512_add_epi32(_mm512_cvtps_epi32(n), _mm512_set1_epi32(127)), 23);
    return _mm512_mul_ps(x, _mm512_castsi512_ps(power));
  }
  static I izero() { return _mm512_setzero_si512(); }
  static I iset1(std::int32_t x) { return _mm512_set1_epi32(x); }
  static I isub(I x, I y) { return _mm512_sub_epi32(x, y); }
  static I iadd(I x, I y) { return _mm512_add_epi32(x, y); }
  template <int kShift>
  static I ishift(I x) {
    return _mm512_slli_epi32(x, kShift);
  }
  static F to_float(I x) { return _mm512_cvtepi32_ps(x); }
  static void store_int8(std::int8_t* p, F x) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(x)));
  }
  static void store_bf16(std::uint16_t* p, F x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(_mm512_srli_epi32(bf16_bits(x), 16)));
  }
  static F round_bf16(F x) { return _mm512_castsi512_ps(bf16_bits(x)); }
  static B load_bytes(const std::uint8_t* p) { return {_mm512_loadu_si512(p)}; }
  template <int kShift>
  static B field(B x, std::uint8_t mask) {
    return {_mm512_and_si512(_mm512_srli_epi16(x.v, kShift), _mm512_set1_epi8(static_cast<char>(mask)))};
  }
  template <int kShift>
  static B merge(B x, B high) {
    return {_mm512_or_si512(x.v, _mm512_slli_epi16(high.v, kShift))};
  }
  template <int kBits>
  static I dot(I acc, B w, const std::int8_t* x) {
    std::int32_t four;
    std::memcpy(&four, x, 4);
    return _mm512_dpbusd_epi32(acc, w.v, _mm512_set1_epi32(four));
  }
  template <int kByte>
  static F byte_to_float(B w) {
    return _mm512_cvtepi32_ps(_mm512_and_si512(_mm512_srli_epi32(w.v, 8 * kByte), _mm512_set1_epi32(0xFF)));
  }

 private:
  static __m512i bf16_bits(__m512 x) {
    const __m512i bits = _mm512_castps_si512(x);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7FFF)));
    const __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
    const __m512i chosen = _mm512_mask_blend_epi32(_mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), rounded, quiet);
    return _mm512_and_si512(chosen, _mm512_set1_epi32(static_cast<int>(0xFFFF0000u)));
  }
};
#endif

// Lanes to one number: the tree is fixed: 16 -> 8 -> 4 -> 2 -> 1, halves added.
template <typename S>
inline float sum_lanes(typename S::F x) {
  float v[16];
  S::store(v, x);
  for (int half = 8; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) v[i] = v[i] + v[i + half];
  return v[0];
}

template <typename S>
inline float max_lanes(typename S::F x) {
  float v[16];
  S::store(v, x);
  float result = v[0];
  for (int i = 1; i < 16; ++i) result = v[i] > result ? v[i] : result;
  return result;
}

// e^x in fp32: n = round(x / ln 2), Taylor's polynomial of degree 7 on the rest (|r| <= ln(2)/2: error below 2^-27),
// times 2^n. At most 2 ulp off; x < -87.3 gives 0, x > 88.37 gives e^88.37.
template <typename S>
inline typename S::F exp(typename S::F x) {
  using F = typename S::F;
  const F low = S::set1(-87.3f);
  const F clamped = S::max(S::min(x, S::set1(88.37f)), low);
  const F n = S::round(S::mul(clamped, S::set1(1.44269504f)));
  F r = S::fma(n, S::set1(-0.693145752f), clamped);
  r = S::fma(n, S::set1(-1.42860677e-6f), r);
  F p = S::set1(1.0f / 5040);
  p = S::fma(p, r, S::set1(1.0f / 720));
  p = S::fma(p, r, S::set1(1.0f / 120));
  p = S::fma(p, r, S::set1(1.0f / 24));
  p = S::fma(p, r, S::set1(1.0f / 6));
  p = S::fma(p, r, S::set1(0.5f));
  p = S::fma(p, r, S::set1(1.0f));
  p = S::fma(p, r, S::set1(1.0f));
  return S::less_then(x, low, S::zero(), S::scale2(p, n));
}

}  // namespace
}  // namespace steadfast::cpu
