// GGUF metadata: a bounds-checked cursor over keys and tensor entries. Tensor data is placed, never touched.
#include "formats/gguf_parser.h"

#include <algorithm>
#include <array>

#include "formats/gguf_cursor.h"
#include "formats/gguf_types.h"
#include "formats/untrusted.h"

namespace steadfast {
namespace {

constexpr std::uint64_t kMostElements = 1u << 24;  // of all arrays together: 64 times the largest vocabulary in use
constexpr int kMostNesting = 4;
constexpr std::size_t kMostKeyBytes = 65535;
constexpr std::size_t kMostNameBytes = 64;
constexpr std::uint32_t kMostDimensions = 4;
constexpr std::uint64_t kLeastKeyBytes = 8 + 1 + 4 + 1;         // length, name, type, value
constexpr std::uint64_t kLeastTensorBytes = 8 + 1 + 4 + 4 + 8;  // length, name, dimensions, type, offset

// Where a tensor's data lies, relative to the start of all data.
struct Extent {
  std::uint64_t offset;
  std::uint64_t bytes;
  std::size_t tensor;
};

// Each function moves the cursor on or returns the error.
class Parser {
 public:
  Parser(std::span<const std::byte> bytes, const std::string& file) : bytes_(bytes), file_(file), cursor_(bytes) {}

  Result<GgufContents> parse() {
    std::uint64_t tensors = 0;
    std::uint64_t keys = 0;
    if (auto status = parse_header(tensors, keys); !status) return status;
    for (std::uint64_t i = 0; i < keys; ++i) {
      if (auto status = parse_key(i); !status) return status;
    }
    if (tensors > cursor_.left() / kLeastTensorBytes) {
      return Status::error("{}: claims {} tensors, more than the file can hold; fetch it again", file_, tensors);
    }
    if (auto status = find_alignment(); !status) return status;
    contents_.tensors.reserve(tensors);
    for (std::uint64_t i = 0; i < tensors; ++i) {
      if (auto status = parse_tensor(i); !status) return status;
    }
    if (auto status = place_tensors(); !status) return status;
    return std::move(contents_);
  }

 private:
  Status cut_short(const std::string& where) const {
    return Status::error("{}: the file ends inside {} (read up to byte {} of {}); it is damaged, fetch it again", file_,
                         where, cursor_.at(), bytes_.size());
  }

  Status parse_header(std::uint64_t& tensors, std::uint64_t& keys) {
    std::array<char, 4> magic{};
    std::uint32_t version = 0;
    if (!cursor_.read(magic)) return cut_short("its first four bytes");
    if (std::string_view(magic.data(), 4) != "GGUF") {
      return Status::error("{}: is not a GGUF file (it does not start with 'GGUF'); name a .gguf file", file_);
    }
    if (!cursor_.read(version)) return cut_short("its header");
    if (version == 0x02000000u || version == 0x03000000u) {
      return Status::error("{}: is a big-endian GGUF file; fetch or convert a little-endian one", file_);
    }
    if (version != 2 && version != 3) {
      return Status::error("{}: is GGUF version {}, and versions 2 and 3 are supported; convert it again", file_,
                           version);
    }
    if (!cursor_.read(tensors) || !cursor_.read(keys)) return cut_short("its header");
    if (keys > cursor_.left() / kLeastKeyBytes) {
      return Status::error("{}: claims {} metadata keys, more than the file can hold; fetch it again", file_, keys);
    }
    return {};
  }

  Status parse_key(std::uint64_t index) {
    std::string_view key;
    std::uint32_t type = 0;
    if (!cursor_.read(key)) return cut_short(fmt::format("the name of metadata key {}", index));
    if (key.size() > kMostKeyBytes || !is_clean_name(key)) {
      return Status::error(
          "{}: metadata key {} has the name {}, which is not {} bytes of printable UTF-8 at most; convert it again",
          file_, index, shown(key), kMostKeyBytes);
    }
    if (!cursor_.read(type)) return cut_short(fmt::format("the value of {}", shown(key)));
    auto value = parse_value(type, key, 0);
    if (!value) return value.status();
    if (!contents_.values.emplace(key, std::move(*value)).second) {
      return Status::error("{}: the metadata key {} is there twice; convert it again", file_, shown(key));
    }
    contents_.keys.push_back(key);
    return {};
  }

  template <typename Stored, typename Kept>
  Result<GgufValue> parse_number(std::string_view key) {
    Stored stored{};
    if (!cursor_.read(stored)) return cut_short(fmt::format("the value of {}", shown(key)));
    return GgufValue{static_cast<Kept>(stored)};
  }

