// nlohmann's event parser (which keeps its own stack) building the tree under the limits.
#include "server/json_parse.h"

#include <unordered_set>
#include <vector>

namespace steadfast {

namespace {

class TreeBuilder : public nlohmann::json_sax<Json> {
 public:
  explicit TreeBuilder(const JsonLimits& limits) : limits_(limits) {}

  bool null() override { return add(nullptr) != nullptr; }
  bool boolean(bool value) override { return add(value) != nullptr; }
  bool number_integer(number_integer_t value) override { return add(value) != nullptr; }
  bool number_unsigned(number_unsigned_t value) override { return add(value) != nullptr; }
  bool number_float(number_float_t value, const string_t&) override { return add(value) != nullptr; }
  bool string(string_t& value) override { return add(std::move(value)) != nullptr; }
  bool binary(binary_t&) override { return refuse("the body holds binary JSON"); }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    Frame& frame = frames_.back();
    if (!frame.seen.insert(name).second) {
      return refuse(fmt::format("the body has the key '{}' twice in one object", shown_word(name)));
    }
    frame.key = std::move(name);
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    const std::string_view what = error.what();
    if (what.find("UTF-8") != std::string_view::npos) {
      return refuse(fmt::format("the body is not valid UTF-8 at byte {}", position));
    }
    if (what.find("number overflow") != std::string_view::npos) {
      return refuse("the body has a number that is too large for a double");
    }
    return refuse(fmt::format("the body is not valid JSON: the error is at byte {}", position));
  }

  Json take() { return std::move(root_); }
  const std::string& error() const { return error_; }

 private:
  struct Frame {
    Json* container;
    std::string key;
    std::unordered_set<std::string> seen;
  };

  bool refuse(std::string sentence) {
    error_ = std::move(sentence);
    return false;
  }

  Json* add(Json value) {
    if (++values_ > limits_.values) {
      refuse(fmt::format("the body has more than {} JSON values", limits_.values));
      return nullptr;
    }
    if (frames_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json& parent = *frames_.back().container;
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    // key() saw to it that the name is new: appending spares the ordered map's search for it.
    auto& members = parent.get_ref<Json::object_t&>();
    members.Container::emplace_back(std::move(frames_.back().key), std::move(value));
    return &members.Container::back().second;
  }

  bool open(Json container) {
    if (frames_.size() >= limits_.depth) {
      return refuse(fmt::format("the body's JSON is nested deeper than {} levels", limits_.depth));
    }
    Json* added = add(std::move(container));
    if (added != nullptr) frames_.push_back({added, {}, {}});
    return added != nullptr;
  }

  bool close() {
    frames_.pop_back();
    return true;
  }

  JsonLimits limits_;
  std::size_t values_ = 0;
  Json root_;
  std::vector<Frame> frames_;
  std::string error_;
};

}  // namespace

Outcome<Json> parse_json(std::string_view text, const JsonLimits& limits) {
  // The parser takes a NUL for the end of the text: what follows it would go unread.
  if (const auto at = text.find('\0'); at != std::string_view::npos) {
    return ApiError{400, fmt::format("the body is not valid JSON: it holds a NUL at byte {}", at), "", "invalid_json"};
  }
  TreeBuilder builder(limits);
  if (!Json::sax_parse(text.begin(), text.end(), &builder)) {
    return ApiError{400, builder.error(), "", "invalid_json"};
  }
  return builder.take();
}

}  // namespace steadfast
