// The ops of the CUDA backend: each calls the launcher of its file.
#include <algorithm>

#include "backend/cuda/attention.h"
#include "backend/cuda/cuda_backend_impl.h"
#include "backend/cuda/delta.h"
#include "backend/cuda/elementwise.h"
#include "backend/cuda/linear_int8.h"
#include "backend/cuda/norm.h"
#include "backend/cuda/rope.h"
#include "backend/cuda/store_kv.h"

namespace steadfast::cuda {
namespace {

LinearInput input_of(const steadfast::LinearInput& input) {
  using Kind = steadfast::LinearInput::Kind;
  switch (input.kind) {
    case Kind::kRmsNorm:
      return LinearInput::rms_norm(input.x, input.weight, input.eps);
    case Kind::kSiluMul:
      return LinearInput::silu_mul(input.x, input.other);
    case Kind::kSigmoidMul:
      return LinearInput::sigmoid_mul(input.x, input.other);
    case Kind::kGatedNorm:
      return LinearInput::gated_norm(input.x, input.other, input.heads, input.dim, input.weight, input.eps);
    case Kind::kPlain:
      break;
  }
  return LinearInput::plain(input.x);
}

}  // namespace

// Logits and the head's weights are of one kind with all other linears here: `fine` is the CPU's.
void CudaBackend::append_linear(const cuda::LinearInput& input, std::span<const LinearJob> jobs) {
  std::vector<LinearJobArgs> args;
  for (const LinearJob& job : jobs)
    args.push_back({static_cast<const CudaWeight*>(job.weight), job.out, job.bias, job.add});
  if (options_.prompt_act == Act::kInt8 && !jobs.empty() && jobs[0].prompt)
    linear_int8(recorder(), input, args);
  else if (!chains_.add(*recorder_, input, args))
    cuda::linear(*recorder_, input, args);
}

void CudaBackend::copy_rows(const Matrix& from, const Matrix& to) { cuda::copy_rows(recorder(), from, to); }

void CudaBackend::embed(const Weight& table, std::span<const TokenId> ids, const Matrix& out) {
  cuda::embed(recorder(), static_cast<const CudaWeight&>(table), ids, out);
}

void CudaBackend::linear(const Matrix& x, std::span<const LinearJob> jobs) {
  append_linear(LinearInput::plain(x), jobs);
}

void CudaBackend::linear(const steadfast::LinearInput& input, std::span<const LinearJob> jobs) {
  append_linear(input_of(input), jobs);
}

void CudaBackend::rms_norm(const Matrix& x, const float* weight, float eps, const Matrix& out) {
  cuda::rms_norm(recorder(), x, weight, eps, out);
}

void CudaBackend::head_norm(const Matrix& x, int heads, int dim, const float* weight, float eps) {
  cuda::head_norm(recorder(), x, heads, dim, weight, eps);
}

void CudaBackend::rope(const Matrix& x, int heads, int dim, const RopeTable& table) {
  cuda::rope(recorder(), x, heads, dim, table);
}

void CudaBackend::rope_table(std::span<const std::int32_t> positions, const float* inverse, int half, float magnitude,
                             float* cosine, float* sine) {
  cuda::rope_table(recorder(), positions, inverse, half, magnitude, cosine, sine);
}

void CudaBackend::store_kv(const Matrix& keys, const Matrix& values, const CacheView& view, int first_position) {
  const Piece piece{nullptr, 0, keys.rows, first_position};
  StoreKvArgs args;
  args.keys = keys;
  args.values = values;
  args.kv_heads = view.kv_heads;
  args.dim = view.dim;
  args.pieces = {&piece, 1};
  args.views = {&view, 1};
  cuda::store_kv(recorder(), args);
}

void CudaBackend::rotate_and_store(const Matrix& queries, const Matrix& keys, const Matrix& values,
                                   const AttentionShape& shape, const HeadNorms& norms, const RopeTable& table,
                                   std::span<const Piece> pieces, std::span<const CacheView> views) {
  StoreKvArgs args;
  args.queries = queries;
  args.queries_out = static_cast<std::uint16_t*>(query_rows_->data());
  args.keys = keys;
  args.values = values;
  args.heads = shape.heads;
  args.kv_heads = shape.kv_heads;
  args.dim = shape.dim;
  args.query_norm = norms.query;
  args.key_norm = norms.key;
  args.eps = norms.eps;
  args.rope = table;
  args.pieces = pieces;
  args.views = views;
  cuda::store_kv(recorder(), args);
  stored_queries_ = queries.data;
}

void CudaBackend::attention(const Matrix& queries, const AttentionShape& shape, std::span<const Piece> pieces,
                            std::span<const CacheView> views, const Matrix& out) {
  if (stored_queries_ != queries.data) {  // rotated by ops of their own: only the rounding to bf16 is left
    StoreKvArgs rounding;
    rounding.queries = queries;
    rounding.queries_out = static_cast<std::uint16_t*>(query_rows_->data());
    rounding.heads = shape.heads;
    rounding.kv_heads = shape.kv_heads;
    rounding.dim = shape.dim;
    cuda::store_kv(recorder(), rounding);
  }
  stored_queries_ = nullptr;
  AttentionArgs args;
  args.queries = static_cast<const std::uint16_t*>(query_rows_->data());
  args.shape = shape;
  args.pieces = pieces;
  args.views = views;
  args.out = out;
  cuda::attention(recorder(), args);
}

void CudaBackend::silu_mul(const Matrix& gate, const Matrix& up, const Matrix& out) {
  cuda::silu_mul(recorder(), gate, up, out);
}

void CudaBackend::sigmoid_mul(const Matrix& x, const Matrix& gate, const Matrix& out) {
  cuda::sigmoid_mul(recorder(), x, gate, out);
}

void CudaBackend::delta(const Matrix& x, const Matrix& a, const Matrix& b, const DeltaShape& shape,
                        const DeltaWeights& weights, std::span<const Piece> pieces, std::span<const DeltaState> states,
                        const Matrix& mixed, const Matrix& out) {
  cuda::delta(recorder(), {shape, weights, x, a, b, pieces, states, mixed, out});
}

DeltaStateBytes CudaBackend::delta_state_bytes(const DeltaShape& shape) const { return cuda::delta_state_bytes(shape); }

void CudaBackend::gated_norm(const Matrix& x, const Matrix& gate, int heads, int dim, const float* weight, float eps,
                             const Matrix& out) {
  cuda::gated_norm(recorder(), x, gate, heads, dim, weight, eps, out);
}

void CudaBackend::gather(const Matrix& x, std::span<const int> rows, const Matrix& out) {
  cuda::gather(recorder(), x, rows, out);
}

Status CudaBackend::draw(const Matrix& logits, std::span<const DrawJob> jobs, std::span<Drawn> drawn) {
  CHECK(static_cast<int>(jobs.size()) <= limits_.logit_rows, "{} draws, {} planned", jobs.size(), limits_.logit_rows);
  auto* results = static_cast<DrawResult*>(results_->data());
  cuda::draw(recorder(), logits, jobs, results);
  std::vector<DrawResult> back(jobs.size());
  if (auto status = download(back.data(), results, back.size() * sizeof(DrawResult)); !status) return status;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    drawn[i] = {back[i].id, std::nullopt};
    if (jobs[i].top_logprobs < 0) continue;
    TokenLogprob& logprob = drawn[i].logprob.emplace();
    logprob.id = back[i].id;
    logprob.logprob = back[i].logprob;
    for (int t = 0; t < back[i].top_count; ++t) logprob.top.emplace_back(back[i].top_ids[t], back[i].top_logprobs[t]);
  }
  return Status::ok();
}

}  // namespace steadfast::cuda
