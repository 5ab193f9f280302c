// delta: streams of a layer in pieces. A stream's rows in one piece are what all else is compared with: pieces of 1, 7,
// 64, 256 and random rows, streams together in shared rounds, rows taken back, every schedule.
#include <algorithm>
#include <cmath>
#include <optional>

#include "contract/reference/delta.h"
#include "contract/row_op.h"

namespace steadfast::contract {
namespace {

constexpr int kStreams = 3;

DeltaShape shape_of(const Case& of) {
  return {of.number("key_heads"), of.number("value_heads"), of.number("key_dim"),
          of.number("value_dim"), of.number("taps"),        of.is("heads", "tiled")};
}

// softplus backwards: the a that decays by e^-y.
float gate_for(float y) { return y > 20 ? y : std::log(std::expm1(y)); }

DeltaInputs make_inputs(const DeltaShape& s, int rows, const std::string& kind, std::uint64_t seed) {
  DeltaInputs in;
  in.shape = s;
  in.rows = rows;
  const auto heads = static_cast<std::size_t>(s.value_heads), width = static_cast<std::size_t>(s.conv_width());
  in.x = random_rows(rows, s.conv_width(), seed);
  in.conv = random_floats(static_cast<std::size_t>(s.taps) * width, 0.8f, 7);
  for (std::size_t h = 0; h < heads; ++h) {
    const float share = static_cast<float>(h) / static_cast<float>(heads);
    in.a_weight.push_back(kind == "random" ? -std::exp(-6.9f + 6.9f * share) : -1.0f);
    in.dt_bias.push_back(kind == "random" ? 0.5f * uniform(h) : 0.0f);
  }
  if (kind == "near-equal keys")
    for (int row = 1; row < rows; ++row)
      for (int i = s.key_width(); i < 2 * s.key_width(); ++i) {
        float& x = in.x[static_cast<std::size_t>(row) * width + static_cast<std::size_t>(i)];
        x = in.x[static_cast<std::size_t>(i)] + 0.1f * x;
      }
  for (std::size_t i = 0; i < static_cast<std::size_t>(rows) * heads; ++i) {
    const float one = uniform(seed + 3 * i), other = uniform(seed + 3 * i + 1);
    const bool forgets = mix(seed + i) % 20 == 0;
    in.a.push_back(kind == "random"            ? 2 * one
                   : kind == "near-equal keys" ? gate_for(1e-4f)
                   : kind == "strong decay"    ? gate_for(4.001f + 4 * one)
                                               : gate_for(forgets ? 60.0f : 1e-3f));
    in.b.push_back(kind == "near-equal keys" ? 3.9f : kind == "forgetting" ? 6.9f : 2.5f * other);
  }
  return in;
}

struct State {
  State(Backend& backend, const DeltaShape& shape)
      : bytes(backend.delta_state_bytes(shape)), conv(backend, bytes.conv, 0), state(backend, bytes.state, 0) {}
  DeltaState view() const { return {conv.floats(), state.floats()}; }
  DeltaStateBytes bytes;
  Buffer conv, state;
};

// Rows [first, first + rows) of stream `source`'s inputs, for the stream at `position` that `state` belongs to.
struct Part {
  State* state;
  int source, first, rows, position;
};

class Check {
 public:
  Check(Context& context, const Case& of, Gates& gates)
      : context_(context), gates_(gates), rows_(of.number("rows")), shape_(shape_of(of)) {
    for (int s = 0; s < kStreams; ++s)
      inputs_.push_back(make_inputs(shape_, std::max(2, rows_ - s * rows_ / 3), of.text("inputs"),
                                    100 + 10 * static_cast<std::uint64_t>(s)));
    RoundLimits limits;
    limits.rows = kStreams * rows_;
    limits.shapes.recurrent = true;
    limits.shapes.delta = shape_;
    reserve(context, limits);
    const auto vector = [&](const std::vector<float>& from) {
      return std::make_unique<DeviceVector>(context.backend, from);
    };
    for (const DeltaInputs& in : inputs_) device_.push_back(std::make_unique<Inputs>(context.backend, in));
    mixed_ = std::make_unique<OutputRows>(context.backend, limits.rows, shape_.conv_width(), 0);
    out_ = std::make_unique<OutputRows>(context.backend, limits.rows, shape_.value_width());
    conv_ = vector(inputs_[0].conv), a_weight_ = vector(inputs_[0].a_weight), dt_bias_ = vector(inputs_[0].dt_bias);
  }

