#pragma once

#include <array>
#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>

namespace cputrain::logging {

/// What an epoch came to, by the names that metrics.jsonl and Keras have for it.
inline constexpr std::array kEpochFigures{
    "loss",         "accuracy",         "top_5_accuracy",
    "val_loss",     "val_accuracy",     "val_top_5_accuracy",
    "ema_val_loss", "ema_val_accuracy", "ema_val_top_5_accuracy"};

/// Calls look(line) for every epoch's line of a metrics.jsonl, in order. Other lines, and what is
/// no line, are passed over: a run's file may have been damaged. Nothing where there is no file.
void for_epoch_lines(const std::filesystem::path&,
                     const std::function<void(const nlohmann::json& line)>& look);

}  // namespace cputrain::logging
