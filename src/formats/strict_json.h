// A walk over JSON that nobody vouches for, without building it: what is duplicated, nested too deep, not UTF-8 or
// holds a NUL ends the walk with a sentence. A reader derives from StrictJson and is told of each value with the path
// to it.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"

namespace steadfast {

// Integers that fit neither 64-bit type come as double, as do numbers with a point or an exponent.
using JsonScalar = std::variant<std::nullptr_t, bool, std::int64_t, std::uint64_t, double, std::string_view>;

class StrictJson {
 public:
  virtual ~StrictJson() = default;

  // Walks the whole of `text`; `file` names it in errors. The first error, also of a callback, ends the walk.
  Status walk(std::string_view text, const std::string& file, std::size_t most_nesting);

 protected:
  enum class Kind { kObject, kArray };

  // Told in the text's order. At open() and close() the path does not hold the container itself.
  virtual Status open(Kind kind) = 0;
  virtual Status close(Kind kind) = 0;
  virtual Status scalar(const JsonScalar& value) = 0;

  // How many containers are open; key(i) is the current key in the i-th of them, empty for an array.
  std::size_t depth() const { return frames_.size(); }
  const std::string& key(std::size_t level) const { return frames_[level].key; }
  Kind kind(std::size_t level) const { return frames_[level].kind; }
  const std::string& file() const { return file_; }

 private:
  class Events;
  struct Frame {
    Kind kind;
    std::string key;
    std::set<std::string, std::less<>> seen;
  };
  std::string file_;
  std::size_t most_nesting_ = 0;
  std::vector<Frame> frames_;
};

}  // namespace steadfast
