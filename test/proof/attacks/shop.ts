import { createHash, randomBytes } from 'node:crypto';
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { generatedSql } from '../../../src/base/sql.js';
import type { SystemEngine } from '../../../src/engine/index.js';
import { type OpenService, openService } from '../../../src/service/open.js';
import { settingsFrom } from '../../../src/service/settings.js';
import { emptyDatabases } from '../../support/embedded-data.js';
import type { Caller } from '../../support/frontends.js';
import { grantsText, policyText } from '../../support/model-text.js';
import { nameServer, nativeOfRun, onPostgres } from '../../support/service.js';

/**
 * A small shop whose clerks may see the customers of their own region, with some columns masked, and the
 * purchases of their own region. What they may not see is unmistakable: it says SECRET, or is one of the numbers
 * of `SECRETS`.
 */
export const MANIFEST = `
version: 1
tenant: demo
connectors:
  shop:
    kind: pglite
    tables:
      shop.customer:
        columns:
          id: { type: int4 }
          name: { type: text, nullable: false }
          ssn: { type: text, pii: true }
          email: { type: text, pii: true }
          salary: { type: int4, sensitivity: pay }
          phone: { type: text, sensitivity: contact }
          card: { type: text, sensitivity: card }
          born: { type: date, sensitivity: birth }
          region: { type: text, nullable: false }
          amt: { type: int4, nullable: false }
          score: { type: numeric }
          joined: { type: timestamptz }
          note: { type: text }
      shop.purchase:
        columns:
          id: { type: int4 }
          customer_id: { type: int4 }
          customer_ssn: { type: text, pii: true }
          customer_phone: { type: text, sensitivity: contact }
          region: { type: text, nullable: false }
          total: { type: numeric, nullable: false }
          memo: { type: text }
      shop.likes:
        columns:
          customer_id: { type: int4 }
          purchase_id: { type: int4 }
          stars: { type: int4 }
      shop.device:
        columns:
          id: { type: int4 }
          region: { type: text, nullable: false }
          host: { type: inet }
          span: { type: int4range }
          price: { type: money }
          words: { type: tsvector }
          flags: { type: bit(4) }
          state: { type: text, stored: enum shop.state, labels: [draft, live, gone] }
          past: { type: text, stored: enum shop.state, labels: [draft, live, gone], pii: true }
          home: { type: inet, pii: true }
      shop.vault:
        columns:
          id: { type: int4 }
          content: { type: text }
entities:
  customer:
    source: shop.shop.customer
    primary_key: [id]
    entity_key_columns: [id, ssn, phone]
    columns: [id, name, ssn, email, salary, phone, card, born, region, amt, score, joined, note]
  purchase:
    source: shop.shop.purchase
    primary_key: [id]
    entity_key_columns: [id, customer_id, customer_ssn, customer_phone]
    columns: [id, customer_id, customer_ssn, customer_phone, region, total, memo]
  device: { source: shop.shop.device, primary_key: [id], columns: [id, region, host, span, price, words, flags, state, past, home] }
  vault: { source: shop.shop.vault, primary_key: [id], columns: [id, content] }
bridges:
  likes:
    source: shop.shop.likes
    left: { entity: customer, columns: [customer_id] }
    right: { entity: purchase, columns: [purchase_id] }
    columns: [customer_id, purchase_id, stars]
metrics:
  revenue: { entity: purchase, expression: sum(total) }
  customers: { entity: customer, expression: count(*) }
  hoard: { entity: vault, expression: count(*) }
# Attacks reach as far as a manifest can let them.
features: { joins: any }
`;

/** `note` is granted to auditors only; `card` is denied to clerks. */
const CLERK_COLUMNS = 'id, name, ssn, email, salary, phone, card, born, region, amt, score, joined';

