// Which kernels a draw needs, and the data that they read.
#include "backend/cuda/draw.h"

#include <cmath>
#include <unordered_map>

#include "backend/cuda/draw_kernels.h"
#include "base/exact_math.h"

namespace steadfast::cuda {
namespace {

// Appends the row's edits, one an id.
void add_edits(const SamplingParams& sampling, const History& history, std::vector<LogitEdit>& edits) {
  const bool repeats = sampling.repetition_penalty != 1.0f;
  const bool counts = sampling.presence_penalty != 0.0f || sampling.frequency_penalty != 0.0f;
  if (sampling.logit_bias.empty() && !repeats && !counts) return;
  std::unordered_map<TokenId, LogitEdit> by_id;
  for (const auto& [id, bias] : sampling.logit_bias) by_id[id].bias = bias;
  if (repeats || counts)
    for (const TokenId id : history.reply) {
      LogitEdit& edit = by_id[id];
      edit.seen = 1;
      ++edit.in_reply;
    }
  if (repeats)
    for (const TokenId id : history.prompt) by_id[id].seen = 1;
  for (auto& [id, edit] : by_id) {
    edit.id = id;
    edits.push_back(edit);
  }
}

DrawRow row_of(const DrawJob& job) {
  const SamplingParams& s = *job.sampling;
  DrawRow row{};
  row.temperature = s.temperature < 1e-5f ? 0.0f : s.temperature;
  row.min_p_log = s.min_p > 0 ? exact_log(static_cast<double>(s.min_p)) : -INFINITY;
  row.drop = s.top_p < 1.0f ? 1.0 - static_cast<double>(s.top_p) : 0.0;
  row.repetition = s.repetition_penalty;
  row.presence = s.presence_penalty;
  row.frequency = s.frequency_penalty;
  row.key = draw_key(s.seed, job.position);
  row.vocab = job.vocab;
  row.top_k = s.top_k > 0 && s.top_k < job.vocab ? s.top_k : 0;
  row.top_logprobs = std::min(job.top_logprobs, kMostTop);
  return row;
}

std::size_t chunks_of(int vocab) { return static_cast<std::size_t>((vocab + kDrawChunk - 1) / kDrawChunk); }

// Where the parts of the scratch begin.
struct Parts {
  std::size_t limits, searches, bins, raw, end;
};

Parts parts_of(int rows, int vocab) {
  const auto aligned = [](std::size_t bytes) { return (bytes + 255) / 256 * 256; };
  const auto count = static_cast<std::size_t>(rows);
  Parts parts{};
  parts.limits = aligned(count * chunks_of(vocab) * sizeof(Best));
  parts.searches = parts.limits + aligned(count * sizeof(DrawLimit));
  parts.bins = parts.searches + aligned(count * sizeof(DrawSearch));
  parts.raw = parts.bins + count * kDrawBins * sizeof(unsigned long long);
  parts.end = parts.raw + count * static_cast<std::size_t>(vocab) * sizeof(float);
  return parts;
}

}  // namespace

std::size_t draw_scratch_bytes(int rows, int vocab) { return parts_of(rows, vocab).end; }

void draw(Recorder& recorder, const Matrix& logits, std::span<const DrawJob> jobs, DrawResult* results) {
  const int count = static_cast<int>(jobs.size());
  std::vector<DrawRow> rows;
  std::vector<LogitEdit> edits;
  bool sampled = false, top_k = false, top_p = false, logprobs = false;
  for (const DrawJob& job : jobs) {
    DrawRow& row = rows.emplace_back(row_of(job));
    row.first_edit = static_cast<std::int32_t>(edits.size());
    add_edits(*job.sampling, *job.history, edits);
    row.edits = static_cast<std::int32_t>(edits.size()) - row.first_edit;
    sampled |= row.temperature > 0;
    top_k |= row.temperature > 0 && row.top_k > 0;
    top_p |= row.temperature > 0 && row.drop > 0;
    logprobs |= row.top_logprobs >= 0;
  }
  const Parts parts = parts_of(count, logits.width);
  auto* scratch = static_cast<std::byte*>(recorder.scratch(parts.end));
  DrawParams params{};
  params.logits = logits.data;
  params.stride = logits.stride;
  params.rows = recorder.put<DrawRow>(rows);
  params.edits = recorder.put<LogitEdit>(edits);
  params.bests = reinterpret_cast<Best*>(scratch);
  params.limits = reinterpret_cast<DrawLimit*>(scratch + parts.limits);
  params.searches = reinterpret_cast<DrawSearch*>(scratch + parts.searches);
  params.bins = reinterpret_cast<unsigned long long*>(scratch + parts.bins);
  params.raw = reinterpret_cast<float*>(scratch + parts.raw);
  params.results = results;
  params.width = logits.width;
  params.chunks = static_cast<std::int64_t>(chunks_of(logits.width));
  if (logprobs) launch_keep_raw(recorder, params, count);
  if (!edits.empty()) launch_edit(recorder, params, count);
  if (sampled) {
    launch_scale(recorder, params, count);
    launch_limit(recorder, params, count);
    for (int level = 0; level < 3 && top_k; ++level) launch_search(recorder, params, count, DrawSum::kCount, level);
    for (int level = 0; level < 3 && top_p; ++level) launch_search(recorder, params, count, DrawSum::kMass, level);
  }
  launch_score(recorder, params, count);
  launch_pick(recorder, params, count);
  if (logprobs) launch_logprobs(recorder, params, count);
}

}  // namespace steadfast::cuda
