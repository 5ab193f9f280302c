// attention: rows of whole windows in one piece are what all else is compared with: each row alone, pieces, pages in
// random order, streams together in one round, every schedule.
#include <algorithm>

#include "contract/reference/attention.h"
#include "contract/row_op.h"

namespace steadfast::contract {
namespace {

struct Problem {
  Problem(Context& context, const Case& of)
      : shape{of.number("heads"), of.number("kv_heads"), of.number("dim"), kv_dtype_of(of)} {
    const int positions = of.number("positions"), first = std::min(of.number("first_query"), positions - 1);
    // Beside the case's stream a short one and one of another length, whose rows share its rounds.
    streams = make_streams(shape, {{positions, first}, {std::max(1, positions / 3), 0}, {1, 0}}, of.is("keys", "loud"));
    window = positions;
    RoundLimits limits;
    for (const Stream& stream : streams) limits.rows += stream.rows() + 343;
    limits.positions = 3 * static_cast<std::size_t>(window) + 3 * 1024;
    limits.shapes.attention = shape.attention();
    limits.shapes.kv_dtype = shape.dtype;
    reserve(context, limits);
  }
  std::unique_ptr<Cache> cache(Context& context, int page, std::uint64_t seed) const {
    auto cache = std::make_unique<Cache>(context, shape, static_cast<int>(streams.size()), window, page, seed);
    std::vector<Cut> all;
    for (int s = 0; s < static_cast<int>(streams.size()); ++s)
      all.push_back({s, 0, streams[static_cast<std::size_t>(s)].positions});
    store(context.backend, shape, streams, *cache, all);
    return cache;
  }
  KvShape shape;
  std::vector<Stream> streams;
  int window = 0;
};

class Check {
 public:
  Check(Context& context, const Case& of, Gates& gates) : context_(context), gates_(gates), problem_(context, of) {
    for (const std::string& page : split(of.text("pages"), ',')) pages_.push_back(need(parse_number(page)));
    alone_ = of.is("alone", "yes");
    loud_ = of.is("keys", "loud");
  }

  void run() {
    auto whole = problem_.cache(context_, 0, 1);
    for (int s = 0; s < static_cast<int>(problem_.streams.size()); ++s)
      good_.push_back(rows(context_.backend, *whole, {whole_stream(s)}, "one piece"));
    check_double();
    after_rotation();
    compare(context_.backend, *whole, "whole", {1, 7, 64, 256, 0});
    for (const Schedule& schedule : schedules())
      compare(*schedule.backend, *whole, schedule.name, {7, 1 << 20}, schedule.most_rows);
    for (const int page : pages_) {
      auto paged = problem_.cache(context_, page, static_cast<std::uint64_t>(page) + 11);
      const std::string name = fmt::format("pages of {}", page);
      if (page == pages_.front())
        compare(context_.backend, *paged, name, {1, 7, 64, 256, 1 << 20, 0});
      else
        compare(context_.backend, *paged, name, {1 << 20});
      together(context_.backend, *paged, name + ", streams together");
      for (const Schedule& schedule : schedules()) {
        compare(*schedule.backend, *paged, name + ", " + schedule.name, {100}, schedule.most_rows);
        if (schedule.most_rows >= problem_.window)
          together(*schedule.backend, *paged, name + ", streams together, " + schedule.name);
      }
    }
    check_controls();
  }

 private:
  Cut whole_stream(int s) const {
    const Stream& stream = problem_.streams[static_cast<std::size_t>(s)];
    return {s, stream.first_query, stream.rows()};
  }
  std::vector<Schedule> schedules() const {
    std::vector<Schedule> mine;
    for (const Schedule& schedule : context_.schedules)
      if ((schedule.only.empty() || schedule.only == "attention") && schedule.least_rows <= 1) mine.push_back(schedule);
    return mine;
  }
  std::vector<float> rows(Backend& backend, Cache& cache, const std::vector<Cut>& cuts, const std::string& what) {
    bool damage = false;
    auto result = attend(backend, problem_.shape, problem_.streams, cache, cuts, damage);
    gates_.untouched(what, damage);
    return result;
  }
  const float* good(const Cut& cut) const {
    const auto s = static_cast<std::size_t>(cut.stream);
    return good_[s].data() +
           static_cast<std::ptrdiff_t>(cut.first - problem_.streams[s].first_query) * problem_.shape.query_width();
  }
  void equal(const std::string& what, const std::vector<float>& got, const std::vector<Cut>& cuts) {
    const float* at = got.data();
    for (const Cut& cut : cuts) {
      gates_.equal(what, at, good(cut), cut.rows, problem_.shape.query_width());
      at += static_cast<std::ptrdiff_t>(cut.rows) * problem_.shape.query_width();
    }
  }