export function policy(clerkColumns = CLERK_COLUMNS): string {
  return policyText(
    'demo',
    {
      'user:clerk': 'clerk { attributes: { region: eu } }',
      'user:lost': 'clerk',
      'user:mixed': 'clerk, friend { attributes: { region: eu } }',
      'user:buyer': 'buyer { attributes: { region: eu } }',
      'user:nobody': '',
      'user:stats': 'stats { attributes: { region: eu } }',
      'user:auditor': 'auditor, clerk { attributes: { region: eu } }',
      'agent:helper': 'clerk, auditor { attributes: { region: { any: true } } }',
      'user:admin': 'clerk { admin: [TENANT_ADMIN], attributes: { region: eu } }',
    },
    `roles:
  clerk:
    grants:
      - { on: customer, columns: [${clerkColumns}], rows: "region = attribute('region')" }
      - on: purchase
        columns: [id, customer_id, customer_ssn, customer_phone, region, total, memo]
        rows: region = attribute('region')
      - { on: likes, columns: "*", rows: stars <> 1 }
      - { on: device, columns: "*", rows: "region = attribute('region')" }
  friend:
    grants:
      - { on: customer, columns: [id, name, ssn, salary], rows: id = 2, unmask: [pii, pay] }
      - { on: customer, columns: [id, name], rows: region = 'mars' }
  buyer:
    grants:
      - { on: purchase, columns: [id, total, region], rows: region = attribute('region') }
  stats:
    grants:
      - on: customer
        columns: [id, name, region, amt, score, joined]
        rows: region = attribute('region')
        min_group_size: 3
      - on: purchase
        columns: [customer_id, region, memo]
        rows: region = attribute('region')
        metrics: [revenue]
        min_group_size: 3
  auditor:
    grants:
      - { on: customer, columns: "*", unmask: [pii, pay, contact, card, birth] }
      - { on: purchase, columns: "*", unmask: [pii, contact] }
${grantsText(['likes', 'vault'])}
masks:
  pii: redact
  pay: "null"
  contact: hash
  card: deny
  birth: year
limits: { query: 100000, catalog: 100000 }
`,
  );
}

const TABLES = `
create schema shop;
create table shop.customer (
  id int4 primary key, name text not null, ssn text, email text, salary int4, phone text, card text, born date,
  region text not null, amt int4 not null, score numeric, joined timestamptz, note text, undeclared text
);
create table shop.purchase (
  id int4 primary key, customer_id int4, customer_ssn text, customer_phone text, region text not null,
  total numeric not null, memo text
);
create table shop.likes (customer_id int4, purchase_id int4, stars int4, primary key (customer_id, purchase_id));
create type shop.state as enum ('draft', 'live', 'gone');
create table shop.device (
  id int4 primary key, region text not null, host inet, span int4range, price money, words tsvector, flags bit(4),
  state shop.state, past shop.state, home inet
);
create table shop.vault (id int4 primary key, content text);
create table shop.customer_us () inherits (shop.customer);
create sequence shop.customer_seq start 770077007;
select nextval('shop.customer_seq');
create view shop.customer_view as select name, ssn, 'SECRET-VIEW' as hidden from shop.customer;
create function public.lower(text) returns text language sql as 'select ''SECRET-SHADOW''::text';
create function public.shadow_eq(int4, int4) returns bool language sql as 'select true';
create operator public.= (leftarg = int4, rightarg = int4, function = public.shadow_eq);
create index on shop.customer (ssn);
`;

/** Differences of the rows of one shop; the visible part is the same in every shop. */
export interface Hidden {
  /** Put before the masked values, and into hidden rows. */
  readonly word: string;
  /** Masked numbers, and numbers of hidden rows. */
  readonly number: number;
  /** True if there are rows that clerks may not see. */
  readonly rows: boolean;
  /** A day of 1977. */
  readonly born: string;
}

/** The shop under attack. */
export const REAL: Hidden = { word: 'SECRET', number: 770077000, rows: true, born: '1977-07-17' };
/** For a clerk it must be the very same shop. */
export const TWIN: Hidden = { word: 'OTHER-AND-LONGER', number: -5, rows: false, born: '1977-02-03' };

/** SQL that makes the shop and fills it. */
export function shopScript(hidden: Hidden): string {
  return TABLES + rowsOf(hidden);
}

