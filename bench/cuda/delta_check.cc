// Checks and times Gated DeltaNet on the card: accuracy against a float64 step form, bits over every cut of a prompt,
// streams together against alone, roll-back, controls that must be seen, guards; then whole models of 48 layers.
// Usage: delta_check [check] [time]; exit status 1 if anything failed.
#include <algorithm>
#include <cstring>
#include <functional>

#include "backend/cuda/delta.h"
#include "delta_problem.h"

namespace steadfast::bench {
namespace {

int failures = 0;

void report(bool ok, const std::string& what) {
  std::printf("%s %s\n", ok ? "ok    " : "FAILED", what.c_str());
  if (!ok) ++failures;
}

std::size_t count(int n, int m) { return static_cast<std::size_t>(n) * static_cast<std::size_t>(m); }

// One stream's state of one layer, and how far it is.
struct Stream {
  DeltaStateBytes bytes;
  Guarded memory;
  int position = 0;
  explicit Stream(const DeltaShape& shape)
      : bytes(cuda::delta_state_bytes(shape)), memory((bytes.conv + bytes.state) / 4, 0) {}
  DeltaState state() const { return {memory.data(), memory.data() + bytes.conv / 4}; }
};

// A problem on the card; runs pieces of streams through rounds and collects rows.
class Layer {
 public:
  static constexpr int kMostPieces = 64;
  Layer(const Problem& problem, int most_rows)
      : p(problem),
        x(p.x.size()),
        a(p.a.size()),
        b(p.b.size()),
        conv(p.conv.size()),
        a_weight(p.a_weight.size()),
        dt_bias(p.dt_bias.size()),
        round_x(count(most_rows, width())),
        round_a(count(most_rows, heads())),
        round_b(count(most_rows, heads())),
        mixed(count(most_rows, width())),
        out(count(most_rows, p.shape.value_width())) {
    x.upload(p.x);
    a.upload(p.a);
    b.upload(p.b);
    conv.upload(p.conv);
    a_weight.upload(p.a_weight);
    dt_bias.upload(p.dt_bias);
    cuda::RecorderOptions options;
    options.arena_bytes = cuda::delta_arena_bytes(most_rows, kMostPieces) + 4096;
    options.scratch_bytes = cuda::delta_scratch_bytes(p.shape, most_rows, kMostPieces);
    auto made = cuda::Recorder::create(0, options);
    if (!made) {
      std::printf("FAILED recorder: %s\n", made.message().c_str());
      std::exit(1);
    }
    recorder = std::move(*made);
    must(cudaMemset(recorder->scratch(options.scratch_bytes), 0xFF, options.scratch_bytes), "poison");
    rows_out.resize(count(p.rows, p.shape.value_width()));
    rows_mixed.resize(count(p.rows, width()));
  }
  int width() const { return p.shape.conv_width(); }
  int heads() const { return p.shape.value_heads; }

