// attention_check: attention and the stores on the card against float64 within a derived bound, and the row law to the
// bit: every schedule, row alone, pieces of 1, 7, 64, 256, 1,000 rows, mixed rounds, whole windows and pages of every
// size in random order. Controls must differ. Exit status 1 if anything is not as it must be.
#include "attention_problem.h"

namespace steadfast::cuda::check {
namespace {

int failures = 0;

void report(const char* what, const Shape& shape, std::size_t differing, std::size_t of, bool must_differ = false) {
  const bool good = must_differ ? differing > 0 : differing == 0;
  if (!good) ++failures;
  std::printf("%s %2d heads over %d, dim %3d, %s: %-56s %zu of %zu differ\n", good ? "ok    " : "FAILED", shape.heads,
              shape.kv_heads, shape.dim, shape.fp8 ? "fp8 " : "bf16", what, differing, of);
}

std::size_t differing(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return std::max(a.size(), b.size());
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) count += std::memcmp(&a[i], &b[i], sizeof(float)) != 0;
  return count;
}

// Pieces of `rows` rows, one round each.
std::vector<float> in_pieces(Bench& bench, const Streams& streams, Cache& cache, int stream, int rows,
                             AttentionSchedule schedule = AttentionSchedule::kBest) {
  const auto& one = streams.all[static_cast<std::size_t>(stream)];
  std::vector<float> out;
  for (int p = one.first_query; p < one.positions; p += rows) {
    const auto part = bench.attend(streams, cache, {{stream, p, std::min(rows, one.positions - p)}}, schedule);
    out.insert(out.end(), part.begin(), part.end());
  }
  return out;
}

struct Reference {
  double value, bound;
};

// One row's head in float64 from the stored keys and values, and a bound of our error: weights rounded to bf16 (2^-9,
// in numerator and denominator), scores summed in fp32 in dim / 16 truncating steps of 2^-22 of the terms' magnitudes,
// value sums likewise in one step a 16 positions, exp2 and the folds a few ulp.
std::vector<Reference> reference(const Streams& streams, Cache& cache, const Cache::Host& keys,
                                 const Cache::Host& values, int stream, int position, int head) {
  const Shape& shape = streams.shape;
  const auto& one = streams.all[static_cast<std::size_t>(stream)];
  const int kv_head = head / (shape.heads / shape.kv_heads);
  const float* query = one.queries.data() +
                       static_cast<std::ptrdiff_t>(position - one.first_query) * shape.query_width() + head * shape.dim;
  std::vector<double> weight(static_cast<std::size_t>(position) + 1);
  double top = -1e300, spread = 0;
  for (int p = 0; p <= position; ++p) {
    double dot = 0, magnitude = 0;
    for (int d = 0; d < shape.dim; ++d) {
      const double term =
          static_cast<double>(bf16_to_f32(f32_to_bf16(query[d]))) * cache.value(keys, stream, p, kv_head, d);
      dot += term;
      magnitude += std::abs(term);
    }
    weight[static_cast<std::size_t>(p)] = dot * static_cast<double>(shape.attention().scale);
    spread = std::max(spread, magnitude * static_cast<double>(shape.attention().scale));
    top = std::max(top, weight[static_cast<std::size_t>(p)]);
  }
  double sum = 0;
  for (double& w : weight) sum += w = std::exp(w - top);
  const double steps = shape.dim / 16 + 2;
  const double relative =
      2 * (std::ldexp(1, -9) + spread * steps * std::ldexp(1, -22)) + (position / 16 + 64) * std::ldexp(1, -22);
  std::vector<Reference> row;
  for (int d = 0; d < shape.dim; ++d) {
    double total = 0, magnitude = 0;
    for (int p = 0; p <= position; ++p) {
      const double term = weight[static_cast<std::size_t>(p)] * cache.value(values, stream, p, kv_head, d);
      total += term;
      magnitude += std::abs(term);
    }
    row.push_back({total / sum, relative * magnitude / sum + 1e-30});
  }
  return row;
}

void check_accuracy(const Streams& streams, Cache& cache, const std::vector<float>& out, int stream) {
  const Shape& shape = streams.shape;
  const auto& one = streams.all[static_cast<std::size_t>(stream)];
  const auto keys = cache.host(true), values = cache.host(false);
  std::size_t beyond = 0, of = 0;
  double worst = 0, error = 0, norm = 0;
  const int rows = one.positions - one.first_query;
  for (const int row : {0, 64, 511, rows - 1}) {
    if (row < 0 || row >= rows) continue;
    for (const int head : {0, shape.heads / 2, shape.heads - 1}) {
      const auto exact = reference(streams, cache, keys, values, stream, one.first_query + row, head);
      for (int d = 0; d < shape.dim; ++d, ++of) {
        const double got = out[static_cast<std::size_t>(row) * shape.query_width() + head * shape.dim + d];
        const auto& want = exact[static_cast<std::size_t>(d)];
        const double off = std::abs(got - want.value);
        if (!(off <= want.bound)) ++beyond;
        worst = std::max(worst, off / want.bound);
        error += off * off;
        norm += want.value * want.value;
      }
    }
  }
  char what[100];
  std::snprintf(what, sizeof what, "float64, to %d: error %.1e, worst %.2f of bound", one.positions,
                std::sqrt(error / norm), worst);
  report(what, shape, beyond, of);
}

// Stores: every element is the rounded input, wherever it lies; cuts and page sizes change nothing.
void check_store(Bench& bench, const Streams& streams, int page) {
  const Shape& shape = streams.shape;
  const int positions = streams.all[0].positions;
  Cache cache(shape, static_cast<int>(streams.all.size()), positions, page, 5);
  for (int p = 0; p < positions; p += 37) bench.store(streams, cache, {{0, p, std::min(37, positions - p)}});
  std::size_t wrong = 0, of = 0;
  for (const bool keys : {true, false}) {
    const auto host = cache.host(keys);
    const auto& from = keys ? streams.all[0].keys : streams.all[0].values;
    for (int p = 0; p < positions; ++p)
      for (int head = 0; head < shape.kv_heads; ++head) {
        const float* x = from.data() + static_cast<std::ptrdiff_t>(p) * shape.kv_width() + head * shape.dim;
        const float largest =
            std::abs(*std::max_element(x, x + shape.dim, [](float a, float b) { return std::abs(a) < std::abs(b); }));
        int exponent = 0;
        while (std::ldexp(448.0, exponent) < static_cast<double>(largest)) ++exponent;
        while (std::ldexp(448.0, exponent - 1) >= static_cast<double>(largest)) --exponent;
        for (int d = 0; d < shape.dim; ++d, ++of) {
          const double got = cache.value(host, 0, p, head, d), exact = static_cast<double>(x[d]);
          if (!shape.fp8) {
            wrong += got != static_cast<double>(bf16_to_f32(f32_to_bf16(x[d])));
            continue;
          }
          // e4m3: four significant bits, at least 2^-9 of the scale apart.
          const double step = std::ldexp(1.0, std::max(std::ilogb(exact) - 3, exponent - 9));
          wrong += got != std::nearbyint(exact / step) * step;
        }
      }
  }
  char what[100];
  std::snprintf(what, sizeof what, "stored, pieces of 37, pages of %d", page);
  report(what, shape, wrong, of);
}

void store_all(Bench& bench, const Streams& streams, Cache& cache) {
  for (int stream = 0; stream < static_cast<int>(streams.all.size()); ++stream)
    bench.store(streams, cache, {{stream, 0, streams.all[static_cast<std::size_t>(stream)].positions}});
}

void check_controls(Bench& bench, const Streams& streams, const std::vector<float>& good) {
  const Shape& shape = streams.shape;
  const int positions = streams.all[0].positions;
  int window = 0;
  for (const auto& one : streams.all) window = std::max(window, one.positions);
  Cache cache(shape, static_cast<int>(streams.all.size()), window, 64, 21);
  store_all(bench, streams, cache);
  const int last = positions - 1, wide = shape.query_width();
  const std::vector<float> row(good.end() - wide, good.end());
  const auto now = [&] { return bench.attend(streams, cache, {{0, last, 1}}, AttentionSchedule::kBest); };
  report("control: nothing planted", shape, differing(row, now()), row.size());
  std::swap(cache.table(0)[0], cache.table(0)[1]);
  report("control: two table entries swapped", shape, differing(row, now()), row.size(), last >= 128);
  std::swap(cache.table(0)[0], cache.table(0)[1]);
  // One row of page 0 overwritten with page 1's.
  Streams planted = streams;
  std::copy_n(planted.all[0].values.begin() + 64 * shape.kv_width(), shape.kv_width(), planted.all[0].values.begin());
  bench.store(planted, cache, {{0, 0, 1}});
  report("control: a row of another page planted", shape, differing(row, now()), row.size(), true);
  bench.store(streams, cache, {{0, 0, 1}});
  report("control: mended", shape, differing(row, now()), row.size());
  Streams shorter = streams;  // the last position's key and value dropped: the query sees one position less
  const auto tail = bench.attend(shorter, cache, {{0, last, 1}}, AttentionSchedule::kBest);
  auto& queries = shorter.all[0].queries;
  std::copy_n(queries.end() - wide, wide, queries.end() - 2 * wide);
  const auto dropped = bench.attend(shorter, cache, {{0, last - 1, 1}}, AttentionSchedule::kBest);
  report("control: the tail dropped", shape, differing(tail, dropped), tail.size(), true);
}

void check_law(Bench& bench, const Shape& shape, const std::vector<std::pair<int, int>>& lengths, bool wide,
               bool all_pages) {
  const Streams streams(shape, lengths, 7, wide);
  const int count = static_cast<int>(lengths.size());
  int window = 0;
  for (const auto& [positions, first] : lengths) window = std::max(window, positions);
  Cache whole(shape, count, window, 0, 1);
  store_all(bench, streams, whole);
  std::vector<std::vector<float>> good;
  for (int stream = 0; stream < count; ++stream) {
    const auto& one = streams.all[static_cast<std::size_t>(stream)];
    good.push_back(bench.attend(streams, whole, {{stream, one.first_query, one.positions - one.first_query}},
                                AttentionSchedule::kBest));
    check_accuracy(streams, whole, good.back(), stream);
    report("portable schedule", shape,
           differing(good.back(), in_pieces(bench, streams, whole, stream, 1 << 20, AttentionSchedule::kPortable)),
           good.back().size());
  }
  Cache paged(shape, count, window, 256, 3);
  store_all(bench, streams, paged);
  for (const int rows : {1, 7, 21, 22, 64, 256, 1000}) {
    if (rows == 1 && good[0].size() > (std::size_t{1} << 21)) continue;
    char what[100];
    std::snprintf(what, sizeof what, "pieces of %d, pages of 256", rows);
    report(what, shape, differing(good[0], in_pieces(bench, streams, paged, 0, rows)), good[0].size());
  }
  report("portable, pieces of 7, pages of 256", shape,
         differing(good[0], in_pieces(bench, streams, paged, 0, 7, AttentionSchedule::kPortable)), good[0].size());
  for (const int page : {16, 32, 64, 128, 512, 1024}) {
    if (!all_pages && page != 64) continue;
    Cache other(shape, count, window, page, 11);
    store_all(bench, streams, other);
    char what[100];
    std::snprintf(what, sizeof what, "one piece, pages of %d", page);
    const auto& one = streams.all[0];
    report(what, shape,
           differing(good[0], bench.attend(streams, other, {{0, one.first_query, one.positions - one.first_query}},
                                           AttentionSchedule::kBest)),
           good[0].size());
    std::snprintf(what, sizeof what, "portable, pieces of 100, pages of %d", page);
    report(what, shape, differing(good[0], in_pieces(bench, streams, other, 0, 100, AttentionSchedule::kPortable)),
           good[0].size());
  }
  // One round of everything: rows, drafts and prompts of all streams, on pages.
  std::vector<Cut> cuts;
  std::vector<float> want;
  for (int turn = 0; turn < 3; ++turn)
    for (int stream = 0; stream < count; ++stream) {
      const auto& one = streams.all[static_cast<std::size_t>(stream)];
      const int rows = one.positions - one.first_query, some = std::min(rows, turn == 0 ? 1 : turn == 1 ? 9 : 333);
      const int from = turn == 0 ? rows - 1 : (rows - some) / 2;
      cuts.push_back({stream, one.first_query + from, some});
      const auto at =
          good[static_cast<std::size_t>(stream)].begin() + static_cast<std::ptrdiff_t>(from) * shape.query_width();
      want.insert(want.end(), at, at + static_cast<std::ptrdiff_t>(some) * shape.query_width());
    }
  report("a mixed round on pages", shape, differing(want, bench.attend(streams, paged, cuts, AttentionSchedule::kBest)),
         want.size());
  report("a mixed round, portable", shape,
         differing(want, bench.attend(streams, paged, cuts, AttentionSchedule::kPortable)), want.size());
  if (!wide) check_controls(bench, streams, good[0]);  // wide: most positions have no weight
}

// For compute-sanitizer.
int run_smallest() {
  Bench bench(std::size_t{8} << 20, std::size_t{400} << 20, false);
  for (const bool fp8 : {false, true}) {
    for (const Shape& shape : {Shape{4, 2, 64, fp8}, Shape{2, 1, 256, fp8}})
      for (const int page : {0, 16}) check_store(bench, Streams(shape, {{40, 39}}, 3), page);
    check_law(bench, {4, 1, 256, fp8}, {{600, 530}, {70, 0}}, false, false);
    check_law(bench, {3, 1, 64, fp8}, {{150, 0}, {530, 525}}, false, false);
    check_law(bench, {2, 1, 128, fp8}, {{140, 100}}, false, false);
    check_law(bench, {2, 1, 80, fp8}, {{140, 100}}, false, false);
  }
  std::printf(failures == 0 ? "attention: all as it must be\n" : "attention: %d FAILED\n", failures);
  return failures == 0 ? 0 : 1;
}

int run() {
  Bench bench(std::size_t{8} << 20, std::size_t{400} << 20, false);
  for (const bool fp8 : {false, true}) {
    for (const Shape& shape : {Shape{4, 2, 64, fp8}, Shape{6, 2, 80, fp8}, Shape{2, 1, 256, fp8}})
      for (const int page : {0, 16, 64, 256}) check_store(bench, Streams(shape, {{300, 299}}, 3), page);
    check_law(bench, {24, 4, 256, fp8}, {{1300, 0}, {9300, 9000}, {700, 640}}, false, true);
    check_law(bench, {24, 4, 256, fp8}, {{3000, 2200}, {64, 0}}, true, false);
    check_law(bench, {9, 3, 64, fp8}, {{1300, 0}, {8300, 8100}, {1, 0}}, false, true);
    check_law(bench, {32, 8, 128, fp8}, {{900, 0}, {33, 2}}, true, false);
    check_law(bench, {4, 2, 16, fp8}, {{600, 0}}, false, false);
    check_law(bench, {6, 2, 80, fp8}, {{600, 0}, {128, 127}}, false, true);
    check_law(bench, {4, 4, 192, fp8}, {{600, 500}}, false, false);
  }
  std::printf(failures == 0 ? "attention: all as it must be\n" : "attention: %d FAILED\n", failures);
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace steadfast::cuda::check

int main(int argc, char** argv) {
  const bool smallest = argc > 1 && std::string_view(argv[1]) == "smallest";
  return smallest ? steadfast::cuda::check::run_smallest() : steadfast::cuda::check::run();
}