function rowsOf({ word, number, rows, born }: Hidden): string {
  const customer = (id: number, name: string, region: string, amt: number, score: string, note: string) =>
    `(${id}, '${name}', '${word}-SSN-${id}', '${word}-MAIL-${id}@hidden.example', ${number + 10 * (id % 7)}, ` +
    `'${phoneOf(id)}', '${word}-CARD-${id}', '${born}', '${region}', ${amt}, ${score}, ` +
    `'2024-0${(id % 3) + 1}-01T12:00:00Z', '${word}-NOTE-${note}', '${word}-UNDECLARED')`;
  const hidden = [
    customer(880088044, `${word}-NAME-4`, 'us', number + 7, '0', 'x'),
    customer(880088055, `${word}-NAME-5`, 'us', number + 7, '990099009', 'y'),
    customer(880088066, `${word}-((a+)+)+$`, 'us', 2147483647, '-1', 'z'),
  ];
  const visible = [
    customer(1, 'Ada', 'eu', 10, '1.5', 'a'),
    customer(2, 'Bob', 'eu', 20, '2.5', 'b'),
    customer(3, 'Cleo', 'eu', 30, 'null', 'c'),
  ];
  const purchase = (id: number, customer: number, region: string, total: string, memo: string) =>
    `(${id}, ${customer}, '${word}-SSN-${customer}', '${phoneOf(customer)}', '${region}', ${total}, '${memo}')`;
  const purchases = [
    purchase(101, 1, 'eu', '100.00', 'tea'),
    purchase(102, 2, 'eu', '50.50', 'milk'),
    purchase(105, 1, 'eu', '7.25', 'tea'),
    // Its customer is hidden, or not there at all.
    purchase(104, 880088044, 'eu', '5.00', 'rice'),
    ...(rows
      ? [
          purchase(880088103, 1, 'us', '990099009.99', `${word}-MEMO`),
          purchase(880088106, 880088044, 'us', '990099009.99', `${word}-MEMO`),
        ]
      : []),
  ];
  return `
insert into shop.customer values ${[...visible, ...(rows ? hidden : [])].join(', ')};
insert into shop.purchase values ${purchases.join(', ')};
insert into shop.likes values (1, 102, 5), (2, 101, 4), (3, 105, 3), (880088044, 104, 5)${rows ? ', (1, 101, 1)' : ''};
insert into shop.device values
  (1, 'eu', '10.0.0.1', '[1,5)', '$1.50', 'tea:1 milk:2', '0001', 'live', 'gone', '77.0.0.77'),
  (2, 'eu', '10.0.0.2', '[5,9)', '$2.50', 'milk:1', '0010', 'draft', 'gone', '77.0.0.77'),
  (3, 'eu', null, 'empty', null, null, null, null, 'gone', null)
  ${rows ? `, (880088077, 'us', '77.0.0.77', '[770077001,770077009)', '$770077.07', '${word}:1', '1111', 'gone', 'gone', null)` : ''};
insert into shop.vault values (1, '${word}-VAULT');
${rows ? "update shop.customer set score = 'NaN' where id = 880088066;" : ''}
analyze shop.customer, shop.purchase;
`;
}

/** Hash masks keep equality, so both shops have the same telephones. */
function phoneOf(id: number): string {
  return `SECRET-PHONE-${id}`;
}

/**
 * Values that must never reach a clerk, in the forms that a query can give it: as it is, in either case, reversed, in hex
 * or base64, hashed without a key, and the numbers also as an int4 on the wire.
 */
const SECRETS: readonly Buffer[] = secretsOf(REAL);

function secretsOf({ word, number, born }: Hidden): readonly Buffer[] {
  const texts = [1, 2, 3].flatMap((id) => [
    `${word}-SSN-${id}`,
    `${word}-MAIL-${id}@hidden.example`,
    `${word}-CARD-${id}`,
    phoneOf(id),
  ]);
  const derived = [...texts, `${word}-NAME-4`, `${word}-VAULT`].flatMap((t) => [
    [...t].reverse().join(''),
    Buffer.from(t).toString('hex'),
    Buffer.from(t).toString('base64'),
    createHash('md5').update(t).digest('hex'),
    createHash('sha256').update(t).digest('hex'),
  ]);
  const numbers = [7, 10, 20, 30].map((n) => number + n);
  const int4 = numbers.map((n) => {
    const bytes = Buffer.alloc(4);
    bytes.writeInt32BE(n);
    return bytes;
  });
  return [
    ...[word, word.toLowerCase(), 'hidden.example', 'HIDDEN.EXAMPLE', born, born.replaceAll('-', '')],
    ...['77.0.0.77', '770,077', '770077001', '770077009', '880088077'],
    ...['990099009', '880088055', '880088066', '880088103', '880088106', ...numbers.map(String)],
    ...derived,
  ]
    .map((t) => Buffer.from(t))
    .concat(int4);
}

