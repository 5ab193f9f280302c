// The place where one model is put together before it appears in the store: ROOT/.partial/NAME, locked against a second
// pull of the same name. What an interrupted pull of the same source left there is kept, of another source removed.
#pragma once

#include <filesystem>
#include <string>

#include "store/record.h"
#include "store/store.h"

namespace steadfast {

class Staging {
 public:
  static Result<Staging> open(const Store& store, const std::string& name, const std::string& source);

  Staging(Staging&& other) noexcept;
  Staging& operator=(Staging&&) = delete;
  Staging(const Staging&) = delete;
  ~Staging();  // unlocks; the folder stays

  const std::filesystem::path& folder() const { return folder_; }
  // An error where the store's disk has fewer bytes free than these.
  Status need_space(std::uint64_t bytes) const;
  // Writes the record and moves the folder to its name in one step, in place of a model that is there.
  Status install(const ModelRecord& record) const;
  void remove() const;

 private:
  Staging(std::filesystem::path folder, std::filesystem::path target, int lock);
  std::filesystem::path folder_;
  std::filesystem::path target_;
  int lock_;
};

}  // namespace steadfast
