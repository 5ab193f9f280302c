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
  return to_json(head_.receipts[at], totals_[at].ids, totals_[at].path);
}

Json ReplyBuilder::receipts() const {
  if (totals_.size() == 1) return receipt(0);
  Json list = Json::array();
  for (std::size_t i = 0; i < totals_.size(); ++i) {
    Json one = {{"index", i}};
    one.update(receipt(static_cast<int>(i)));
    list.push_back(std::move(one));
  }
  return {{"choices", std::move(list)}};
}

}  // namespace steadfast
