// Models on the fake backend: tiny dense and hybrid ones whose tensors are all zero, and what their replies must be.
#pragma once

#include "backend/fake/fake_backend.h"
#include "engine/load_model.h"

namespace steadfast::test {

enum class FakeKind { kDense, kHybrid };

constexpr int kFakeVocab = 48;

struct FakeModel {
  std::unique_ptr<LoadedModel> loaded;
  fake::FakeBackend* backend = nullptr;  // the loaded model's
  std::shared_ptr<fake::Ledger> ledger;
};

FakeModel fake_model(FakeKind kind, int max_positions = 4096, DType kv_dtype = DType::kBF16);

// The reply of `tokens` tokens (fewer: eos) that the request must get, computed from the hash alone.
std::vector<TokenId> fake_reply(FakeKind kind, const Request& request, int tokens);

}  // namespace steadfast::test
