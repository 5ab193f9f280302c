// Which module gets which bits: one choice for all, mlx-lm's named mixtures, or a file of patterns (model-spec 3.4).
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"

namespace steadfast {

struct AffineForm {
  int bits = 4, group = 64;
  bool operator==(const AffineForm&) const = default;
};

class Recipe {
 public:
  // One form for every module; an error where MLX has no such bits or group.
  static Result<Recipe> uniform(AffineForm form);
  // {"default": {"bits": 4, "group_size": 64}, "modules": [["*.down_proj", {"bits": 6}], ["lm_head", false], ...]}:
  // the first pattern that fits a module's whole path counts; * stands for any characters. A form may leave out its
  // group, or bits, which are then the default's. `name` is the file's, for errors.
  static Result<Recipe> from_json(const nlohmann::json& json, const std::string& name);
  // mlx-lm's mixed_2_6, mixed_3_4, mixed_3_6, mixed_4_6: the second bits for lm_head and, in the layers that matter
  // most, for v_proj and down_proj. An unknown name is an error that lists them.
  static Result<Recipe> named(const std::string& name, int group, int layers);
  static bool is_name(const std::string& name);

  AffineForm base() const { return base_; }

  struct Choice {
    std::optional<AffineForm> form;  // nothing: not quantised
    bool explicitly = false;         // a pattern says so, not the default
  };
  // Notes which patterns were of use: see unused().
  Choice choose(const std::string& module);
  // Patterns that fitted none of the modules given to choose().
  std::vector<std::string> unused() const;

 private:
  struct Rule {
    std::string pattern;
    std::optional<AffineForm> form;
    bool used = false;
  };
  AffineForm base_;
  std::vector<Rule> rules_;
  int high_bits_ = 0, layers_ = 0;  // of a named mixture
};

}  // namespace steadfast
