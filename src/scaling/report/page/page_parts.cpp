#include "scaling/report/page/page_parts.h"

#include <utility>

#include "scaling/report/page/page_assets.h"

namespace cputrain::report {

PageParts page_parts(std::string data_json) {
  return {std::move(data_json),
          std::string(page_style()),
          std::string(page_script()),
          std::string(page_plots()),
          std::string(chart_library()),
          std::string(chart_licence()),
          "this program was built without Chart.js, the library that draws them: build it with "
          "-DCPUTRAIN_CHARTS=ON and libjs-chart.js"};
}

}  // namespace cputrain::report
