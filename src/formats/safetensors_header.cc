// safetensors: the length, the header walked as strict JSON, then each tensor's range checked against dtype, shape,
// file and the other tensors. Gaps between tensors are accepted, overlaps are not.
#include "formats/safetensors_header.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include "formats/strict_json.h"
#include "formats/untrusted.h"

namespace steadfast {

static_assert(std::endian::native == std::endian::little, "safetensors numbers are read as they lie in the file");

namespace {

constexpr std::uint64_t kMostHeaderBytes = 100'000'000;  // the limit of the reference reader
constexpr std::size_t kNesting = 3;                      // the header, a tensor's object, a list
constexpr std::string_view kMetadata = "__metadata__";

std::optional<DType> dtype_named(std::string_view name) {
  constexpr DType kStored[] = {DType::kF32, DType::kF16,    DType::kBF16,   DType::kF64,   DType::kBool, DType::kU8,
                               DType::kI8,  DType::kU16,    DType::kI16,    DType::kU32,   DType::kI32,  DType::kU64,
                               DType::kI64, DType::kF8E4M3, DType::kF8E5M2, DType::kF8E8M0};
  const auto* found =
      std::find_if(std::begin(kStored), std::end(kStored), [&](DType dtype) { return info(dtype).name == name; });
  return found == std::end(kStored) ? std::nullopt : std::optional(*found);
}

struct Extent {
  std::uint64_t begin;
  std::uint64_t end;
  std::size_t tensor;
};

// Collects the entries of a header; ranges are relative to the start of the data.
class HeaderReader : public StrictJson {
 public:
  SafetensorsContents contents;
  std::vector<Extent> extents;

 private:
  bool in_metadata() const { return depth() >= 1 && key(0) == kMetadata; }

  Status misplaced() const {
    if (depth() == 0) return Status::error("{}: its header is not a JSON object; fetch it again", file());
    return Status::error("{}: the header's entry {} has an unexpected form; the file is damaged, fetch it again",
                         file(), shown(key(0)));
  }

  Status open(Kind kind) override {
    if (depth() == 0) return kind == Kind::kObject ? Status::ok() : misplaced();
    if (depth() == 1 && kind == Kind::kObject) return in_metadata() ? Status::ok() : start_tensor();
    const bool list = depth() == 2 && kind == Kind::kArray && !in_metadata();
    return list && (key(1) == "shape" || key(1) == "data_offsets") ? Status::ok() : misplaced();
  }

  Status start_tensor() {
    if (!is_clean_name(key(0))) {
      return Status::error("{}: the tensor name {} is empty or holds control characters; convert the model again",
                           file(), shown(key(0)));
    }
    tensor_ = {};
    tensor_.name = key(0);
    has_dtype_ = has_shape_ = false;
    offsets_.clear();
    return {};
  }

  Status scalar(const JsonScalar& value) override {
    const auto* text = std::get_if<std::string_view>(&value);
    if (depth() == 2 && in_metadata()) {
      if (text == nullptr) return misplaced();
      contents.metadata.emplace(key(1), *text);
      return {};
    }
    if (depth() == 2 && key(1) == "dtype" && text != nullptr) return take_dtype(*text);
    if (depth() == 1 && in_metadata() && std::holds_alternative<std::nullptr_t>(value))
      return {};  // none, as mlx writes it
    const auto* number = std::get_if<std::uint64_t>(&value);
    if (depth() != 3 || number == nullptr) return misplaced();
    if (key(1) == "data_offsets") {
      if (offsets_.size() == 2) return misplaced();
      offsets_.push_back(*number);
      return {};
    }
    if (*number > static_cast<std::uint64_t>(INT64_MAX)) {
      return Status::error("{}: tensor {} has an extent of {}, beyond 2^63-1; convert the model again", file(),
                           shown(tensor_.name), *number);
    }
    tensor_.shape.push_back(static_cast<std::int64_t>(*number));
    return {};
  }

