import { setTimeout as sleep } from 'node:timers/promises';
import { RequestObserver } from '../../ask/request/meters.js';
import type { ServiceLog } from '../../base/log.js';
import { version } from '../../base/package-root.js';
import { messageOf } from '../../base/thrown.js';
import { Collector, exportMetrics, type OtlpSettings, SpanExporter } from './collector.js';

const CLOSE_MS = 2_000;

interface ObservingSettings {
  readonly slowQuestionMs: number;
  /** Settings of the OpenTelemetry collector; null if none is configured. */
  readonly otlp: OtlpSettings | null;
}

/** Opens metrics, the slow query log and, if a collector is configured, tracing. */
export function openObserving(
  { slowQuestionMs, otlp }: ObservingSettings,
  log: ServiceLog,
): { readonly observing: RequestObserver; close(): Promise<void> } {
  if (otlp === null)
    return { observing: new RequestObserver(log, slowQuestionMs), close: async () => undefined };
  const spans = new SpanExporter(new Collector(otlp, version(), log), otlp);
  return {
    observing: new RequestObserver(log, slowQuestionMs, spans),
    close: () => withinTimeout(spans.close()),
  };
}

/** Exports metrics to the collector, if one is configured. Returns a function that stops the export. */
export function openMetricExport(
  { otlp }: Pick<ObservingSettings, 'otlp'>,
  log: ServiceLog,
  collectMetrics: () => Promise<string>,
): () => Promise<void> {
  if (otlp === null) return async () => undefined;
  const stop = exportMetrics(new Collector(otlp, version(), log), otlp.metricsMs, collectMetrics, (error) =>
    log.error('figures could not be gathered', { error: messageOf(error) }),
  );
  return () => withinTimeout(stop());
}

async function withinTimeout(work: Promise<void>): Promise<void> {
  await Promise.race([work.catch(() => undefined), sleep(CLOSE_MS, undefined, { ref: false })]);
}