  void run() {
    for (int s = 0; s < kStreams; ++s) good_.push_back(whole(s, 1 << 20, context_.backend, "one piece"));
    check_double();
    for (const int piece : {1, 7, 64, 256, 0}) {
      const std::string what = piece == 0 ? "random pieces" : fmt::format("pieces of {}", piece);
      equal(what, whole(0, piece, context_.backend, what), 0);
    }
    for (const Schedule& schedule : context_.schedules)
      if (schedule.only.empty() && schedule.least_rows <= 1)
        equal(schedule.name, whole(0, 7, *schedule.backend, schedule.name), 0);
    together();
    roll_back();
    check_controls();
  }

 private:
  int length(int s) const { return inputs_[static_cast<std::size_t>(s)].rows; }

  // A stream's inputs on the device.
  struct Inputs {
    Inputs(Backend& backend, const DeltaInputs& in)
        : x(backend, in.x, in.shape.conv_width()),
          a(backend, in.a, in.shape.value_heads),
          b(backend, in.b, in.shape.value_heads) {}
    InputRows x, a, b;
    bool intact() const { return x.intact() && a.intact() && b.intact(); }
  };

  // The parts' rows one after another.
  DeltaInputs gathered(const std::vector<Part>& parts) const {
    DeltaInputs all;
    all.shape = shape_;
    for (const Part& part : parts) {
      const DeltaInputs& in = inputs_[static_cast<std::size_t>(part.source)];
      const auto append = [&part](std::vector<float>& to, const std::vector<float>& from, int width) {
        const auto at = from.begin() + static_cast<std::ptrdiff_t>(part.first) * width;
        to.insert(to.end(), at, at + static_cast<std::ptrdiff_t>(part.rows) * width);
      };
      append(all.x, in.x, shape_.conv_width());
      append(all.a, in.a, shape_.value_heads);
      append(all.b, in.b, shape_.value_heads);
    }
    return all;
  }

  // One round; the rows of all parts in order, [rows][value_width].
  std::vector<float> round(Backend& backend, const std::vector<Part>& parts, const std::string& what) {
    std::vector<Piece> pieces;
    std::vector<DeltaState> states;
    int rows = 0;
    for (const Part& part : parts) {
      pieces.push_back({nullptr, rows, part.rows, part.position});
      states.push_back(part.state->view());
      rows += part.rows;
    }
    std::optional<Inputs> of_round;
    if (parts.size() > 1) of_round.emplace(backend, gathered(parts));
    const Inputs& in = of_round ? *of_round : *device_[static_cast<std::size_t>(parts[0].source)];
    const int first = of_round ? 0 : parts[0].first;
    mixed_->poison(rows), out_->poison(rows);
    backend.delta(in.x.matrix(first, rows), in.a.matrix(first, rows), in.b.matrix(first, rows), shape_,
                  {conv_->device(), a_weight_->device(), dt_bias_->device()}, pieces, states, mixed_->matrix(rows),
                  out_->matrix(rows));
    settle(backend, in.x.matrix(0, 1).data);
    bool damage = !in.intact();
    mixed_->take(rows, damage);
    auto result = out_->take(rows, damage);
    for (const Part& part : parts) damage = damage || !part.state->conv.intact() || !part.state->state.intact();
    gates_.untouched(what, damage);
    return result;
  }

  // A stream from its start, in pieces.
  std::vector<float> whole(int s, int piece, Backend& backend, const std::string& what) {
    State state(backend, shape_);
    std::vector<float> all;
    Dice dice(5);
    for (int at = 0; at < length(s);) {
      const int wanted = piece > 0 ? piece : dice.below(3) > 0 ? 1 + dice.below(9) : 1 + dice.below(90);
      const int rows = std::min(wanted, length(s) - at);
      const auto part = round(backend, {{&state, s, at, rows, at}}, what);
      all.insert(all.end(), part.begin(), part.end());
      at += rows;
    }
    return all;
  }

  void equal(const std::string& what, const std::vector<float>& got, int s) {
    gates_.equal(what, got.data(), good_[static_cast<std::size_t>(s)].data(), length(s), shape_.value_width());
  }

