// One safetensors file: its map, if it was opened by path, and what its header says.
#include "formats/safetensors.h"

#include <optional>

#include "formats/mapped_file.h"
#include "formats/safetensors_header.h"

namespace steadfast {

struct SafetensorsFile::Impl {
  std::optional<MappedFile> map;  // nothing: the bytes are the caller's
  SafetensorsContents contents;
};

SafetensorsFile::SafetensorsFile() : impl_(std::make_shared<Impl>()) {}

Result<std::shared_ptr<const SafetensorsFile>> SafetensorsFile::open(const std::filesystem::path& path) {
  auto map = MappedFile::open(path);
  if (!map) return map.status();
  auto contents = parse_safetensors(map->bytes(), path.string());
  if (!contents) return contents.status();
  std::shared_ptr<SafetensorsFile> file(new SafetensorsFile);
  *file->impl_ = {std::move(*map), std::move(*contents)};
  return std::shared_ptr<const SafetensorsFile>(std::move(file));
}

Result<std::shared_ptr<const SafetensorsFile>> SafetensorsFile::from_bytes(std::span<const std::byte> bytes,
                                                                           std::string name) {
  auto contents = parse_safetensors(bytes, name);
  if (!contents) return contents.status();
  std::shared_ptr<SafetensorsFile> file(new SafetensorsFile);
  file->impl_->contents = std::move(*contents);
  return std::shared_ptr<const SafetensorsFile>(std::move(file));
}

const TensorView* SafetensorsFile::find(std::string_view name) const {
  const auto found = impl_->contents.places.find(name);
  return found == impl_->contents.places.end() ? nullptr : &impl_->contents.tensors[found->second];
}

std::vector<std::string> SafetensorsFile::names() const {
  std::vector<std::string> names;
  for (const TensorView& tensor : impl_->contents.tensors) names.push_back(tensor.name);
  return names;
}

void SafetensorsFile::release(const TensorView& tensor) const {
  if (impl_->map) impl_->map->release(tensor.data);
}

void SafetensorsFile::will_need(const TensorView& tensor) const {
  if (impl_->map) impl_->map->will_need(tensor.data);
}

const std::map<std::string, std::string>& SafetensorsFile::metadata() const { return impl_->contents.metadata; }

}  // namespace steadfast
