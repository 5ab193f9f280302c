// store_kv: every element and scale is the rounded input, wherever it lies, to the bit; nothing else is written; pieces
// and pages of any size give the same. rotate_and_store (norms, rotation and store in one): rows alone against pieces,
// and within a bound of float64: the roundings before the last one (a norm: dim / 8 + 12, a rotation: 3, of both
// partners), then half a unit of the cache's type: 2^-8 of the value in bf16, in fp8 2^-4 or 2^-10 of the row's scale.
#include <cmath>
#include <cstring>

#include "contract/kv_problem.h"

namespace steadfast::contract {
namespace {

constexpr float kEps = 1e-6f;

struct Problem {
  Problem(Context& context, const Case& of)
      : shape{of.number("heads"), of.number("kv_heads"), of.number("dim"), kv_dtype_of(of)},
        positions(of.number("positions")),
        streams(make_streams(shape, {{positions, 0}, {positions / 2 + 1, 0}}, false)) {
    RoundLimits limits;
    limits.rows = positions;
    limits.positions = static_cast<std::size_t>(positions) * 2;
    limits.shapes.attention = shape.attention();
    limits.shapes.kv_dtype = shape.dtype;
    reserve(context, limits);
    for (const Stream& stream : streams)
      for (int p = 0; p < stream.positions; ++p)
        append_rounded(shape, stream.keys.data() + static_cast<std::ptrdiff_t>(p) * shape.kv_width(),
                       stream.values.data() + static_cast<std::ptrdiff_t>(p) * shape.kv_width(), stored);
  }
  std::span<const std::byte> must_hold(int stream) const {
    const std::size_t first = stored.size() / static_cast<std::size_t>(streams[0].positions + streams[1].positions) *
                              static_cast<std::size_t>(streams[0].positions);
    return stream == 0 ? std::span(stored).first(first) : std::span(stored).subspan(first);
  }
  KvShape shape;
  int positions;
  std::vector<Stream> streams;
  std::vector<std::byte> stored;  // both streams' contents as they must be
};

void check_stores(Context& context, Problem& problem, Backend& backend, const std::string& name, Gates& gates) {
  for (const int page : {0, 16, 64, 256}) {
    for (const int piece : {1, 7, 64, 256, 0}) {
      if (&backend != &context.backend && (page % 64 != 0 || piece % 7 != 0)) continue;
      if (piece == 1 && page > 16) continue;
      Cache cache(context, problem.shape, 2, problem.positions, page, static_cast<std::uint64_t>(page + piece));
      for (const int stream : {0, 1})
        store(backend, problem.shape, problem.streams, cache,
              cut_stream(stream, 0, problem.streams[static_cast<std::size_t>(stream)].positions, piece, 3));
      const std::string what = fmt::format("{}{}, {}", page == 0 ? "whole windows" : fmt::format("pages of {}", page),
                                           piece == 0 ? ", random pieces" : fmt::format(", pieces of {}", piece), name);
      for (const int stream : {0, 1}) {
        const int length = problem.streams[static_cast<std::size_t>(stream)].positions;
        gates.equal_bytes(what, cache.contents(stream, length), problem.must_hold(stream), length);
        gates.untouched(what, !cache.poisoned_from(stream, length) || !cache.intact());
      }
    }
  }
}

void check_controls(Context& context, Problem& problem, Gates& gates) {
  const int positions = problem.positions;
  const auto stored = [&](Cache& cache, int rows) {
    store(context.backend, problem.shape, problem.streams, cache, cut_stream(0, 0, rows, 64, 3));
  };
  const auto red = [&](const Cache& cache) {
    const auto got = cache.contents(0, positions);
    const auto want = problem.must_hold(0);
    return !std::equal(got.begin(), got.end(), want.begin(), want.end());
  };
  Cache cache(context, problem.shape, 2, positions, 16, 5);
  stored(cache, positions);
  if (positions > 16) {
    std::swap(cache.table(0)[0], cache.table(0)[1]);
    gates.control("two entries of the page table swapped", red(cache));
    std::swap(cache.table(0)[0], cache.table(0)[1]);
    cache.plant(0, 1, 17);
    gates.control("a row of another page planted", red(cache));
  }
  Cache shorter(context, problem.shape, 2, positions, 16, 5);
  stored(shorter, positions - 1);
  gates.control("the last row dropped", red(shorter));
}

// Norms, rotation and store of one stream's rows in pieces; queries of the first stream's rows besides.
struct Fused {
  std::vector<float> queries, query_norm, key_norm, cosine, sine;
  int dims;
};

std::vector<std::byte> rotate(Context& context, Problem& problem, Backend& backend, const Fused& fused, int piece,
                              int page, Gates& gates) {
  const KvShape& shape = problem.shape;
  const Stream& stream = problem.streams[0];
  Cache cache(context, shape, 1, problem.positions, page, 9);
  DeviceVector query_norm(backend, fused.query_norm), key_norm(backend, fused.key_norm);
  const int half = fused.dims / 2;
  const InputRows queries(backend, fused.queries, shape.query_width()), keys(backend, stream.keys, shape.kv_width()),
      values(backend, stream.values, shape.kv_width()), cosine(backend, fused.cosine, half),
      sine(backend, fused.sine, half);
  for (const Cut& cut : cut_stream(0, 0, problem.positions, piece, 4)) {
    const auto part = [&cut](const InputRows& rows) { return rows.matrix(cut.first, cut.rows); };
    const Piece one{nullptr, 0, cut.rows, cut.first};
    const CacheView view = cache.view(0);
    backend.rotate_and_store(part(queries), part(keys), part(values), shape.attention(),
                             {query_norm.device(), key_norm.device(), kEps},
                             {part(cosine).data, part(sine).data, fused.dims}, {&one, 1}, {&view, 1});
    settle(backend, keys.matrix(0, 1).data);
  }
  gates.untouched("rotate_and_store", !queries.intact() || !keys.intact() || !values.intact() || !cache.intact());
  return cache.contents(0, problem.positions);
}

// A head's key, normed and rotated, in float64.
std::vector<double> rotated(const Problem& problem, const Fused& fused, int position, int head, double& unrounded) {
  const int dim = problem.shape.dim, half = fused.dims / 2;
  const float* x =
      problem.streams[0].keys.data() + static_cast<std::ptrdiff_t>(position) * problem.shape.kv_width() + head * dim;
  double squares = 0;
  for (int d = 0; d < dim; ++d) squares += static_cast<double>(x[d]) * static_cast<double>(x[d]);
  const double inverse = 1 / std::sqrt(squares / dim + static_cast<double>(kEps));
  std::vector<double> y(static_cast<std::size_t>(dim));
  for (int d = 0; d < dim; ++d)
    y[static_cast<std::size_t>(d)] =
        static_cast<double>(x[d]) * inverse * static_cast<double>(fused.key_norm[static_cast<std::size_t>(d)]);
  unrounded = 0;
  for (const double value : y) unrounded = std::max(unrounded, std::fabs(value));
  for (int i = 0; i < half; ++i) {
    const auto at = static_cast<std::size_t>(position * half + i);
    const double c = static_cast<double>(fused.cosine[at]), s = static_cast<double>(fused.sine[at]);
    const double a = y[static_cast<std::size_t>(i)], b = y[static_cast<std::size_t>(i + half)];
    y[static_cast<std::size_t>(i)] = a * c - b * s;
    y[static_cast<std::size_t>(i + half)] = b * c + a * s;
  }
  return y;
}

double fused_share(const Problem& problem, const Fused& fused, const std::vector<std::byte>& contents) {
  const KvShape& shape = problem.shape;
  const std::size_t element = info(shape.dtype).block_bytes;
  const std::size_t bytes = contents.size() / static_cast<std::size_t>(problem.positions);
  Share share;
  for (int p = 0; p < problem.positions; p += 5) {
    for (int head = 0; head < shape.kv_heads; ++head) {
      double largest = 0;
      const auto exact = rotated(problem, fused, p, head, largest);
      const std::byte* row = &contents[static_cast<std::size_t>(p) * bytes];
      float scale = 1;
      if (shape.fp8())
        std::memcpy(&scale, row + static_cast<std::size_t>(shape.kv_width() + head * static_cast<int>(sizeof scale)),
                    sizeof scale);
      for (int d = 0; d < shape.dim; ++d) {
        const std::byte* at = row + static_cast<std::size_t>(head * shape.dim + d) * element;
        std::uint16_t half = 0;
        float got = 0;
        if (element == 4) std::memcpy(&got, at, 4);
        if (element == 2) std::memcpy(&half, at, 2), got = bf16_to_f32(half);
        if (element == 1) got = f8e4m3_to_f32(static_cast<std::uint8_t>(*at)) * scale;
        const double value = exact[static_cast<std::size_t>(d)], unit = element == 4   ? 0
                                                                        : element == 2 ? 0x1p-8
                                                                                       : 0x1p-4;
        const double before = gamma_n(shape.dim / 8 + 12) * 2 * largest + gamma_n(3) * 2 * largest;
        const double last =
            std::max(unit * (std::fabs(value) + before), element == 1 ? 0x1p-10 * static_cast<double>(scale) : 0);
        share.add(static_cast<double>(got), value, before + last);
      }
    }
  }
  return share.worst();
}

void check_fused(Context& context, Problem& problem, Gates& gates) {
  const KvShape& shape = problem.shape;
  const int rotated_dims = shape.dim >= 32 ? shape.dim / 2 / 16 * 16 : shape.dim;
  Fused fused{random_rows(problem.positions, shape.query_width(), 31),
              random_floats(static_cast<std::size_t>(shape.dim), 2, 32),
              random_floats(static_cast<std::size_t>(shape.dim), 2, 33),
              {},
              {},
              rotated_dims};
  for (int p = 0; p < problem.positions; ++p)
    for (int i = 0; i < rotated_dims / 2; ++i) {
      const double angle = p * std::pow(10000.0, -2.0 * i / rotated_dims);
      fused.cosine.push_back(static_cast<float>(std::cos(angle)));
      fused.sine.push_back(static_cast<float>(std::sin(angle)));
    }
  const auto alone = rotate(context, problem, context.backend, fused, 1, 0, gates);
  gates.within("norms, rotation and store against float64", fused_share(problem, fused, alone));
  for (const int page : {0, 16, 256})
    for (const int piece : {7, 64, 256, 0})
      gates.equal_bytes(fmt::format("norms, rotation and store, pages of {}, pieces of {}", page, piece),
                        rotate(context, problem, context.backend, fused, piece, page, gates), alone, problem.positions);
  for (const Schedule& schedule : context.schedules)
    if (schedule.only.empty())
      gates.equal_bytes("norms, rotation and store, " + schedule.name,
                        rotate(context, problem, *schedule.backend, fused, 64, 16, gates), alone, problem.positions);
  std::swap(fused.cosine, fused.sine);
  gates.control("cosine and sine swapped", fused_share(problem, fused, alone) > 1);
}

void check(Context& context, const Case& of, Gates& gates) {
  Problem problem(context, of);
  check_stores(context, problem, context.backend, "", gates);
  for (const Schedule& schedule : context.schedules)
    if (schedule.only.empty()) check_stores(context, problem, *schedule.backend, schedule.name, gates);
  check_controls(context, problem, gates);
  check_fused(context, problem, gates);
}

std::vector<Timed> timed(Context& context, const Case& of) {
  auto problem = std::make_shared<Problem>(context, of);
  const KvShape& shape = problem->shape;
  auto cache = std::make_shared<Cache>(context, shape, 1, problem->positions, 0, 1);
  const auto& stream = problem->streams[0];
  auto keys = std::make_shared<InputRows>(context.backend, stream.keys, shape.kv_width());
  auto values = std::make_shared<InputRows>(context.backend, stream.values, shape.kv_width());
  const int rows = problem->positions;
  const double bytes =
      static_cast<double>(rows) * 2 * shape.kv_width() * (4 + static_cast<double>(info(shape.dtype).block_bytes));
  return {{fmt::format("{} rows", rows), {bytes, 0}, [=, &context] {
             context.backend.store_kv(keys->matrix(0, rows), values->matrix(0, rows), cache->view(0), 0);
           }}};
}

Status supported(Context& context, const Case& of) {
  ModelShapes shapes;
  shapes.attention = KvShape{of.number("heads"), of.number("kv_heads"), of.number("dim"), kv_dtype_of(of)}.attention();
  shapes.kv_dtype = kv_dtype_of(of);
  return context.backend.check_model(shapes);
}

}  // namespace

Kernel store_kv_kernel() {
  return {"store_kv",
          "keys and values into whole windows and pages, alone and after norms and rotation",
          {{"positions", 2, 1 << 16, {}},
           {"heads", 1, 256, {}},
           {"kv_heads", 1, 256, {}},
           {"dim", 16, 256, {}},
           {"kv", 0, -1, {"bf16", "fp8", "f32"}}},
          {"every element exact", "pieces of 1, 7, 64, 256, random = alone", "pages in random order = whole windows",
           "norms and rotation within float64", "nothing else written"},
          {"two entries of the page table swapped", "a row of another page planted", "the last row dropped",
           "cosine and sine swapped"},
          check,
          timed,
          supported};
}

}  // namespace steadfast::contract
