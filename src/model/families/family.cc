// The list of families.
#include "model/families/family.h"

namespace steadfast {
namespace {

constexpr const Family* kFamilies[] = {&kLlama, &kQwen2, &kQwen3, &kQwen35};

}  // namespace

const Family* find_family(std::string_view model_type) {
  for (const Family* family : kFamilies)
    for (const char* name : {family->name, family->other_name, family->gguf_name})
      if (name != nullptr && model_type == name) return family;
  return nullptr;
}

std::string family_names() {
  std::string names;
  for (const Family* family : kFamilies) names += (names.empty() ? "" : ", ") + std::string(family->name);
  return names;
}

}  // namespace steadfast
