#include "report/page/template.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/files/file.h"
#include "base/str.h"

namespace ucas {
namespace {

const std::string kAttack = "</section>{{{main}}}{{#rows}}<script>alert('1')</script>\" onload=\"x\xe2\x80\xae";

std::string alarm_page(const std::string& text) {
  OrderedJson alarm = {{"kind", text}, {"title", text}, {"where", text}, {"what", text}, {"cause", text}};
  return render("alarms.html",
                {{"some", true}, {"alarms", OrderedJson::array({alarm})}, {"quiet", text}, {"main", "OWNED"}});
}

TEST(page_template, every_value_is_escaped_unless_the_template_says_that_it_is_markup) {
  const std::string html = alarm_page(kAttack);
  EXPECT_EQ(html.find("<script"), std::string::npos) << html;
  EXPECT_EQ(html.find("</section>"), std::string::npos) << html;
  EXPECT_EQ(html.find("\" onload"), std::string::npos) << html;
  EXPECT_EQ(html.find("\xe2\x80\xae"), std::string::npos) << "a character that turns the text round got through";
  EXPECT_NE(html.find("[U+202E]"), std::string::npos) << html;
}

TEST(page_template, a_value_is_never_read_as_a_template) {
  const std::string html = alarm_page(kAttack);
  EXPECT_EQ(html.find("OWNED"), std::string::npos) << html;
  EXPECT_NE(html.find("{{{main}}}{{#rows}}"), std::string::npos) << html;
}

TEST(page_template, an_empty_value_takes_its_section_away) {
  const std::string html = render("alarms.html", {{"some", false}, {"alarms", OrderedJson::array()}, {"quiet", ""}});
  EXPECT_EQ(trim(html), "") << html;
}

TEST(page_template, a_table_holds_text_as_text_and_an_absent_part_of_a_cell_is_not_taken_from_its_row) {
  Table table{.head = {Cell(kAttack).with(&Cell::about, kAttack)}, .caption = kAttack, .kind = "plain"};
  table.add({Cell(kAttack).with(&Cell::mark, "g1"),
             Cell::mean({1.5, kUnknown, kUnknown}, 0.5, false).with(&Cell::strong, true), Cell::unknown()});
  table.rows[0].kind = "seed";
  const std::string html = render(table);
  EXPECT_EQ(html.find("<script"), std::string::npos) << html;
  EXPECT_NE(html.find("<td><b>1.50</b><small> &#177;&#8201;0.500</small></td>"), std::string::npos) << html;
  EXPECT_NE(html.find("<td><span class=\"quiet\">&#8211;</span></td>"), std::string::npos) << html;
}

// Markup that a template takes as it is: each was made of text by model_text, svg_for_page, script_json or a template.
TEST(page_template, only_these_values_are_taken_as_markup) {
  const std::string known =
      " style main token_data script content table validation benchmarks made svg html flow "
      "problem answer "
      "read "
      "response prompt differing all ";
  for (const std::string& name : embedded_names("report/assets/")) {
    if (!name.ends_with(".html")) continue;
    const std::string text(*embedded(name));
    for (size_t at = text.find("{{{"); at != std::string::npos; at = text.find("{{{", at + 1)) {
      const std::string value = text.substr(at + 3, text.find("}}}", at) - at - 3);
      EXPECT_NE(known.find(" " + value + " "), std::string::npos) << name << " takes " << value << " as markup";
    }
    EXPECT_EQ(text.find("{{&"), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace ucas
