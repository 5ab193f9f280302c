// Makes the table of a form's kernels.
#pragma once

#include "backend/cuda/device/linear_chain.h"
#include "backend/cuda/device/linear_rows.h"
#include "backend/cuda/device/linear_wide.h"
#include "backend/cuda/linear_kernels.h"

namespace steadfast::cuda {

template <Form kForm, int kRows>
LinearKernel portable_kernel(const char* name) {
  using Shape = PortableShape<kForm, kRows>;
  return {
      linear_portable<kForm, kRows>,       name, kRows, Shape::kStrips, Shape::kUnits, Shape::kThreads, Shape::kGroup,
      Shape::kStageBytes * Shape::kStages, 0};
}

template <Form kForm, int kRows>
LinearKernel bulk_kernel(const char* name) {
  using Shape = BulkShape<kForm, kRows>;
  return {linear_bulk<kForm, kRows>, name,          kRows, Shape::kStrips,    Shape::kUnits,
          Shape::kThreads,           Shape::kGroup, 0,     Shape::kMostStages};
}

template <Form kForm, bool kFolds>
LinearKernel wide_kernel(const char* name) {
  using Shape = WideShape<kForm, kFolds>;
  return {linear_wide<kForm, kFolds>, name, Shape::kRows, kTileStrips, 1, Shape::kThreads, 1, Shape::kSharedBytes, 0};
}

template <Form kForm>
ChainKernel chain_kernel() {
  return {linear_chain<kForm>, ChainShape<kForm>::kSharedBytes};
}

template <Form kForm>
FormKernels form_kernels() {
  return {
      {portable_kernel<kForm, 8>("linear, portable, 8 rows"), portable_kernel<kForm, 64>("linear, portable, 64 rows")},
      {bulk_kernel<kForm, 16>("linear, 16 rows"), bulk_kernel<kForm, 32>("linear, 32 rows"),
       bulk_kernel<kForm, 64>("linear, 64 rows")},
      {wide_kernel<kForm, false>("linear, wide"), wide_kernel<kForm, true>("linear, wide, slices")},
      chain_kernel<kForm>()};
}

}  // namespace steadfast::cuda
