// A GGUF file: its map, if it was opened by path, and what the parser found in it.
#include "formats/gguf.h"

#include "formats/gguf_parser.h"
#include "formats/mapped_file.h"

namespace steadfast {

struct GgufFile::Impl {
  std::optional<MappedFile> map;  // nothing: the bytes are the caller's
  GgufContents contents;
};

GgufFile::GgufFile() : impl_(std::make_shared<Impl>()) {}

Result<std::shared_ptr<const GgufFile>> GgufFile::open(const std::filesystem::path& path) {
  auto map = MappedFile::open(path);
  if (!map) return map.status();
  auto contents = parse_gguf(map->bytes(), path.string());
  if (!contents) return contents.status();
  std::shared_ptr<GgufFile> file(new GgufFile);
  *file->impl_ = {std::move(*map), std::move(*contents)};
  return std::shared_ptr<const GgufFile>(std::move(file));
}

Result<std::shared_ptr<const GgufFile>> GgufFile::from_bytes(std::span<const std::byte> bytes, std::string name) {
  auto contents = parse_gguf(bytes, name);
  if (!contents) return contents.status();
  std::shared_ptr<GgufFile> file(new GgufFile);
  file->impl_->contents = std::move(*contents);
  return std::shared_ptr<const GgufFile>(std::move(file));
}

const GgufValue* GgufFile::value(std::string_view key) const {
  const auto found = impl_->contents.values.find(key);
  return found == impl_->contents.values.end() ? nullptr : &found->second;
}

std::vector<std::string_view> GgufFile::keys() const { return impl_->contents.keys; }

const TensorView* GgufFile::find(std::string_view name) const {
  const auto found = impl_->contents.places.find(name);
  return found == impl_->contents.places.end() ? nullptr : &impl_->contents.tensors[found->second];
}

std::vector<std::string> GgufFile::names() const {
  std::vector<std::string> names;
  for (const TensorView& tensor : impl_->contents.tensors) names.push_back(tensor.name);
  return names;
}

void GgufFile::release(const TensorView& tensor) const {
  if (impl_->map) impl_->map->release(tensor.data);
}

void GgufFile::will_need(const TensorView& tensor) const {
  if (impl_->map) impl_->map->will_need(tensor.data);
}

}  // namespace steadfast
