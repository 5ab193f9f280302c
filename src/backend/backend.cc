// The ops that are made of others, for backends that have nothing better, in memory that the host can reach.
#include "backend/backend.h"

#include "base/exact_math.h"

namespace steadfast {

const char* to_string(Act act) {
  switch (act) {
    case Act::kF32:
      return "f32";
    case Act::kBF16:
      return "bf16";
    case Act::kInt8:
      break;
  }
  return "int8";
}

void Backend::linear(const LinearInput& input, std::span<const LinearJob> jobs) {
  switch (input.kind) {
    case LinearInput::Kind::kPlain:
      return linear(input.x, jobs);
    case LinearInput::Kind::kRmsNorm:
      rms_norm(input.x, input.weight, input.eps, input.made);
      break;
    case LinearInput::Kind::kSiluMul:
      silu_mul(input.x, input.other, input.made);
      break;
    case LinearInput::Kind::kSigmoidMul:
      sigmoid_mul(input.x, input.other, input.made);
      break;
    case LinearInput::Kind::kGatedNorm:
      gated_norm(input.x, input.other, input.heads, input.dim, input.weight, input.eps, input.made);
      break;
  }
  linear(input.made, jobs);
}

void Backend::rotate_and_store(const Matrix& queries, const Matrix& keys, const Matrix& values,
                               const AttentionShape& shape, const HeadNorms& norms, const RopeTable& table,
                               std::span<const Piece> pieces, std::span<const CacheView> views) {
  if (norms.query != nullptr) head_norm(queries, shape.heads, shape.dim, norms.query, norms.eps);
  if (norms.key != nullptr) head_norm(keys, shape.kv_heads, shape.dim, norms.key, norms.eps);
  rope(queries, shape.heads, shape.dim, table);
  rope(keys, shape.kv_heads, shape.dim, table);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const auto of_piece = [&piece = pieces[i]](const Matrix& m) {
      return Matrix(m.row(piece.first_row), piece.rows, m.width, m.stride);
    };
    store_kv(of_piece(keys), of_piece(values), views[i], pieces[i].first_position);
  }
}

void Backend::rope_table(std::span<const std::int32_t> positions, const float* inverse, int half, float magnitude,
                         float* cosine, float* sine) {
  for (const std::int32_t position : positions) {
    for (int i = 0; i < half; ++i) {
      const float angle = static_cast<float>(position) * inverse[i];
      double s = 0, c = 0;
      exact_sincos(static_cast<double>(angle), s, c);
      *cosine++ = static_cast<float>(c) * magnitude;
      *sine++ = static_cast<float>(s) * magnitude;
    }
  }
}

Status Backend::draw(const Matrix& logits, std::span<const DrawJob> jobs, std::span<Drawn> drawn) {
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const DrawJob& job = jobs[i];
    const std::span row(logits.row(static_cast<int>(i)), static_cast<std::size_t>(job.vocab));
    if (job.top_logprobs >= 0) raw_logits_.assign(row.begin(), row.end());
    apply_penalties(row, *job.sampling, *job.history);
    drawn[i].id = steadfast::draw(row, *job.sampling, job.position, draw_scratch_);
    drawn[i].logprob.reset();
    if (job.top_logprobs >= 0) drawn[i].logprob = log_probability(raw_logits_, drawn[i].id, job.top_logprobs);
  }
  return Status::ok();
}

}  // namespace steadfast
