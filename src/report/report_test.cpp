#include "report/report.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "report/page/curves.h"
#include "results/compare/groups.h"
#include "support/program.h"
#include "support/synthetic_run.h"
#include "support/temporary_directory.h"

namespace ucas {
namespace {

class report : public ::testing::Test {
 protected:
  void TearDown() override {
    const char* keep = std::getenv("UCAS_KEEP_REPORT");  // to look at the page by eye
    std::string page = path_join(root_, "report.html");
    if (keep != nullptr && exists(page)) write_file(keep, read_file(page));
  }
  const testing::TemporaryDirectory folder_;
  const std::string& root_ = folder_.path();
};

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++n;
  return n;
}

TEST_F(report, the_demo_becomes_one_page_that_asks_the_network_for_nothing) {
  std::vector<std::string> runs = write_synthetic_demo(root_, 3);
  std::string file = path_join(root_, "report.html");
  write_report(runs, file, "A synthetic demo");
  std::string html = read_file(file);
  EXPECT_LT(html.size(), 10u << 20);
  for (const char* id : {"results", "alarms", "curves", "responses", "tokens", "settings", "sources"}) {
    EXPECT_EQ(count(html, str("<section id=\"", id, "\"")), 1u) << id;
  }
  for (const char* word : {" src=", "@import", "url(", "fetch(", "XMLHttpRequest", "<link", "https://"}) {
    EXPECT_EQ(count(html, word), 0u) << word;
  }
  EXPECT_EQ(count(html, "http://"), count(html, "http://www.w3.org/2000/svg"));  // the name of the SVG namespace
  EXPECT_NE(html.find("default-src 'none'"), std::string::npos);
}

TEST_F(report, the_token_explorer_stands_above_the_curves_and_every_section_folds) {
  std::string html = report_html(write_synthetic_demo(root_, 1), "");
  EXPECT_LT(html.find("<section id=\"results\""), html.find("<section id=\"tokens\""));
  EXPECT_LT(html.find("<section id=\"tokens\""), html.find("<section id=\"curves\""));
  EXPECT_EQ(count(html, "<section id="), count(html, "<details class=\"room\""));
  EXPECT_NE(html.find("<details class=\"room\"><summary><h2 id=\"settings-title\">"), std::string::npos)
      << "the settings begin folded";
}

TEST_F(report, differences_are_a_forest_plot_with_the_numbers_of_the_comparison) {
  std::string html = report_html(write_synthetic_demo(root_, 3), "");
  const size_t at = html.find("<h4>Differences from base</h4>");
  ASSERT_NE(at, std::string::npos) << "there is no forest plot of the differences from the untrained model";
  const std::string plot = html.substr(at, html.find("</figure>", at) - at);
  EXPECT_NE(plot.find(">DAPO, greedy pass@1<"), std::string::npos) << plot;
  EXPECT_NE(plot.find(">UCAS, mean@16<"), std::string::npos) << plot;
  EXPECT_NE(plot.find("p "), std::string::npos) << plot;
  EXPECT_NE(html.find("<h4>Differences from DAPO</h4>"), std::string::npos);
}

TEST_F(report, an_evaluation_of_a_runs_checkpoint_belongs_to_the_run) {
  SyntheticRun base, trained;
  base.label = "base";
  trained.method = "dapo";
  const std::string untrained = write_synthetic_run(path_join(root_, "eval/base"), base);
  const std::string run = write_synthetic_run(path_join(root_, "runs/dapo"), trained);
  const std::string alone = path_join(root_, "eval/dapo"), checkpoint = path_join(run, "checkpoints/step-0000024");
  make_directories(alone);
  std::filesystem::rename(path_join(run, "eval"), path_join(alone, "eval"));
  write_file(path_join(alone, "env.json"), "{\"label\": \"dapo\"}");
  make_directories(checkpoint);
  write_file(path_join(checkpoint, "config.json"), "{}");
  write_file(path_join(checkpoint, "model.safetensors"), "weights");
  std::string files;
  for (const ModelFile& file : hash_model_files(checkpoint)) {
    files += str(files.empty() ? "" : ", ", "{\"name\": \"", file.name, "\", \"size\": ", file.size, ", \"sha256\": \"",
                 file.sha256, "\"}");
  }
  for (const std::string& name : list_directory(path_join(alone, "eval"))) {
    const std::string path = path_join(path_join(alone, "eval"), name);
    if (!name.ends_with(".json")) continue;
    write_file(path, str("{\"asked\": {\"ucas\": \"0.2.0\", \"grader_version\": 4, \"keys\": \"problem\", \"dtype\": "
                         "\"f32\", \"truncated\": \"grade\", \"sets\": [], \"model_files\": [",
                         files, "]}, ", read_file(path).substr(1)));
  }
  const std::vector<std::string> paths = {untrained, run, alone};
  EXPECT_NE(report_html(paths, "").find("<h4>Differences from base</h4>"), std::string::npos);
  const std::vector<RunRecord> runs = read_runs(paths);
  ASSERT_EQ(group_runs(runs).size(), 2u) << "a model is listed once";
  ASSERT_EQ(runs[1].evaluations.size(), 1u);
  EXPECT_EQ(runs[1].evaluations[0].step, 24);
  write_file(path_join(checkpoint, "model.safetensors"), "Weights");
  EXPECT_EQ(read_runs(paths).size(), 3u) << "an evaluation of other weights is one of its own";
}

TEST_F(report, a_number_that_never_changed_is_a_line_of_words_and_no_chart) {
  std::string lines;
  for (int step = 1; step <= 5; ++step) {
    lines += str("{\"training/global_step\":", step, ",\"critic/score/mean\":", step / 10.0, ",\"actor/lr\":0.001}\n");
  }
  write_file(path_join(root_, "steps.jsonl"), lines);
  std::string html = report_html({root_}, "");
  EXPECT_EQ(count(html, "<figure class=\"panel\""), 1u);
  EXPECT_NE(html.find("<span>Learning rate <code>actor/lr</code> <b>0.001"), std::string::npos);
  EXPECT_NE(html.find("<h4>Mean reward</h4><code>critic/score/mean</code>"), std::string::npos);
}

TEST_F(report, every_chart_has_its_numbers_as_a_table_and_of_many_steps_the_last_is_there) {
  std::string lines;
  for (int step = 1; step <= 120; ++step) {
    lines += str("{\"training/global_step\":", step, ",\"critic/score/mean\":", step / 200.0, "}\n");
  }
  write_file(path_join(root_, "steps.jsonl"), lines);
  const std::string html = report_html({root_}, "");
  const size_t at = html.find("<figure class=\"panel\"");
  ASSERT_NE(at, std::string::npos);
  const std::string panel = html.substr(at, html.find("</figure>", at) - at);
  EXPECT_EQ(count(panel, "<th scope=\"row\">"), 40u) << panel;
  EXPECT_NE(panel.find("<th scope=\"row\">120</th><td>0.600</td>"), std::string::npos) << panel;
}

TEST_F(report, a_run_that_was_resumed_with_changes_says_so) {
  SyntheticRun trained;
  trained.method = "dapo";
  std::string run = write_synthetic_run(path_join(root_, "dapo"), trained);
  EXPECT_EQ(report_html({run}, "").find("Resumed with changes"), std::string::npos);
  write_file(path_join(run, "env.json"), R"({"remarks": ["steps 2 to 3 are missing", "rollout.n < 8"]})");
  std::string html = report_html({run}, "");
  EXPECT_NE(html.find("Resumed with changes"), std::string::npos);
  EXPECT_NE(html.find("steps 2 to 3 are missing; rollout.n &lt; 8"), std::string::npos);
}

const std::string kHostile =
    std::string("</script><script>document.title='owned'</script><img src=x onerror=alert(1)>") +
    "\xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xae" + std::string("\0", 1) + "]]><!-- \"'&";

// A page about runs whose every text is hostile.
std::string hostile_page(const std::string& root) {
  SyntheticRun base, trained;
  base.label = "base </title>";
  trained.method = "dapo";
  trained.label = "<svg onload=alert(1)>\xe2\x80\xae";
  base.response = trained.response = kHostile;
  std::string a = write_synthetic_run(path_join(root, "base"), base),
              b = write_synthetic_run(path_join(root, "dapo"), trained);
  std::string steps = read_file(path_join(b, "steps.jsonl"));
  write_file(path_join(b, "steps.jsonl"), steps + "{\"training/global_step\":99,\"</script><b>/x\xe2\x80\xae\":1}\n");
  return report_html({a, b}, "</title><script>alert(1)</script>");
}

TEST_F(report, hostile_model_text_stays_text) {
  std::string html = hostile_page(root_);
  EXPECT_EQ(count(html, "<script"), 2u);  // the tokens and the program
  EXPECT_EQ(count(html, "</script>"), 2u);
  EXPECT_EQ(count(html, "</title>"), 1 + count(html, "</title></circle>"));  // dots of figures have one, too
  EXPECT_EQ(count(html, "<svg"), count(html, "<svg xmlns=\""));
  for (const char* tag : {"<img", "<svg onload", "<!--", "]]>"}) EXPECT_EQ(count(html, tag), 0u) << tag;
  EXPECT_EQ(html.find('\0'), std::string::npos);
  for (const char* mark : {"\xe2\x80\xa8", "\xe2\x80\xa9", "\xe2\x80\xae"}) EXPECT_EQ(count(html, mark), 0u);
  EXPECT_NE(html.find("<i class=\"cc\">U+202E</i>"), std::string::npos);
  EXPECT_NE(html.find("<i class=\"cc\">U+0000</i>"), std::string::npos);
}

TEST_F(report, long_responses_do_not_make_a_page_too_large) {
  SyntheticRun run;
  run.method = "dapo";
  run.response = std::string(20000, '<');
  run.problems = 8;
  std::vector<std::string> runs;
  for (int64_t i = 0; i < 3; ++i) {
    run.label = str("run ", i);
    runs.push_back(write_synthetic_run(path_join(root_, str(i)), run));
  }
  EXPECT_LE(report_html(runs, "").size(), 10u << 20);
}

TEST_F(report, a_training_that_validated_opens_with_what_came_of_it) {
  write_file(
      path_join(root_, "steps.jsonl"),
      "{\"training/global_step\":0,\"val-core/small/acc/mean@1\":0.25}\n"
      "{\"training/global_step\":1,\"critic/score/mean\":0.125,\"response_length/mean\":44,\"timing_s/step\":60}\n"
      "{\"training/global_step\":2,\"critic/score/mean\":0.75,\"response_length/mean\":29,\"timing_s/step\":60,"
      "\"val-core/small/acc/mean@1\":0.953}\n");
  const std::string html = report_html({root_}, "");
  EXPECT_EQ(html.find("hold no evaluation"), std::string::npos);
  const size_t section = html.find("<section id=\"results\""), next = html.find("<section", section + 1);
  ASSERT_NE(section, std::string::npos);
  const std::string results = html.substr(section, next - section);
  for (const char* shown :
       {"held out of training", "25.0", "95.3", "step 2", "0.125 \xe2\x86\x92 0.750", "44 \xe2\x86\x92 29", "2m"}) {
    EXPECT_NE(results.find(shown), std::string::npos) << shown;
  }
}

TEST_F(report, absent_parts_are_left_out_and_named) {
  write_file(path_join(root_, "steps.jsonl"), "{\"training/global_step\":1,\"critic/score/mean\":0.25}\n");
  std::string html = report_html({root_}, "");
  EXPECT_EQ(count(html, "<section id=\"responses\""), 0u);
  EXPECT_EQ(count(html, "<section id=\"tokens\""), 0u);
  EXPECT_NE(html.find("so there is no token explorer."), std::string::npos);
  EXPECT_NE(html.find("hold no evaluation"), std::string::npos);
  EXPECT_NE(html.find("config.toml (the settings)"), std::string::npos);
}

TEST_F(report, a_run_that_cannot_be_read_leaves_no_file_behind) {
  std::string file = path_join(root_, "report.html");
  EXPECT_THROW(write_report({path_join(root_, "nothing")}, file, ""), Error);
  EXPECT_THROW(write_report({}, file, ""), Error);
  EXPECT_FALSE(exists(file));
}

// In a browser: nothing throws, every chart is shown, hostile text runs nothing.
TEST_F(report, a_browser_draws_every_chart_and_runs_no_foreign_script) {
  std::string html = hostile_page(root_);
  size_t charts = count(html, "<figure class=\"panel\"");
  write_file(path_join(root_, "report.html"), html);
  const int ended = testing::run_program(
      {"chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
       "--disable-component-update", "--disable-sync", str("--user-data-dir=", root_, "/profile"), "--dump-dom",
       str("file://", root_, "/report.html")},
      path_join(root_, "dom.html"));
  if (ended == 127) GTEST_SKIP() << "no chromium on this machine";
  if (ended != 0) GTEST_SKIP() << "chromium does not start here: " << ended;
  std::string dom = read_file(path_join(root_, "dom.html"));
  EXPECT_GT(charts, 15u);
  EXPECT_EQ(count(dom, "<svg xmlns="), charts + count(html, "<figure class=\"drawn\""));
  EXPECT_EQ(count(dom, "<title>owned</title>"), 0u);
  EXPECT_EQ(count(dom, "<img"), 0u);
  EXPECT_GE(count(dom, "<div class=\"tokens\""), 2u);  // the hostile tokens are shown, as text
  EXPECT_NE(dom.find("&lt;img src=x onerror=alert(1)&gt;"), std::string::npos);
}

}  // namespace
}  // namespace ucas
