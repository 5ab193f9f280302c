// Random runs of the engine: what RapidCheck makes up, and what must hold of each.
#pragma once

namespace steadfast::test {

// `cases` random runs of up to about `size` streams; a failed expectation shows the smallest run that breaks a rule.
void check_random_runs(int cases, int size);

}  // namespace steadfast::test
