import { Counter, Histogram, type Registry } from 'prom-client';
import { BOUNDS_US, Durations, type MeterLabels, type Meters } from '../../ask/request/meters.js';

/**
 * Prometheus metrics of requests. Samples are built on scrape; handling a request only increments numbers, without
 * label lookups.
 */
export function requestMetrics(registry: Registry, meters: Meters): void {
  new StageSeconds(registry, meters);
  new Counter({
    name: 'osl_requests_total',
    help: 'Requests by surface, form, decision and outcome (none: refused)',
    labelNames: ['surface', 'form', 'decision', 'outcome'],
    registers: [registry],
    collect: function collect() {
      this.reset();
      for (const { labels, outcomes } of meters.all)
        for (const [outcome, value] of outcomes) this.inc({ ...withoutConnector(labels), outcome }, value);
    },
  });
  new Counter({
    name: 'osl_errors_total',
    help: 'Refused and failed requests by error code',
    labelNames: ['code'],
    registers: [registry],
    collect: function collect() {
      this.reset();
      for (const [code, value] of meters.codes) this.inc({ code }, value);
    },
  });
}

const LABELS = ['stage', 'surface', 'form', 'decision'] as const;
const STAGE_SECONDS = 'osl_request_stage_seconds';
const HELP = 'Request time by stage, surface, form and decision';

class StageSeconds extends Histogram<(typeof LABELS)[number]> {
  readonly #meters: Meters;

  constructor(registry: Registry, meters: Meters) {
    super({
      name: STAGE_SECONDS,
      help: HELP,
      labelNames: LABELS,
      buckets: BOUNDS_US.map((us) => us / 1_000_000),
      registers: [registry],
    });
    this.#meters = meters;
  }

  /** Overrides a method that prom-client's types do not declare but the registry and `get` call. */
  async getForPromString() {
    const sums = new Map<string, { readonly labels: Labels; readonly durations: Durations }>();
    for (const meter of this.#meters.all)
      for (const [stage, durations] of meter.stages) {
        const labels = { stage, ...withoutConnector(meter.labels) };
        const key = Object.values(labels).join(' ');
        const sum = sums.get(key) ?? { labels, durations: new Durations() };
        sums.set(key, sum);
        sum.durations.include(durations);
      }
    const values = [...sums.values()].flatMap(({ labels, durations }) => samplesOf(durations, labels));
    return { name: STAGE_SECONDS, help: HELP, type: 'histogram', aggregator: 'sum', values };
  }
}

function withoutConnector({ surface, form, decision }: MeterLabels): Omit<MeterLabels, 'connector'> {
  return { surface, form, decision };
}

type Labels = Readonly<Record<(typeof LABELS)[number], string>>;

/**
 * Samples of one histogram. The registry modifies `labels`, but not `sharedLabels`, which all samples have in common.
 */
function samplesOf({ counts, sumUs }: Durations, sharedLabels: Labels) {
  let below = 0;
  const buckets = counts.map((count, i) => {
    below += count;
    const bound = BOUNDS_US[i];
    const le = bound === undefined ? '+Inf' : bound / 1_000_000;
    return { metricName: `${STAGE_SECONDS}_bucket`, labels: { le }, sharedLabels, value: below };
  });
  return [
    ...buckets,
    { metricName: `${STAGE_SECONDS}_sum`, labels: {}, sharedLabels, value: sumUs / 1_000_000 },
    { metricName: `${STAGE_SECONDS}_count`, labels: {}, sharedLabels, value: below },
  ];
}
