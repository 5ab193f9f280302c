// Forms of the planned matrices, and how config.json describes them.
#include "convert/plan.h"

#include <algorithm>
#include <map>

#include "quant/affine.h"

namespace steadfast {
namespace {

constexpr int kBlockGroup = 32;  // of GGUF's blocks (model-spec 4.3)

Status keep(TensorJob& job) {
  job.form = AffineForm{job.source->dtype == DType::kQ8_0 ? 8 : 4, kBlockGroup};
  job.kept = true;
  if (!job.columns.empty() && job.column_block % kBlockGroup != 0)
    return Status::error("{}: heads of {} columns cut its blocks of {}, so it cannot be kept; use --requantise",
                         job.module, job.column_block, kBlockGroup);
  return Status::ok();
}

Status choose(TensorJob& job, Recipe* recipe, bool requantise, std::vector<std::string>& notes) {
  const bool block = is_affine_block(job.source->dtype);
  if (!job.is_matrix) {
    if (block) return Status::error("tensor {} is quantised, but is no matrix; is the file whole?", job.source->name);
    return Status::ok();
  }
  if (recipe == nullptr || (block && !requantise)) return block ? keep(job) : Status::ok();
  const Recipe::Choice choice = recipe->choose(job.module);
  if (!choice.form) return block ? keep(job) : Status::ok();
  const std::int64_t width = job.shape.back();
  if (width % choice.form->group == 0) {
    job.form = choice.form;
    return Status::ok();
  }
  if (choice.explicitly)
    return Status::error(
        "{} has {} columns, which groups of {} do not divide; give it another group, or false in the recipe",
        job.module, width, choice.form->group);
  if (block) return keep(job);
  notes.push_back(fmt::format("{} stays unquantised: groups of {} do not divide its {} columns", job.module,
                              choice.form->group, width));
  return Status::ok();
}

// The recipe's default, else the form that most modules have.
std::optional<AffineForm> base_form(const ConversionPlan& plan, const Recipe* recipe) {
  std::map<std::pair<int, int>, int> counts;
  for (const TensorJob& job : plan.jobs)
    if (job.form) ++counts[{job.form->bits, job.form->group}];
  if (counts.empty()) return std::nullopt;
  if (recipe != nullptr) return recipe->base();
  const auto most =
      std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return AffineForm{most->first.first, most->first.second};
}

}  // namespace

Status choose_forms(ConversionPlan& plan, Recipe* recipe, bool requantise) {
  for (TensorJob& job : plan.jobs)
    if (auto status = choose(job, recipe, requantise, plan.notes); !status) return status;
  if (recipe == nullptr) return Status::ok();
  for (const std::string& pattern : recipe->unused())
    plan.notes.push_back(fmt::format("the recipe's pattern \"{}\" fitted no module that was to be quantised", pattern));
  return Status::ok();
}

nlohmann::json quantization_of(const ConversionPlan& plan, const Recipe* recipe) {
  const auto base = base_form(plan, recipe);
  if (!base) return nullptr;
  nlohmann::json json = {{"group_size", base->group}, {"bits", base->bits}, {"mode", "affine"}};
  for (const TensorJob& job : plan.jobs) {
    if (!job.is_matrix || job.form == base) continue;
    if (job.form)
      json[job.module] = {{"group_size", job.form->group}, {"bits", job.form->bits}};
    else
      json[job.module] = false;
  }
  return json;
}

}  // namespace steadfast
