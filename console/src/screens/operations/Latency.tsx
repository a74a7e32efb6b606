import { useMemo } from 'react';
import type { Figures } from '../../api/admin-types.js';
import { Chart } from '../../parts/chart/Chart.js';
import type { ChartSpec } from '../../parts/chart/option.js';
import { Empty } from '../../parts/Empty.js';
import { formatCount } from '../../parts/load/format.js';
import { type LatencyLine, latencyLines, msText } from './figures.js';
import { numberColumns, PlainTable } from './Processes.js';

/** Request durations by query form, and refusals by code, since the server started, as in `/metrics`. */
export function Latency({ figures: { latency, refusals } }: { readonly figures: Figures }) {
  const lines = useMemo(() => latencyLines(latency), [latency]);
  const shape = JSON.stringify(lines.slice(0, MOST_BARS));
  const spec = useMemo(() => specOf(JSON.parse(shape) as readonly LatencyLine[]), [shape]); // serialized above
  if (lines.length === 0)
    return <Empty title="No requests yet" text="Request durations appear here, by query form." />;
  return (
    <div className="stack wide">
      <PlainTable
        label="Latency"
        columns={['form', 'over', ...numberColumns('requests', 'mean', 'p50', 'p95', 'p99')]}
      >
        {lines.map(({ form, surface, count, mean, p50, p95, p99 }) => (
          <tr key={`${form} ${surface}`}>
            <th scope="row">{form === '' ? 'other requests' : form}</th>
            <td>{surface}</td>
            <td className="number">{formatCount(count)}</td>
            {[mean, p50, p95, p99].map((ms, i) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: columns are identified by position.
              <td key={i} className="number">
                {msText(ms)}
              </td>
            ))}
          </tr>
        ))}
      </PlainTable>
      <div className="latency-chart">
        <Chart spec={spec} name="latency" />
      </div>
      {refusals.length > 0 && (
        <section>
          <h3>Refusals by code</h3>
          <ul className="row codes">
            {refusals.map(({ code, count }) => (
              <li key={code} className="box">
                <code>{code}</code> {formatCount(count)}
              </li>
            ))}
          </ul>
        </section>
      )}
    </div>
  );
}

const MOST_BARS = 8;

function specOf(lines: readonly LatencyLine[]): ChartSpec {
  const nameOf = ({ form, surface }: LatencyLine): string => `${form === '' ? 'other' : form} ${surface}`;
  const series = (name: string, of: (line: LatencyLine) => number) => ({
    name,
    points: lines.map((line) => [nameOf(line), Math.round(of(line) * 100) / 100] as const),
  });
  return {
    kind: 'bar',
    x: { name: '', scale: 'category' },
    y: { name: 'ms' },
    series: [series('p50', (l) => l.p50), series('p95', (l) => l.p95)],
    note: 'Since the server began, in milliseconds',
  };
}
