// Recipes. A mixture's choice of layers is mlx-lm's (mlx_lm/convert.py): the first and last eighth, and every third.
#include "convert/recipe.h"

#include <charconv>

#include "convert/quantise.h"

namespace steadfast {
namespace {

struct Mixture {
  const char* name;
  int low, high;
};
constexpr Mixture kMixtures[] = {{"mixed_2_6", 2, 6}, {"mixed_3_4", 3, 4}, {"mixed_3_6", 3, 6}, {"mixed_4_6", 4, 6}};

Status check(AffineForm form, const std::string& where) {
  if (!is_affine_bits(form.bits))
    return Status::error("{}: {} bits are not possible; use 2, 3, 4, 5, 6 or 8", where, form.bits);
  if (!is_affine_group(form.group))
    return Status::error("{}: groups of {} are not possible; use 32, 64 or 128", where, form.group);
  return Status::ok();
}

// * stands for any characters, also none.
bool fits(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

Result<AffineForm> read_form(const nlohmann::json& json, AffineForm base, const std::string& where) {
  if (!json.is_object()) return Status::error("{} must be {{\"bits\": ..., \"group_size\": ...}}", where);
  for (const auto& [key, value] : json.items()) {
    if (key == "mode" && value == "affine") continue;
    if (key != "bits" && key != "group_size")
      return Status::error("{}: \"{}\" is not known; \"bits\" and \"group_size\" are", where, key.substr(0, 80));
    if (!value.is_number_integer() || value.get<double>() < 0 || value.get<double>() > 1024)
      return Status::error("{}: \"{}\" must be a small whole number", where, key);
    (key == "bits" ? base.bits : base.group) = value.get<int>();
  }
  if (auto status = check(base, where); !status) return status;
  return base;
}

// The number behind "layers." in a path; -1: the module is in no layer.
int layer_of(std::string_view module) {
  const auto at = module.find("layers.");
  int layer = -1;
  if (at != std::string_view::npos) std::from_chars(module.data() + at + 7, module.data() + module.size(), layer);
  return layer;
}

bool ends_with_part(std::string_view module, std::string_view part) {
  return module == part || (module.ends_with(part) && module[module.size() - part.size() - 1] == '.');
}

}  // namespace

Result<Recipe> Recipe::uniform(AffineForm form) {
  if (auto status = check(form, "quantisation"); !status) return status;
  Recipe recipe;
  recipe.base_ = form;
  return recipe;
}

Result<Recipe> Recipe::from_json(const nlohmann::json& json, const std::string& name) {
  if (!json.is_object()) return Status::error("{} must hold an object with \"default\" and \"modules\"", name);
  for (const auto& [key, value] : json.items())
    if (key != "default" && key != "modules")
      return Status::error("{}: \"{}\" is not known; \"default\" and \"modules\" are", name, key.substr(0, 80));
  Recipe recipe;
  if (json.contains("default")) {
    auto base = read_form(json["default"], recipe.base_, name + ": \"default\"");
    if (!base) return base.status();
    recipe.base_ = *base;
  }
  if (!json.contains("modules")) return recipe;
  if (!json["modules"].is_array()) return Status::error("{}: \"modules\" must be a list of [pattern, form]", name);
  for (const auto& entry : json["modules"]) {
    const bool pair = entry.is_array() && entry.size() == 2 && entry[0].is_string();
    if (!pair) return Status::error("{}: entry {} of \"modules\" must be [pattern, form]", name, recipe.rules_.size());
    Rule rule{entry[0].get<std::string>(), {}};
    if (entry[1] != false) {
      auto form = read_form(entry[1], recipe.base_, fmt::format("{}: \"{}\"", name, rule.pattern.substr(0, 80)));
      if (!form) return form.status();
      rule.form = *form;
    }
    recipe.rules_.push_back(std::move(rule));
  }
  return recipe;
}

bool Recipe::is_name(const std::string& name) { return name.starts_with("mixed_") && name.find('.') == name.npos; }

Result<Recipe> Recipe::named(const std::string& name, int group, int layers) {
  std::string known;
  for (const Mixture& mixture : kMixtures) {
    known += (known.empty() ? "" : ", ") + std::string(mixture.name);
    if (name != mixture.name) continue;
    auto recipe = uniform({mixture.low, group});
    if (!recipe) return recipe;
    recipe->high_bits_ = mixture.high;
    recipe->layers_ = layers;
    return recipe;
  }
  return Status::error("there is no recipe \"{}\"; {} are, or give a file", name, known);
}

Recipe::Choice Recipe::choose(const std::string& module) {
  for (Rule& rule : rules_) {
    if (!fits(rule.pattern, module)) continue;
    rule.used = true;
    return {rule.form, true};
  }
  if (high_bits_ == 0) return {base_, false};
  bool high = ends_with_part(module, "lm_head");
  if (ends_with_part(module, "v_proj") || ends_with_part(module, "down_proj")) {
    const int eighth = layers_ / 8, layer = module.find("mtp.") != module.npos ? layers_ : layer_of(module);
    high = layer < eighth || layer >= 7 * layers_ / 8 || (layer - eighth) % 3 == 2;
  }
  return {AffineForm{high ? high_bits_ : base_.bits, base_.group}, false};
}

std::vector<std::string> Recipe::unused() const {
  std::vector<std::string> patterns;
  for (const Rule& rule : rules_)
    if (!rule.used) patterns.push_back(rule.pattern);
  return patterns;
}

}  // namespace steadfast
