// nlohmann's event parser (which keeps its own stack, so that depth costs no recursion) feeding StrictJson.
#include "formats/strict_json.h"

#include <nlohmann/json.hpp>

#include "formats/untrusted.h"

namespace steadfast {

class StrictJson::Events : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Events(StrictJson& reader) : reader_(reader) {}
  const Status& status() const { return status_; }

  bool null() override { return keep(reader_.scalar(nullptr)); }
  bool boolean(bool value) override { return keep(reader_.scalar(value)); }
  bool number_integer(std::int64_t value) override { return keep(reader_.scalar(value)); }
  bool number_unsigned(std::uint64_t value) override { return keep(reader_.scalar(value)); }
  bool number_float(double value, const std::string&) override { return keep(reader_.scalar(value)); }
  bool string(std::string& value) override { return keep(reader_.scalar(std::string_view(value))); }
  bool binary(binary_t&) override { return keep(Status::error("{}: holds binary JSON", reader_.file_)); }
  bool start_object(std::size_t) override { return start(Kind::kObject); }
  bool end_object() override { return end(); }
  bool start_array(std::size_t) override { return start(Kind::kArray); }
  bool end_array() override { return end(); }

  bool key(std::string& name) override {
    Frame& frame = reader_.frames_.back();
    if (!frame.seen.insert(name).second) {
      return keep(Status::error("{}: the key {} is there twice in one JSON object; the file is damaged, fetch it again",
                                reader_.file_, shown(name)));
    }
    frame.key = name;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    return keep(
        Status::error("{}: is not JSON from byte {} on; the file is damaged, fetch it again", reader_.file_, position));
  }

 private:
  bool keep(Status status) {
    status_ = std::move(status);
    return status_.is_ok();
  }

  bool start(Kind kind) {
    if (reader_.frames_.size() >= reader_.most_nesting_) {
      return keep(Status::error("{}: its JSON is nested deeper than {}; the file is damaged, fetch it again",
                                reader_.file_, reader_.most_nesting_));
    }
    if (auto status = reader_.open(kind); !status) return keep(std::move(status));
    reader_.frames_.push_back({kind, {}, {}});
    return true;
  }

  bool end() {
    const Kind kind = reader_.frames_.back().kind;
    reader_.frames_.pop_back();
    return keep(reader_.close(kind));
  }

  StrictJson& reader_;
  Status status_;
};

Status StrictJson::walk(std::string_view text, const std::string& file, std::size_t most_nesting) {
  file_ = file;
  most_nesting_ = most_nesting;
  frames_.clear();
  // The parser takes a NUL for the end of the text: what follows it would go unread.
  if (const auto at = text.find('\0'); at != std::string_view::npos) {
    return Status::error("{}: its JSON holds a NUL at byte {}; the file is damaged, fetch it again", file, at);
  }
  Events events(*this);
  const bool done = nlohmann::json::sax_parse(text.begin(), text.end(), &events);
  CHECK(done == events.status().is_ok(), "a walk over JSON ended without its reason: {}", file);
  return events.status();
}

}  // namespace steadfast