/** The secrets in `bytes`, as text. Request ids are random, so they are no evidence. */
export function leaksIn(bytes: Buffer, secrets: readonly Buffer[] = SECRETS): readonly string[] {
  const searched = Buffer.from(
    bytes.toString('latin1').replace(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, ''),
    'latin1',
  );
  return secrets.filter((s) => searched.includes(s)).map((s) => s.toString('latin1'));
}

export const CLERK: Caller = { subject: 'user:clerk', aclRoles: ['clerk'] };
export const AUDITOR: Caller = { subject: 'user:auditor', aclRoles: ['auditor'] };
export const MIXED: Caller = { subject: 'user:mixed', aclRoles: ['clerk', 'friend'] };
export const BUYER: Caller = { subject: 'user:buyer', aclRoles: ['buyer'] };
/** Sees no customer and no purchase, only figures over three or more. */
export const STATS: Caller = { subject: 'user:stats', aclRoles: ['stats'] };
/** A clerk without a region. */
export const LOST: Caller = { subject: 'user:lost', aclRoles: ['clerk'] };
/** A clerk who asks for more than the ceiling allows. */
export const GREEDY: Caller = { subject: 'user:clerk', aclRoles: ['clerk', 'auditor', 'admin'] };
/** An agent with more rights than the clerk for whom it acts. */
export const HELPED: Caller = {
  subject: 'agent:helper',
  chain: ['user:clerk', 'agent:helper'],
  aclRoles: ['clerk', 'auditor'],
};

export interface Shop {
  readonly open: OpenService;
  readonly dir: string;
  /** Puts another policy in force, as a reload does. */
  govern(policyText: string): Promise<void>;
  readonly system: SystemEngine;
  /** Entries of the operator's log. */
  readonly logged: string[];
  close(): Promise<void>;
}

/** Changes the shop so that it allows raw SQL over its tables, but for the vault. */
export const RAW_SQL = `
raw_sql: { allow: [shop.shop.customer, shop.shop.purchase, shop.shop.likes] }
`;

/**
 * @param keysOf a shop whose secret keys this one shares, so that masked hashes agree
 * @param more what stands in the manifest beside the shop
 */
export async function openShop(hidden: Hidden = REAL, keysOf: Shop | null = null, more = ''): Promise<Shop> {
  const native = await nativeOfRun();
  const variable = `OSL_TEST_SHOP_${randomBytes(4).toString('hex').toUpperCase()}_URL`;
  if (native !== null) nameServer(native, variable);
  const manifest = native === null ? MANIFEST + more : onPostgres(MANIFEST + more, variable);
  const dir = mkdtempSync(join(tmpdir(), 'osl-shop-'));
  if (keysOf !== null)
    cpSync(join(keysOf.dir, 'data', 'keys'), join(dir, 'data', 'keys'), { recursive: true });
  const manifestFile = join(dir, 'manifest.yaml');
  const policyFile = join(dir, 'policy.yaml');
  writeFileSync(manifestFile, manifest);
  writeFileSync(policyFile, policy());
  const settings = settingsFrom({}, dir, { manifestFile, policyFile, dataDir: join(dir, 'data') });
  const logged: string[] = [];
  const note = (message: string, fields: unknown): void => {
    logged.push(`${message} ${JSON.stringify(fields)}`);
  };
  await emptyDatabases(settings.dataDir, manifest);
  const open = await openService(settings, { info: note, warn: note, error: note });
  const [engine] = open.databases.values();
  if (engine === undefined) throw new Error('the shop has one connector');
  await engine.system.script(generatedSql(shopScript(hidden)));
  await engine.system.grantRead('shop');
  return {
    open,
    dir,
    system: engine.system,
    logged,
    govern: async (text) => {
      writeFileSync(policyFile, text);
      await open.reload();
    },
    close: async () => {
      await open.close();
      await native?.stop();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
