// Shards are cut before anything is written, so that each header is known when its data comes.
#include "convert/shards.h"

#include <algorithm>

#include "convert/emit.h"
#include "convert/json_file.h"
#include "formats/safetensors.h"
#include "formats/untrusted.h"

namespace steadfast {
namespace fs = std::filesystem;
namespace {

std::uint64_t bytes_of(const TensorJob& job) {
  std::uint64_t total = 0;
  for (const TensorView& view : outputs_of(job)) total += checked_bytes(view.dtype, view.shape).value_or(0);
  return total;
}

struct Shard {
  std::size_t first = 0, end = 0;  // jobs
};

std::vector<Shard> cut(const std::vector<TensorJob>& jobs, std::uint64_t limit) {
  std::vector<Shard> shards;
  std::uint64_t filled = 0;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const std::uint64_t bytes = bytes_of(jobs[i]);
    if (shards.empty() || filled + bytes > limit) {
      shards.push_back({i, i});
      filled = 0;
    }
    filled += bytes;
    shards.back().end = i + 1;
  }
  return shards;
}

Status write_shard(const fs::path& path, const TensorSource& source, std::span<const TensorJob> jobs,
                   const std::function<void()>& step) {
  std::vector<TensorView> outputs;
  for (const TensorJob& job : jobs)
    for (TensorView& view : outputs_of(job)) outputs.push_back(std::move(view));
  auto writer = SafetensorsWriter::create(path, outputs, {{"format", "mlx"}});
  if (!writer) return writer.status();
  for (const TensorJob& job : jobs) {
    auto emitted = Emitted::make(source, job);
    if (!emitted) return emitted.status();
    for (const auto piece : emitted->pieces())
      if (auto status = writer->write(piece); !status) return status;
    source.release(*job.source);
    step();
  }
  return writer->finish();
}

}  // namespace

std::uint64_t bytes_of(const ConversionPlan& plan) {
  std::uint64_t total = 0;
  for (const TensorJob& job : plan.jobs) total += bytes_of(job);
  return total;
}

Result<WrittenWeights> write_weights(const fs::path& folder, const TensorSource& source, ConversionPlan& plan,
                                     std::uint64_t shard_bytes,
                                     const std::function<void(int done, int total)>& progress) {
  std::stable_partition(plan.jobs.begin(), plan.jobs.end(), [](const TensorJob& job) {
    return job.form.has_value() || info(job.source->dtype).block_bytes >= 4;
  });
  const auto shards = cut(plan.jobs, shard_bytes);
  WrittenWeights written{bytes_of(plan), 0, static_cast<int>(shards.size())};
  auto index = nlohmann::json{{"metadata", {{"total_size", written.bytes}}}, {"weight_map", nlohmann::json::object()}};
  int done = 0;
  const auto step = [&] {
    if (progress) progress(++done, static_cast<int>(plan.jobs.size()));
  };
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const std::string name = shards.size() == 1 ? "model.safetensors"
                                                : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards.size());
    const auto jobs = std::span(plan.jobs).subspan(shards[i].first, shards[i].end - shards[i].first);
    if (auto status = write_shard(folder / name, source, jobs, step); !status) return status;
    for (const TensorJob& job : jobs) {
      for (const TensorView& view : outputs_of(job)) {
        index["weight_map"][view.name] = name;
        ++written.tensors;
      }
    }
  }
  if (shards.size() > 1)
    if (auto status = write_json(folder / "model.safetensors.index.json", index); !status) return status;
  return written;
}

}  // namespace steadfast
