// Unicode normalisation before tokenising: none or NFC, as tokenizer files ask for. Source: model-spec 6.2.
#pragma once

#include <string>
#include <string_view>

namespace steadfast {

struct Normalizer {
  bool nfc = false;

  // text is well-formed UTF-8. The result is `text` itself where nothing changes, else `storage`.
  std::string_view apply(std::string_view text, std::string& storage) const;
};

}  // namespace steadfast