  // The first stream in pieces, one round each. Many pieces of one row are many calls: then only at borders and
  // between.
  // last: only so many rows, the stream's last ones.
  void compare(Backend& backend, Cache& cache, const std::string& name, const std::vector<int>& pieces,
               int last = 1 << 30) {
    const Stream& stream = problem_.streams[0];
    const int first = std::max(stream.first_query, stream.positions - std::min(last, stream.positions));
    for (const int piece : pieces) {
      const std::string what =
          fmt::format("{}, {}", name, piece == 0 ? "random pieces" : fmt::format("pieces of {}", piece));
      for (const Cut& cut : cut_stream(0, first, stream.positions, piece, 17)) {
        const int within = cut.first % 256;
        if (piece == 1 && !alone_ && within > 1 && within < 254 && cut.first % 37 != 0 &&
            cut.first + 2 < stream.positions)
          continue;
        equal(what, rows(backend, cache, {cut}, what), {cut});
      }
    }
  }

  // A round of single rows, of drafts and of prompts of all streams.
  void together(Backend& backend, Cache& cache, const std::string& what) {
    std::vector<Cut> cuts;
    for (const int wanted : {1, 9, 333})
      for (int s = 0; s < static_cast<int>(problem_.streams.size()); ++s) {
        const Stream& stream = problem_.streams[static_cast<std::size_t>(s)];
        const int count = std::min(wanted, stream.rows());
        cuts.push_back(
            {s, wanted == 1 ? stream.positions - 1 : stream.first_query + (stream.rows() - count) / 2, count});
      }
    equal(what, rows(backend, cache, cuts, what), cuts);
  }

  // The way of a round: rotate_and_store (here without norms and rotation), which hands the queries on to attention.
  void after_rotation() {
    const KvShape& shape = problem_.shape;
    const Stream& stream = problem_.streams[0];
    const int first = stream.first_query, rows = stream.rows();
    Cache cache(context_, shape, 1, problem_.window, pages_.front(), 9);
    Backend& backend = context_.backend;
    if (first > 0) store(backend, shape, problem_.streams, cache, {{0, 0, first}});
    const InputRows queries(backend, stream.queries, shape.query_width()), keys(backend, stream.keys, shape.kv_width()),
        values(backend, stream.values, shape.kv_width());
    OutputRows out(backend, rows, shape.query_width());
    out.poison(rows);
    const Piece piece{nullptr, 0, rows, first};
    const CacheView view = cache.view(0);
    backend.rotate_and_store(queries.matrix(0, rows), keys.matrix(first, rows), values.matrix(first, rows),
                             shape.attention(), {}, {}, {&piece, 1}, {&view, 1});
    backend.attention(queries.matrix(0, rows), shape.attention(), {&piece, 1}, {&view, 1}, out.matrix(rows));
    bool damage = false;
    equal("after rotate_and_store", out.take(rows, damage), {whole_stream(0)});
    gates_.untouched("after rotate_and_store", damage || !queries.intact() || !cache.intact());
  }

  void check_double() {
    const KvShape& shape = problem_.shape;
    Share share;
    for (int s = 0; s < static_cast<int>(problem_.streams.size()); ++s) {
      const Stream& stream = problem_.streams[static_cast<std::size_t>(s)];
      std::vector<std::vector<double>> keys, values;
      for (int p = 0; p < stream.positions; ++p) {
        const auto at = static_cast<std::ptrdiff_t>(p) * shape.kv_width();
        keys.push_back(stored_values(shape, stream.keys.data() + at));
        values.push_back(stored_values(shape, stream.values.data() + at));
      }
      for (const int row : sampled(stream.rows(), 6))
        for (const int head : {0, shape.heads / 2, shape.heads - 1}) {
          const auto at = static_cast<std::ptrdiff_t>(row) * shape.query_width() + head * shape.dim;
          const AttentionRow exact = attention_row(shape, context_.arithmetic, keys, values, stream.queries.data() + at,
                                                   head, stream.first_query + row);
          for (int d = 0; d < shape.dim; ++d)
            share.add(static_cast<double>(good_[static_cast<std::size_t>(s)][static_cast<std::size_t>(at + d)]),
                      exact.exact[static_cast<std::size_t>(d)], exact.bound[static_cast<std::size_t>(d)]);
        }
    }
    gates_.within("float64", share.worst());
  }

