// The only place that reads the environment; everything else is passed in.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace steadfast {

struct Config {
  std::filesystem::path home;         // STEADFAST_HOME, else XDG_DATA_HOME/steadfast, else HOME/.local/share/steadfast
  std::optional<std::string> isa;     // STEADFAST_ISA: scalar, avx2 or avx512; for tests of the row law
  std::optional<std::string> device;  // STEADFAST_DEVICE: what --device would name; for tests on a card
  std::string log_level = "info";     // STEADFAST_LOG: trace, debug, info, warn, error
  bool no_color = false;              // NO_COLOR set and not empty
  std::string hf_endpoint;  // HF_ENDPOINT, else the public hub: where `pull ORG/NAME` fetches; no slash at its end
  std::optional<std::string> hf_token;  // HF_TOKEN: sent to hf_endpoint alone

  // Where `pull` stores models: home / "models" / NAME.
  std::filesystem::path models() const { return home / "models"; }
};

// Read once, at the first call.
const Config& config();

}  // namespace steadfast
