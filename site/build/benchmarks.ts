/** The page of benchmarks: what stands between its marks is made of `bench/RESULTS.md`. */
import { type Chart, chartsOf, drawn, inWords, spoken } from './charts.js';
import type { Results } from './figures.js';

/** Of a chart's picture, below `docs/`. */
export function pictureOf(chart: Chart): string {
  return `pictures/bench-${chart.name}.svg`;
}

/** Every chart's picture, by its path below `docs/`. */
export function picturesOf(results: Results): ReadonlyMap<string, string> {
  return new Map(chartsOf(results).map((chart) => [pictureOf(chart), drawn(chart, dayOf(chart, results))]));
}

/** Day and machine, without what a run was disturbed by, which the page says. */
function dayOf({ sections }: Chart, results: Results): string {
  const days = sections.map((name) => /^.*?commit \w+/.exec(results.made(name))?.[0] ?? results.made(name));
  return `Measured ${[...new Set(days)].join('; ')}`;
}

/**
 * `text` with each chart and its table as of now.
 *
 * @throws where a chart has no place in it
 */
export function benchmarkPage(text: string, results: Results): string {
  return chartsOf(results).reduce((page, chart) => {
    const [begin, end] = [`<!-- chart: ${chart.name} -->`, '<!-- end of chart -->'];
    const from = page.indexOf(begin);
    if (from < 0) throw new Error(`docs/benchmarks.md has no place for the chart ${chart.name}`);
    const to = page.indexOf(end, from);
    return `${page.slice(0, from)}${begin}\n\n${chartWithTable(chart, results)}\n\n${page.slice(to)}`;
  }, text);
}

function chartWithTable(chart: Chart, results: Results): string {
  const made = [...new Set(chart.sections.map((name) => results.made(name)))].join(' ');
  const head = ['', ...chart.series.map(({ name }) => `${name}, ${chart.unit}`)];
  const rows = chart.groups.map(({ label, values }) => [
    label,
    ...values.map((value) => (value === null ? '–' : spoken(value))),
  ]);
  const table = [head, ['---', ...chart.series.map(() => '---:')], ...rows].map(
    (cells) => `| ${cells.join(' | ')} |`,
  );
  return [`![${inWords(chart)}](${pictureOf(chart)})`, '', `Measured ${made}`, '', ...table].join('\n');
}
