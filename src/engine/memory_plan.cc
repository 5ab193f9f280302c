// Weights and workspace are given; what is left goes to windows, or to the pool and the states that prefixes keep.
#include "engine/memory_plan.h"

#include <algorithm>

namespace steadfast {
namespace {

constexpr int kGrain = 16;      // contexts that the plan tries
constexpr int kLogitRows = 64;  // draws at a time

std::string human(std::size_t bytes) {
  const double mib = static_cast<double>(bytes) / (1 << 20);
  return mib < 1024 ? fmt::format("{:.1f} MiB", mib) : fmt::format("{:.1f} GiB", mib / 1024);
}

Status check(const EngineOptions& options, int most) {
  if (options.streams < 1 || options.streams > 4096)
    return Status::error("--parallel {}: give a number from 1 to 4096", options.streams);
  if (options.row_budget < 0) return Status::error("a round needs at least one row");
  if (options.context < 0 || options.context > most)
    return Status::error("--context {}: the model was made for at most {} positions", options.context, most);
  if (!(options.prompt_share >= 0.01 && options.prompt_share <= 1))
    return Status::error("--prompt-share {}: give a number from 0.01 to 1", options.prompt_share);
  return options.paged ? PagePool::check_page(options.page) : Status::ok();
}

// The parts of a plan that follow from its context.
class Planner {
 public:
  Planner(const Model& model, DType kv_dtype, const EngineOptions& options)
      : options_(options), model_(model), shape_(model.cache_shape(kv_dtype)) {
    const ModelConfig& config = model.config();
    fixed_.streams = options.streams;
    const int rows = options.row_budget > 0 ? options.row_budget : model.backend().usual_rows();
    fixed_.rows = std::max(rows, options.streams);
    fixed_.weights = model.weights().bytes();
    fixed_.logit_rows = std::min(options.streams, kLogitRows);
    fixed_.workspace = Workspace::bytes(config, fixed_.rows, fixed_.logit_rows);
    fixed_.memory = options.memory > 0 ? options.memory : model.backend().memory_bytes();
    fixed_.page = options.paged ? options.page : 0;
  }

  MemoryPlan at(int context, int streams) const {
    MemoryPlan plan = cached(context, streams);
    plan.workspace +=
        model_.backend().round_bytes(round_limits(model_.config(), plan.rows, plan.logit_rows, plan.positions()));
    return plan;
  }

  // The longest context up to `most` whose plan fits; 0: none does.
  int longest(int most) const {
    int low = 0, high = most / kGrain;  // a plan grows with its context
    while (low < high) {
      const int middle = (low + high + 1) / 2;
      if (fits(at(middle * kGrain, options_.streams)))
        low = middle;
      else
        high = middle - 1;
    }
    return low * kGrain;
  }

  int most_streams(int context) const {
    int streams = options_.streams;
    while (streams > 0 && !fits(at(context, streams))) --streams;
    return streams;
  }

  static bool fits(const MemoryPlan& plan) { return plan.total() <= plan.memory; }

 private:
  // Kept recurrent states may take a quarter of what keys and values take, and always those of a few borders.
  std::size_t kept_states(std::size_t cache) const {
    return options_.prefixes && shape_.delta_layers > 0 ? std::max(cache / 4, shape_.state_bytes() * 8) : 0;
  }

  // The plan but for the backend's own needs in a round.
  MemoryPlan cached(int context, int streams) const {
    MemoryPlan plan = fixed_;
    plan.context = context;
    plan.streams = streams;
    plan.states = static_cast<std::size_t>(streams) * shape_.state_bytes();
    if (!options_.paged) {
      plan.windows = static_cast<std::size_t>(streams) * shape_.bytes_per_position() *
                     static_cast<std::size_t>(CacheShape::rounded(context));
      plan.kept_states = kept_states(plan.windows);
      return plan;
    }
    plan.pages = options_.pool_pages > 0 ? options_.pool_pages : pages(context, streams, plan.memory);
    plan.context = static_cast<int>(std::min<std::int64_t>(context, std::int64_t{plan.pages} * plan.page));
    plan.pool = static_cast<std::size_t>(plan.pages) * page_bytes();
    plan.kept_states = kept_states(plan.pool);
    return plan;
  }

