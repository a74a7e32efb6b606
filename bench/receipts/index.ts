import { randomBytes, randomInt } from 'node:crypto';
import { Frontier, RecentTree } from '../../audit/frontier.js';
import { proofText } from '../../audit/proof-formats.js';
import { encodeRecord } from '../../audit/record.js';
import { type Findings, type Measure, measure, paired } from '../report.js';
import { costed, gatewayRequest } from '../rest/index.js';
import { type Layout, take } from '../stream/index.js';
import { type Gateway, startGateway } from '../support/gateway.js';
import { accounts, withPostgres } from '../support/postgres.js';
import { MANIFEST, POLICY } from '../wire/contestants.js';

/** Answers with a receipt compared with the same answers without one, in turns; and the size of receipts. */
export async function receiptsBench(quick: boolean): Promise<Findings> {
  const rows = quick ? 100_000 : 1_000_000;
  const rounds = quick ? 3 : 7;
  return withPostgres(accounts(rows), async (postgres) => {
    const gateway = await startGateway({ manifestFile: MANIFEST, policyFile: POLICY, postgres });
    try {
      const streams: Measure[] = [];
      for (const layout of ['ndjson', 'arrow'] as const)
        streams.push(await stream(gateway, layout, 'receipt', rows, rounds));
      streams.push(await stream(gateway, 'ndjson', 'receipt=multiset', rows / 10, rounds));
      return { measures: [...(await points(gateway, rows, quick)), ...streams, ...sizes()], tables: [] };
    } finally {
      await gateway.stop();
    }
  });
}

async function points(gateway: Gateway, keys: number, quick: boolean): Promise<readonly Measure[]> {
  const run = async (prefer: string | null, seconds: number) => {
    const { headers, ...rest } = await gatewayRequest(gateway);
    const wish = prefer === null ? {} : { prefer };
    return costed(gateway.child, {
      ...rest,
      headers: { ...headers, ...wish },
      port: gateway.httpPort,
      keys,
      connections: 64,
      seconds,
    });
  };
  for (const prefer of [null, 'receipt']) await run(prefer, 3); // until code is compiled
  const [bare, proven] = [[], []] as [Awaited<ReturnType<typeof run>>[], Awaited<ReturnType<typeof run>>[]];
  for (let round = 0; round < (quick ? 3 : 7); round++) {
    bare.push(await run(null, quick ? 2 : 5));
    proven.push(await run('receipt', quick ? 2 : 5));
  }
  const against = 'the same without a receipt';
  const rps = (runs: typeof bare): number[] => runs.map((r) => r.rps);
  const cpu = (runs: typeof bare): number[] => runs.map((r) => r.cpuUs);
  return [
    paired('receipts.rest.c64', 'requests/s', 'more', rps(proven), rps(bare), against),
    paired('receipts.rest.c64.cpu', 'µs/request', 'less', cpu(proven), cpu(bare), against),
  ];
}

async function stream(
  gateway: Gateway,
  layout: Layout,
  prefer: string,
  rows: number,
  rounds: number,
): Promise<Measure> {
  const speed = async (headers: Readonly<Record<string, string>>): Promise<number> =>
    (await take(gateway, layout, rows, 'reads', headers)).rowsPerSecond;
  for (const headers of [{}, { prefer }]) await speed(headers);
  const [bare, proven]: [number[], number[]] = [[], []];
  for (let round = 0; round < rounds; round++) {
    bare.push(await speed({}));
    proven.push(await speed({ prefer }));
  }
  const id = `receipts.stream.${layout}${prefer === 'receipt' ? '' : '.multiset'}`;
  return paired(id, 'rows/s', 'more', proven, bare, `${rows} rows without a receipt`);
}

const RECORDS = 1_000_000_000;

/** Sizes of receipts of a log with 10⁹ records: of the newest record, and of one from anywhere. */
function sizes(): readonly Measure[] {
  const newest: number[] = [];
  const anywhere: number[] = [];
  for (let n = 0; n < 200; n++) {
    const size = RECORDS - randomInt(100_000_000);
    const roots = [...size.toString(2)].filter((digit) => digit === '1');
    const frontier = Frontier.of(
      size,
      roots.map(() => randomBytes(32).toString('latin1')),
    );
    const tree = new RecentTree(frontier);
    for (let leaf = 0; leaf < 40; leaf++) tree.push(randomBytes(32).toString('latin1'));
    newest.push(bytesOf(tree.pathOf(size + 20, tree.size)?.length ?? 0, size));
    anywhere.push(bytesOf(Math.ceil(Math.log2(size)), size));
  }
  return [
    measure('receipts.bytes.newest', 'bytes', newest, '10⁹ records in the log; goal: 2048'),
    measure('receipts.bytes.anywhere', 'bytes', anywhere, '10⁹ records in the log, got again later'),
  ];
}

function bytesOf(siblings: number, size: number): number {
  const digest = randomBytes(32).toString('base64url');
  const writer = randomBytes(8).toString('hex');
  const record = encodeRecord(
    {
      kind: 'outcome',
      request_id: '0f6d2c1e-4b1a-4e57-9d0a-6a1f7f1f2b11',
      tenant: 'acme',
      surface: 'rest',
      action: 'query',
      subject: 'user:analyst',
      chain: ['user:analyst'],
      form: 'structured',
      objects: ['osl.entities.customer'],
      versions: { manifest: writer + writer, policy: writer + writer },
      statement_hmac: `12.${digest}`,
      rows: 10,
      duration_us: 1_234,
      outcome: 'ok',
      receipt: {
        as_of: null,
        masked: ['customer.email'],
        masked_omitted: 0,
        order: 'sequence',
        question: digest,
        rows: digest,
        truncated: false,
      },
    },
    { writer, epoch: 12, seq: size },
  );
  const note =
    `osl-audit/${writer}\n${size}\n${randomBytes(32).toString('base64')}\ntime ${new Date().toISOString()}\n\n` +
    `\u2014 osl-audit/${writer} ${randomBytes(68).toString('base64')}\n`;
  const path = Array.from({ length: siblings }, () => randomBytes(32));
  return Buffer.byteLength(proofText(Buffer.from(record), size, path, note));
}
