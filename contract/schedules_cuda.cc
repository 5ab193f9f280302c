// A card's other ways: each schedule of linears and of attention that its choice passes over, and plain launches
// instead of graphs. Forced schedules run on the backend's own recorder, in its order of things.
#include <algorithm>

#include "backend/cuda/attention.h"
#include "backend/cuda/cuda_backend_impl.h"
#include "backend/cuda/linear_int8.h"
#include "backend/cuda/store_kv.h"
#include "contract/contract.h"
#include "verify/faults/forwarding_backend.h"

namespace steadfast::contract {
namespace {

using cuda::AttentionSchedule;
using cuda::Int8Schedule;
using cuda::LinearSchedule;

cuda::LinearInput input_of(const LinearInput& input) {
  using Kind = LinearInput::Kind;
  switch (input.kind) {
    case Kind::kRmsNorm:
      return cuda::LinearInput::rms_norm(input.x, input.weight, input.eps);
    case Kind::kSiluMul:
      return cuda::LinearInput::silu_mul(input.x, input.other);
    case Kind::kSigmoidMul:
      return cuda::LinearInput::sigmoid_mul(input.x, input.other);
    case Kind::kGatedNorm:
      return cuda::LinearInput::gated_norm(input.x, input.other, input.heads, input.dim, input.weight, input.eps);
    case Kind::kPlain:
      break;
  }
  return cuda::LinearInput::plain(input.x);
}

// int8: of prompts' rows, all others' else.
class ForcedLinear : public ForwardingBackend {
 public:
  ForcedLinear(std::shared_ptr<Backend> inner, cuda::CudaBackend& card, LinearSchedule schedule, Int8Schedule int8)
      : ForwardingBackend(std::move(inner)), card_(card), schedule_(schedule), int8_(int8) {}
  void linear(const Matrix& x, std::span<const LinearJob> jobs) override { run(cuda::LinearInput::plain(x), jobs); }
  void linear(const LinearInput& input, std::span<const LinearJob> jobs) override { run(input_of(input), jobs); }

 private:
  void run(const cuda::LinearInput& input, std::span<const LinearJob> jobs) {
    std::vector<cuda::LinearJobArgs> args;
    for (const LinearJob& job : jobs)
      args.push_back({static_cast<const cuda::CudaWeight*>(job.weight), job.out, job.bias, job.add});
    if (prompt_act() == Act::kInt8 && jobs[0].prompt)
      cuda::linear_int8(card_.recorder(), input, args, int8_);
    else
      cuda::linear(card_.recorder(), input, args, schedule_);
  }
  cuda::CudaBackend& card_;
  LinearSchedule schedule_;
  Int8Schedule int8_;
};

class PortableAttention : public ForwardingBackend {
 public:
  PortableAttention(std::shared_ptr<Backend> inner, cuda::CudaBackend& card)
      : ForwardingBackend(std::move(inner)), card_(card) {}

  Status reserve_round(const RoundLimits& limits) override {
    if (auto status = ForwardingBackend::reserve_round(limits); !status) return status;
    const AttentionShape& shape = limits.shapes.attention;
    auto memory =
        allocate(static_cast<std::size_t>(limits.rows) * static_cast<std::size_t>(shape.heads * shape.dim) * 2);
    if (!memory) return memory.status();
    queries_ = std::move(*memory);
    // The plan is for the schedule that the backend takes; this one's totals may be more.
    return card_.recorder().grow_scratch(std::max(card_.recorder().scratch_bytes(), std::size_t{256} << 20));
  }

  void attention(const Matrix& queries, const AttentionShape& shape, std::span<const Piece> pieces,
                 std::span<const CacheView> views, const Matrix& out) override {
    cuda::StoreKvArgs rounding;
    rounding.queries = queries;
    rounding.queries_out = static_cast<std::uint16_t*>(queries_->data());
    rounding.heads = shape.heads;
    rounding.kv_heads = shape.kv_heads;
    rounding.dim = shape.dim;
    cuda::store_kv(card_.recorder(), rounding);
    cuda::AttentionArgs args;
    args.queries = rounding.queries_out;
    args.shape = shape;
    args.pieces = pieces;
    args.views = views;
    args.out = out;
    args.schedule = AttentionSchedule::kPortable;
    cuda::attention(card_.recorder(), args);
  }

 private:
  cuda::CudaBackend& card_;
  std::unique_ptr<DeviceMemory> queries_;
};

int device_of(Backend& backend) {  // "cuda:0 NVIDIA H200, ..."
  const std::string text = backend.describe();
  auto number = parse_number(text.substr(5, text.find(' ') - 5));
  CHECK(number.is_ok(), "a card is described as \"{}\"", text);
  return *number;
}

}  // namespace

std::vector<Schedule> cuda_schedules(const std::shared_ptr<Backend>& backend) {
  std::vector<Schedule> schedules;
  auto* card = dynamic_cast<cuda::CudaBackend*>(backend.get());
  if (card == nullptr) return schedules;  // a test's, around the true one
  const auto linear = [&](const char* name, LinearSchedule schedule, int least, int most) {
    schedules.push_back(
        {name, std::make_shared<ForcedLinear>(backend, *card, schedule, Int8Schedule::kAuto), least, most, "linear"});
  };
  const auto int8 = [&](const char* name, Int8Schedule schedule) {
    schedules.push_back(
        {name, std::make_shared<ForcedLinear>(backend, *card, LinearSchedule::kAuto, schedule), 1, 1 << 30, "linear"});
  };
  if (card->prompt_act() == Act::kInt8) {  // then the contract's linears are prompts'
    int8("int8 linears, blocks of many rows", Int8Schedule::kMany);
    int8("int8 linears, of few", Int8Schedule::kFew);
    int8("int8 linears, of few features too", Int8Schedule::kLeast);
  } else if (card->recorder().card().wgmma()) {
    linear("portable linears", LinearSchedule::kPortable, 1, 1 << 30);
    linear("wide linears", LinearSchedule::kWide, 17, 1 << 30);
    linear("wide linears, all jobs together", LinearSchedule::kTogether, 17, 1 << 30);
  }
  if (card->recorder().card().wgmma())
    schedules.push_back(
        {"portable attention", std::make_shared<PortableAttention>(backend, *card), 1, 1 << 30, "attention"});
  CudaOptions options;
  options.device = device_of(*backend);
  options.graphs = false;
  options.prompt_act = backend->prompt_act();
  schedules.push_back({"plain launches", need(make_cuda_backend(options)), 1, 1 << 30, ""});
  return schedules;
}

}  // namespace steadfast::contract