  std::size_t page_bytes() const { return shape_.bytes_per_position() * static_cast<std::size_t>(options_.page); }

  // Pages of all windows, but at most a quarter of the memory, and at least one window.
  int pages(int context, int streams, std::size_t memory) const {
    const std::int64_t window = (std::int64_t{context} + options_.page - 1) / options_.page;
    const std::int64_t quarter =
        page_bytes() > 0 ? static_cast<std::int64_t>(memory / 4 / page_bytes()) : window * streams;
    return static_cast<int>(
        std::clamp<std::int64_t>(std::min(window * streams, std::max(window, quarter)), 1, 1 << 24));
  }

  EngineOptions options_;
  const Model& model_;
  CacheShape shape_;
  MemoryPlan fixed_;
};

Status too_large(const Planner& planner, const MemoryPlan& plan, const EngineOptions& options) {
  const std::string need = fmt::format("{} stream{} of {} positions need {} ({} of them weights) and there are {}",
                                       plan.streams, plan.streams == 1 ? "" : "s", plan.context, human(plan.total()),
                                       human(plan.weights), human(plan.memory));
  const int context = planner.longest(plan.context), streams = planner.most_streams(plan.context);
  if (options.pool_pages > 0 && context == 0)
    return Status::error("{}: a pool of {} pages is too large; leave its size to the plan", need, options.pool_pages);
  if (context == 0 && streams == 0)
    return Status::error("{}: use a machine with more memory, or a smaller model", need);
  std::string fits;
  if (context > 0) fits = fmt::format("--context {}", context);
  if (streams > 0) fits += fmt::format("{}--parallel {}", fits.empty() ? "" : " or ", streams);
  return Status::error("{}: {} would fit{}", need, fits, options.paged ? "" : ", or --kv paged");
}

}  // namespace

Result<MemoryPlan> plan_memory(const Model& model, DType kv_dtype, const EngineOptions& options) {
  const int most = model.config().max_positions;
  if (auto status = check(options, most); !status) return status;
  const Planner planner(model, kv_dtype, options);
  MemoryPlan plan = planner.at(options.context > 0 ? options.context : most, options.streams);
  if (Planner::fits(plan)) return plan;
  // Nobody asked for the model's own window: streams get as many positions as fit, and `info` and `serve` say so.
  const int context = options.context == 0 ? planner.longest(most) : 0;
  if (context == 0) return too_large(planner, plan, options);
  return planner.at(context, options.streams);
}

std::string MemoryPlan::sentence() const {
  std::string text = fmt::format("memory: {} of {}: weights {}, workspace {}", human(total()), human(memory),
                                 human(weights), human(workspace));
  if (pages > 0)
    text += fmt::format(", {} pages of {} positions {}", pages, page, human(pool));
  else
    text += fmt::format(", {} window{} of {} positions {}", streams, streams == 1 ? "" : "s", context, human(windows));
  if (states > 0) text += fmt::format(", recurrent states {}", human(states));
  if (kept_states > 0) text += fmt::format(", kept states up to {}", human(kept_states));
  return text + fmt::format("; {} stream{} of up to {} positions", streams, streams == 1 ? "" : "s", context);
}

nlohmann::ordered_json MemoryPlan::json() const {
  return {{"streams", streams},       {"context", context},
          {"weights_bytes", weights}, {"workspace_bytes", workspace},
          {"windows_bytes", windows}, {"page", page},
          {"pages", pages},           {"pool_bytes", pool},
          {"states_bytes", states},   {"kept_states_bytes", kept_states},
          {"total_bytes", total()},   {"memory_bytes", memory}};
}

}  // namespace steadfast
