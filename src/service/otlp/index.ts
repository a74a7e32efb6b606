/** Exports traces and metrics to an OpenTelemetry collector, in OTLP over HTTP with JSON. */
export { Collector, type OtlpSettings } from './collector.js';
export { exportMetrics } from './metrics.js';
export { SpanExporter } from './spans.js';
