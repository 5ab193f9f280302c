// A saved reply and its receipt: made again on an engine, and compared. docs/receipts.md says what a receipt holds.
#pragma once

#include "engine/engine.h"

namespace steadfast {

class SavedReply {
 public:
  // A result of `generate --json`, or a reply of the API with one choice, or a receipt alone.
  static Result<SavedReply> read(const std::string& path);

  const Json& receipt() const { return receipt_; }
  std::string act() const { return receipt_["arithmetic"]["act"]; }
  std::string prompt_act() const { return receipt_["arithmetic"]["prompt_act"]; }
  std::string kv_dtype() const { return receipt_["arithmetic"]["kv_dtype"]; }
  std::optional<std::int64_t> now() const;
  // In results of `generate` alone.
  const std::optional<std::vector<TokenId>>& prompt() const { return prompt_; }
  const std::optional<std::vector<TokenId>>& ids() const { return ids_; }
  const std::string& finish_reason() const { return finish_; }  // empty: the file has none

 private:
  Json receipt_;
  std::optional<std::vector<TokenId>> prompt_, ids_;
  std::string finish_;
};

struct Finding {
  std::string name;
  bool equal = false;
  std::string note;  // where not: what was found
};

// Compares the receipt with itself, with the engine and with the prompt; where these agree, makes the reply again and
// compares that.
Result<std::vector<Finding>> check_reply(const SavedReply& saved, Engine& engine, std::vector<TokenId> prompt);

// Prints them, as one JSON object or as lines; the exit status: 0 where all is equal, else 1.
int print_findings(const std::vector<Finding>& findings, bool json);

}  // namespace steadfast
