import tap, { test } from 'tap';
import { startFrontends, WireClient } from '../../support/frontends.js';
import { startTestService } from '../../support/service.js';
import { bind, describe, execute, parse, query, sync } from '../../wire/support/bytes.js';

/**
 * All memory that comes unwritten holds a mark here, where else it holds what the process used it for before: other
 * callers' rows, tokens, keys. The mark never reaches a client, whatever it asks.
 */

const MARK = 0xa5;
const { allocUnsafe, allocUnsafeSlow } = Buffer;
Buffer.allocUnsafe = (size) => Buffer.alloc(size, MARK);
Buffer.allocUnsafeSlow = (size) => Buffer.alloc(size, MARK);

const shop = await startTestService();
const fronts = await startFrontends(shop.open);
const caller = { subject: 'user:ada', aclRoles: ['auditor', 'analyst'] };
const client = await WireClient.login(fronts.pgPort, caller.subject, await fronts.token(caller));
tap.teardown(async () => {
  client.end();
  await fronts.stop();
  await shop.close();
  Buffer.allocUnsafe = allocUnsafe;
  Buffer.allocUnsafeSlow = allocUnsafeSlow;
});

/** A statement of `count` parameters. */
const taking = (count: number) =>
  `select array[${Array.from({ length: count }, (_, i) => `$${i + 1}`).join()}]`;
const values = (count: number) => Array.from({ length: count }, (_, i) => `${i}`);
const described = (count: number) => [parse('', taking(count)), describe('S'), sync];
const long = `select '${'x'.repeat(100_000)}'`;

const EXCHANGES: Readonly<Record<string, readonly Buffer[]>> = {
  'every column as text': [query('select * from sample')],
  'every column in binary': [
    parse('', 'select * from sample'),
    bind('', '', { results: [1] }),
    describe('P'),
    execute(),
    sync,
  ],
  '32,768 parameters': described(32_768),
  '65,535 parameters': described(65_535),
  '65,535 values': [
    parse('', taking(65_535)),
    bind('', '', { values: values(65_535) }),
    describe('P'),
    execute(),
    sync,
  ],
  'one more than can be counted': [parse('', 'select $65536'), describe('S'), sync],
  'one more than can be sent': [
    parse('', `${taking(65_535)}, id from customer where id = 1`),
    describe('S'),
    sync,
  ],
  settings: [query('show all')],
  'a long value': [query(long)],
  'a long error': [query(`${long} from`)],
  'an error within rows': [query('select 1 / (id - 3) from customer order by id')],
  copies: [
    query('copy (select * from sample) to stdout'),
    query('copy (select * from sample) to stdout (format csv, header)'),
    query('copy (select * from sample) to stdout (format binary)'),
  ],
  'a cursor': [
    query('begin; declare c cursor for select * from "order"; fetch 3 from c; move 2 in c; commit'),
  ],
  'portions of a portal': [
    query('begin'),
    parse('', 'select * from "order"'),
    bind('p', ''),
    execute('p', 2),
    execute('p', 3),
    sync,
    query('rollback'),
  ],
  'what is not there': [bind('', 'none'), describe('S', 'none'), execute('none'), sync, query('show none')],
};

test('no memory that was not written reaches a client of the wire', async (t) => {
  for (const [name, messages] of Object.entries(EXCHANGES)) {
    const ends = messages.filter((m) => m[0] === 0x51 || m[0] === 0x53).length; // Query, Sync
    client.send(...messages);
    let errors = 0;
    for (let i = 0; i < ends; i++)
      errors += (await client.messagesUntil('Z')).filter((m) => m.type === 'E').length;
    const raw = client.takeRaw();
    t.ok(raw.length > 0 && !raw.includes(Buffer.alloc(2, MARK)), `${name}: ${raw.length} bytes`);
    t.equal(errors > 0, /error|more|not there/.test(name), `${errors} errors`);
  }
});

test('nor one of REST', async (t) => {
  const headers = {
    authorization: `Bearer ${await fronts.token(caller)}`,
    'content-type': 'application/json',
  };
  for (const accept of ['application/json', 'application/x-ndjson', 'application/vnd.apache.arrow.stream']) {
    for (const osql of ['select * from osl.entities.sample', long, `${long} from`]) {
      const answer = await fetch(`http://127.0.0.1:${fronts.httpPort}/osl/query`, {
        method: 'POST',
        headers: { ...headers, accept },
        body: JSON.stringify({ osql }),
      });
      const raw = Buffer.from(await answer.arrayBuffer());
      t.ok(raw.length > 0 && !raw.includes(Buffer.alloc(2, MARK)), `${accept}: ${raw.length} bytes`);
    }
  }
});
