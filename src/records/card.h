// The run card, eval/NAME.card.json: all that decides the figures of an evaluation, with the SHA-256 of every file that
// went in and came out, sealed by a SHA-256 of its own text. `ucas verify-run` (card_check.h) holds a run against it.
// Written by `ucas evaluate`, demo and studies when an evaluation is complete; read by verify-run, compare and the
// report. hash_model_files uses several threads of its own.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/problem.h"
#include "data/problems.h"
#include "data/prompts/templates.h"
#include "records/eval_config.h"
#include "records/run/environment.h"
#include "verify/grader.h"

namespace ucas {

struct EvalRecord;

struct CardFile {
  std::string name;  // within the model's or the run's directory; of problem files the path as given
  int64_t size = 0;
  std::string sha256;
};

CardFile card_file(const std::string& path, const std::string& name);

// The files of a checkpoint that decide what it answers: configuration, tokenizer, weights; sorted by name. The model
// hub lists the same SHA-256 for its large files. Reads all of them: 1.6 s of CPU time a GiB, measured with SHA
// instructions.
std::vector<CardFile> hash_model_files(const std::string& directory);

// How the problems of one source were put to the model and graded.
struct CardBenchmark {
  std::string name;   // Problem::source
  std::string title;  // may be empty
  std::vector<std::string> files;
  ProblemColumns columns;
  Template prompt_template;
  std::vector<int32_t> stop_ids;
  std::vector<std::string> stop_texts;  // of stop_ids, and then end_texts
  std::vector<std::string> end_texts;   // that end a response wherever its tokens complete one
  int64_t max_tokens = 0;
  std::map<std::string, int64_t> max_tokens_of;  // by id: problems whose prompt leaves the model fewer positions
  std::string grader = "math";                   // math, letter, choice (evaluate/benchmark.h)
  Extract extract = Extract::strict;
};

struct CardInput {
  RunEnvironment machine;  // version .. threads; the rest is not read
  std::string model;       // its directory, address or file, as given
  std::string origin;      // of responses not generated here: "server", or the kind of file; "" = generated here
  std::map<std::string, std::string> served;  // what is known of such a model: name, api ..
  std::vector<CardFile> model_files;
  std::string suite;                      // "" = plain files
  std::string keys = "place";             // of the draws: "problem" (source and id) or "place" (index in the data)
  std::vector<CardBenchmark> benchmarks;  // one for each source of the problems
};

// About DIRECTORY/NAME.outputs.jsonl, .jsonl and .json, which must be there. Returns the card's name: the first eight
// digits of its SHA-256.
std::string write_card(const CardInput& input, const EvalRecord& result, std::span<const Problem> problems,
                       const std::string& directory, const std::string& name);

// A card as it was read. `json` is all of it, for comparisons field by field.
struct Card {
  std::string path, sha256;  // sha256: as stated
  std::string computed;      // of the text; another one if the card was changed
  std::string version, made, label, model, suite, keys;
  std::string origin;  // as in CardInput
  int64_t step = -1;
  int64_t grader_version = 0;
  EvalConfig config;
  struct Set {
    CardBenchmark as;
    std::vector<CardFile> files;
    int64_t problems = 0;
    std::string problems_sha256, template_sha256;
  };
  std::vector<Set> benchmarks;
  std::vector<CardFile> model_files;
  CardFile outputs, problems, figures;  // the three files
  std::string figures_json;             // what it says they hold
  std::string name() const { return sha256.substr(0, 8); }
};
// Errors: path, header_json (FILE: which key, got, expected), limit.
Card read_card(const std::string& path);

// What a reader of reports compares; "" where the card does not say. Tolerant of keys that are absent: verify-run is
// the judge of a card, this only shows it.
struct CardSummary {
  std::string name;   // as Card::name()
  std::string model;  // eight digits of the weights' hash, of all files together
  std::string sampling;
  struct Set {
    std::string name, problems, files, prompt_template, stop, max_tokens, grader;
  };
  std::vector<Set> sets;  // benchmarks
};
CardSummary read_card_summary(const std::string& path);
// Name of a run's card, or "" if it has none that can be read: for the report.
std::string card_name(const std::string& eval_directory, const std::string& name);

// SHA-256 over the problems of one source, in order, as the lines {"id":..,"problem":..,"gold":[..]} and "subject"
// where there is one: it holds whatever form the file had, and can be made again from NAME.jsonl.
std::string problems_sha256(std::span<const Problem> problems, const std::string& source);
// Over {"text":..,"system":..,"special":[..],"stop":[..]}, of a chat template also "chat", "user", "set", "tokens";
// of one with examples "shots", "example", "examples".
std::string template_sha256(const Template& prompt_template);

}  // namespace ucas
