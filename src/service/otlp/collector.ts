import { hostname } from 'node:os';
import type { ServiceLog } from '../../base/log.js';
import { messageOf } from '../../base/thrown.js';

/** Collector settings from OpenTelemetry's variables. */
export interface OtlpSettings {
  /** URL without a trailing `/`, to which `/v1/traces` or `/v1/metrics` is appended. */
  readonly endpoint: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly serviceName: string;
  /** Sampling ratio, from 0 to 1, for requests without a trace; others follow their caller's decision. */
  readonly ratio: number;
  readonly metricsMs: number;
  readonly spansMs: number;
}

const TIMEOUT_MS = 10_000;

/** Sends to an OpenTelemetry collector (OTLP/HTTP, JSON). Data that cannot be delivered is dropped. */
export class Collector {
  readonly #settings: OtlpSettings;
  readonly #log: ServiceLog;
  readonly #resource: object;
  #failing = false;

  constructor(settings: OtlpSettings, version: string, log: ServiceLog) {
    this.#settings = settings;
    this.#log = log;
    this.#resource = {
      attributes: [
        attribute('service.name', settings.serviceName),
        attribute('service.version', version),
        attribute('service.instance.id', `${hostname()}-${process.pid}`),
      ],
    };
  }

  get resource(): object {
    return this.#resource;
  }

  /** Returns false if delivery failed; only the first failure and the recovery are logged. */
  async send(path: '/v1/traces' | '/v1/metrics', body: object): Promise<boolean> {
    const why = await this.#post(path, body);
    if (why !== null && !this.#failing)
      this.#log.warn('the collector of traces and metrics takes nothing', { why });
    if (why === null && this.#failing) this.#log.warn('the collector of traces and metrics answers again');
    this.#failing = why !== null;
    return why === null;
  }

  async #post(path: string, body: object): Promise<string | null> {
    const { endpoint, headers } = this.#settings;
    try {
      const reply = await fetch(`${endpoint}${path}`, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json' },
        body: JSON.stringify(body),
        redirect: 'error', // the headers may contain a secret
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      await reply.body?.cancel();
      return reply.ok ? null : `it answered ${reply.status}`;
    } catch (error) {
      return messageOf(error);
    }
  }
}

type OtlpValue = string | number | boolean | readonly string[];

export function attribute(key: string, value: OtlpValue): object {
  if (typeof value === 'string') return { key, value: { stringValue: value } };
  if (typeof value === 'boolean') return { key, value: { boolValue: value } };
  if (typeof value === 'number') return { key, value: { intValue: String(value) } };
  return { key, value: { arrayValue: { values: value.map((stringValue) => ({ stringValue })) } } };
}

export const SCOPE = Object.freeze({ name: 'osl-gateway' });

/** An OTLP timestamp: nanoseconds since the epoch in decimal digits. */
export function nanoseconds(ms: number): string {
  return String(BigInt(Math.round(ms * 1_000)) * 1_000n);
}
