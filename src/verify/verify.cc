// Each check computes the same rows in two ways and compares bits (logits) or ids (replies).
#include "verify/verify.h"

#include <algorithm>

#include "backend/cpu/kernels.h"
#include "verify/compare.h"

namespace steadfast {
namespace {

class Verifier {
 public:
  Verifier(const std::filesystem::path& model, const LoadOptions& base, const VerifyOptions& options)
      : path_(model), base_(base), options_(options) {
    base_.progress = nullptr;
  }

  Result<std::vector<Equality>> run() {
    auto reference = open(base_);
    if (!reference) return reference.status();
    reference_ = std::move(*reference);
    const int most = reference_->card.window;
    prompt_ = std::min(options_.full ? 600 : 150, most / 2);
    for (auto check : {&Verifier::threads, &Verifier::instruction_sets, &Verifier::pieces, &Verifier::streams_together,
                       &Verifier::pages, &Verifier::replies_together, &Verifier::warm, &Verifier::set_aside}) {
      if (auto status = (this->*check)(); !status) return status;
    }
    return std::move(table_);
  }

 private:
  using Replies = std::vector<std::vector<TokenId>>;

  Result<std::unique_ptr<LoadedModel>> open(const LoadOptions& options) { return load_model(path_, options); }
  std::size_t vocab() const { return static_cast<std::size_t>(reference_->card.vocab_size); }

  Equality& begin(std::string name) {
    if (options_.progress) options_.progress(name);
    return table_.emplace_back(Equality{std::move(name), 0, 0, ""});
  }

  static void note(Equality& row, const std::string& where, const std::string& difference) {
    ++row.cases;
    if (difference == "equal") return;
    if (row.differing++ == 0) row.first = where + ": " + difference;
  }

  static void compare(Equality& row, const std::string& where, const Replies& a, const Replies& b) {
    for (std::size_t i = 0; i < a.size(); ++i) {
      const auto at = std::mismatch(a[i].begin(), a[i].end(), b[i].begin(), b[i].end()).first - a[i].begin();
      note(row, fmt::format("{}, reply {}", where, i),
           a[i] == b[i] ? "equal" : fmt::format("ids differ from token {}", at));
    }
  }

  // The same ids scored under other settings.
  Status score_under(Equality& row, const std::string& where, const LoadOptions& options, std::span<const TokenId> ids,
                     const std::vector<float>& expected) {
    auto other = open(options);
    if (!other) return other.status();
    auto logits = logits_of(**other, ids, 64);
    if (!logits) return logits.status();
    note(row, where, first_difference(expected, *logits, vocab()));
    return Status::ok();
  }

  Status threads() {
    Equality& row = begin("1, 2, 3 and 4 threads");
    const auto ids = some_ids(*reference_, prompt_, 1);
    auto expected = logits_of(*reference_, ids, 64);
    if (!expected) return expected.status();
    for (const int count : {1, 2, 3, 4}) {
      LoadOptions options = base_;
      options.threads = count;
      if (auto status = score_under(row, fmt::format("{} threads", count), options, ids, *expected); !status)
        return status;
    }
    return Status::ok();
  }

  Status instruction_sets() {
    Equality& row = begin("scalar, AVX2 and AVX-512");
    const auto ids = some_ids(*reference_, std::min(prompt_, options_.full ? 64 : 16), 2);
    auto expected = logits_of(*reference_, ids, 64);
    if (!expected) return expected.status();
    for (const char* isa : {"scalar", "avx2", "avx512"}) {
      if (cpu::select_kernels(isa) == nullptr) continue;
      LoadOptions options = base_;
      options.isa = isa;
      if (auto status = score_under(row, isa, options, ids, *expected); !status) return status;
    }
    return Status::ok();
  }

  Status pieces() {
    Equality& row = begin("a prompt in pieces = in one piece; a reply's row = a prompt's row");
    const auto ids = some_ids(*reference_, prompt_, 3);
    auto expected = logits_of(*reference_, ids, prompt_);
    if (!expected) return expected.status();
    for (const int chunk : {1, 7, 64, 256, 1000}) {
      auto logits = logits_of(*reference_, ids, chunk);
      if (!logits) return logits.status();
      note(row, fmt::format("pieces of {}", chunk), first_difference(*expected, *logits, vocab()));
    }
    return Status::ok();
  }

  // Streams of unlike lengths and steps.
  std::vector<std::vector<TokenId>> crowd(int streams) const {
    std::vector<std::vector<TokenId>> ids;
    for (int s = 0; s < streams; ++s)
      ids.push_back(some_ids(*reference_, std::max(2, prompt_ / 4 + s * 7 % 23), 100 + static_cast<std::uint64_t>(s)));
    return ids;
  }

