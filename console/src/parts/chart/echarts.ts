/** Imports only the ECharts modules in use, to keep the bundle small. */
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
