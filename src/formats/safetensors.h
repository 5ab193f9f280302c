// Reader of a Hugging Face folder's safetensors: one file, or shards with model.safetensors.index.json.
// Source: model-spec section 5. Memory-mapped and untrusted: every size, offset and name is checked before use.
#pragma once

#include <filesystem>
#include <map>
#include <memory>

#include "formats/tensor_source.h"

namespace steadfast {

class SafetensorsFile : public TensorSource {
 public:
  static Result<std::shared_ptr<const SafetensorsFile>> open(const std::filesystem::path& path);
  // For tests and fuzzing: the same reader over bytes in memory, which must outlive it.
  static Result<std::shared_ptr<const SafetensorsFile>> from_bytes(std::span<const std::byte> bytes, std::string name);

  const TensorView* find(std::string_view name) const override;
  std::vector<std::string> names() const override;
  void release(const TensorView& tensor) const override;
  void will_need(const TensorView& tensor) const override;
  const std::map<std::string, std::string>& metadata() const;

 private:
  SafetensorsFile();
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

class SafetensorsFolder : public TensorSource {
 public:
  // Index, else model.safetensors, else every model*.safetensors. A name in two shards, a path in a shard's name, a
  // missing shard and a mapped tensor that its shard lacks are errors.
  static Result<std::shared_ptr<const SafetensorsFolder>> open(const std::filesystem::path& folder);

  const TensorView* find(std::string_view name) const override;
  std::vector<std::string> names() const override;
  void release(const TensorView& tensor) const override;
  void will_need(const TensorView& tensor) const override;

 private:
  SafetensorsFolder();
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

// Writes one safetensors file piece by piece, for tensors that do not fit into memory together: data at a multiple of
// 64 bytes, metadata as given. The file appears under its name when finish() succeeds (a temporary file beside it is
// renamed); without that nothing stays.
class SafetensorsWriter {
 public:
  // Names, types and shapes of the tensors in the order of their data; the views' own data is not looked at.
  static Result<SafetensorsWriter> create(const std::filesystem::path& path, std::span<const TensorView> tensors,
                                          const std::map<std::string, std::string>& metadata);
  SafetensorsWriter(SafetensorsWriter&&) noexcept;
  SafetensorsWriter& operator=(SafetensorsWriter&&) noexcept;
  ~SafetensorsWriter();

  // The next bytes of the tensors' data, in pieces of any size.
  Status write(std::span<const std::byte> bytes);
  // An error where the data is shorter or longer than the tensors.
  Status finish();

 private:
  SafetensorsWriter();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Writes one safetensors file: tensors in the given order, data at a multiple of 64 bytes, metadata as given. The file
// appears under its name when it is whole (a temporary file beside it is renamed); block types are an error.
Status write_safetensors(const std::filesystem::path& path, std::span<const TensorView> tensors,
                         const std::map<std::string, std::string>& metadata);

}  // namespace steadfast