  Result<GgufValue> parse_bool(std::string_view key) {
    std::uint8_t stored = 0;
    if (!cursor_.read(stored)) return cut_short(fmt::format("the value of {}", shown(key)));
    if (stored > 1) {
      return Status::error("{}: {} holds the truth value {}, which is neither 0 nor 1; convert it again", file_,
                           shown(key), stored);
    }
    return GgufValue{stored == 1};
  }

  Result<GgufValue> parse_string(std::string_view key) {
    std::string_view text;
    if (!cursor_.read(text)) return cut_short(fmt::format("a string of {}", shown(key)));
    return GgufValue{text};
  }

  Result<GgufValue> parse_value(std::uint32_t type, std::string_view key, int nesting) {
    switch (static_cast<GgufValueType>(type)) {
      case GgufValueType::kU8:
        return parse_number<std::uint8_t, std::uint64_t>(key);
      case GgufValueType::kI8:
        return parse_number<std::int8_t, std::int64_t>(key);
      case GgufValueType::kU16:
        return parse_number<std::uint16_t, std::uint64_t>(key);
      case GgufValueType::kI16:
        return parse_number<std::int16_t, std::int64_t>(key);
      case GgufValueType::kU32:
        return parse_number<std::uint32_t, std::uint64_t>(key);
      case GgufValueType::kI32:
        return parse_number<std::int32_t, std::int64_t>(key);
      case GgufValueType::kF32:
        return parse_number<float, double>(key);
      case GgufValueType::kBool:
        return parse_bool(key);
      case GgufValueType::kString:
        return parse_string(key);
      case GgufValueType::kArray:
        return parse_array(key, nesting + 1);
      case GgufValueType::kU64:
        return parse_number<std::uint64_t, std::uint64_t>(key);
      case GgufValueType::kI64:
        return parse_number<std::int64_t, std::int64_t>(key);
      case GgufValueType::kF64:
        return parse_number<double, double>(key);
    }
    return unknown_type(type, key);
  }

  Status unknown_type(std::uint32_t type, std::string_view key) const {
    return Status::error("{}: {} has the unknown value type {}; the file is damaged or newer than this program", file_,
                         shown(key), type);
  }

  Result<GgufValue> parse_array(std::string_view key, int nesting) {
    std::uint32_t type = 0;
    std::uint64_t count = 0;
    if (nesting > kMostNesting) {
      return Status::error("{}: {} nests arrays deeper than {}; convert the model again", file_, shown(key),
                           kMostNesting);
    }
    if (!cursor_.read(type) || !cursor_.read(count)) return cut_short(fmt::format("the array {}", shown(key)));
    if (type >= kLeastValueBytes.size()) return unknown_type(type, key);
    if (count > cursor_.left() / kLeastValueBytes[type]) {
      return Status::error("{}: {} claims {} elements, more than the file can hold; fetch it again", file_, shown(key),
                           count);
    }
    if (count > elements_left_) {
      return Status::error("{}: {} makes more than {} array elements in the metadata; convert the model again", file_,
                           shown(key), kMostElements);
    }
    elements_left_ -= count;
    auto array = std::make_shared<GgufArray>();
    array->reserve(count);
    for (std::uint64_t i = 0; i < count; ++i) {
      auto element = parse_value(type, key, nesting);
      if (!element) return element.status();
      array->push_back(std::move(*element));
    }
    return GgufValue{std::shared_ptr<const GgufArray>(std::move(array))};
  }

  Status find_alignment() {
    const auto found = contents_.values.find("general.alignment");
    if (found == contents_.values.end()) return {};
    const auto alignment = found->second.as_int();
    if (!alignment || *alignment <= 0 || *alignment % 8 != 0 || *alignment > 0xFFFFFFFF) {
      return Status::error("{}: general.alignment is not a 32-bit multiple of 8; convert it again", file_);
    }
    alignment_ = static_cast<std::uint64_t>(*alignment);
    return {};
  }