  struct Part {
    Stream* stream;
    int rows, source;  // source: the problem's row of the piece's first row
  };
  // One round. keep: rows go to rows_out and rows_mixed at their sources.
  void round(const std::vector<Part>& parts, bool keep = true) {
    std::vector<Piece> pieces;
    std::vector<DeltaState> states;
    int rows = 0;
    const auto gather = [&](float* to, const Guarded& from, int columns, const Part& part) {
      must(cudaMemcpyAsync(to + count(rows, columns), from.data() + count(part.source, columns),
                           count(part.rows, columns) * 4, cudaMemcpyDeviceToDevice, recorder->stream()),
           "gather");
    };
    for (const Part& part : parts) {
      gather(round_x.data(), x, width(), part);
      gather(round_a.data(), a, heads(), part);
      gather(round_b.data(), b, heads(), part);
      pieces.push_back({nullptr, rows, part.rows, part.stream->position});
      states.push_back(part.stream->state());
      part.stream->position += part.rows;
      rows += part.rows;
    }
    must(cudaMemsetAsync(mixed.data(), 0xFF, count(rows, width()) * 4, recorder->stream()), "poison");
    must(cudaMemsetAsync(out.data(), 0xFF, count(rows, p.shape.value_width()) * 4, recorder->stream()), "poison");
    cuda::delta(*recorder, {p.shape,
                            {conv.data(), a_weight.data(), dt_bias.data()},
                            Matrix(round_x.data(), rows, width()),
                            Matrix(round_a.data(), rows, heads()),
                            Matrix(round_b.data(), rows, heads()),
                            pieces,
                            states,
                            Matrix(mixed.data(), rows, width()),
                            Matrix(out.data(), rows, p.shape.value_width())});
    if (const Status status = recorder->run(); !status) report(false, status.message());
    if (!keep) return;
    rows = 0;
    for (const Part& part : parts) {
      copy_out(part, rows);
      rows += part.rows;
    }
  }
  void wait() {
    if (const Status status = recorder->wait(); !status) report(false, status.message());
  }
  bool guards_hold() const {
    bool hold = true;
    for (const Guarded* one : {&x, &a, &b, &conv, &round_x, &round_a, &round_b, &mixed, &out})
      hold = hold && one->guards_hold();
    return hold;
  }
  // The whole problem by one new stream in pieces of what `next` says.
  std::vector<float> run(const std::function<int(int)>& next) {
    Stream stream(p.shape);
    while (stream.position < p.rows) {
      const int rows = std::min(next(stream.position), p.rows - stream.position);
      round({{&stream, rows, stream.position}});
    }
    wait();
    report(stream.memory.guards_hold() && guards_hold(), "guards");
    return rows_out;
  }

  const Problem& p;
  Guarded x, a, b, conv, a_weight, dt_bias, round_x, round_a, round_b, mixed, out;
  std::unique_ptr<cuda::Recorder> recorder;
  std::vector<float> rows_out, rows_mixed;

