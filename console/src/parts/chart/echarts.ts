/** The parts of ECharts that are used, and nothing else of it. */
import { BarChart, LineChart, ScatterChart } from 'echarts/charts';
import { GridComponent, LegendScrollComponent, TooltipComponent } from 'echarts/components';
import { init, use } from 'echarts/core';
import { CanvasRenderer, SVGRenderer } from 'echarts/renderers';

use([
  BarChart,
  LineChart,
  ScatterChart,
  GridComponent,
  LegendScrollComponent,
  TooltipComponent,
  CanvasRenderer,
  SVGRenderer,
]);

export { init };