  void check_double() { gates_.within("float64", share(good_[0])); }
  double share(const std::vector<float>& got) const {
    Share share;
    for (const int head : sampled(shape_.value_heads, 3)) {
      const DeltaHead exact = delta_head(inputs_[0], context_.arithmetic, head);
      for (int row = 0; row < rows_; ++row)
        for (int d = 0; d < shape_.value_dim; ++d) {
          const auto at = static_cast<std::size_t>(row * shape_.value_dim + d);
          share.add(
              static_cast<double>(got[static_cast<std::size_t>(row) * static_cast<std::size_t>(shape_.value_width()) +
                                      static_cast<std::size_t>(head * shape_.value_dim + d)]),
              exact.exact[at], exact.bound[at]);
        }
    }
    return share.worst();
  }

  // Streams at different positions, with pieces of all sizes, in shared rounds.
  void together() {
    std::vector<std::unique_ptr<State>> states;
    for (int s = 0; s < kStreams; ++s) states.push_back(std::make_unique<State>(context_.backend, shape_));
    std::vector<int> at(kStreams);
    Dice dice(29);
    for (bool more = true; more;) {
      std::vector<Part> parts;
      for (int s = 0; s < kStreams; ++s) {
        int& position = at[static_cast<std::size_t>(s)];
        const int rows = std::min(length(s) - position, dice.below(2) > 0 ? 1 : 1 + dice.below(70));
        if (rows == 0 || dice.below(4) == 0) continue;
        parts.push_back({states[static_cast<std::size_t>(s)].get(), s, position, rows, position});
        position += rows;
      }
      more = false;
      for (int s = 0; s < kStreams; ++s) more = more || at[static_cast<std::size_t>(s)] < length(s);
      if (parts.empty()) continue;
      const auto got = round(context_.backend, parts, "streams together");
      const float* row = got.data();
      for (const Part& part : parts) {
        gates_.equal("streams together", row,
                     good_[static_cast<std::size_t>(part.source)].data() +
                         static_cast<std::ptrdiff_t>(part.first) * shape_.value_width(),
                     part.rows, shape_.value_width());
        row += static_cast<std::ptrdiff_t>(part.rows) * shape_.value_width();
      }
    }
  }

  // The rest of stream 0 after `from` rows, `wrong` rows of stream 1 taken back, from the state that `restore` leaves.
  bool rest_differs(int from, int wrong, bool restore, int shift, Gates* gates) {
    State state(context_.backend, shape_);
    round(context_.backend, {{&state, 0, 0, from, 0}}, "roll-back");
    const auto conv = state.conv.download(), rule = state.state.download();
    if (wrong > 0) round(context_.backend, {{&state, 1, 0, wrong, from}}, "roll-back");
    if (restore) state.conv.upload(conv.data(), conv.size()), state.state.upload(rule.data(), rule.size());
    const int rest = std::min(rows_ - from, 40);
    const auto got = round(context_.backend, {{&state, 0, from, rest, from + shift}}, "roll-back");
    const float* want = good_[0].data() + static_cast<std::ptrdiff_t>(from) * shape_.value_width();
    if (gates != nullptr)
      gates->equal(fmt::format("{} rows taken back after {}", wrong, from), got.data(), want, rest,
                   shape_.value_width());
    return differing(got.data(), want, got.size()) > 0;
  }

  void roll_back() {
    for (const int from : {3, 14, 16, 29, 47})
      for (const int wrong : {1, 4, 20})
        if (from < rows_ && wrong <= length(1)) rest_differs(from, wrong, true, 0, &gates_);
  }

  void check_controls() {
    const int from = std::min(rows_ - 1, 29), wrong = std::min(length(1), 20);
    gates_.control("a stale state", rest_differs(from, wrong, false, 0, nullptr));
    // The last rows of a piece left out of the state.
    const int short_from = from - 1;
    State state(context_.backend, shape_);
    if (short_from > 0) round(context_.backend, {{&state, 0, 0, short_from, 0}}, "control");
    const auto got = round(context_.backend, {{&state, 0, from, 1, from}}, "control");
    gates_.control("the tail of a piece dropped",
                   differing(got.data(), good_[0].data() + static_cast<std::ptrdiff_t>(from) * shape_.value_width(),
                             got.size()) > 0);
    if (is_cuda(context_.arithmetic)) gates_.control("positions off by one", rest_differs(from, 0, true, 1, nullptr));
    std::vector<float> planted = good_[0];  // a value's sign
    for (std::size_t i = 0; i < static_cast<std::size_t>(shape_.value_dim); ++i)
      planted[planted.size() - static_cast<std::size_t>(shape_.value_width()) + i] *= -1;
    gates_.control("a head of the last row negated", share(planted) > 1);
  }

