// Long pieces are taken by descending last position, so that items of equal run lie together and the longest come
// first.
#include "backend/cuda/attention_plan.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace steadfast::cuda {
namespace {

int last_span(const KvPiece& piece) { return span_of_tile((piece.first_position + piece.rows - 1) / 64); }

AttentionWork plan_few(Recorder& recorder, const AttentionPlanInput& in, std::span<const KvPiece> pieces,
                       std::span<const int> chosen, std::size_t& partial_rows) {
  AttentionWork work;
  AttentionList list;
  std::vector<AttentionEntry> entries;
  for (const int index : chosen) {
    const KvPiece& piece = pieces[static_cast<std::size_t>(index)];
    const int pairs = piece.rows * in.group, units = (pairs + in.short_pairs - 1) / in.short_pairs;
    const int spans = last_span(piece) + 1, all_units = units * in.kv_heads;
    entries.push_back({piece, units, work.units, list.long_items, list.items - list.long_items, work.rows,
                       static_cast<std::int32_t>(partial_rows)});
    list.long_items += std::max(spans - kShortSpans, 0) * all_units;
    list.items += spans * all_units;
    work.units += all_units;
    work.rows += piece.rows;
    partial_rows += static_cast<std::size_t>(spans) * static_cast<std::size_t>(in.kv_heads * pairs);
  }
  work.count = static_cast<int>(entries.size());
  work.entries = recorder.put<AttentionEntry>(entries);
  work.list = recorder.put<AttentionList>({&list, 1});
  return work;
}

AttentionWork plan_many(Recorder& recorder, const AttentionPlanInput& in, std::span<const KvPiece> pieces,
                        std::vector<int> chosen) {
  std::stable_sort(chosen.begin(), chosen.end(), [&](int a, int b) {
    return last_span(pieces[static_cast<std::size_t>(a)]) > last_span(pieces[static_cast<std::size_t>(b)]);
  });
  AttentionWork work;
  std::vector<AttentionEntry> entries;
  long long spans_of_units = 0;
  int most_spans = 0;
  for (const int index : chosen) {
    const KvPiece& piece = pieces[static_cast<std::size_t>(index)];
    const int units = (piece.rows * in.group + in.long_pairs - 1) / in.long_pairs;
    entries.push_back({piece, units, work.units, 0, 0, 0, 0});
    work.units += units * in.kv_heads;
    work.rows += piece.rows;
    most_spans = std::max(most_spans, last_span(piece) + 1);
    spans_of_units += static_cast<long long>(last_span(piece) + 1) * units * in.kv_heads;
  }
  // Fewer units than two waves: their spans are shared out in runs. A run waits for the one before it, so runs are of
  // one span unless the units alone fill the card.
  work.shared_totals = in.runs && work.units < 2 * in.blocks ? 1 : 0;
  AttentionList list;
  list.run_spans = most_spans;
  if (work.shared_totals && work.units < in.blocks) list.run_spans = 1;
  if (work.shared_totals && work.units >= in.blocks)
    list.run_spans = static_cast<int>(std::max<long long>(1, spans_of_units / (8LL * in.blocks)));
  list.runs = (most_spans + list.run_spans - 1) / list.run_spans;
  std::vector<std::int32_t> first_of_run(std::bit_ceil(static_cast<std::size_t>(std::max(list.runs + 1, 64))), 0);
  for (int run = 0; run < list.runs; ++run) {
    int units = 0;
    for (const AttentionEntry& entry : entries)
      if (last_span(entry.kv) / list.run_spans >= run) units += entry.units * in.kv_heads;
    first_of_run[static_cast<std::size_t>(run) + 1] = first_of_run[static_cast<std::size_t>(run)] + units;
  }
  list.items = first_of_run[static_cast<std::size_t>(list.runs)];
  work.count = static_cast<int>(entries.size());
  work.entries = recorder.put<AttentionEntry>(entries);
  work.list = recorder.put<AttentionList>({&list, 1});
  work.first_of_run = recorder.put<std::int32_t>(first_of_run);
  return work;
}

}  // namespace

AttentionPlan plan_attention(Recorder& recorder, const AttentionPlanInput& input,
                             std::span<const Piece> pieces_of_round, std::span<const CacheView> views) {
  AttentionPlan plan;
  KvPieces kv = list_pieces(recorder, pieces_of_round, views);
  plan.tables = kv.tables;
  plan.fp8 = kv.fp8;
  const std::vector<KvPiece>& pieces = kv.list;
  std::vector<int> few, many;
  std::size_t bytes = 0;
  for (int i = 0; i < static_cast<int>(pieces.size()); ++i) {
    const KvPiece& piece = pieces[static_cast<std::size_t>(i)];
    const std::size_t more = static_cast<std::size_t>(last_span(piece) + 1) *
                             static_cast<std::size_t>(piece.rows * input.group * input.kv_heads) *
                             static_cast<std::size_t>(input.dim + 4) * sizeof(float);
    const bool is_short = piece.rows * input.group <= kShortPairs && bytes + more <= input.most_partial_bytes;
    if (is_short) bytes += more;
    (is_short ? few : many).push_back(i);
  }
  if (!few.empty()) plan.few = plan_few(recorder, input, pieces, few, plan.partial_rows);
  if (!many.empty()) plan.many = plan_many(recorder, input, pieces, std::move(many));
  return plan;
}

}  // namespace steadfast::cuda
