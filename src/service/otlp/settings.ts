import { StartProblem } from '../../base/start-problem.js';

/** Where traces and metrics go, as OpenTelemetry's own variables say it; absent: nowhere. */
export interface OtlpSettings {
  /** Without a `/` at its end; `/v1/traces` and `/v1/metrics` are below it. */
  readonly endpoint: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly serviceName: string;
  /** Of requests that belong to no trace, the part that makes one, from 0 to 1; of others their caller has said it. */
  readonly ratio: number;
  readonly metricsMs: number;
  readonly spansMs: number;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Null where no endpoint is named. @throws StartProblem */
export function otlpSettings(env: Environment): OtlpSettings | null {
  const endpoint = (env['OTEL_EXPORTER_OTLP_ENDPOINT'] ?? '').replace(/\/+$/, '');
  if (endpoint === '' || env['OTEL_SDK_DISABLED'] === 'true') return null;
  if (!URL.canParse(endpoint) || !/^https?:$/.test(new URL(endpoint).protocol))
    throw new StartProblem('OTEL_EXPORTER_OTLP_ENDPOINT must be an http or https URL');
  const protocol = env['OTEL_EXPORTER_OTLP_PROTOCOL'] ?? 'http/json';
  if (protocol !== 'http/json')
    throw new StartProblem(`OTEL_EXPORTER_OTLP_PROTOCOL: only http/json is spoken here, not \`${protocol}\``);
  return Object.freeze({
    endpoint,
    headers: headersIn(env['OTEL_EXPORTER_OTLP_HEADERS'] ?? ''),
    serviceName: env['OTEL_SERVICE_NAME'] || 'osl-gateway',
    ratio: numberIn(env, 'OTEL_TRACES_SAMPLER_ARG', 1, 0, 1),
    metricsMs: numberIn(env, 'OTEL_METRIC_EXPORT_INTERVAL', 60_000, 100, 86_400_000),
    spansMs: numberIn(env, 'OTEL_BSP_SCHEDULE_DELAY', 5_000, 10, 3_600_000),
  });
}

/** `name=value` between commas, values as in a URL. */
function headersIn(text: string): Readonly<Record<string, string>> {
  const pairs = text.split(',').flatMap((pair) => {
    const at = pair.indexOf('=');
    return at <= 0
      ? []
      : [[pair.slice(0, at).trim().toLowerCase(), decodeURIComponent(pair.slice(at + 1).trim())]];
  });
  return Object.freeze(Object.fromEntries(pairs));
}

function numberIn(env: Environment, name: string, fallback: number, least: number, most: number): number {
  const text = env[name] ?? '';
  const value = text === '' ? fallback : Number(text);
  if (Number.isFinite(value) && value >= least && value <= most) return value;
  throw new StartProblem(`${name} must be a number from ${least} to ${most}, not \`${text}\``);
}
