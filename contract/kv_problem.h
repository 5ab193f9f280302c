// Streams with random queries, keys and values, and caches that hold them: in whole windows or on pages of any size in
// random order, between canaries, poisoned (Cache::fill). What a cache holds is read back through the layouts that the
// backends state (CPU: cache/cache_view.h; CUDA: backend/cuda/kv_pieces.h), written here a second time, independently
// of the kernels.
#pragma once

#include "contract/kernel.h"

namespace steadfast::contract {

struct KvShape {
  int heads = 0, kv_heads = 0, dim = 0;
  DType dtype = DType::kBF16;
  AttentionShape attention() const;
  int query_width() const { return heads * dim; }
  int kv_width() const { return kv_heads * dim; }
  bool fp8() const { return dtype == DType::kF8E4M3; }
};
DType kv_dtype_of(const Case& of);  // of its column kv

// Rows [first, first + rows) of a stream, by position.
struct Cut {
  int stream = 0, first = 0, rows = 0;
};

// A stream: keys and values of positions [0, positions), queries of [first_query, positions).
struct Stream {
  int positions = 0, first_query = 0;
  std::vector<float> keys, values, queries;
  int rows() const { return positions - first_query; }
};
// loud: keys grow and shrink along the stream, so that the softmax's references rise and fall.
std::vector<Stream> make_streams(const KvShape& shape, const std::vector<std::pair<int, int>>& lengths, bool loud);

class Cache {
 public:
  // page 0: whole windows. Pages in an order that the seed shuffles.
  Cache(Context& context, const KvShape& shape, int streams, int positions, int page, std::uint64_t seed);
  CacheView view(int stream) const;
  std::int32_t* table(int stream) { return tables_.data() + stream * pages_; }
  int pages() const { return pages_; }  // of a stream
  bool intact() const;

  // What lies at positions [0, positions) of a stream, in an order of its own: for each position and head the key's
  // elements, the value's, and in fp8 both scales.
  std::vector<std::byte> contents(int stream, int positions) const;
  // Bytes of contents() a position.
  std::size_t position_bytes() const;
  // Whether nothing was written at positions [from, ...) of the stream's pages.
  bool poisoned_from(int stream, int from) const;
  // The device's copy of one position's row (all heads) overwritten with another position's.
  void plant(int stream, int to, int from);

 private:
  // What lies where nothing was stored. The CPU multiplies nothing behind a row's position: NaN. CUDA multiplies a tile
  // or page to its end, by weights of zero: it must be finite there; large, as another stream's numbers may be.
  std::uint8_t fill() const { return cuda_ ? 0x6E : 0xFF; }
  std::size_t element_bytes() const { return info(shape_.dtype).block_bytes; }
  std::size_t element_at(int page, int head, int within, int d, bool keys) const;  // its byte
  void copy_position(const std::vector<std::byte>& from, int stream, int position, bool keys, std::byte* to) const;

  KvShape shape_;
  bool cuda_, whole_;
  int page_, pages_;
  std::unique_ptr<Buffer> keys_, values_, key_scales_, value_scales_;
  std::vector<std::int32_t> tables_;
};

// One row of a cache as it must be: [kv_heads * dim] values rounded to its type, in contents()'s form; appended.
void append_rounded(const KvShape& shape, const float* key, const float* value, std::vector<std::byte>& to);
// The numbers that a rounded row stands for.
std::vector<double> stored_values(const KvShape& shape, const float* row);

// Runs store_kv of the cuts, each a call.
void store(Backend& backend, const KvShape& shape, const std::vector<Stream>& streams, Cache& cache,
           const std::vector<Cut>& cuts);
// Attention of one round: the rows of the cuts in order, [rows][heads * dim].
std::vector<float> attend(Backend& backend, const KvShape& shape, const std::vector<Stream>& streams, Cache& cache,
                          const std::vector<Cut>& cuts, bool& damage);

// A stream's rows from `first` to its end in pieces of `rows`; rows 0: random cuts.
std::vector<Cut> cut_stream(int stream, int first, int positions, int rows, std::uint64_t seed);

}  // namespace steadfast::contract
