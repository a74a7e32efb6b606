import { hostname } from 'node:os';
import type { ServiceLog } from '../../base/log.js';
import { messageOf } from '../../base/thrown.js';

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

/** For one delivery, in ms. */
const TIMEOUT_MS = 10_000;

/** The collector of OpenTelemetry, which takes JSON. What it does not take is lost: nobody waits for it. */
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

  /** Delivers `body`; false where the collector did not take it, which the log hears once for each time that begins. */
  async send(path: '/v1/traces' | '/v1/metrics', body: object): Promise<boolean> {
    const why = await this.#post(path, body);
    if (why !== null && !this.#failing)
      this.#log.warn('the collector of traces and metrics takes nothing', { why });
    if (why === null && this.#failing) this.#log.warn('the collector of traces and metrics answers again');
    this.#failing = why !== null;
    return why === null;
  }

  /** Why it failed; null where it did not. */
  async #post(path: string, body: object): Promise<string | null> {
    const { endpoint, headers } = this.#settings;
    try {
      const reply = await fetch(`${endpoint}${path}`, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json' },
        body: JSON.stringify(body),
        redirect: 'error', // the headers may have a secret
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

/** An attribute as OTLP has it. */
export function attribute(key: string, value: OtlpValue): object {
  if (typeof value === 'string') return { key, value: { stringValue: value } };
  if (typeof value === 'boolean') return { key, value: { boolValue: value } };
  if (typeof value === 'number') return { key, value: { intValue: String(value) } };
  return { key, value: { arrayValue: { values: value.map((stringValue) => ({ stringValue })) } } };
}

export const SCOPE = Object.freeze({ name: 'osl-gateway' });

/** A time of OTLP: nanoseconds since 1970, in digits, of milliseconds with parts. */
export function nanoseconds(ms: number): string {
  return String(BigInt(Math.round(ms * 1_000)) * 1_000n);
}