  Status take_dtype(std::string_view name) {
    const auto dtype = dtype_named(name);
    if (!dtype) {
      return Status::error("{}: tensor {} is of dtype {}, which is not supported; convert it to F32, F16 or BF16",
                           file(), shown(tensor_.name), shown(name));
    }
    tensor_.dtype = *dtype;
    has_dtype_ = true;
    return {};
  }

  Status close(Kind kind) override {
    if (kind == Kind::kArray) {
      has_shape_ = has_shape_ || key(1) == "shape";
      return {};
    }
    return depth() == 1 && !in_metadata() ? finish_tensor() : Status::ok();
  }

  Status finish_tensor() {
    if (!has_dtype_ || !has_shape_ || offsets_.size() != 2) {
      return Status::error(
          "{}: tensor {} lacks its dtype, shape or two data_offsets; the file is damaged, fetch it again", file(),
          shown(tensor_.name));
    }
    const auto bytes = checked_bytes(tensor_.dtype, tensor_.shape);
    if (!bytes) {
      return Status::error("{}: tensor {} has the shape {}, too large for any file; convert the model again", file(),
                           shown(tensor_.name), shape_text(tensor_.shape));
    }
    const std::uint64_t begin = offsets_[0];
    const std::uint64_t end = offsets_[1];
    if (begin > end || end - begin != *bytes) {
      return Status::error("{}: tensor {} needs {} bytes for {} {}, and its data_offsets are [{}, {}]; fetch it again",
                           file(), shown(tensor_.name), *bytes, info(tensor_.dtype).name, shape_text(tensor_.shape),
                           begin, end);
    }
    extents.push_back({begin, end, contents.tensors.size()});
    contents.places.emplace(tensor_.name, contents.tensors.size());
    contents.tensors.push_back(std::move(tensor_));
    return {};
  }

  TensorView tensor_;
  bool has_dtype_ = false;
  bool has_shape_ = false;
  std::vector<std::uint64_t> offsets_;
};

Status place_tensors(HeaderReader& header, std::span<const std::byte> data, const std::string& file) {
  auto& tensors = header.contents.tensors;
  auto& extents = header.extents;
  for (const auto& [begin, end, place] : extents) {
    if (end > data.size()) {
      return Status::error(
          "{}: tensor {} ends at byte {} of the data, and the file holds {}; it is damaged, fetch it again", file,
          shown(tensors[place].name), end, data.size());
    }
    tensors[place].data = data.subspan(begin, end - begin);
  }
  std::erase_if(extents, [](const Extent& extent) { return extent.begin == extent.end; });
  std::sort(extents.begin(), extents.end(), [](const Extent& a, const Extent& b) { return a.begin < b.begin; });
  for (std::size_t i = 1; i < extents.size(); ++i) {
    if (extents[i].begin < extents[i - 1].end) {
      return Status::error("{}: tensors {} and {} overlap; the file is damaged, fetch it again", file,
                           shown(tensors[extents[i - 1].tensor].name), shown(tensors[extents[i].tensor].name));
    }
  }
  return {};
}

}  // namespace

Result<SafetensorsContents> parse_safetensors(std::span<const std::byte> bytes, const std::string& file) {
  std::uint64_t length = 0;
  if (bytes.size() < sizeof(length)) {
    return Status::error("{}: is {} bytes long, too short for a safetensors file; fetch it again", file, bytes.size());
  }
  std::memcpy(&length, bytes.data(), sizeof(length));
  const auto rest = bytes.subspan(sizeof(length));
  if (length < 2 || length >= kMostHeaderBytes || length > rest.size()) {
    return Status::error(
        "{}: claims a header of {} bytes in a file of {}; it is damaged or no safetensors file, fetch it again", file,
        length, bytes.size());
  }
  const std::string_view text(reinterpret_cast<const char*>(rest.data()), length);
  if (text.front() != '{') {
    return Status::error("{}: is not a safetensors file (its header does not start with a brace); fetch it again",
                         file);
  }
  HeaderReader header;
  if (auto status = header.walk(text, file, kNesting); !status) return status;
  if (auto status = place_tensors(header, rest.subspan(length), file); !status) return status;
  return std::move(header.contents);
}

}  // namespace steadfast