  Context& context_;
  Gates& gates_;
  int rows_;
  DeltaShape shape_;
  std::vector<DeltaInputs> inputs_;
  std::vector<std::unique_ptr<Inputs>> device_;
  std::unique_ptr<OutputRows> mixed_, out_;
  std::unique_ptr<DeviceVector> conv_, a_weight_, dt_bias_;
  std::vector<std::vector<float>> good_;
};

void check(Context& context, const Case& of, Gates& gates) { Check(context, of, gates).run(); }

std::vector<Timed> timed(Context& context, const Case& of) {
  const DeltaShape shape = shape_of(of);
  const int all = of.number("rows");
  std::vector<Timed> list;
  for (const int rows : {1, all}) {
    struct Held {
      Held(Backend& backend, const DeltaInputs& in)
          : x(backend, in.x, in.shape.conv_width()),
            a(backend, in.a, in.shape.value_heads),
            b(backend, in.b, in.shape.value_heads),
            conv(backend, in.conv),
            a_weight(backend, in.a_weight),
            dt_bias(backend, in.dt_bias),
            state(backend, in.shape),
            mixed(backend, in.rows, in.shape.conv_width(), 0),
            out(backend, in.rows, in.shape.value_width()) {}
      InputRows x, a, b;
      DeviceVector conv, a_weight, dt_bias;
      State state;
      OutputRows mixed, out;
    };
    RoundLimits limits;
    limits.rows = all;
    limits.shapes.recurrent = true;
    limits.shapes.delta = shape;
    reserve(context, limits);
    auto held = std::make_shared<Held>(context.backend, make_inputs(shape, rows, of.text("inputs"), 1));
    const double state = 4.0 * static_cast<double>(shape.state_floats());
    const double bytes = 4.0 * rows * (shape.conv_width() + shape.value_width()) + (rows > 1 ? 2 : 1) * state;
    const double operations = 8.0 * rows * shape.value_heads * shape.key_dim * shape.value_dim;
    list.push_back({fmt::format("{} rows", rows), {bytes, operations}, [held, shape, rows, &context] {
                      const Piece piece{nullptr, 0, rows, 3};
                      const DeltaState view = held->state.view();
                      context.backend.delta(held->x.matrix(0, rows), held->a.matrix(0, rows), held->b.matrix(0, rows),
                                            shape,
                                            {held->conv.device(), held->a_weight.device(), held->dt_bias.device()},
                                            {&piece, 1}, {&view, 1}, held->mixed.matrix(rows), held->out.matrix(rows));
                    }});
    if (all == 1) break;
  }
  return list;
}

Status supported(Context& context, const Case& of) {
  ModelShapes shapes;
  shapes.attention = {1, 1, 64, 1};
  shapes.recurrent = true;
  shapes.delta = shape_of(of);
  if (shapes.delta.value_heads % shapes.delta.key_heads != 0)
    return Status::error("{} value heads over {} key heads", shapes.delta.value_heads, shapes.delta.key_heads);
  if (shapes.delta.key_dim % 16 != 0)
    return Status::error("key dims of {}: use a multiple of 16", shapes.delta.key_dim);
  return context.backend.check_model(shapes);
}

}  // namespace

Kernel delta_kernel() {
  return {
      "delta",
      "Gated DeltaNet: convolution, norms, gates and the delta rule",
      {{"rows", 2, 16384, {}},
       {"key_heads", 1, 128, {}},
       {"value_heads", 1, 256, {}},
       {"key_dim", 16, 256, {}},
       {"value_dim", 16, 256, {}},
       {"taps", 2, 4, {}},
       {"heads", 0, -1, {"grouped", "tiled"}},
       {"inputs", 0, -1, {"random", "near-equal keys", "strong decay", "forgetting"}}},
      {"float64", "pieces of 1, 7, 64, 256, random = one piece", "streams together = alone", "rows taken back",
       "every schedule", "canaries of rows and states"},
      {"a stale state", "the tail of a piece dropped", "positions off by one (CUDA)", "a head of the last row negated"},
      check,
      timed,
      supported};
}

}  // namespace steadfast::contract