  void check_controls() {
    const int page = 16, last = problem_.window - 1;
    auto cache = problem_.cache(context_, page, 21);
    const auto red = [&](const Cut& cut) {
      bool damage = false;
      const auto got = attend(context_.backend, problem_.shape, problem_.streams, *cache, {cut}, damage);
      return differing(got.data(), good({0, last, 1}), static_cast<std::size_t>(problem_.shape.query_width())) > 0;
    };
    gates_.control("nothing planted, nothing seen", !red({0, last, 1}));
    if (last >= 2 * page) {
      std::swap(cache->table(0)[0], cache->table(0)[last / page]);
      gates_.control("two entries of the page table swapped", red({0, last, 1}));
      std::swap(cache->table(0)[0], cache->table(0)[last / page]);
    }
    if (loud_) return;  // most positions have no weight there, the last one among them
    // The last row's query at the position before it: the tail is not seen.
    Stream& stream = problem_.streams[0];
    if (stream.rows() > 1) {
      const std::vector<float> queries = stream.queries;
      const int width = problem_.shape.query_width();
      std::copy(queries.end() - width, queries.end(), stream.queries.end() - 2 * width);
      gates_.control("the last position dropped", red({0, last - 1, 1}));
      stream.queries = queries;
    }
    if (last >= page) {
      cache->plant(0, last, last % page == 0 ? 0 : last - page);
      gates_.control("a row of another page planted", red({0, last, 1}));
    }
  }

  Context& context_;
  Gates& gates_;
  Problem problem_;
  std::vector<int> pages_;
  bool alone_ = false, loud_ = false;
  std::vector<std::vector<float>> good_;  // of each stream
};

void check(Context& context, const Case& of, Gates& gates) { Check(context, of, gates).run(); }

std::vector<Timed> timed(Context& context, const Case& of) {
  auto problem = std::make_shared<Problem>(context, of);
  std::vector<Timed> list;
  const KvShape& shape = problem->shape;
  const Stream& stream = problem->streams[0];
  for (const int wanted : {1, stream.rows()}) {
    const int rows = std::min(wanted, stream.rows());
    std::shared_ptr<Cache> cache = problem->cache(context, 0, 1);
    const auto from = stream.queries.end() - static_cast<std::ptrdiff_t>(rows) * shape.query_width();
    auto queries = std::make_shared<InputRows>(context.backend, std::vector<float>(from, stream.queries.end()),
                                               shape.query_width());
    auto out = std::make_shared<OutputRows>(context.backend, rows, shape.query_width());
    double pairs = 0;
    for (int row = 0; row < rows; ++row) pairs += stream.positions - row;
    const double bytes = static_cast<double>(stream.positions) * 2 * shape.kv_width() *
                             static_cast<double>(info(shape.dtype).block_bytes) +
                         8.0 * rows * shape.query_width();
    list.push_back(
        {fmt::format("{} rows at {}", rows, stream.positions), {bytes, 4 * pairs * shape.query_width()}, [=, &context] {
           const Piece piece{nullptr, 0, rows, problem->window - rows};
           const CacheView view = cache->view(0);
           context.backend.attention(queries->matrix(0, rows), problem->shape.attention(), {&piece, 1}, {&view, 1},
                                     out->matrix(rows));
         }});
    if (rows == stream.rows()) break;
  }
  return list;
}

Status supported(Context& context, const Case& of) {
  ModelShapes shapes;
  shapes.attention = KvShape{of.number("heads"), of.number("kv_heads"), of.number("dim"), kv_dtype_of(of)}.attention();
  shapes.kv_dtype = kv_dtype_of(of);
  if (shapes.attention.heads % shapes.attention.kv_heads != 0)
    return Status::error("{} query heads over {} key-value heads", shapes.attention.heads, shapes.attention.kv_heads);
  return context.backend.check_model(shapes);
}

}  // namespace

Kernel attention_kernel() {
  return {
      "attention",
      "rows of a round over their streams' caches, whole and paged, every type",
      {{"positions", 1, 1 << 17, {}},
       {"first_query", 0, 1 << 17, {}},
       {"heads", 1, 256, {}},
       {"kv_heads", 1, 256, {}},
       {"dim", 16, 256, {}},
       {"kv", 0, -1, {"bf16", "fp8", "f32"}},
       {"keys", 0, -1, {"even", "loud"}},
       {"pages", 0, -1, {}},
       {"alone", 0, -1, {"yes", "some"}}},
      {"float64", "each row alone, pieces of 7, 64, 256, random = one piece", "pages in random order = whole windows",
       "streams together = alone", "after rotate_and_store = after store_kv", "every schedule", "canaries"},
      {"nothing planted, nothing seen", "two entries of the page table swapped", "the last position dropped",
       "a row of another page planted"},
      check,
      timed,
      supported};
}

}  // namespace steadfast::contract
