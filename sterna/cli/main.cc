// SPDX-License-Identifier: Apache-2.0
// The sterna command. The only file that includes CLI11, whose exceptions end here.
#include <CLI/CLI.hpp>
#include <iostream>
#include <list>
#include <string_view>

#include "sterna/cli/command.h"
#include "sterna/cli/locate.h"
#include "sterna/hardware/catalog.h"

namespace sterna::cli {
namespace {

constexpr const char* kVersion = "sterna " STERNA_VERSION;

/// The words that were read for one subcommand, kept where CLI11 can write them.
struct Reading {
  const Command* command = nullptr;
  CLI::App* app = nullptr;
  std::list<std::pair<const Argument*, std::string>> texts;
  std::list<std::pair<const Argument*, bool>> flags;
};

void add_arguments(Reading& reading) {
  for (const Argument& argument : reading.command->arguments) {
    if (argument.kind == Argument::kFlag) {
      auto& [which, given] = reading.flags.emplace_back(&argument, false);
      reading.app->add_flag(argument.name, given, argument.help);
    } else {
      auto& [which, text] = reading.texts.emplace_back(&argument, std::string());
      reading.app->add_option(argument.name, text, argument.help);
    }
  }
}

int run_reading(const Reading& reading) {
  Arguments arguments;
  for (const auto& [argument, text] : reading.texts)
    if (!text.empty()) arguments.set(argument->name, text);
  for (const auto& [argument, given] : reading.flags)
    if (given) arguments.set(argument->name, "1");
  // Only now: commands that need no hardware must not pay for looking for it.
  set_hardware_directories(installed_hardware(command_directory()));
  return reading.command->run(arguments, {std::cout, std::cerr});
}

int run_main(int argc, char** argv) {
  // Asked often, by scripts; answered before anything is built.
  if (argc == 2 && std::string_view(argv[1]) == "--version") {
    std::cout << kVersion << '\n';
    return 0;
  }
  for (const Command& command : commands())
    if (argc > 1 && command.pass_through != nullptr && command.name == argv[1])
      return command.pass_through(std::vector<std::string>(argv + 2, argv + argc), {std::cout, std::cerr});
  CLI::App app("An open, executable Trainium: values, predicted time, trace.", "sterna");
  app.set_version_flag("--version", kVersion);
  app.require_subcommand(0, 1);
  std::list<Reading> readings;
  for (const Command& command : commands()) {
    Reading& reading = readings.emplace_back();
    reading.command = &command;
    reading.app = app.add_subcommand(command.name, command.summary);
    add_arguments(reading);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;  // help and version come this way too
  }
  for (const Reading& reading : readings)
    if (reading.app->parsed()) return run_reading(reading);
  std::cout << app.help();
  return 0;
}

}  // namespace
}  // namespace sterna::cli

int main(int argc, char** argv) { return sterna::cli::run_main(argc, argv); }
