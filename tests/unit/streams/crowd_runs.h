// Crowds on the fake backend and on a tiny real model: what the short and the long tests share.
#pragma once

#include "support/fake_model.h"

namespace steadfast::test {

// Parts of `streams` streams each on one engine; memory must be the same after each.
void expect_crowd_on_fake(FakeKind kind, bool paged, int streams, int parts);
void expect_crowd_on_real(bool paged, int streams, int parts);

}  // namespace steadfast::test
