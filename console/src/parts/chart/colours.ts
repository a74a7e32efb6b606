import { isDark } from '../../shell/theme.js';
import { type ChartColours, DARK_SERIES, LIGHT_SERIES } from './option.js';

/** The colour that a custom property has now, as a chart takes it. */
function colourOf(name: string): string {
  const probe = document.createElement('span');
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

export function chartColours(): ChartColours {
  return {
    text: colourOf('text'),
    quiet: colourOf('quiet'),
    line: colourOf('line'),
    panel: colourOf('panel'),
    series: isDark() ? DARK_SERIES : LIGHT_SERIES,
  };
}
