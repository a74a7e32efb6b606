import { randomBytes } from 'node:crypto';
import type { EndedRequest, RequestStage, TraceSink } from '../../ask/request/meters.js';
import { attribute, type Collector, nanoseconds, type OtlpSettings, SCOPE } from './collector.js';

/** Maximum number of requests queued; further ones are dropped. */
const MOST_WAITING = 2_048;
const MOST_SENT = 256;

const SERVER = 2;
const INTERNAL = 1;
const ERROR = 2;

/** Exports a span for each request, with child spans for its stages, in the background. */
export class SpanExporter implements TraceSink {
  dropped = 0;
  readonly #collector: Collector;
  readonly #ratio: number;
  readonly #timer: NodeJS.Timeout;
  #waiting: object[][] = [];
  #sending: Promise<void> | null = null;

  constructor(collector: Collector, { ratio, spansMs }: OtlpSettings) {
    this.#collector = collector;
    this.#ratio = ratio;
    this.#timer = setInterval(() => void this.#flush(), spansMs).unref();
  }

  ended(request: EndedRequest, endedAt: number): void {
    const parent = request.traceparent === null ? null : traceOf(request.traceparent);
    if (parent === null ? Math.random() >= this.#ratio : !parent.sampled) return;
    if (this.#waiting.length >= MOST_WAITING) {
      this.dropped += 1;
      return;
    }
    this.#waiting.push(spansOf(request, parent, endedAt));
    if (this.#waiting.length >= MOST_SENT) void this.#flush();
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#sending;
    await this.#flush();
  }

  #flush(): Promise<void> {
    if (this.#sending !== null || this.#waiting.length === 0) return this.#sending ?? Promise.resolve();
    const requests = this.#waiting.splice(0, MOST_SENT);
    const body = {
      resourceSpans: [
        { resource: this.#collector.resource, scopeSpans: [{ scope: SCOPE, spans: requests.flat() }] },
      ],
    };
    this.#sending = this.#collector.send('/v1/traces', body).then((taken) => {
      if (!taken) this.dropped += requests.length;
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

/** Places the stages in time: the first three are consecutive; then `record` and `answer` start together. */
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

function traceOf(text: string): Trace | null {
  const [, traceId = '', spanId = '', flags = ''] =
    /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/.exec(text) ?? [];
  if (traceId === '') return null;
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

/** Derives the span id from the request id, so that it can be computed from a record of the request. */
function spanIdOf(requestId: string): string {
  return requestId.replaceAll('-', '').slice(-16);
}
