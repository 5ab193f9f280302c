// Reads the environment into a Config, once; an empty variable counts as unset.
#include "base/config.h"

#include <cstdlib>

namespace steadfast {
namespace {

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return std::string(value);
}

Config read_environment() {
  Config result;
  if (auto home = variable("STEADFAST_HOME")) {
    result.home = *home;
  } else if (auto data = variable("XDG_DATA_HOME")) {
    result.home = std::filesystem::path(*data) / "steadfast";
  } else {
    result.home = std::filesystem::path(variable("HOME").value_or(".")) / ".local/share/steadfast";
  }
  result.isa = variable("STEADFAST_ISA");
  result.device = variable("STEADFAST_DEVICE");
  result.log_level = variable("STEADFAST_LOG").value_or("info");
  result.no_color = variable("NO_COLOR").has_value();
  result.hf_endpoint = variable("HF_ENDPOINT").value_or("https://huggingface.co");
  while (result.hf_endpoint.ends_with('/')) result.hf_endpoint.pop_back();
  result.hf_token = variable("HF_TOKEN");
  return result;
}

}  // namespace

const Config& config() {
  static const Config kConfig = read_environment();
  return kConfig;
}

}  // namespace steadfast
