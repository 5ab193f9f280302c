// Receipts and usage over the choices.
#include "server/reply_builder.h"

namespace steadfast {

int ReplyBuilder::completion_tokens() const {
  std::size_t tokens = 0;
  for (const Total& one : totals_) tokens += one.ids.size();
  return static_cast<int>(tokens);
}

Json ReplyBuilder::usage_chunk() const {
  Json last = chunk(Json::array());
  last["usage"] = usage();
  return last;
}

Json ReplyBuilder::receipt(int choice) const {
  const auto at = static_cast<std::size_t>(choice);
  return to_json(head_.receipts[at], head_.model_digest, totals_[at].ids);
}

Json ReplyBuilder::receipts() const {
  Json first = receipt(0);
  if (totals_.size() == 1) return first;
  Json list = Json::array();
  for (std::size_t i = 0; i < totals_.size(); ++i) {
    const Json one = receipt(static_cast<int>(i));
    list.push_back({{"index", i},
                    {"request_digest", one["request_digest"]},
                    {"seed", one["seed"]},
                    {"ids_sha256", one["ids_sha256"]}});
  }
  return {{"model_digest", first["model_digest"]}, {"sampling", first["sampling"]}, {"choices", std::move(list)}};
}

}  // namespace steadfast
