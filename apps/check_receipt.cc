// The request is read from the receipt by the API's own reader, so that the same values are checked the same way.
#include "check_receipt.h"

#include <algorithm>
#include <limits>

#include "server/digest.h"
#include "server/generation.h"
#include "server/json_parse.h"
#include "server/receipt.h"
#include "tokenizer_input.h"
#include "wait_reply.h"

namespace steadfast {
namespace {

bool is_receipt(const Json& json) {
  const auto text_at = [](const Json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_string();
  };
  if (!canonical_request(json) || !json["sampling"].is_object()) return false;
  for (const char* key : {"model_digest", "prompt_ids_sha256", "request_digest", "ids_sha256"})
    if (!text_at(json, key)) return false;
  const auto arithmetic = json.find("arithmetic");
  if (arithmetic == json.end() || !arithmetic->is_object()) return false;
  return text_at(*arithmetic, "act") && text_at(*arithmetic, "kv_dtype");
}

// Receipts of earlier programs name no prompt_act: prompts had the arithmetic of replies.
Status name_prompt_act(Json& arithmetic) {
  const auto found = arithmetic.find("prompt_act");
  if (found != arithmetic.end())
    return found->is_string() ? Status::ok() : Status::error("prompt_act is {}, not a name", found->dump());
  Json named = Json::object();
  for (const auto& [key, value] : arithmetic.items()) {
    named[key] = value;
    if (key == "act") named["prompt_act"] = value;
  }
  arithmetic = std::move(named);
  return Status::ok();
}

Status read_ids(const Json& json, const char* key, std::optional<std::vector<TokenId>>& out) {
  const auto found = json.find(key);
  if (found == json.end()) return Status::ok();
  out.emplace();
  for (const Json& id : *found) {
    const auto number = whole_number(id);
    if (!number || *number < 0 || *number > std::numeric_limits<TokenId>::max())
      return Status::error("{} holds {}, which is no token id", key, id.dump());
    out->push_back(static_cast<TokenId>(*number));
  }
  return Status::ok();
}

// The request of a receipt, as the API would take it.
Result<Request> request_of(const Json& receipt, const ModelCard& card, std::vector<TokenId> prompt) {
  Json body = receipt["sampling"];
  for (const char* key : {"seed", "max_tokens", "stop", "ignore_eos"}) body[key] = receipt[key];
  body["stop_token_ids"] = receipt["stop_ids"];
  FieldReader fields(body);
  const Generation generation = read_generation(fields, card, {});
  if (fields.error()) return Status::error("the receipt: {}", fields.error()->message);
  return make_request(generation, std::move(prompt), 0);
}

Finding compare(std::string name, const Json& receipts, const Json& found) {
  const bool equal = receipts == found;
  return {std::move(name), equal,
          equal ? "" : fmt::format("the receipt has {}, here it is {}", receipts.dump(), found.dump())};
}

}  // namespace

Result<SavedReply> SavedReply::read(const std::string& path) {
  auto text = read_input(path);
  if (!text) return text.status();
  auto parsed = parse_json(*text);  // in the file's order of keys, which the digest depends on
  if (!parsed) return Status::error("{}: {}", path, parsed.error().message);
  const Json& json = *parsed;
  if (!json.is_object()) return Status::error("{} holds no receipt: it is not a JSON object", path);
  SavedReply saved;
  saved.receipt_ = json.contains("receipt") ? json["receipt"] : json.contains("steadfast") ? json["steadfast"] : json;
  if (saved.receipt_.is_object() && saved.receipt_.contains("choices"))
    return Status::error("{} has several choices; save the receipt of the one that is to be checked", path);
  if (!saved.receipt_.is_object() || !is_receipt(saved.receipt_))
    return Status::error("{} holds no whole receipt; docs/receipts.md lists what belongs to one", path);
  if (auto status = name_prompt_act(saved.receipt_["arithmetic"]); !status)
    return Status::error("{}: {}", path, status.message());
  for (const auto& [key, ids] : {std::pair("prompt_ids", &saved.prompt_), {"ids", &saved.ids_}}) {
    if (auto status = read_ids(json, key, *ids); !status) return Status::error("{}: {}", path, status.message());
  }
  if (json.contains("finish_reason") && json["finish_reason"].is_string()) saved.finish_ = json["finish_reason"];
  return saved;
}

std::optional<std::int64_t> SavedReply::now() const {
  const auto found = receipt_.find("now");
  return found == receipt_.end() ? std::nullopt : whole_number(*found);
}

Result<std::vector<Finding>> check_reply(const SavedReply& saved, Engine& engine, std::vector<TokenId> prompt) {
  const Json& receipt = saved.receipt();
  const ModelCard& card = engine.card();
  std::vector<Finding> findings = {
      compare("receipt", receipt["request_digest"], request_digest(*canonical_request(receipt))),
      compare("model_digest", receipt["model_digest"], card.digest),
      compare("arithmetic", receipt["arithmetic"], to_json(card.arithmetic)),
      compare("prompt_ids_sha256", receipt["prompt_ids_sha256"], sha256_of_ids(prompt))};
  if (saved.ids()) findings.push_back(compare("ids", receipt["ids_sha256"], sha256_of_ids(*saved.ids())));
  const auto equal = [](const Finding& finding) { return finding.equal; };
  if (!std::all_of(findings.begin(), findings.end(), equal)) return findings;
  auto request = request_of(receipt, card, std::move(prompt));
  if (!request) return request.status();
  const std::string digest = request_digest(make_receipt(*request, card).content);
  findings.push_back(compare("request_digest", receipt["request_digest"], digest));
  std::vector<TokenId> ids;
  auto end = wait_reply(engine, std::move(*request),
                        [&ids](const ReplyPiece& piece) { ids.insert(ids.end(), piece.ids.begin(), piece.ids.end()); });
  if (!end) return end.status();
  findings.push_back(compare("ids_sha256", receipt["ids_sha256"], sha256_of_ids(ids)));
  if (!saved.finish_reason().empty())
    findings.push_back(compare("finish_reason", saved.finish_reason(), to_string(end->reason)));
  return findings;
}

int print_findings(const std::vector<Finding>& findings, bool json) {
  bool all = true;
  Json compared = Json::object();
  for (const Finding& finding : findings) {
    all = all && finding.equal;
    compared[finding.name] = finding.equal;
    if (!json) fmt::print("{:<18} {}\n", finding.name, finding.equal ? "equal" : "differs: " + finding.note);
  }
  const bool made =
      std::any_of(findings.begin(), findings.end(), [](const Finding& f) { return f.name == "ids_sha256"; });
  if (json) {
    fmt::print("{}\n", Json({{"equal", all}, {"made_again", made}, {"compared", compared}}).dump());
  } else if (!made) {
    fmt::print("the reply was not made again\n");
  } else {
    fmt::print("{}\n", all ? "the reply is the same" : "the reply is another one");
  }
  return all ? 0 : 1;
}

}  // namespace steadfast
