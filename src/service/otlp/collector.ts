import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import type { EndedRequest, RequestStage, TraceSink } from '../../ask/request/meters.js';
import type { ServiceLog } from '../../base/log.js';
import { messageOf } from '../../base/thrown.js';

/** Collector settings from OpenTelemetry's variables. */
export interface OtlpSettings {
  /** URL without a trailing `/`, to which `/v1/traces` or `/v1/metrics` is appended. */
  readonly endpoint: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly serviceName: string;
  /** Sampling ratio, from 0 to 1, for requests without a trace; other requests follow their caller's decision. */
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
  #isFailing = false;

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

  /** Posts `body`; false if delivery failed. Only the first of consecutive failures and the recovery are logged. */
  async send(path: '/v1/traces' | '/v1/metrics', body: object): Promise<boolean> {
    const failure = await this.#post(path, body);
    if (failure !== null && !this.#isFailing)
      this.#log.warn('the collector of traces and metrics takes nothing', { why: failure });
    if (failure === null && this.#isFailing)
      this.#log.warn('the collector of traces and metrics answers again');
    this.#isFailing = failure !== null;
    return failure === null;
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

function attribute(key: string, value: OtlpValue): object {
  if (typeof value === 'string') return { key, value: { stringValue: value } };
  if (typeof value === 'boolean') return { key, value: { boolValue: value } };
  if (typeof value === 'number') return { key, value: { intValue: String(value) } };
  return { key, value: { arrayValue: { values: value.map((stringValue) => ({ stringValue })) } } };
}

const SCOPE = Object.freeze({ name: 'osl-gateway' });

/** An OTLP timestamp: nanoseconds since the epoch in decimal digits. */
function nanoseconds(ms: number): string {
  return String(BigInt(Math.round(ms * 1_000)) * 1_000n);
}

interface MetricJson {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  readonly values: readonly MetricSample[];
}

interface MetricSample {
  readonly value: number;
  readonly labels: Readonly<Record<string, string | number>>;
  readonly metricName?: string;
}

/** Exports metrics at an interval. The returned function stops the interval and waits for a last export. */
export function exportMetrics(
  collector: Collector,
  intervalMs: number,
  collectMetrics: () => Promise<string>,
  report: (error: unknown) => void,
): () => Promise<void> {
  const since = nanoseconds(Date.now() - 1_000 * process.uptime());
  const send = async (): Promise<void> => {
    const collected = JSON.parse(await collectMetrics()) as readonly MetricJson[]; // cast: written by the registry of this process
    const now = nanoseconds(Date.now());
    const metrics = collected
      .filter(({ name }) => name.startsWith('osl_'))
      .flatMap((metric) => metricOf(metric, since, now));
    await collector.send('/v1/metrics', {
      resourceMetrics: [{ resource: collector.resource, scopeMetrics: [{ scope: SCOPE, metrics }] }],
    });
  };
  let sending: Promise<void> | null = null;
  const sendOnce = (): Promise<void> => {
    sending ??= send().finally(() => {
      sending = null;
    });
    return sending;
  };
  const timer = setInterval(() => void sendOnce().catch(report), intervalMs).unref();
  return async () => {
    clearInterval(timer);
    await sendOnce();
  };
}

const CUMULATIVE = 2;

function metricOf(
  { name, help: description, type, values }: MetricJson,
  since: string,
  now: string,
): readonly object[] {
  const point = (value: number, labels: MetricSample['labels']) => ({
    attributes: attributesOf(labels),
    startTimeUnixNano: since,
    timeUnixNano: now,
    asDouble: value,
  });
  const points = () => values.map(({ value, labels }) => point(value, labels));
  switch (type) {
    case 'gauge':
      return [{ name, description, gauge: { dataPoints: points() } }];
    case 'counter':
      return [
        {
          name,
          description,
          sum: { dataPoints: points(), aggregationTemporality: CUMULATIVE, isMonotonic: true },
        },
      ];
    case 'histogram':
      return [
        {
          name,
          description,
          unit: 's',
          histogram: { dataPoints: histogramPoints(values, since, now), aggregationTemporality: CUMULATIVE },
        },
      ];
    default:
      return [];
  }
}

function attributesOf(labels: MetricSample['labels']): readonly object[] {
  return Object.entries(labels).map(([key, value]) => attribute(key, String(value)));
}

/** Converts histograms: Prometheus buckets are cumulative, OTLP buckets are not. */
function histogramPoints(values: readonly MetricSample[], since: string, now: string): readonly object[] {
  const series = new Map<
    string,
    { labels: MetricSample['labels']; bounds: number[]; cumulative: number[]; sum: number }
  >();
  for (const {
    metricName = '',
    labels: { le, ...labels },
    value,
  } of values) {
    const key = JSON.stringify(labels);
    const histogram = series.get(key) ?? { labels, bounds: [], cumulative: [], sum: 0 };
    series.set(key, histogram);
    if (metricName.endsWith('_sum')) histogram.sum = value;
    if (!metricName.endsWith('_bucket')) continue;
    histogram.cumulative.push(value);
    if (typeof le === 'number') histogram.bounds.push(le);
  }
  return [...series.values()].map(({ labels, bounds, cumulative, sum }) => ({
    attributes: attributesOf(labels),
    startTimeUnixNano: since,
    timeUnixNano: now,
    count: String(cumulative.at(-1) ?? 0),
    sum,
    explicitBounds: bounds,
    bucketCounts: cumulative.map((value, i) => String(value - (cumulative[i - 1] ?? 0))),
  }));
}

/** Maximum number of queued requests; the spans of further requests are dropped. */
const MAX_QUEUED = 2_048;
const MAX_BATCH = 256;

const SERVER = 2;
const INTERNAL = 1;
const ERROR = 2;

/** Exports a span for each request, with child spans for its stages, in the background. */
export class SpanExporter implements TraceSink {
  dropped = 0;
  readonly #collector: Collector;
  readonly #ratio: number;
  readonly #timer: NodeJS.Timeout;
  #queue: object[][] = [];
  #sending: Promise<void> | null = null;

  constructor(collector: Collector, { ratio, spansMs }: OtlpSettings) {
    this.#collector = collector;
    this.#ratio = ratio;
    this.#timer = setInterval(() => void this.#flush(), spansMs).unref();
  }

  record(request: EndedRequest, endedAt: number): void {
    const parent = request.traceparent === null ? null : parseTraceparent(request.traceparent);
    if (parent === null ? Math.random() >= this.#ratio : !parent.sampled) return;
    if (this.#queue.length >= MAX_QUEUED) {
      this.dropped += 1;
      return;
    }
    this.#queue.push(spansOf(request, parent, endedAt));
    if (this.#queue.length >= MAX_BATCH) void this.#flush();
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#sending;
    await this.#flush();
  }

  #flush(): Promise<void> {
    if (this.#sending !== null || this.#queue.length === 0) return this.#sending ?? Promise.resolve();
    const requests = this.#queue.splice(0, MAX_BATCH);
    const body = {
      resourceSpans: [
        { resource: this.#collector.resource, scopeSpans: [{ scope: SCOPE, spans: requests.flat() }] },
      ],
    };
    this.#sending = this.#collector.send('/v1/traces', body).then((isDelivered) => {
      if (!isDelivered) this.dropped += requests.length;
      this.#sending = null;
    });
    return this.#sending;
  }
}

interface Parent {
  readonly traceId: string;
  readonly spanId: string;
}

function spansOf(request: EndedRequest, parent: Parent | null, endedAt: number): object[] {
  const { stages, requestId, action, surface, decision, code } = request;
  const traceId = parent?.traceId ?? randomBytes(16).toString('hex');
  const spanId = spanIdOf(requestId);
  const total = (stages.get('total') ?? 0) / 1_000;
  const startedAt = endedAt - total;
  const root = {
    traceId,
    spanId,
    ...(parent !== null && { parentSpanId: parent.spanId }),
    name: `osl ${action}`,
    kind: SERVER,
    startTimeUnixNano: nanoseconds(startedAt),
    endTimeUnixNano: nanoseconds(endedAt),
    attributes: [
      attribute('osl.request_id', requestId),
      attribute('osl.surface', surface),
      attribute('osl.form', request.form ?? 'other'),
      attribute('osl.decision', decision),
      attribute('osl.outcome', request.outcome ?? 'none'),
      attribute('osl.rows', request.rows),
      attribute('osl.objects', request.objects),
      ...(code === null ? [] : [attribute('osl.code', code)]),
      ...fingerprintOf(request),
    ],
    ...(decision !== 'allow' || code !== null ? { status: { code: ERROR } } : {}),
  };
  return [root, ...stagesOf(stages, { traceId, spanId }, startedAt, endedAt)];
}

function fingerprintOf(request: EndedRequest): readonly object[] {
  const statement = request.statement();
  return statement === null ? [] : [attribute('osl.fingerprint', statement.fingerprint)];
}

/** Returns child spans for the stages: the first three are consecutive, then `record` and `answer` start together. */
function stagesOf(
  stages: ReadonlyMap<RequestStage, number>,
  { traceId, spanId }: Parent,
  startedAt: number,
  endedAt: number,
): object[] {
  const ms = (stage: RequestStage): number => (stages.get(stage) ?? 0) / 1_000;
  const limit = startedAt + ms('identify');
  const decide = limit + ms('limit');
  const answer = Math.max(decide + ms('decide'), endedAt - ms('answer'));
  const starts: readonly (readonly [RequestStage, number])[] = [
    ['identify', startedAt],
    ['limit', limit],
    ['decide', decide],
    ['record', answer],
    ['answer', answer],
  ];
  return starts
    .filter(([stage]) => stages.has(stage))
    .map(([stage, from]) => ({
      traceId,
      spanId: randomBytes(8).toString('hex'),
      parentSpanId: spanId,
      name: stage,
      kind: INTERNAL,
      startTimeUnixNano: nanoseconds(from),
      endTimeUnixNano: nanoseconds(from + ms(stage)),
      attributes: [],
    }));
}

interface Trace {
  readonly traceId: string;
  readonly spanId: string;
  readonly sampled: boolean;
}

function parseTraceparent(text: string): Trace | null {
  const [, traceId = '', spanId = '', flags = ''] =
    /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/.exec(text) ?? [];
  if (traceId === '') return null;
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

/** Returns the end of the request id as the span id, so that the span of a recorded request can be found. */
function spanIdOf(requestId: string): string {
  return requestId.replaceAll('-', '').slice(-16);
}
