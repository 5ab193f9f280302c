// Trial: the model under test with what all checks share: the sizes of this run, the crowd of streams, the requests,
// and the references, each computed once: every stream and every reply alone, from nothing.
#pragma once

#include <algorithm>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "verify/equality.h"
#include "verify/reply_run.h"
#include "verify/row_run.h"
#include "verify/verify.h"

namespace steadfast {

class Trial {
 public:
  static Result<std::unique_ptr<Trial>> create(const std::filesystem::path& path, const LoadOptions& base,
                                               const VerifyOptions& options);

  bool full() const { return options_.full; }
  bool on_cpu() const { return runs_on_cpu(*loaded_->backend); }
  int window() const { return window_; }
  // Positions of an engine's stream: what the longest request needs, not the model's whole window.
  int context() const { return std::min(window_, 640); }
  const LoadedModel& model() const { return *loaded_; }
  const LoadOptions& base() const { return base_; }
  // The model under other settings, the fault planted there too.
  Result<std::unique_ptr<LoadedModel>> open(const LoadOptions& options) const;

  // Cache types: the default one, then all others that the backend has; only the one that was asked for; for a
  // planted fault the default one.
  std::vector<DType> kv_types() const;
  // What runs next uses this type.
  void use(DType kv) { loaded_->kv_dtype = kv; }
  DType kv() const { return loaded_->kv_dtype; }

  // Streams of unlike lengths and steps; number 0 is long enough for several attention spans where the window allows.
  std::vector<StreamScript> crowd(int streams) const;
  // Stream i of the crowd alone, in one piece, in a whole window.
  Result<const TakenRows*> alone(int stream);
  Result<std::vector<TakenRows>> run(std::span<const StreamScript> scripts, const Placement& placement = {}) const;
  int stride() const { return stride_; }

  // Requests of unlike lengths, every second one sampled, with log-probabilities. None where the window is too small.
  std::vector<Request> requests(int count) const;
  Request request(std::vector<TokenId> prompt, int number) const;
  Result<std::unique_ptr<Engine>> engine(EngineOptions options) const;
  // The reply to the request, alone in an engine of its own.
  Result<const Reply*> alone(const Request& request);

  // Count a comparison in the row, and the first difference. actual may be the beginning of expected.
  void compare(Equality& row, const std::string& where, const TakenRows& expected, const TakenRows& actual) const;
  void compare(Equality& row, const std::string& where, const Request& request, const Reply& expected,
               const Reply& actual) const;
  // A planted fault was caught: nothing more to do.
  bool enough(const Equality& row) const { return options_.plant.has_value() && row.differing > 0; }

 private:
  using ReplyKey = std::tuple<DType, std::vector<TokenId>, int, std::uint64_t, float>;
  static bool runs_on_cpu(const Backend& backend) { return backend.target() == "cpu"; }
  Trial(std::filesystem::path path, LoadOptions base, const VerifyOptions& options)
      : path_(std::move(path)), base_(std::move(base)), options_(options) {}
  void size_up();

  std::filesystem::path path_;
  LoadOptions base_;
  VerifyOptions options_;
  std::shared_ptr<LoadedModel> loaded_;
  DType default_kv_ = DType::kBF16;
  int window_ = 0, stride_ = 1;
  std::vector<StreamScript> crowd_;
  std::map<std::pair<DType, int>, TakenRows> alone_rows_;
  std::map<ReplyKey, Reply> alone_replies_;
};

}  // namespace steadfast
