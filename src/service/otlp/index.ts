/** Traces and metrics for a collector of OpenTelemetry, in OTLP over HTTP with JSON. */
export { Collector } from './collector.js';
export { exportMetrics } from './metrics.js';
export { otlpSettings } from './settings.js';
export { SpanExporter } from './spans.js';