 private:
  void copy_out(const Part& part, int first) {
    wait();
    const int out_width = p.shape.value_width();
    must(cudaMemcpy(&rows_out[count(part.source, out_width)], out.data() + count(first, out_width),
                    count(part.rows, out_width) * 4, cudaMemcpyDeviceToHost),
         "rows");
    std::vector<__nv_bfloat16> rounded(count(part.rows, 2 * width()));
    must(cudaMemcpy(rounded.data(), mixed.data() + count(first, width()), rounded.size() * 2, cudaMemcpyDeviceToHost),
         "rows");
    for (int row = 0; row < part.rows; ++row)
      for (int c = 0; c < width(); ++c)
        rows_mixed[count(part.source + row, width()) + static_cast<std::size_t>(c)] =
            __bfloat162float(rounded[count(row, 2 * width()) + static_cast<std::size_t>(c)]);
  }
};

std::size_t differing(const std::vector<float>& a, const std::vector<float>& b) {
  std::size_t n = 0;
  for (std::size_t i = 0; i < a.size(); ++i) n += std::memcmp(&a[i], &b[i], 4) != 0;
  return n;
}

std::string text(const char* format, double a, double b = 0) {
  char buffer[256];
  std::snprintf(buffer, sizeof buffer, format, a, b);
  return buffer;
}

struct Named {
  const char* name;
  DeltaShape shape;
};

const Named kShapes[] = {{"27B", {16, 48, 128, 128, 4, false}},
                         {"27B tiled", {16, 48, 128, 128, 4, true}},
                         {"fixture", {4, 8, 64, 64, 4, false}},
                         {"small", {2, 4, 32, 32, 4, true}},
                         {"odd", {3, 9, 64, 128, 3, false}}};

void accuracy(const Named& named, Inputs kind, const char* what, int rows, double bound) {
  const Problem problem(named.shape, rows, 11 + static_cast<unsigned>(kind), kind);
  Layer layer(problem, rows);
  layer.run([&](int) { return rows; });
  const double conv = conv_error(problem, layer.rows_mixed, 37);
  report(conv <= 1, std::string(named.name) + text(": convolution, norms: %.2f of what is allowed", conv));
  const double error =
      recurrence_error(problem, layer.rows_mixed, layer.rows_out, named.shape.value_heads > 16 ? 3 : 1);
  report(error <= bound, std::string(named.name) + ", " + what + text(", %.0f rows: error of o %.2e", rows, error));
}

void bits(const Named& named, int rows) {
  const Problem problem(named.shape, rows, 5);
  Layer layer(problem, rows);
  const auto whole = layer.run([&](int) { return rows; });
  std::size_t bad = 0;
  for (const float value : whole) bad += std::isfinite(value) ? 0 : 1;
  report(bad == 0, std::string(named.name) + text(": one piece of %.0f rows, %.0f values not finite", rows, bad));
  std::mt19937 dice(3);
  const auto compare = [&](const std::string& cut, const std::function<int(int)>& next) {
    const std::size_t n = differing(whole, layer.run(next));
    report(n == 0, std::string(named.name) + ", pieces of " + cut + text(": %.0f of %.0f differ", n, whole.size()));
  };
  for (const int cut : {1, 7, 64, 256, 1000}) compare(std::to_string(cut), [=](int) { return cut; });
  compare("random rows", [&](int) { return 1 + static_cast<int>(dice() % 90); });
  compare("1 and up to 9", [&](int) { return dice() % 3 > 0 ? 1 : 1 + static_cast<int>(dice() % 9); });
  std::printf("       graphs %zu, replays %llu\n", layer.recorder->graphs(),
              static_cast<unsigned long long>(layer.recorder->replays()));
}

// Streams of one round, at different positions and with pieces of all sizes, against the same streams alone.
void together(const Named& named) {
  constexpr int kStreams = 7, kRows = 150;
  const Problem problem(named.shape, kStreams * kRows, 17);
  Layer layer(problem, kStreams * kRows);
  for (int s = 0; s < kStreams; ++s) {
    Stream stream(problem.shape);
    layer.round({{&stream, kRows, s * kRows}});
  }
  const auto alone = layer.rows_out;
  std::fill(layer.rows_out.begin(), layer.rows_out.end(), NAN);
  std::vector<std::unique_ptr<Stream>> streams;
  for (int s = 0; s < kStreams; ++s) streams.push_back(std::make_unique<Stream>(problem.shape));
  std::mt19937 dice(29);
  for (bool more = true; more;) {
    std::vector<Layer::Part> parts;
    for (int s = 0; s < kStreams; ++s) {
      Stream& stream = *streams[static_cast<std::size_t>(s)];
      const int left = kRows - stream.position, wanted = dice() % 2 > 0 ? 1 : 1 + static_cast<int>(dice() % 70);
      if (left > 0 && dice() % 4 > 0) parts.push_back({&stream, std::min(left, wanted), s * kRows + stream.position});
    }
    if (!parts.empty()) layer.round(parts);
    more = std::any_of(streams.begin(), streams.end(), [](const auto& s) { return s->position < kRows; });
  }
  const std::size_t n = differing(alone, layer.rows_out);
  report(n == 0, std::string(named.name) + text(", 7 streams together: %.0f of %.0f differ", n, alone.size()));
}

// Rows 0 .. from, then `wrong` rows of another text, taken back; then the rest.
void roll_back(const Named& named) {
  constexpr int kRows = 80;
  const Problem problem(named.shape, 2 * kRows, 41);
  Layer layer(problem, kRows);
  const auto plain = [&] {
    Stream stream(problem.shape);
    layer.round({{&stream, kRows, 0}});
    return std::vector<float>(layer.rows_out.begin(),
                              layer.rows_out.begin() + static_cast<std::ptrdiff_t>(layer.rows_out.size() / 2));
  }();
  std::size_t worst = 0, stale = SIZE_MAX, shifted = SIZE_MAX;
  for (const int from : {3, 14, 16, 29, 47}) {
    for (const int wrong : {1, 4, 20}) {
      for (const char* mode : {"back", "stale", "shifted"}) {
        Stream stream(problem.shape), start(problem.shape);
        layer.round({{&stream, from, 0}});
        must(cudaMemcpy(start.memory.data(), stream.memory.data(), start.memory.floats() * 4, cudaMemcpyDeviceToDevice),
             "record");
        layer.round({{&stream, wrong, kRows + from}}, false);
        layer.wait();
        if (*mode == 'b')
          must(cudaMemcpy(stream.memory.data(), start.memory.data(), start.memory.floats() * 4,
                          cudaMemcpyDeviceToDevice),
               "restore");
        stream.position = from + (*mode == 's' && mode[1] == 'h' ? 1 : 0);
        const int rest = kRows - from - 1;
        layer.round({{&stream, 1, from}});
        layer.round({{&stream, rest, from + 1}});
        std::vector<float> got(layer.rows_out.begin(),
                               layer.rows_out.begin() + static_cast<std::ptrdiff_t>(plain.size()));
        const std::size_t n = differing(plain, got);
        if (*mode == 'b')
          worst = std::max(worst, n);
        else if (mode[1] == 'h')
          shifted = std::min(shifted, n);
        else if (wrong == 20)  // one row of the same chunk would be forgotten by itself
          stale = std::min(stale, n);
      }
    }
  }
  report(worst == 0, std::string(named.name) + text(", rolled back: %.0f differ", worst));
  report(stale > 0, std::string(named.name) + text(", control, a stale state: at least %.0f differ", stale));
  report(shifted > 0, std::string(named.name) + text(", control, positions off by one: at least %.0f differ", shifted));
}

// All layers of the 27B, `streams` streams with `rows` rows each from `first_position` on (-1: mixed), as graphs.
void timing(int streams, int rows, int first_position) {
  constexpr int kLayers = 48;
  const DeltaShape shape = kShapes[0].shape;
  const int all = streams * rows;
  const Problem problem(shape, std::min(all, 256), 9);
  const auto tiled = [&](const std::vector<float>& from, int columns) {
    auto to = std::make_unique<Guarded>(count(all, columns));
    for (int row = 0; row < all; row += problem.rows)
      must(cudaMemcpy(to->data() + count(row, columns), from.data(),
                      count(std::min(problem.rows, all - row), columns) * 4, cudaMemcpyHostToDevice),
           "inputs");
    return to;
  };
  const auto x = tiled(problem.x, shape.conv_width()), a = tiled(problem.a, shape.value_heads),
             b = tiled(problem.b, shape.value_heads);
  Guarded conv(problem.conv.size()), a_weight(problem.a_weight.size()), dt_bias(problem.dt_bias.size());
  conv.upload(problem.conv);
  a_weight.upload(problem.a_weight);
  dt_bias.upload(problem.dt_bias);
  Guarded mixed(count(all, shape.conv_width())), out(count(all, shape.value_width()));
  const DeltaStateBytes bytes = cuda::delta_state_bytes(shape);
  const std::size_t one = (bytes.conv + bytes.state) / 4;
  Guarded states(one * static_cast<std::size_t>(streams) * kLayers, 0);
  for (const bool timed : {false, true}) {
    cuda::RecorderOptions options;
    options.arena_bytes = kLayers * (cuda::delta_arena_bytes(all, streams) + 1024);
    options.scratch_bytes = cuda::delta_scratch_bytes(shape, all, streams);
    options.timed = timed;
    options.first_segment = options.segment = 1 << 20;  // sent by run() alone, between the events
    auto made = cuda::Recorder::create(0, options);
    must(made ? cudaSuccess : cudaErrorUnknown, "recorder");
    cuda::Recorder& recorder = **made;
    cudaEvent_t begin, end;
    must(cudaEventCreate(&begin), "event");
    must(cudaEventCreate(&end), "event");
    std::vector<float> times;
    const int repeats = timed ? 2 : 9;
    for (int repeat = 0; repeat < repeats; ++repeat) {
      // Warmed up by rounds of the same kind; a round's positions go on, so states are real.
      for (int layer = 0; layer < kLayers; ++layer) {
        std::vector<Piece> pieces;
        std::vector<DeltaState> of_layer;
        for (int s = 0; s < streams; ++s) {
          const int position = first_position >= 0 ? first_position : 5 * s + 3 * layer + repeat;
          float* at = states.data() + one * (static_cast<std::size_t>(layer) * static_cast<std::size_t>(streams) +
                                             static_cast<std::size_t>(s));
          pieces.push_back({nullptr, s * rows, rows, position});
          of_layer.push_back({at, at + bytes.conv / 4});
        }
        cuda::delta(recorder, {shape,
                               {conv.data(), a_weight.data(), dt_bias.data()},
                               Matrix(x->data(), all, shape.conv_width()),
                               Matrix(a->data(), all, shape.value_heads),
                               Matrix(b->data(), all, shape.value_heads),
                               pieces,
                               of_layer,
                               Matrix(mixed.data(), all, shape.conv_width()),
                               Matrix(out.data(), all, shape.value_width())});
      }
      must(cudaEventRecord(begin, recorder.stream()), "event");
      if (const Status status = recorder.run(); !status) report(false, status.message());
      must(cudaEventRecord(end, recorder.stream()), "event");
      if (const Status status = recorder.wait(); !status) report(false, status.message());
      float ms = 0;
      must(cudaEventElapsedTime(&ms, begin, end), "event");
      if (repeat >= 3) times.push_back(ms);
    }
    if (timed) {
      for (const auto& [name, time] : recorder.times())
        std::printf("           %-28s %8.2f us a launch, alone\n", name.c_str(),
                    1e3 * time.milliseconds / static_cast<double>(time.launches));
      continue;
    }
    std::sort(times.begin(), times.end());
    const double ms = times[times.size() / 2];
    const double bytes_state = static_cast<double>(streams) * kLayers * 4.0 * shape.value_heads * 128 * 128;
    const double bytes_rows =
        static_cast<double>(all) * kLayers * (shape.conv_width() * 4.0 + shape.value_width() * 4.0);
    const double floor = (bytes_rows + (rows > 1 ? 2 : 1) * bytes_state) / 4.19e9;
    std::printf(
        "time   %d streams x %d rows, position %s: %.3f ms for 48 layers (least %.3f); floor of bytes %.3f ms, "
        "%.0f%%\n",
        streams, rows, first_position < 0 ? "mixed" : std::to_string(first_position % 16).c_str(), ms, times.front(),
        floor, 100 * floor / ms);
  }
}

void check() {
  accuracy(kShapes[0], Inputs::kRandom, "random", 300, 6e-6);
  accuracy(kShapes[0], Inputs::kRandom, "random", 2000, 6e-6);
  accuracy(kShapes[0], Inputs::kNearEqualKeys, "near-equal keys", 1000, 1.2e-5);
  accuracy(kShapes[0], Inputs::kNoDecay, "no decay", 1000, 1.2e-5);
  accuracy(kShapes[0], Inputs::kStrongDecay, "decay e^-8u", 1000, 1.2e-5);
  accuracy(kShapes[0], Inputs::kForgetting, "5% of rows forget", 1000, 1.2e-5);
  for (const Named& named : kShapes) {
    if (named.shape.key_heads < 16) accuracy(named, Inputs::kRandom, "random", 300, 6e-6);
    bits(named, 1037);
    together(named);
    roll_back(named);
  }
}

// For compute-sanitizer.
void check_smallest() {
  for (const Named& named : kShapes) {
    accuracy(named, Inputs::kRandom, "random", 40, 6e-6);
    bits(named, 53);
  }
  together(kShapes[3]);
}

void times() {
  for (const int streams : {1, 2, 4, 8, 64}) {
    timing(streams, 1, -1);
    if (streams == 1 || streams == 64) timing(streams, 1, 7);
  }
  timing(64, 1, 15);
  timing(8, 5, -1);
  timing(1, 256, 3);
  timing(1, 8192, 0);
  timing(8, 1024, 0);
}

}  // namespace
}  // namespace steadfast::bench

int main(int argc, char** argv) {
  const auto asked = [&](const char* what) {
    return argc < 2 || std::any_of(argv + 1, argv + argc, [&](const char* one) { return std::strcmp(one, what) == 0; });
  };
  if (argc > 1 && asked("smallest")) steadfast::bench::check_smallest();
  if (asked("check")) steadfast::bench::check();
  if (asked("time")) steadfast::bench::times();
  std::printf("%d failed\n", steadfast::bench::failures);
  return steadfast::bench::failures > 0 ? 1 : 0;
}
