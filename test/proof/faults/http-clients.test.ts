import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { objectStoreWitness } from '../../../audit/witness/index.js';
import { webhookWitness } from '../../../audit/witness/places.js';
import { postJson } from '../../../src/content/http.js';
import { fetchDocument } from '../../../src/model/identity/remote-keys.js';
import { send } from '../../../src/service/lineage/delivery/send.js';
import { Collector } from '../../../src/service/otlp/collector.js';
import { type FaultProxy, startFaultProxy } from '../../support/fault-proxy.js';

/**
 * What the gateway asks over HTTP: servers of models, issuers, witnesses, receivers of lineage and of requests for access,
 * the collector. Whatever becomes of the connection, whoever asked hears that it failed, in time; nothing is thrown where
 * nobody catches it; and the next request is made as if nothing had been.
 */

t.setTimeout(300_000);

const LONG = JSON.stringify({ filler: 'x'.repeat(4_000) });

/** Each says what became of one request: `failed`, or anything else where it went well. */
const CLIENTS: Readonly<Record<string, (url: string) => () => Promise<string>>> = {
  'a server of models': (url) => {
    const endpoint = { url, keyEnv: null, timeoutMs: 2_000, retries: 0 };
    return () => outcome(postJson(endpoint, '/embeddings', { input: ['a'] }));
  },
  'the keys of an issuer': (url) => () => outcome(fetchDocument(new URL(`${url}/jwks`))),
  'an object store that keeps checkpoints': (url) => {
    const credentials = { accessKeyId: 'id', secretAccessKey: 'key', sessionToken: null };
    const witness = objectStoreWitness({ endpoint: url, region: 'r', bucket: 'b', prefix: '', credentials });
    return () => outcome(witness.keep({ writer: 'w', size: 1, note: 'note' }).then(() => witness.kept()));
  },
  'a webhook that keeps checkpoints': (url) => {
    const witness = webhookWitness(url, null);
    return () => outcome(witness.keep({ writer: 'w', size: 1, note: 'note' }));
  },
  'a receiver of lineage, or the owner of the policy': (url) => {
    const endpoint = {
      name: 'receiver',
      url,
      secrets: [],
      events: [],
      authorization: null,
      ca: null,
      allowAddresses: ['127.0.0.0/8'],
      timeoutMs: 2_000,
    };
    const options = { now: Date.now, agent: 'test' };
    return async () => (await send(endpoint, { id: 'a', body: '{}' }, options)).kind;
  },
  'the collector of traces': (url) => {
    const log = { info: () => undefined, warn: () => undefined, error: () => undefined };
    const settings = {
      endpoint: url,
      headers: {},
      serviceName: 'test',
      ratio: 1,
      metricsMs: 1_000,
      spansMs: 1_000,
    };
    const collector = new Collector(settings, '0', log);
    return async () => ((await collector.send('/v1/traces', {})) ? 'taken' : 'failed');
  },
};

async function outcome(work: Promise<unknown> | null): Promise<string> {
  try {
    await work;
    return 'done';
  } catch {
    return 'failed';
  }
}

/** Bytes of the answer that pass: none, part of its head, part of its body. */
const PLACES = [0, 10, 2_000];

interface Fault {
  readonly name: string;
  readonly strike: (proxy: FaultProxy) => Promise<void>;
}

const FAULTS: readonly Fault[] = [
  { name: 'nothing listens', strike: (proxy) => proxy.shut() },
  { name: 'silence', strike: async (proxy) => proxy.silence() },
  ...(['reset', 'cut', 'half-close', 'garbage'] as const).flatMap((deed) =>
    PLACES.map((after) => ({
      name: `${deed} after ${after} bytes`,
      strike: async (proxy: FaultProxy) => proxy.arm({ direction: 'down', after, deed }),
    })),
  ),
];

/** Who wants the status alone has it before the body breaks; of all others the whole answer must have come. */
const WANTS_STATUS = new Set([
  'an object store that keeps checkpoints',
  'a webhook that keeps checkpoints',
  'a receiver of lineage, or the owner of the policy',
  'the collector of traces',
]);

/** No connection is left from before: a request that a dying one is given fails too. */
async function without(proxy: FaultProxy): Promise<void> {
  proxy.strike('reset');
  while (proxy.links > 0) await sleep(5);
  await sleep(20);
}

async function serverOf(t: Test): Promise<number> {
  const server = createServer((request, reply) => {
    const answer = (): void => void reply.writeHead(200, { 'content-length': LONG.length }).end(LONG);
    request.resume().on('end', answer);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

t.test('what is asked over HTTP', async (t) => {
  const port = await serverOf(t);
  await Promise.all(
    Object.entries(CLIENTS).map(async ([name, client]) => {
      const proxy = await startFaultProxy(port);
      const ask = client(`http://127.0.0.1:${proxy.port}`);
      t.not(await ask(), 'failed', `${name}: untroubled`);
      for (const fault of FAULTS) {
        await without(proxy);
        await fault.strike(proxy);
        const heard = await ask();
        const had = WANTS_STATUS.has(name) && fault.name.endsWith('2000 bytes');
        if (!had) t.equal(heard, 'failed', `${name}: ${fault.name}`);
        proxy.arm(null);
        proxy.restore();
        await proxy.open();
        await without(proxy);
        t.not(await ask(), 'failed', `${name}: after ${fault.name}`);
      }
      await proxy.close();
    }),
  );
});