  Status parse_tensor(std::uint64_t index) {
    TensorView tensor;
    std::string_view name;
    std::uint32_t dimensions = 0;
    if (!cursor_.read(name)) return cut_short(fmt::format("the name of tensor {}", index));
    if (name.size() > kMostNameBytes || !is_clean_name(name)) {
      return Status::error(
          "{}: tensor {} has the name {}, which is not {} bytes of printable UTF-8 at most; convert it again", file_,
          index, shown(name), kMostNameBytes);
    }
    if (!contents_.places.emplace(name, contents_.tensors.size()).second) {
      return Status::error("{}: the tensor {} is there twice; convert it again", file_, shown(name));
    }
    if (!cursor_.read(dimensions)) return cut_short(fmt::format("the shape of tensor {}", shown(name)));
    if (dimensions > kMostDimensions) {
      return Status::error("{}: tensor {} has {} dimensions, more than {}; convert it again", file_, shown(name),
                           dimensions, kMostDimensions);
    }
    for (std::uint32_t i = 0; i < dimensions; ++i) {
      std::int64_t extent = 0;
      if (!cursor_.read(extent)) return cut_short(fmt::format("the shape of tensor {}", shown(name)));
      if (extent < 1) {
        return Status::error("{}: tensor {} has an extent of {}, and extents are from 1 to 2^63-1; convert it again",
                             file_, shown(name), static_cast<std::uint64_t>(extent));
      }
      tensor.shape.insert(tensor.shape.begin(), extent);  // the file has the fastest dimension first
    }
    std::uint32_t type = 0;
    std::uint64_t offset = 0;
    if (!cursor_.read(type) || !cursor_.read(offset))
      return cut_short(fmt::format("the entry of tensor {}", shown(name)));
    tensor.name = name;
    const auto bytes = find_bytes(tensor, type);
    if (!bytes) return bytes.status();
    if (offset % alignment_ != 0) {
      return Status::error("{}: tensor {} lies at offset {}, not a multiple of the alignment {}; convert it again",
                           file_, shown(name), offset, alignment_);
    }
    extents_.push_back({offset, *bytes, contents_.tensors.size()});
    contents_.tensors.push_back(std::move(tensor));
    return {};
  }

  // Sets the dtype; the tensor's size in bytes.
  Result<std::uint64_t> find_bytes(TensorView& tensor, std::uint32_t type) const {
    const auto* found = std::find_if(std::begin(kGgufTensorTypes), std::end(kGgufTensorTypes),
                                     [&](const GgufTensorType& known) { return known.id == type; });
    const bool known = found != std::end(kGgufTensorTypes);
    if (!known || !found->dtype) {
      return Status::error(
          "{}: tensor {} is of type {}, and F32, F16, BF16, Q4_0, Q4_1 and Q8_0 are supported; fetch or "
          "convert the model in one of these",
          file_, shown(tensor.name), known ? std::string(found->name) : fmt::format("number {}", type));
    }
    tensor.dtype = *found->dtype;
    const auto bytes = checked_bytes(tensor.dtype, tensor.shape);
    if (!bytes) {
      return Status::error(
          "{}: tensor {} has the shape {}, which {} cannot hold (too large, or rows that are not whole "
          "blocks of {}); convert it again",
          file_, shown(tensor.name), shape_text(tensor.shape), found->name, info(tensor.dtype).block_elements);
    }
    return *bytes;
  }

  Status place_tensors() {
    if (contents_.tensors.empty()) return {};
    const std::uint64_t size = bytes_.size();
    const std::uint64_t past = cursor_.at() % alignment_;
    const std::uint64_t start = cursor_.at() + (past == 0 ? 0 : alignment_ - past);
    for (const auto& [offset, bytes, place] : extents_) {
      TensorView& tensor = contents_.tensors[place];
      if (start > size || offset > size - start || bytes > size - start - offset) {
        return Status::error(
            "{}: tensor {} needs {} bytes at offset {} of the data, beyond the file's end (byte {}); it is "
            "damaged, fetch it again",
            file_, shown(tensor.name), bytes, offset, size);
      }
      tensor.data = bytes_.subspan(start + offset, bytes);
    }
    std::sort(extents_.begin(), extents_.end(), [](const Extent& a, const Extent& b) { return a.offset < b.offset; });
    for (std::size_t i = 1; i < extents_.size(); ++i) {
      const Extent& before = extents_[i - 1];
      if (extents_[i].offset - before.offset < before.bytes) {
        return Status::error("{}: tensors {} and {} overlap; the file is damaged, convert it again", file_,
                             shown(contents_.tensors[before.tensor].name),
                             shown(contents_.tensors[extents_[i].tensor].name));
      }
    }
    return {};
  }

  std::span<const std::byte> bytes_;
  const std::string& file_;
  GgufCursor cursor_;
  GgufContents contents_;
  std::uint64_t alignment_ = 32;
  std::uint64_t elements_left_ = kMostElements;
  std::vector<Extent> extents_;
};

}  // namespace

Result<GgufContents> parse_gguf(std::span<const std::byte> bytes, const std::string& file) {
  return Parser(bytes, file).parse();
}

}  // namespace steadfast