  Status shared_rounds(Equality& row, int streams, int page) {
    const auto ids = crowd(streams);
    std::vector<int> steps;
    for (int s = 0; s < streams; ++s) steps.push_back(std::vector{1, 13, 3, 5}[static_cast<std::size_t>(s) % 4]);
    auto together = logits_together(*reference_, ids, steps, page);
    if (!together) return together.status();
    for (int s = 0; s < streams; ++s) {
      auto alone = logits_of(*reference_, ids[static_cast<std::size_t>(s)], 1000);
      if (!alone) return alone.status();
      note(row, fmt::format("stream {} of {}{}", s, streams, page > 0 ? fmt::format(" on pages of {}", page) : ""),
           first_difference(*alone, (*together)[static_cast<std::size_t>(s)], vocab()));
    }
    return Status::ok();
  }

  Status streams_together() {
    Equality& row = begin("streams in shared rounds = each alone");
    for (const int streams : options_.full ? std::vector{2, 3, 5, 8, 17, 33} : std::vector{2, 3, 7})
      if (auto status = shared_rounds(row, streams, 0); !status) return status;
    return Status::ok();
  }

  Status pages() {
    Equality& row = begin("on pages = in a whole window");
    for (const int page : options_.full ? std::vector{16, 64, 256, 1024} : std::vector{16, 64, 256})
      if (auto status = shared_rounds(row, 3, page); !status) return status;
    return Status::ok();
  }

  std::vector<Request> requests(int count, float temperature) const {
    std::vector<Request> all;
    for (int i = 0; i < count; ++i) {
      Request request;
      request.prompt =
          some_ids(*reference_, std::max(1, std::min(prompt_, 5 + 17 * i % 97)), 200 + static_cast<std::uint64_t>(i));
      request.max_tokens =
          std::min(options_.full ? 48 : 12, reference_->card.window - static_cast<int>(request.prompt.size()));
      request.ignore_eos = true;
      request.sampling.temperature = temperature;
      request.sampling.seed = 1000 + static_cast<std::uint64_t>(i);
      all.push_back(std::move(request));
    }
    return all;
  }

  Result<std::unique_ptr<Engine>> engine(const EngineOptions& options) {
    auto loaded = open(base_);
    if (!loaded) return loaded.status();
    return Engine::create(std::move(*loaded), options);
  }

  // The replies of an engine to the requests, asked together.
  Result<Replies> replies(const EngineOptions& options, std::span<const Request> wanted) {
    auto made = engine(options);
    if (!made) return made.status();
    return ask(**made, wanted);
  }

  Status replies_together() {
    Equality& row = begin("replies together = one after the other (greedy and sampled)");
    for (const float temperature : {0.0f, 0.8f}) {
      for (const int streams : options_.full ? std::vector{2, 5, 8, 33} : std::vector{5}) {
        const auto wanted = requests(streams, temperature);
        auto alone = replies({.streams = 1}, wanted), together = replies({.streams = streams}, wanted);
        if (!alone) return alone.status();
        if (!together) return together.status();
        compare(row, fmt::format("{} streams at temperature {}", streams, temperature), *alone, *together);
      }
    }
    return Status::ok();
  }

  // The same requests again and again, and ones that share a beginning, on pages that keep prefixes.
  Status warm() {
    Equality& row = begin("resumed from a kept prefix = computed from nothing");
    constexpr int kPage = 16;
    auto wanted = requests(4, 0.8f);
    for (const int length : {kPage - 1, kPage, kPage + 1, 2 * kPage}) {
      Request request = wanted.back();
      request.prompt = some_ids(*reference_, std::min(prompt_, length), 300);
      request.prompt.push_back(length % reference_->card.vocab_size);
      wanted.push_back(std::move(request));
    }
    auto cold = replies({.streams = 1}, wanted);
    if (!cold) return cold.status();
    auto kept = engine({.streams = 4, .paged = true, .page = kPage});
    if (!kept) return kept.status();
    for (int time = 0; time < 3; ++time) {
      auto again = ask(**kept, wanted);
      if (!again) return again.status();
      compare(row, fmt::format("time {}", time + 1), *cold, *again);
    }
    return Status::ok();
  }

  // A pool that cannot hold them all.
  Status set_aside() {
    Equality& row = begin("set aside for want of pages = never set aside");
    constexpr int kPage = 16;
    const auto wanted = requests(6, 0.8f);
    std::size_t longest = 0;
    for (const auto& request : wanted)
      longest = std::max(longest, request.prompt.size() + static_cast<std::size_t>(request.max_tokens));
    auto alone = replies({.streams = 1}, wanted);
    auto crowded = replies(
        {.streams = 6, .paged = true, .page = kPage, .pool_pages = static_cast<int>(longest) / kPage + 2}, wanted);
    if (!alone) return alone.status();
    if (!crowded) return crowded.status();
    compare(row, "a small pool", *alone, *crowded);
    return Status::ok();
  }

  std::filesystem::path path_;
  LoadOptions base_;
  VerifyOptions options_;
  std::unique_ptr<LoadedModel> reference_;
  int prompt_ = 0;
  std::vector<Equality> table_;
};

}  // namespace

Result<std::vector<Equality>> verify(const std::filesystem::path& model, const LoadOptions& base,
                                     const VerifyOptions& options) {
  return Verifier(model, base, options).run();
}

}  // namespace steadfast
