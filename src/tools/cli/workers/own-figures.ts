import { collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import type { Figures } from '../../../surfaces/http/telemetry.js';

/** What the supervisor counts of itself and its workers. */
export interface Standing {
  readonly workers: number;
  readonly serving: number;
  readonly replaced: number;
  readonly engines: number;
}

/** The supervisor's own part of the page of metrics. */
export function ownFigures(read: () => Standing): () => Promise<Figures> {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const gauge = (name: string, help: string, of: keyof Standing): void => {
    new Gauge({
      name,
      help,
      registers: [registry],
      collect: function collect() {
        this.set(read()[of]);
      },
    });
  };
  gauge('osl_workers', 'Configured number of workers', 'workers');
  gauge('osl_workers_serving', 'Workers that accept requests', 'serving');
  gauge('osl_workers_replaced', 'Workers that died and were replaced since startup', 'replaced');
  gauge('osl_catalog_engines', 'Catalog engines, shared by all workers', 'engines');
  return async () => JSON.stringify(await registry.getMetricsAsJSON());
}
