import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { settingsFrom } from '../../../src/service/settings.js';
import { osl } from '../../tools/cli/support.js';
import { files, openStore } from './store.js';
import { asked, logged, served, tokenFor } from './support.js';

/** Traces and metrics of a running server, as a collector of OpenTelemetry takes them. */

t.setTimeout(120_000);

interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly { readonly key: string; readonly value: Readonly<Record<string, unknown>> }[];
}

interface Metric {
  readonly name: string;
  readonly histogram?: { readonly dataPoints: readonly HistogramPoint[] };
  readonly sum?: {
    readonly isMonotonic: boolean;
    readonly dataPoints: readonly { readonly asDouble: number }[];
  };
}

interface HistogramPoint {
  readonly count: string;
  readonly sum: number;
  readonly explicitBounds: readonly number[];
  readonly bucketCounts: readonly string[];
}

/** Takes what is delivered, and answers with `status`. */
class Receiver {
  status = 200;
  readonly spans: Span[] = [];
  metrics: readonly Metric[] = [];
  readonly headers: unknown[] = [];
  readonly texts: string[] = [];
  readonly #server = createServer((request, reply) => {
    let text = '';
    request.setEncoding('utf8').on('data', (part: string) => {
      text += part;
    });
    request.once('end', () => {
      reply.writeHead(this.status).end('{}');
      if (this.status !== 200) return;
      this.texts.push(text);
      this.headers.push(request.headers);
      const body = JSON.parse(text);
      if (request.url === '/v1/traces')
        for (const { scopeSpans } of body.resourceSpans)
          for (const { spans } of scopeSpans) this.spans.push(...spans);
      else this.metrics = body.resourceMetrics[0].scopeMetrics[0].metrics;
    });
  });

  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`; // it listens on a port
  }

  stop(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const PARENT = 'b7ad6b7169203331';
const SECRET = 'hunter2secret';

const store = await openStore(t, 'OpenTelemetry');
if (store !== null) {
  const { postgres } = store;
  await t.test('spans of each request and its stages, and what is counted, reach a collector', async (t) => {
    const receiver = new Receiver();
    const endpoint = await receiver.start();
    t.teardown(() => receiver.stop());
    const where = files();
    const server = await served(t, where, {
      STORE_URL: postgres.readerUrl,
      OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
      OTEL_EXPORTER_OTLP_HEADERS: 'x-key=a%20key',
      OTEL_SERVICE_NAME: 'shop',
      OTEL_BSP_SCHEDULE_DELAY: '50',
      OTEL_METRIC_EXPORT_INTERVAL: '100',
    });
    const authorization = `Bearer ${await tokenFor(where.dataDir)}`;
    const osql = `select name from osl.entities.account where id = 1 and name <> '${SECRET}'`;
    const ask = (headers: Readonly<Record<string, string>>, text = osql) =>
      asked(server, '/osl/query', { osql: text }, { authorization, ...headers });
    const traceparent = `00-${TRACE}-${PARENT}-01`;
    // More than once: the fast lane must not lose what belongs to a trace.
    const ids = [];
    for (let n = 0; n < 6; n++) ids.push(JSON.parse((await ask({ traceparent })).body).request_id);
    const roots = () => receiver.spans.filter((span) => span.parentSpanId === PARENT);
    await until(async () => roots().length === ids.length);
    for (const [i, root] of roots().entries()) {
      t.equal(root.traceId, TRACE);
      t.equal(root.name, 'osl query');
      const told = Object.fromEntries(
        root.attributes.map(({ key, value }) => [key, Object.values(value)[0]]),
      );
      t.match(told, {
        'osl.request_id': ids[i],
        'osl.form': 'structured',
        'osl.decision': 'allow',
        'osl.outcome': 'ok',
        'osl.rows': '1',
        'osl.fingerprint': /^[0-9a-f]{16}$/,
      });
      const stages = receiver.spans.filter((span) => span.parentSpanId === root.spanId);
      t.strictSame(stages.map(({ name }) => name).sort(), [
        'answer',
        'decide',
        'identify',
        'limit',
        'record',
      ]);
      for (const stage of stages) {
        t.equal(stage.traceId, TRACE);
        t.ok(
          BigInt(stage.startTimeUnixNano) >= BigInt(root.startTimeUnixNano),
          `${stage.name} begins within it`,
        );
        t.ok(BigInt(stage.endTimeUnixNano) >= BigInt(stage.startTimeUnixNano));
      }
    }

    await ask({ traceparent: `00-${TRACE}-${PARENT}-00` });
    await ask({ traceparent: `00-${TRACE}-x'; drop table y--01` });
    const refused = JSON.parse((await ask({}, 'select nothing')).body).request_id;
    const ofRequest = (id: string) =>
      receiver.spans.find((s) =>
        s.attributes.some(({ key, value }) => key === 'osl.request_id' && value['stringValue'] === id),
      );
    await until(async () => ofRequest(refused) !== undefined);
    t.equal(roots().length, ids.length, 'what its caller does not sample has no span');
    t.match(ofRequest(refused), { status: { code: 2 }, traceId: /^[0-9a-f]{32}$/ });
    t.not(ofRequest(refused)?.traceId, TRACE, 'without a trace it makes its own');

    await until(async () => receiver.metrics.length > 0);
    const counted = async (): Promise<HistogramPoint[]> => [
      ...(receiver.metrics.find(({ name }) => name === 'osl_request_stage_seconds')?.histogram?.dataPoints ??
        []),
    ];
    await until(async () => (await counted()).some(({ count }) => Number(count) >= ids.length));
    for (const { count, sum, explicitBounds, bucketCounts } of await counted()) {
      t.equal(bucketCounts.length, explicitBounds.length + 1);
      t.equal(
        bucketCounts.reduce((all, n) => all + Number(n), 0),
        Number(count),
      );
      t.ok(sum >= 0);
    }
    t.match(receiver.metrics.find(({ name }) => name === 'osl_errors_total')?.sum, { isMonotonic: true });
    t.match(receiver.headers[0], { 'x-key': 'a key', 'content-type': 'application/json' });
    t.match(receiver.texts[0], '"stringValue":"shop"');
    for (const text of receiver.texts) t.notMatch(text, SECRET);

    receiver.status = 503;
    await ask({});
    await until(async () =>
      logged(server).some(({ msg }) => msg === 'the collector of traces and metrics takes nothing'),
    );
    t.match(await ask({}), { status: 200 }, 'nobody waits for the collector');
    receiver.status = 200;
    await until(async () =>
      logged(server).some(({ msg }) => msg === 'the collector of traces and metrics answers again'),
    );
    t.match(await server.signal('SIGTERM'), { code: 0 });
  });
}

t.test('what cannot be spoken is refused at start', async (t) => {
  for (const env of [
    { OTEL_EXPORTER_OTLP_ENDPOINT: 'ftp://x' },
    { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://x', OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' },
    { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://x', OTEL_TRACES_SAMPLER_ARG: '2' },
  ])
    t.throws(() => settingsFrom(env, '/'), { name: 'StartProblem' });
  t.equal(settingsFrom({}, '/').otlp, null);
  t.equal(
    settingsFrom({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://x', OTEL_SDK_DISABLED: 'true' }, '/').otlp,
    null,
  );
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://x', OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' };
  t.match(await osl(['serve', '--manifest', 'x'], { env }), {
    code: 2,
    stderr: /OTEL_EXPORTER_OTLP_PROTOCOL must be http\/json, not `grpc`/,
  });
});

async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await sleep(20);
}
