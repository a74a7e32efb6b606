/** Traces and metrics for a collector of OpenTelemetry, in OTLP over HTTP with JSON. */
export { Collector, type OtlpSettings } from './collector.js';
export { exportMetrics } from './metrics.js';
export { SpanExporter } from './spans.js';
